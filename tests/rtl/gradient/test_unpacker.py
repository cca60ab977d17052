"""GradientUnpacker: records and vectors apart, packets whole or not at all, and their credit."""

import random

import pytest

from rtl.config import preset
from rtl.gradient import GradientUnpacker
from tests.rtl.power_up import powered_up
from tests.support import made, receiver, send_at_once, simulate

CONFIG = preset("tiny")
DEPTH = 2 * CONFIG.host_payload_beats + 6
LATENCY = GradientUnpacker.LATENCY["last beat of a packet", "its first record"]


class Packets:
    """Packets of (records, beats of vectors): their beats, and the expected results."""

    def __init__(self, sizes: list[tuple[int, int]], seed: int):
        rng = random.Random(seed)
        self.packets = []
        for records, vectors in sizes:
            step, words = rng.getrandbits(16), [rng.getrandbits(64) for _ in range(records)]
            beats = [(sum(word << 64 * k for k, word in enumerate(part)), len(part))
                     for part in (words[at:at + 8] for at in range(0, records, 8))]
            raw = [rng.getrandbits(512) for _ in range(vectors)]
            beats += [(data, 0) for data in raw]
            self.packets.append((
                [{"data": data, "records": count, "source": 0, "step": step,
                  "last": int(n == len(beats) - 1)} for n, (data, count) in enumerate(beats)],
                [{"record": word, "step": step, "bare": 0, "lost": 0, "last": int(n == records - 1),
                  "beats": vectors} for n, word in enumerate(words)]
                or [{"step": step, "bare": 1, "lost": 0, "last": 1, "beats": vectors}],
                [{"data": data, "last": int(n == vectors - 1)} for n, data in enumerate(raw)]))

    def part(self, which: int) -> list[dict]:
        return [item for packet in self.packets for item in packet[which]]


def named(items: list[dict]) -> list[dict]:
    """Return items without the record of items that have none."""
    return [{name: value for name, value in item.items() if name != "record" or not item["bare"]}
            for item in items]


def run(given: Packets, *, credit: bool, stall: float, items: int, vectors: int) -> tuple:
    """Return the items, the vectors, and the counter of packets without credit."""
    dut, out, raw = made(GradientUnpacker, CONFIG, depth=DEPTH), [], []
    beats, seen = given.part(0), []

    async def feed(ctx):
        for sent, beat in enumerate(beats):
            while credit and (sent - ctx.get(dut.consumed)) % (1 << 16) >= dut.credits:
                await ctx.tick()
            await send_at_once(ctx, dut.i, beat)

    async def end(ctx):
        while len(out) < items or len(raw) < vectors or not ctx.get(dut.idle):
            await ctx.tick()
        await ctx.tick().repeat(3)
        assert ctx.get(dut.consumed) == len(beats)
        seen.append(ctx.get(dut.counters.over_credit))

    simulate(powered_up(dut), feed, end, background=[
        receiver(dut.items, out, 1 << 30, stall=stall),
        receiver(dut.vectors, raw, 1 << 30, stall=stall, seed=5)])
    return out, raw, seen[0]


@pytest.mark.parametrize("stall", [0.0, 0.5])
def test_packets_of_all_sizes(stall):
    rng = random.Random(3)
    sizes = [(rng.choice([0, 1, 7, 8, 9, 20]), rng.randrange(6)) for _ in range(25)]
    given = Packets([size for size in sizes if sum(size)], 4)
    items, vectors = given.part(1), given.part(2)
    out, raw, lost = run(given, credit=True, stall=stall, items=len(items), vectors=len(vectors))
    assert named(out) == named(items) and raw == vectors and not lost


def test_what_has_no_credit_is_dropped_whole_and_said():
    """Nothing is taken meanwhile: what fits comes whole, and of the rest one item each."""
    given = Packets([(8, CONFIG.host_payload_beats - 1)] * 8, 5)
    dut, out, raw = made(GradientUnpacker, CONFIG, depth=DEPTH), [], []

    async def bench(ctx):
        for beat in given.part(0):
            ctx.set(dut.i.payload, beat)
            ctx.set(dut.i.valid, 1)
            await ctx.tick()
        ctx.set(dut.i.valid, 0)
        lost = ctx.get(dut.counters.over_credit)
        kept = len(given.packets) - lost
        assert 1 <= kept < len(given.packets)
        await receiver(dut.items, out, 8 * kept + lost)(ctx)
        await receiver(dut.vectors, raw, kept * (CONFIG.host_payload_beats - 1))(ctx)
        await ctx.tick().repeat(4)
        assert ctx.get(dut.idle) and ctx.get(dut.consumed) == len(given.part(0))
        steps = [packet[1][0]["step"] for packet in given.packets]
        assert [item["step"] for item in out if item["last"]] == steps
        assert [item["lost"] for item in out if item["bare"]] == [1] * lost
        of_kept = [packet for packet, step in zip(given.packets, steps)
                   if step in {item["step"] for item in out if not item["bare"]}]
        assert [item for item in out if not item["bare"]] == [
            item for packet in of_kept for item in packet[1]]
        assert raw == [item for packet in of_kept for item in packet[2]]

    simulate(powered_up(dut), bench)


def test_latency_and_rate():
    """A record a cycle, whatever packets they are of."""
    dut, cycles = made(GradientUnpacker, CONFIG, depth=DEPTH), []
    given = Packets([(8, 1), (1, 1), (3, 1), (8, 1), (1, 1)], 6)

    async def bench(ctx):
        ctx.set(dut.items.ready, 1)
        ctx.set(dut.vectors.ready, 1)
        beats, last = given.part(0), 1
        for cycle in range(30):
            ctx.set(dut.i.valid, cycle < len(beats))
            if cycle < len(beats):
                ctx.set(dut.i.payload, beats[cycle])
            if ctx.get(dut.items.valid):
                cycles.append(cycle - last)
            await ctx.tick()

    simulate(powered_up(dut), bench)
    assert cycles == [LATENCY + n for n in range(21)]
