"""BagCheck: only whole bags of existing rows that pool at this node pass, and beats return credit.
"""

import random
from collections import Counter
from itertools import pairwise

import pytest

from host.wire.packets import pack_records
from rtl.bags.check import BAG_CHECK_COUNTERS, BagCheck
from rtl.config import NicConfig
from rtl.formats import BagHead
from tests.rtl.bags.words import DCNV2_BAGS, beats_of_packet, segments_of
from tests.rtl.descriptors import COLUMN, REPLICATED, ROW, Table, descriptor_writer
from tests.rtl.power_up import powered_up
from tests.support import counts_of, made, quiet_while_idle, receiver, sender, simulate

NODE, NODES = 1, 4
CONFIG = NicConfig(nodes=NODES, owner_bags=16, tables=16, max_dimension=128)
VECTOR_BEATS = 4
TABLES = {
    0: Table(owner=NODE, rows=1000, pool=1),
    1: Table(owner=NODE, rows=(1 << 34) + 5, pool=1, final_beat=3),
    2: Table(kind=REPLICATED, owner=3, rows=7, pool=1, final_beat=1),
    3: Table(owner=NODE, rows=1000),
    4: Table(owner=2, rows=1000, pool=1), 5: Table(owner=NODES, rows=1000, pool=1),
    6: Table(owner=NODE, rows=1000, pool=1, valid=0), 7: Table(kind=ROW, owners=2, pool=1),
    8: Table(kind=COLUMN, owner=NODE, pool=1),
    10: Table(owner=NODE, rows=1000, pool=1, final_beat=VECTOR_BEATS)}
REASON = {3: "bad_pool", 4: "bad_owner", 5: "bad_table", 6: "bad_table", 7: "bad_pool",
          8: "bad_pool", 9: "bad_table", 10: "bad_table", 16: "bad_table", 0x800: "bad_table"}
"""Tables of bad bags; table 9 has no descriptor, and later ones do not exist."""
MOST = CONFIG.bag_words


def bag(rng: random.Random, table: int, rows: list[int], *, wide: int, weighted: int = 0,
        **fields: int) -> list[int]:
    """Return the words of a bag; ``fields`` replace those of its head."""
    head = {"keys": len(rows), "wide": wide, "weighted": weighted, "table": table,
            "landing": rng.getrandbits(16)} | fields
    if not wide and len(rows) % 2:
        rows = [*rows, rng.choice([0, 0xFFFFFFFF])]  # not compared
    words = rows if wide else [low | high << 32 for low, high in zip(rows[::2], rows[1::2])]
    weights = (head["keys"] + 1) // 2 if weighted else 0
    return [int(pack_records(BagHead, **head)[0]), *words,
            *(rng.getrandbits(64) for _ in range(weights))]


def random_bag(rng: random.Random, bad: float) -> list[int]:
    table = rng.choice([0, 0, 0, 1, 2])
    most = TABLES[table].rows
    wide, weighted = rng.randrange(2), rng.randrange(2)
    rows = [rng.choice([0, most - 1, rng.randrange(most)]) for _ in range(
        rng.choice([1, 2, 3, 13, rng.randrange(1, 70)]))]
    if not wide:
        rows = [min(row, (1 << 32) - 1) for row in rows]
    fields = {}
    if rng.random() < bad:
        fault = rng.randrange(5)
        if fault == 0:
            table = rng.choice(list(REASON))
        elif fault == 1:
            beyond = [most, (1 << 36) - 1, rows[0] | 1 << rng.randrange(36, 64)] if wide else [
                min(most, (1 << 32) - 1), (1 << 32) - 1]
            rows[rng.randrange(len(rows))] = rng.choice(beyond)
        elif fault == 2:
            fields = {rng.choice(["part", "more"]): 1}
        elif fault == 3:
            fields = {"keys": rng.choice([0, 400, 0xFFFF, len(rows) + 2])}
        else:
            rows = [0] * rng.choice([MOST - 1, MOST, 2 * MOST - 2, 2 * MOST - 1])
    return bag(rng, table, rows, wide=wide, weighted=weighted, **fields)


def reason_of(head: int, words: list[int], whole: bool, long: bool) -> str | None:
    """Return the first reason to drop the bag, or None."""
    fields = BagHead.from_bits(head)
    keys, wide, table = int(fields.keys), int(fields.wide), int(fields.table)
    if table in REASON:
        return REASON[table]
    if table not in TABLES:
        return "bad_table"
    if not whole or long or keys == 0 or fields.part or fields.more:
        return "bad_length"
    rows = words if wide else [word >> shift & 0xFFFFFFFF for word in words for shift in (0, 32)]
    return "bad_row" if max(rows[:keys]) >= TABLES[table].rows else None


class Peers:
    """Packets of peers, and what the check does with them."""

    def __init__(self):
        self.beats: list[dict] = []
        self.passed: list[dict] = []
        self.refused: list[int] = []
        self.ends: list[tuple[int, int]] = []
        """Node of each good bag, and the number of the beat in which the bag ends."""
        self.counts: Counter[str] = Counter()

    def send(self, words: list[int], node: int, step: int, lost: int | None = None) -> None:
        """Add a packet; the beat numbered ``lost`` does not arrive."""
        beats = beats_of_packet(words, 0)
        for number, beat in enumerate(beats):
            del beat["user"]
            beat |= {"source": node, "step": step,
                     "fresh": int(number == 0 or number - 1 == lost)}
        self.beats += [beat for number, beat in enumerate(beats) if number != lost]
        ends = lost is None
        parts = [(words, True)] if ends else [
            (words[:8 * lost], False), (words[8 * lost + 8:], lost < len(beats) - 1)]
        first = len(self.beats) - sum(-(-len(part) // 8) for part, _ in parts)
        for part, complete in parts:
            self._part(part, node, step, complete, first)
            first += -(-len(part) // 8)

    def _part(self, words: list[int], node: int, step: int, complete: bool, beat: int) -> None:
        """Follow the bags of consecutive ``words``, from beat number ``beat`` on; ``complete``: the
        packet ends behind them."""
        segments: list[dict] = []
        for item in segments_of(words, 0, MOST, False):
            segments.append(item)
            last, beat = beat, beat + item["beat_last"]
            if not item["segment"]["tail"]:
                continue
            inside = [each["segment"]["words"] >> 64 * k & (1 << 64) - 1 for each in segments
                      for k in range(each["segment"]["first"],
                                     each["segment"]["first"] + each["segment"]["size"])]
            reason = reason_of(inside[0], inside[1:], not item["cut"], item["long"])
            if item["cut"] and not complete:
                reason = "bad_length"  # found at the next bag, without its table
            if reason:
                self.counts[reason] += 1
                self.refused.append(node)
            else:
                self.ends.append((node, last))
                self.counts["bags"] += 1
                self.counts["keys"] += int(BagHead.from_bits(inside[0]).keys)
                final = TABLES[int(BagHead.from_bits(inside[0]).table)].final_beat
                self.passed += [{"segment": each["segment"], "node": node, "step": step,
                                 "final_beat": final} for each in segments]
            segments = []


def run(peers: Peers, gap: float, stall: float) -> int:
    """Run and compare; return the cycles from the first beat to the last segment."""
    dut = made(BagCheck, CONFIG)
    taken, refused, freed, passed, cycles = [], [], [], [], []

    async def after(ctx):
        ctx.set(dut.vector_beats, VECTOR_BEATS)
        await ctx.tick().repeat(3)
        await sender(dut.i, peers.beats, stall=gap)(ctx)
        ctx.set(dut.i.valid, 0)
        while not ctx.get(dut.idle) or len(taken) < len(peers.passed):
            await ctx.tick()
        await ctx.tick()
        expected = dict.fromkeys(BAG_CHECK_COUNTERS.members, 0) | peers.counts
        assert counts_of(ctx, dut.counters) == expected

    async def watch(ctx):
        cycle = 0
        async for _, _, gone, dropped, good, comes, leaves in ctx.tick().sample(
                dut.freed, dut.refused, dut.passed, dut.i.valid & dut.i.ready,
                dut.o.valid & dut.o.ready):
            passed.extend([(good.node, len(freed))] * good.valid)
            freed.extend([gone.node] * gone.valid)
            refused.extend([dropped.node] * dropped.valid)
            cycles.extend([cycle] * (comes | leaves))
            cycle += 1

    simulate(powered_up(dut), descriptor_writer(dut, TABLES, NODE, NODES, after),
             receiver(dut.o, taken, len(peers.passed), stall=stall),
             background=[watch, quiet_while_idle(
                 dut.idle, [dut.i.valid, dut.o.ready, dut.write_en],
                 [dut.o.valid, dut.freed.valid, dut.passed.valid, dut.refused.valid])])
    assert taken == peers.passed
    assert freed == [beat["source"] for beat in peers.beats]
    assert refused == peers.refused
    # No beat of a good bag is consumed before the bag counts as passed.
    assert passed == peers.ends
    return cycles[-1] - cycles[0]


@pytest.mark.few(1, "thorough")
@pytest.mark.parametrize("gap, stall, bad, lost", [
    (0.0, 0.0, 0.5, 0.0), (0.3, 0.3, 0.3, 0.2), (0.0, 0.5, 0.4, 0.4), (0.5, 0.0, 0.0, 0.0)])
def test_only_good_bags_pass(gap, stall, bad, lost):
    rng, peers = random.Random(7 + int(100 * (gap + stall + bad))), Peers()
    for _ in range(60):
        words: list[int] = []
        while len(words) < rng.randrange(1, 100):
            words += random_bag(rng, bad)
        words = words[:8 * CONFIG.net_payload_beats]
        if rng.random() < bad:
            words = words[:rng.randrange(1, len(words) + 1)]
        peers.send(words, rng.randrange(NODES), rng.getrandbits(16),
                   rng.randrange(-(-len(words) // 8)) if rng.random() < lost else None)
    # The end of a bag that lost its last beat is found with the next bag.
    peers.send(bag(rng, 0, [1, 2, 3], wide=0), 2, 5)
    run(peers, gap, stall)
    reasons = {name for name in peers.counts if name.startswith("bad_")}
    assert peers.counts["bags"] > 50
    assert len(reasons) == 5 if bad else not reasons - {"bad_length"}


@pytest.mark.parametrize("keys, least", [((100,) * 24, 13.5), ((20,) * 120, 8.7),
                                         (DCNV2_BAGS * 8, 5.0)])
def test_rates(keys, least):
    """Rows per cycle, of bags back to back in whole packets."""
    rng, peers, words = random.Random(1), Peers(), []
    for each in keys:
        more = bag(rng, 0, [rng.randrange(1000) for _ in range(each)], wide=0)
        if len(words) + len(more) > MOST:
            peers.send(words, 2, 7)
            words = []
        words += more
    peers.send(words, 2, 7)
    latency = BagCheck.LATENCY["beat with the tail of a bag", "the bag's first segment"]
    heads = [n for n, each in enumerate(peers.passed) if each["segment"]["head"]]
    longest = max(end - start for start, end in pairwise([*heads, len(peers.passed)]))
    cycles = run(peers, 0.0, 0.0)
    # A bag waits for its end, and later bags wait for it.
    assert cycles == len(peers.passed) - 1 + latency + longest - 1
    assert sum(keys) / len(peers.passed) > least


def test_latency():
    rng, dut, seen = random.Random(3), made(BagCheck, CONFIG), []
    peers = Peers()
    peers.send(bag(rng, 0, list(range(30)), wide=0), 3, 9)

    async def bench(ctx):
        await ctx.tick().repeat(3)
        ctx.set(dut.o.ready, 1)
        await sender(dut.i, peers.beats)(ctx)
        ctx.set(dut.i.valid, 0)
        for cycle in range(1, 20):
            if ctx.get(dut.o.valid):
                seen.append(cycle)
            await ctx.tick()

    simulate(dut, descriptor_writer(dut, TABLES, NODE, NODES, bench))
    first = BagCheck.LATENCY["beat with the tail of a bag", "the bag's first segment"]
    assert seen == [first, first + 1]
