"""Training departure: each item leaves once, at its edge, in order; credit is obeyed and returned.
"""

import random
from collections import defaultdict

import pytest

from rtl.config import NicConfig
from rtl.formats import Opcode, ReductionLevel, StepKind
from rtl.training.departure import TrainingDeparture
from tests.rtl.network.dirty import simulate
from tests.rtl.network.packing import follow_time
from tests.rtl.network.test_partial_packager import content, contents_of
from tests.rtl.network.test_record_packager import records_of
from tests.support import made, quiet_while_idle, receiver, send_at_once, sender

NODES, WINDOW = 3, 8
CONFIG = NicConfig(
    nodes=NODES, tables=4, local_cache_rows=64, local_cache_ways=4, misses_in_flight=16,
    dedupe_in_flight=16, net_payload_beats=6, host_payload_beats=7, gradient_beats=64,
    partial_beats=64, training=True, gradient_ways=2, update_rows=8)
PARTIALS = Opcode.PARTIALS, Opcode.SPILLED, Opcode.ROW_UPDATES
"""Packets of records and values; all others have records only."""
NET = Opcode.PARTIALS, Opcode.STEPS


def sources(dut) -> list[tuple]:
    """Return each input stream with its opcode and, if all its items go to one, its destination."""
    return [
        (dut.partials, Opcode.PARTIALS, None), (dut.rows, Opcode.ROW_UPDATES, 0),
        *((dut.spilled[level], Opcode.SPILLED, int(level)) for level in ReductionLevel),
        (dut.state_requests, Opcode.STATE_REQUESTS, 0),
        (dut.state_updates, Opcode.STATE_UPDATES, 0),
        *((port, Opcode.STEPS, None) for port in dut.steps),
        *((port, Opcode.STEP_REPORTS, 0) for port in dut.reports)]


class Departed:
    """Items of all sources, with receivers behind the two edges that return credit late."""

    def __init__(self, width: int, *, idle: float, stall: float, seed: int, count: int,
                 window: int = WINDOW):
        rng, dut = random.Random(seed), made(TrainingDeparture, CONFIG)
        self.dut, self.rng, self.width, self.window = dut, rng, width, window
        self.packets: list[tuple[str, dict, list[int]]] = []
        self.consumed, self.told = [0] * NODES, [0] * NODES
        self.sent, self.acked = [0] * NODES, [0] * NODES
        self.settings = {
            "vector_packing": {16: 0, 8: 1, 4: 2}[width], "gradient_timeout": 60,
            "gradient_window": window, "request_batch": 9, "request_timeout": 40,
            "host_credit": 0xBEEF, "open_step": 0x1234}
        self.items = [self.make(number, opcode, destination, count)
                      for number, (_, opcode, destination) in enumerate(sources(dut))]
        self.headers: dict[str, list] = {"net": [], "host": []}
        self.beats: dict[str, list] = {"net": [], "host": []}
        feeds = [sender(port, items, stall=idle, seed=seed + number) for number, (
            (port, *_), items) in enumerate(zip(sources(dut), self.items, strict=True))]
        outputs = [receiver(getattr(dut, f"{edge}_{part}"), taken[edge], 1 << 30, stall=stall,
                            seed=seed + 50 + number)
                   for number, (edge, part, taken) in enumerate((edge, part, taken)
                   for edge in ("net", "host") for part, taken in (
                       ("headers", self.headers), ("payload", self.beats)))]
        comes = [*(port.valid for port, *_ in sources(dut)), dut.freed.valid, dut.credit_in.valid]
        moves = [getattr(dut, f"{edge}_{part}").valid
                 for edge in ("net", "host") for part in ("headers", "payload")]
        simulate(dut, self.around, *map(self.later, feeds), limit=20_000, background=[
            *outputs, follow_time(dut, (1 << 32) - 300), quiet_while_idle(dut.idle, comes, moves)])

    def make(self, source: int, opcode: Opcode, destination: int | None, count: int) -> list[dict]:
        """Return items of a source, all distinct."""
        rng, step, items = self.rng, 0xFFFE, []
        for number in range(count // 3 if destination is None and opcode == Opcode.STEPS
                            else count):
            if rng.random() < 0.05:
                step = step + 1 & 0xFFFF
            goes = destination if destination is not None else rng.randrange(NODES)
            name = source << 16 | number
            item = {"destination": goes, "step": step}
            if opcode in PARTIALS:
                level = goes if opcode == Opcode.SPILLED else rng.randrange(2)
                item["record"] = {"table": rng.getrandbits(12), "row": name, "level": level,
                                  "beat": rng.getrandbits(4)}
                item["data"] = rng.getrandbits(32 * self.width)
            else:
                item["record"] = name | StepKind.END << 32
            items.append(item)
        return items

    def later(self, bench):
        async def wait(ctx):
            await ctx.tick().repeat(2 * NODES + 4)
            await bench(ctx)
        return wait

    async def around(self, ctx):
        """Model the nodes: take packets of partials, acknowledge their beats, send other nodes'
        beats."""
        dut, rng = self.dut, self.rng
        for name, value in self.settings.items():
            ctx.set(getattr(dut, name), value)
        await ctx.tick().repeat(2 * NODES + 4)
        done, left, total = 0, 200, sum(map(len, self.items))
        while left or self.taken() < total or not ctx.get(dut.idle):
            node = rng.randrange(NODES)
            beats = rng.randrange(1, 4) if left and rng.random() < 0.3 else 0
            left = max(0, left - beats)
            ctx.set(dut.freed, {"valid": int(beats > 0), "node": node, "beats": beats})
            for header in self.headers["net"][done:]:
                self.header(header)
            done = len(self.headers["net"])
            node_in = rng.randrange(NODES)
            if late := self.sent[node_in] - self.acked[node_in]:
                self.acked[node_in] += rng.randrange(late + 1)
            ctx.set(dut.credit_in, {"valid": int(rng.random() < 0.05), "node": node_in,
                                    "value": self.acked[node_in] & 0xFFFF})
            await ctx.tick()
            self.consumed[node] += beats
        ctx.set(dut.credit_in.valid, 0)
        await ctx.tick().repeat(20)
        assert ctx.get(dut.idle)
        for header in self.headers["net"][done:]:
            self.header(header)
        self.counters = {name: {event: ctx.get(dut.counters[name][event])
                                for event in block.counters.shape().members}
                         for name, block in dut.blocks.items()}

    def taken(self) -> int:
        """Return the number of items that left, without CREDIT records."""
        return sum(header["count"] for edge in self.headers.values() for header in edge) - (
            self.credits())

    def credits(self) -> int:
        ends = [beat["data"] >> 32 & 3 for beat in self.beats["net"] if beat["data"] < 1 << 64]
        return ends.count(StepKind.CREDIT)

    def header(self, header: dict):
        """Check the credit in a header to a node, and the window."""
        node, told = header["destination"], header["credit"]
        assert told <= self.consumed[node]
        self.told[node] = max(self.told[node], told)  # a header may overtake another
        if header["opcode"] == Opcode.PARTIALS:
            beats = -(-header["count"] // 8) + -(-header["count"] * self.width // 16)
            self.sent[node] += beats
            assert self.sent[node] - self.acked[node] <= self.window

    def whole(self, edge: str) -> list[tuple[dict, list[int]]]:
        """Return the packets of an edge."""
        beats, packets = iter(self.beats[edge]), []
        for header in self.headers[edge]:
            payload = []
            while not payload or not payload[-1]["last"]:
                payload.append(next(beats))
            packets.append((header, [beat["data"] for beat in payload]))
        assert next(beats, None) is None
        return packets


@pytest.mark.thorough
@pytest.mark.parametrize("width, idle, stall, count", [
    (16, 0.0, 0.0, 36), (8, 0.5, 0.4, 30), (4, 0.95, 0.0, 12)])
def test_each_item_leaves_once_by_its_edge(width, idle, stall, count):
    run = Departed(width, idle=idle, stall=stall, seed=width, count=count)
    left, credits, packets = defaultdict(list), 0, defaultdict(int)
    for edge in ("net", "host"):
        for header, beats in run.whole(edge):
            opcode, destination = header["opcode"], header["destination"]
            packets[opcode] += 1
            assert (opcode in NET) == (edge == "net") and not header["empty"]
            assert edge == "net" or header["credit"] == run.settings["host_credit"]
            if opcode in PARTIALS:
                items = contents_of(header, beats, width)
                sources_of = [item[1] >> 16 for item in items]
            else:
                items = records_of(header, beats)
                sources_of = [item >> 16 & 0xFFFF for item in items]
            if opcode in (Opcode.STEPS, Opcode.STEP_REPORTS):
                assert len(items) == 1, "these leave at once"
                if items[0] == StepKind.CREDIT << 32:
                    credits += 1
                    assert header["step"] == run.settings["open_step"]
                    continue
            for source, item in zip(sources_of, items, strict=True):
                left[source, destination].append((opcode, header["step"], item))
    expected = defaultdict(list)
    for number, (_, opcode, _) in enumerate(sources(run.dut)):
        for item in run.items[number]:
            what = content(item) if opcode in PARTIALS else item["record"]
            expected[number, item["destination"]].append((opcode, item["step"], what))
    assert left == expected
    # The unreported credit stays below a quarter of the window.
    assert all(had - told < max(1, run.window // 4)
               for had, told in zip(run.consumed, run.told, strict=True))
    counted = run.counters
    assert credits and (idle or counted["partial_packager"]["stall_credit"])
    assert counted["credit_return"] == {"beats": sum(run.consumed), "credits": credits}
    for name, opcode, what in (
            ("partial_packager", Opcode.PARTIALS, "partials"),
            ("spill_packager", Opcode.SPILLED, "partials"),
            ("row_packager", Opcode.ROW_UPDATES, "partials"),
            ("step_packager", Opcode.STEPS, "records"),
            ("report_packager", Opcode.STEP_REPORTS, "records"),
            ("state_request_packager", Opcode.STATE_REQUESTS, "records"),
            ("state_packager", Opcode.STATE_UPDATES, "records")):
        items = sum(len(each) for number, each in enumerate(run.items)
                    if sources(run.dut)[number][1] == opcode)
        assert counted[name][what] == items + credits * (opcode == Opcode.STEPS)
        assert counted[name]["packets"] == packets[opcode]


@pytest.mark.thorough
def test_when_packets_leave():
    """Step records and reports at once, requests at their time-out, all else at that of gradients;
    a full packet as soon as it is."""
    dut, seen = made(TrainingDeparture, CONFIG), {}
    gradients, requests, soon = 400, 200, 40

    async def watch(ctx):
        cycle = 0
        for edge in ("net", "host"):
            ctx.set(getattr(dut, f"{edge}_headers").ready, 1)
            ctx.set(getattr(dut, f"{edge}_payload").ready, 1)
        async for _, _, net, net_header, host, host_header in ctx.tick().sample(
                dut.net_headers.valid, dut.net_headers.payload,
                dut.host_headers.valid, dut.host_headers.payload):
            cycle += 1
            for valid, header in ((net, net_header), (host, host_header)):
                if valid:
                    seen.setdefault(header.opcode, []).append((cycle, header.count))

    async def bench(ctx):
        for name, value in {"gradient_timeout": gradients, "request_timeout": requests,
                            "request_batch": 3, "gradient_window": 64}.items():
            ctx.set(getattr(dut, name), value)
        await ctx.tick().repeat(20)
        for port, opcode, _ in sources(dut):
            await send_at_once(ctx, port, {"destination": 0, "step": 7})
            if opcode == Opcode.STATE_REQUESTS:
                for _ in range(3):
                    await send_at_once(ctx, port, {"destination": 0, "step": 7})
        await ctx.tick().repeat(gradients + 2 * soon)

    simulate(dut, bench, background=[watch, follow_time(dut)])
    assert {opcode: [count for _, count in packets] for opcode, packets in seen.items()} == {
        Opcode.PARTIALS: [1], Opcode.ROW_UPDATES: [1], Opcode.SPILLED: [1, 1],
        Opcode.STATE_REQUESTS: [3, 1], Opcode.STATE_UPDATES: [1], Opcode.STEPS: [1, 1],
        Opcode.STEP_REPORTS: [1, 1, 1]}
    for opcode, packets in seen.items():
        for cycle, count in packets:
            due = 0 if opcode in (Opcode.STEPS, Opcode.STEP_REPORTS) or count == 3 else (
                requests if opcode == Opcode.STATE_REQUESTS else gradients)
            assert due <= cycle - 20 <= due + soon, (opcode, cycle)


def test_not_idle_while_a_packet_waits_at_an_edge():
    dut = made(TrainingDeparture, CONFIG)

    async def bench(ctx):
        ctx.set(dut.gradient_window, WINDOW)
        await ctx.tick().repeat(20)
        for port, headers, payload in ((dut.steps[0], dut.net_headers, dut.net_payload), (
                dut.reports[0], dut.host_headers, dut.host_payload)):
            assert ctx.get(dut.idle)
            await send_at_once(ctx, port, {"destination": 0})
            for _ in range(60):
                await ctx.tick()
                assert not ctx.get(dut.idle)
            ctx.set(headers.ready, 1)
            ctx.set(payload.ready, 1)
            await ctx.tick().repeat(10)
        assert ctx.get(dut.idle)

    simulate(dut, bench)
