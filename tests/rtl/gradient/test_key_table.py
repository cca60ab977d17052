"""Key table and its walk against Python sets: entries, beats passed on, beats read.

The slot of an entry is ``set * ways + way``; ways are filled in ascending order.
"""

import random
from itertools import chain, groupby

import pytest

from host.placement.sets import set_of
from rtl.config import ROW_BITS
from rtl.gradient.key_table import KeyTable
from rtl.gradient.key_walk import KeyWalk
from rtl.keys.hash_columns import key_hash
from tests.rtl.power_up import powered_up
from tests.support import made, receiver, sender, simulate

LATENCY = KeyTable.LATENCY["beat", "its operation"]
FIRST = KeyWalk.LATENCY["start", "first beat"]
FOREVER = 1 << 30

KEYS = [{"row": n // 3 * 0x9_1357_9BDF % (1 << ROW_BITS), "table": (0, 1, 0x801)[n % 3]}
        for n in range(400)]
"""Each row is in three tables; the first key is 0."""


class Sets:
    """Model of a table: for each set its keys, by ways, with the present beats."""

    def __init__(self, keys: int, ways: int):
        self.ways, self.enable = ways, 1
        self.lines: list[dict[int, int]] = [{} for _ in range(keys // ways)]

    def add(self, item: dict) -> dict:
        """Return the result of a beat."""
        which, bit = set_of(key_hash(**item["key"]), len(self.lines)), 1 << item["beat"]
        line, key = self.lines[which], item["key"]["row"] | item["key"]["table"] << ROW_BITS
        if not self.enable or (key not in line and len(line) == self.ways):
            return item
        entry = {"data": item["data"], "first": int(not line.get(key, 0) & bit),
                 "made": int(key not in line)}
        line[key] = line.get(key, 0) | bit
        return {"slot": which * self.ways + list(line).index(key), "beat": item["beat"],
                "payload": entry}

    def line(self, which: int) -> list[tuple[int, int]]:
        """Return the key and the beats of each way."""
        return ([*self.lines[which].items()] + [(0, 0)] * self.ways)[:self.ways]


def same_set(count: int, sets: int, which: int = 0) -> list[dict]:
    return [key for key in KEYS if set_of(key_hash(**key), sets) == which][:count]


def mixed(count: int, keys: int, ways: int, seed: int) -> list[dict]:
    """Return keys: half are recent, others belong to overfull sets."""
    rng, sets, found = random.Random(seed), keys // ways, []
    crowd = same_set(ways + 3, sets) + same_set(ways + 1, sets, sets - 1)
    while len(found) < count:
        found.append(rng.choice(found[-5:] if found and rng.random() < 0.5 else
                                rng.choice((crowd, KEYS[:4 * keys]))))
    return found


class Drive:
    """Rounds of beats through a table; checks the output, all sets, and ``idle`` in each cycle.

    A round is its keys, whether entries are made, and the sets emptied after it. ``came``,
    ``left``: cycles of beats.
    """

    def __init__(self, keys, ways, beats, lanes, rounds, stalls=(0.0, 0.0, 0.0)):
        self.dut = dut = made(KeyTable, keys, ways, beats, lanes=lanes)
        self.size, self.rounds, self.sets = (beats, 32 * lanes), rounds, Sets(keys, ways)
        self.stall, self.passed, self.rng = stalls[0], 0, random.Random(keys)
        self.out: list[dict] = []
        self.came: list[int] = []
        self.left: list[int] = []
        outs = [receiver(port, self.out, FOREVER, stall=stall, seed=keys)
                for port, stall in ((dut.o, stalls[1]), (dut.passed, stalls[2])) if stall < 1]
        simulate(powered_up(dut, keys), self.bench, background=[*outs, self.watch], limit=9000)

    async def bench(self, ctx):
        dut, sets, (beats, bits) = self.dut, self.sets, self.size
        for which in range(len(sets.lines)):
            await self.clear(ctx, which)
        for keys, enable, emptied in self.rounds:
            sets.enable = enable
            ctx.set(dut.enable, enable)
            items = [{"key": key, "beat": self.rng.randrange(beats),
                      "data": self.rng.getrandbits(bits)} for key in keys]
            await sender(dut.i, items, stall=self.stall, seed=self.passed)(ctx)
            while not ctx.get(dut.idle):
                await ctx.tick()
            await ctx.tick()
            assert self.out == [sets.add(item) for item in items]
            self.passed += sum("key" in out for out in self.out)
            self.out.clear()
            await self.read(ctx, emptied)

    async def clear(self, ctx, which: int) -> None:
        self.sets.lines[which] = {}
        ctx.set(self.dut.clear_address, which)
        ctx.set(self.dut.clear, 1)
        await ctx.tick()
        ctx.set(self.dut.clear, 0)

    async def read(self, ctx, emptied) -> None:
        """Read all sets; a line is valid one cycle later and stays, although its set is emptied."""
        dut = self.dut
        ctx.set(dut.walking, 1)
        for which, expected in enumerate(map(self.sets.line, range(len(self.sets.lines)))):
            ctx.set(dut.read_address, which)
            ctx.set(dut.read, 1)
            await ctx.tick()
            ctx.set(dut.read, 0)
            ctx.set(dut.read_address, which ^ 1)
            for empty in (0, which in emptied, 0):
                assert [(way.key * bool(way.present), way.present)
                        for way in ctx.get(dut.line).ways] == expected
                if empty:
                    await self.clear(ctx, which)
                else:
                    await ctx.tick()
        ctx.set(dut.walking, 0)

    async def watch(self, ctx):
        dut, cycle = self.dut, 0
        async for _, _, idle, came, out, passed in ctx.tick().sample(dut.idle, *(
                port.valid & port.ready for port in (dut.i, dut.o, dut.passed))):
            assert idle == (len(self.came) == len(self.left)), "idle: no beat inside"
            assert not (out and passed), "one order"
            self.came += [cycle] * came
            self.left += [cycle] * (out or passed)
            cycle += 1


@pytest.mark.parametrize("keys, ways, beats, lanes, stalls", [
    (2, 1, 1, 1, (0.0, 0.3, 0.3)), (8, 2, 3, 1, (0.3, 0.0, 0.0)), (8, 4, 1, 2, (0.2, 0.5, 0.0)),
    (32, 4, 16, 1, (0.1, 0.0, 0.5)), (64, 8, 4, 1, (0.3, 0.3, 0.3)), (8, 1, 2, 1, (0.5, 0.1, 0.1))])
def test_beats_find_their_entries_or_are_passed_on(keys, ways, beats, lanes, stalls):
    """Keys stay from round to round, unless their set is emptied."""
    rounds = [(mixed(110, keys, ways, seed), 1, range(seed % 2, keys // ways, 2))
              for seed in range(3)]
    assert 30 < Drive(keys, ways, beats, lanes, rounds, stalls).passed < 300


@pytest.mark.parametrize("keys, ways, beats", [(2, 1, 1), (16, 4, 1), (32, 8, 4)])
def test_a_beat_a_cycle_whatever_the_keys(keys, ways, beats):
    """Of one key, of two in turn, of a set that is full, of any: each leaves after its latency."""
    crowd = same_set(ways + 1, keys // ways)
    some = [*crowd[:1] * 40, *crowd[:2] * 20, *crowd * 8, *mixed(100, keys, ways, 3)]
    drive = Drive(keys, ways, beats, 1, [(some, 1, [])])
    assert drive.came == list(range(drive.came[0], drive.came[0] + len(some)))
    assert drive.left == [cycle + LATENCY for cycle in drive.came] and drive.passed >= 8


@pytest.mark.parametrize("stall", [0.2, 0.5, 0.8])
def test_a_beat_needs_none_behind_it(stall):
    """Beats of keys that meet in the pipeline, with gaps, have the same latency."""
    drive = Drive(8, 2, 3, 1, [(mixed(120, 8, 2, 1), 1, [])], (stall, 0.0, 0.0))
    assert drive.left == [cycle + LATENCY for cycle in drive.came] and drive.passed > 10


def test_without_entries_all_is_passed_on():
    """At full rate, although nobody takes from ``o``; the sets stay as they were, empty."""
    rounds = [(mixed(120, 16, 4, 1), 0, [])]
    drive = Drive(16, 4, 2, 1, rounds, (0.0, 1.0, 0.0))
    assert drive.passed == 120 and drive.left == [cycle + LATENCY for cycle in drive.came]
    rounds += [(mixed(120, 16, 4, 2), 1, range(4)), rounds[0], (rounds[0][0], 1, [])]
    assert 240 < Drive(16, 4, 2, 1, rounds, (0.1, 0.1, 0.1)).passed < 420


def walk(keys: int, ways: int, beats: int, memories: list, stall: float = 0.0) -> list[list[int]]:
    """Walk over each of some memories; return the cycles of the beats, and of the end.

    Checks the beats, ``walking``, and that sets are emptied after reset and by each walk.
    """
    dut, sets, empty = made(KeyWalk, keys, ways, beats), keys // ways, [(0, 0)] * ways
    out, taken = [], []

    async def bench(ctx):
        swept = []
        while ctx.get(dut.sweeping):
            assert ctx.get(dut.clear) and not ctx.get(dut.walking) and not ctx.get(dut.read)
            swept.append(ctx.get(dut.clear_address))
            await ctx.tick()
        assert sorted(swept) == list(range(sets)), "a cycle each"
        for lines in memories:
            memory, cycles, shown, cycle, walking = list(lines), [], [], 0, 1
            ctx.set(dut.start, 1)
            while walking:
                *_, read, place, clear, cleared, valid, ready = await ctx.tick().sample(
                    dut.read, dut.read_address, dut.clear, dut.clear_address,
                    dut.o.valid, dut.o.ready)
                ctx.set(dut.start, 0)
                if read:
                    ctx.set(dut.line.ways, [{"key": key, "present": present}
                                            for key, present in memory[place]])
                if clear:
                    memory[cleared] = empty
                cycles += [cycle] * (valid and ready)
                shown += [cycle] * valid
                cycle, walking = cycle + 1, ctx.get(dut.walking)
            wanted = {slot: [(beat, {"key": key, "last": int(not present >> beat + 1)})
                             for beat in range(beats) if present >> beat & 1]
                      for slot, (key, present) in enumerate(chain(*lines)) if present}
            assert len(cycles) == sum(map(len, wanted.values())) and memory == [empty] * sets
            assert lines[0] == empty or shown[0] == FIRST
            # The walk ends in the cycle of its last beat, or a few cycles later if sets are empty.
            assert lines[-1] == empty or cycle - 1 == cycles[-1]
            for _ in range(4):
                assert not ctx.get(dut.o.valid)
                await ctx.tick()
            runs = [(slot, [(item["beat"], item["payload"]) for item in run])
                    for slot, run in groupby(out, lambda item: item["slot"])]
            assert dict(runs) == wanted and len(runs) == len(wanted)
            order = [which for which, _ in groupby(slot // ways for slot, _ in runs)]
            assert len(order) == len(set(order)), "set by set"
            out.clear()
            taken.append([*cycles, cycle])

    simulate(dut, bench, background=[receiver(dut.o, out, FOREVER, stall=stall)], limit=5000)
    return taken


def memory_of(keys: int, ways: int, beats: int, seed: int, low: int = 0, high: int = FOREVER):
    """Return sets with ``low`` to ``high`` ways in use, with any beats; one key is 0."""
    rng, lines = random.Random(seed), []
    while len(lines) < keys // ways:
        used = rng.randint(low, min(ways, high))
        lines.append([(rng.getrandbits(48), rng.randrange(1, 1 << beats)) for _ in range(used)]
                     + [(0, 0)] * (ways - used))
    lines[0][0] = 0, lines[0][0][1]
    return lines


@pytest.mark.parametrize("keys, ways, beats, stall", [
    (2, 1, 1, 0.0), (2, 2, 3, 0.0), (8, 2, 1, 0.0), (16, 4, 3, 0.0), (16, 8, 16, 0.0),
    (64, 4, 2, 0.0), (2, 2, 3, 0.9), (8, 2, 1, 0.9), (16, 4, 3, 0.4), (16, 8, 16, 0.4)])
def test_a_walk_takes_a_cycle_for_each_beat_and_empty_set(keys, ways, beats, stall):
    """Of full sets, sparse ones and any, one walk after the other."""
    memories = [memory_of(keys, ways, beats, seed, *bounds) for seed, bounds in
                enumerate([(1,), (0,), (ways,), (0, 1), (0, 0), (0, 1), (1,)])]
    for lines, (*cycles, end) in zip(memories, walk(keys, ways, beats, memories, stall)):
        if not stall:
            empty = sum(not line[0][1] for line in lines)
            # An empty set at the end may be found while the previous beat leaves.
            assert 0 <= FIRST + len(cycles) + empty - end <= int(not lines[-1][0][1])
            assert empty or cycles == list(range(FIRST, FIRST + len(cycles)))
