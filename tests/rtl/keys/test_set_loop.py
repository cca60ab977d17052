"""Set loop: each lookup sees the set as all earlier lookups left it, at one lookup per cycle."""

import random
from collections import deque

import pytest

from host.placement.sets import set_of
from rtl.keys.hashing import hash_bits
from rtl.keys.set_loop import WINDOW, SetLoop
from tests.rtl.cache.driver import KEY_BITS, hash_of
from tests.rtl.power_up import powered_up
from tests.support import made, simulate

NOW, RESULT = (SetLoop.LATENCY["lookup", name] for name in ("now", "its result"))
WAY_BITS, STATE_BITS, LABEL_BITS = 2, 5, 6


class Set:
    """Reference of a set."""

    def __init__(self, ways: int):
        self.keys: list[int | None] = [None] * ways
        self.bits, self.labels, self.state = [0] * ways, [0] * ways, 0
        self.age = [WINDOW] * ways  # lookups of the set since the way was placed

    def held(self) -> int:
        return sum((key is not None) << w for w, key in enumerate(self.keys))

    def way_of(self, key: int) -> int:
        return 1 << self.keys.index(key) if key in self.keys else 0


class Looked:
    """Random lookups, and random decisions of the user within its contract."""

    def __init__(self, sets: int, ways: int, *, limit: int, keys: int, idle: float, seed: int,
                 walked: bool = False, cycles: int = 1200):
        rng = self.rng = random.Random(seed)
        self.sets, self.ways, self.limit, self.idle, self.cycles = sets, ways, limit, idle, cycles
        self.keys = [rng.getrandbits(KEY_BITS) for _ in range(keys)]
        self.model = [Set(ways) for _ in range(sets)]
        self.walked, self.matched, self.placed = walked, 0, 0
        self.dut = made(SetLoop, KEY_BITS, 16, sets=sets, ways=ways, hash_key=hash_bits,
                        way=WAY_BITS, state_bits=STATE_BITS, label_bits=LABEL_BITS, style="bram",
                        walked=walked)
        simulate(powered_up(self.dut, seed), self.bench)
        assert self.matched > cycles // 20 and self.placed > cycles // 20

    def lookup(self, number: int) -> dict:
        rng = self.rng
        return {"key": rng.choice(self.keys), "context": number & 0xFFFF,
                "looks": int(rng.random() < 0.9), "writes": int(rng.random() < 0.8)}

    async def bench(self, ctx):
        dut, rng = self.dut, self.rng
        ctx.set(dut.limit, self.limit)
        for address in range(self.sets):
            ctx.set(dut.clear, 1)
            ctx.set(dut.clear_address, address)
            await ctx.tick()
        ctx.set(dut.clear, 0)
        await ctx.tick().repeat(3)
        assert ctx.get(dut.idle)
        inside: deque = deque([None] * NOW)  # lookups by cycle, the oldest is the current one
        decided, upcoming = None, None
        for cycle in range(self.cycles + RESULT + 1):
            comes = cycle < self.cycles and rng.random() >= self.idle
            given = self.lookup(cycle) if comes else None
            ctx.set(dut.i, {"valid": int(comes)} | (given or self.lookup(cycle)))
            inside.append(given)
            if any(lookup is not None for lookup in list(inside)[:-1]) or decided:
                assert not ctx.get(dut.idle)
            if decided is not None:
                self.result(ctx, decided)
            assert ctx.get(dut.o.valid) == (decided is not None)
            lookup = inside.popleft()
            assert ctx.get(dut.now.valid) == (lookup is not None)
            decided = self.now(ctx, lookup, upcoming) if lookup is not None else None
            if inside[1] is not None:
                assert ctx.get(dut.reading) == self.set_of(inside[1])
            upcoming = None
            if inside[0] is not None:
                same = ctx.get(dut.next.same)
                assert not same or (decided is not None and decided["writes"] and (
                    self.set_of(inside[0]) == decided["set"]))
                upcoming = None if same else [ctx.get(bits) for bits in dut.next.bits]
            await ctx.tick()
        assert ctx.get(dut.idle)
        if self.walked:
            await self.walk(ctx)

    def set_of(self, lookup: dict) -> int:
        return set_of(hash_of(lookup["key"]), self.limit)

    def now(self, ctx, lookup: dict, upcoming: list[int] | None) -> dict:
        """Compare the shown state of the set, and decide."""
        dut, rng = self.dut, self.rng
        number = self.set_of(lookup)
        entry, shown = self.model[number], ctx.get(dut.now)
        match = entry.way_of(lookup["key"]) if lookup["looks"] else 0
        assert shown.context == lookup["context"]
        assert (shown.match, shown.held) == (match, entry.held())
        assert list(shown.bits) == entry.bits and shown.state == entry.state
        assert upcoming is None or upcoming == entry.bits
        present = entry.way_of(lookup["key"])
        may = [w for w in range(self.ways) if entry.age[w] >= WINDOW
               and (not present or present == 1 << w)]
        placed = 1 << rng.choice(may) if may and rng.random() < 0.5 else 0
        bits = [rng.getrandbits(WAY_BITS) for _ in range(self.ways)]
        state = rng.getrandbits(STATE_BITS)
        ctx.set(dut.after, {"placed": placed, "bits": bits, "state": state})
        record = lookup | {
            "set": number, "match": match, "held": entry.held(), "placed": 0,
            "keys": [key if age >= WINDOW else None
                     for key, age in zip(entry.keys, entry.age, strict=True)]}
        entry.age = [age + 1 for age in entry.age]
        self.matched += match != 0
        if lookup["writes"]:
            entry.bits, entry.state, record["placed"] = bits, state, placed
            if placed:
                way = placed.bit_length() - 1
                entry.keys[way], entry.age[way] = lookup["key"], 0
                self.placed += 1
        return record | {"bits": entry.bits, "state": entry.state}

    def result(self, ctx, record: dict):
        """Compare the result of a lookup a cycle after its decision; give a label."""
        o, entry = ctx.get(self.dut.o), self.model[record["set"]]
        for name in ("key", "context", "set", "match", "held", "placed"):
            assert o[name] == record[name], name
        assert not record["writes"] or (list(o.bits), o.state) == (record["bits"], record["state"])
        for way, key in enumerate(record["keys"]):
            assert key is None or o.words[way].key == key
        if record["match"]:
            assert o.label == entry.labels[record["match"].bit_length() - 1]
        label = self.rng.getrandbits(LABEL_BITS)
        ctx.set(self.dut.label, label)
        if record["placed"]:
            entry.labels[record["placed"].bit_length() - 1] = label

    async def walk(self, ctx):
        """Read all sets from outside; a line is held until the next read."""
        dut = self.dut
        await ctx.tick().repeat(4)
        ctx.set(dut.walking, 1)
        for number, entry in enumerate(self.model[:self.limit]):
            ctx.set(dut.read, 1)
            ctx.set(dut.read_address, number)
            await ctx.tick()
            ctx.set(dut.read, 0)
            ctx.set(dut.read_address, 0)
            for _ in range(self.rng.randrange(1, 4)):
                line = ctx.get(dut.line)
                assert line.held == entry.held() and list(line.bits) == entry.bits
                assert all(key is None or line.keys[w] == key for w, key in enumerate(entry.keys))
                await ctx.tick()
        ctx.set(dut.walking, 0)


@pytest.mark.few(1, "thorough")
@pytest.mark.parametrize("sets, ways, limit, keys, idle, walked", [
    (1, 8, 1, 12, 0.0, False), (6, 4, 5, 40, 0.3, False), (16, 2, 16, 50, 0.0, True),
    (4, 8, 3, 30, 0.6, True), (2, 4, 2, 6, 0.0, False)])
def test_a_set_is_what_earlier_lookups_made_of_it(sets, ways, limit, keys, idle, walked):
    Looked(sets, ways, limit=limit, keys=keys, idle=idle, seed=sets + ways, walked=walked)
