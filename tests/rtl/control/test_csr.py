"""Register block against a register file in Python, with random stalls on the AXI4-Lite bus."""

import functools
import random
import zlib
from dataclasses import fields

import numpy as np
import pytest
from amaranth.lib import data

from rtl.config import POLICY_CODES, CachePolicy, preset
from rtl.control.axi_lite import AxiLiteSlave
from rtl.control.csr import Register, RegisterBlock
from rtl.control.registers import map_fingerprint, register_map
from rtl.monitor.counters import CounterLayout
from tests.rtl.cache.policies.oldest import add_oldest
from tests.support import KEPT, simulate

CONFIG = preset("tiny")
COUNTERS = {"dedupe": CounterLayout("requests", "unique"), "one": CounterLayout("beats"),
            "many": CounterLayout(*(f"c{k}" for k in range(40)))}
OKAY, SLVERR = 0, 2
STALLS = [0.0, 0.4, 0.8]


class Master:
    """Bus master with five independent channels and random stalls, which checks the rules of
    answers."""

    def __init__(self, bus, stall: float = 0.0, seed: int = 0):
        self._bus, self._stall, self._seed = bus, stall, seed
        self.writes: list[tuple[int, int, int]] = []
        self.reads: list[int] = []
        self.write_answers: list[int] = []
        self.read_answers: list[tuple[int, int]] = []
        self.order = "together"

    def benches(self):
        """Return the background testbenches of the five channels."""
        bus = self._bus
        return [
            self._send("aw", {"awaddr": 0}, bus.awvalid, bus.awready, 1),
            self._send("w", {"wdata": 1, "wstrb": 2}, bus.wvalid, bus.wready, 2),
            self._send("ar", {"araddr": 0}, bus.arvalid, bus.arready, 3),
            self._take(("bresp",), bus.bvalid, bus.bready, self.write_answers, 4),
            self._take(("rdata", "rresp"), bus.rvalid, bus.rready, self.read_answers, 5)]

    def _send(self, name, members, valid, ready, seed):
        async def bench(ctx):
            rng = random.Random(self._seed * 10 + seed)
            at = 0
            while True:
                queue = [(r,) for r in self.reads] if name == "ar" else self.writes
                other = {"aw": "data first", "w": "address first"}.get(name)
                # Wait until the other channel holds its half, if that half must be first.
                held = other == self.order and ctx.get(
                    self._bus.wready if name == "aw" else self._bus.awready)
                if at == len(queue) or held or rng.random() < self._stall:
                    await ctx.tick()
                    continue
                for member, place in members.items():
                    ctx.set(getattr(self._bus, member), queue[at][place])
                ctx.set(valid, 1)
                await ctx.tick().until(ready)
                ctx.set(valid, 0)
                # Invalid data may have any value.
                for member in members:
                    ctx.set(getattr(self._bus, member), rng.getrandbits(4))
                at += 1
        return bench

    def _take(self, members, valid, ready, taken, seed):
        async def bench(ctx):
            rng = random.Random(self._seed * 10 + seed)
            offered = None
            while True:
                take = rng.random() >= self._stall
                ctx.set(ready, take)
                _, _, is_valid, *values = await ctx.tick().sample(
                    valid, *(getattr(self._bus, member) for member in members))
                if offered is not None:
                    assert is_valid and values == offered, "an answer must hold until ready"
                offered = values if is_valid and not take else None
                if is_valid and take:
                    taken.append(tuple(values) if len(values) > 1 else values[0])
        return bench

    async def write(self, ctx, *writes) -> list[int]:
        """Write each (address, value[, strobe]) in turn; return the answers."""
        start = len(self.write_answers)
        self.writes += [(*w, 15)[:3] for w in writes]
        while len(self.write_answers) < start + len(writes):
            await ctx.tick()
        return self.write_answers[start:]

    async def read(self, ctx, *addresses) -> list[tuple[int, int]]:
        start = len(self.read_answers)
        self.reads += addresses
        while len(self.read_answers) < start + len(addresses):
            await ctx.tick()
        return self.read_answers[start:]


@functools.lru_cache(maxsize=KEPT)
def register_block(config, counters: tuple) -> RegisterBlock:
    return RegisterBlock(config, dict(counters))


def run(script, stall=0.0, config=CONFIG, counters=COUNTERS, seed=0, order="together"):
    dut = register_block(config, tuple(counters.items()))
    master = Master(dut.csr, stall, seed)
    master.order = order
    registers = {r.name: r for r in dut.registers}

    async def bench(ctx):
        await script(ctx, dut, master, registers)
        await ctx.tick().repeat(3)
        assert ctx.get(dut.idle)

    return simulate(dut, bench, background=master.benches())


@pytest.mark.parametrize("config", [CONFIG, CONFIG.with_fields(owner_bags=16),
                                    CONFIG.with_fields(short_vectors=True),
                                    CONFIG.with_fields(short_vectors=True, code_vectors=True)],
                         ids=["plain", "bags", "short", "codes"])
def test_identity_configuration_and_reset_values(config):
    async def script(ctx, dut, master, registers):
        readable = [r for r in dut.registers if r.access != "wo"]
        answers = await master.read(ctx, *(r.address for r in readable))
        values = {r.name: value for r, (value, _) in zip(readable, answers)}
        assert all(resp == OKAY for _, resp in answers)
        assert values["magic"].to_bytes(4, "little") == b"EMBR" and values["version"] == 1
        sizes = {f"config_{field.name}": value for field in fields(config)
                 if not isinstance(value := getattr(config, field.name), str)}
        if not config.owner_bags:
            for name in ("owner_bags", "bag_segments", "owner_bag_beats"):
                del sizes[f"config_{name}"]
                assert f"config_{name}" not in values
        if not config.repeat_positions:
            for name in ("repeat_words", "repeat_vectors"):
                del sizes[f"config_{name}"]
                assert f"config_{name}" not in values
        assert ("value_format" in values) == config.short_vectors
        assert ("value_count" in values) == config.code_vectors
        for name in ("short_vectors", "code_vectors"):
            if not getattr(config, name):
                del sizes[f"config_{name}"]
                assert f"config_{name}" not in values
        assert sizes.items() <= values.items()
        assert values["counter_count"] == 43
        assert registers["dedupe.requests"].address == values["counter_base"]
        firsts = {"config": "config_nodes", "control": "node", "table": "table_index",
                  "channel": "channel_valid0"}
        for section, first in firsts.items():
            assert registers[first].address == values[f"{section}_base"], section
        assert values["config_policy"] == CachePolicy.LRU
        assert values["config_count"] == 1 + len(sizes)
        assert values["control_count"] == sum(r.access == "rw" for r in dut.registers) - 1
        assert values["table_words"] == sum(r.access == "wo" for r in dut.registers)
        assert values["channel_count"] == len(dut.channels.valid)
        others = [r for r in dut.registers if r.address >= values["config_base"]]
        assert values["register_count"] == len(others)
        assert values["register_map"] == map_fingerprint(others)
        wanted = {
            "node": 0, "nodes": 1, "vector_beats": 4, "vector_packing": 0, "local_cache_enable": 1,
            "local_cache_sets": 16, "dedupe_enable": 1, "request_batch": 64, "request_timeout": 64,
            "lookup_timeout": 64, "vector_timeout": 64, "result_timeout": 64,
            "interaction_mode": 0, "interaction_itself": 0, "lookup_window": 7, "lookup_share": 8,
            "step_floor": 0, "ip_base": 0x0A450000, "udp_port": 0x4853}
        if config.owner_bags:
            wanted |= {"bag_window": 112, "bag_share": 128, "bag_timeout": 64, "bag_batch": 64}
        for name, value in wanted.items():
            assert values[name] == value == ctx.get(getattr(dut, name)), name
        assert ctx.get(dut.mac_base) == 0x02454D420000
        assert values["mac_base_low"] | values["mac_base_high"] << 32 == 0x02454D420000

    run(script, config=config)


@pytest.mark.few(4)
@pytest.mark.parametrize("order", ["together", "address first", "data first"])
@pytest.mark.parametrize("stall", STALLS)
def test_writes_join_bytes_and_keep_bounds(stall, order):
    async def script(ctx, dut, master, registers):
        rng = random.Random(7)
        controls = [r for r in dut.registers if r.access == "rw"]
        model = {r.name: r.reset for r in controls}
        writes, wanted = [], []
        for _ in range(120):
            register = rng.choice(controls)
            value = rng.choice([rng.getrandbits(32), rng.randint(register.low, register.high),
                                register.high, register.high + 1 & 0xFFFFFFFF, register.low, 0])
            strobe = rng.choice([15, 15, 15, rng.randrange(16)])
            writes.append((register.address + rng.randrange(4), value, strobe))
            mask = sum(0xFF << 8 * k for k in range(4) if strobe >> k & 1)
            merged = model[register.name] & ~mask | value & mask
            good = register.low <= merged <= register.high
            wanted.append(OKAY if good else SLVERR)
            if good:
                model[register.name] = merged
        assert await master.write(ctx, *writes) == wanted
        assert wanted.count(SLVERR) > 20 and wanted.count(OKAY) > 20
        answers = await master.read(ctx, *(r.address for r in controls))
        assert answers == [(model[r.name], OKAY) for r in controls]
        for name, value in model.items():
            if name not in ("table_index", "mac_base_low", "mac_base_high"):
                assert ctx.get(getattr(dut, name)) == value
        assert ctx.get(dut.mac_base) == model["mac_base_low"] | model["mac_base_high"] << 32

    run(script, stall, seed=int(stall * 10), order=order)


@pytest.mark.parametrize("stall", STALLS)
def test_what_is_not_there_is_answered_slverr(stall):
    async def script(ctx, dut, master, registers):
        mapped = {r.address for r in dut.registers}
        holes = [a for a in range(0, 1 << 16, 4) if a not in mapped]
        rng = random.Random(1)
        # Beyond each end of the map, and at random addresses.
        holes = [a for a in holes if a - 4 in mapped or a + 4 in mapped] + rng.sample(holes, 30)
        read_only = [r.address for r in dut.registers if r.access == "ro"]
        write_only = [r.address for r in dut.registers if r.access == "wo"]
        refused = holes + read_only
        assert await master.write(ctx, *((a, 1) for a in refused)) == [SLVERR] * len(refused)
        answers = await master.read(ctx, *holes, *write_only)
        assert [resp for _, resp in answers] == [SLVERR] * len(answers)
        # No register changed.
        for r in dut.registers:
            if r.access == "rw":
                assert await master.read(ctx, r.address) == [(r.reset, OKAY)]

    run(script, stall)


@pytest.mark.parametrize("stall", STALLS)
def test_table_words(stall):
    seen: list[tuple[int, int, int]] = []
    wanted: list[tuple[int, int, int]] = []

    async def script(ctx, dut, master, registers):
        rng = random.Random(2)
        index, word0 = registers["table_index"].address, registers["table_word0"].address
        for _ in range(20):
            table = rng.randrange(CONFIG.tables)
            words = [(k, rng.getrandbits(32), rng.choice([15, 15, 0, 7, 8])) for k in range(5)]
            answers = await master.write(
                ctx, (index, table), *((word0 + 4 * k, v, s) for k, v, s in words))
            assert answers == [OKAY] + [OKAY if s in (0, 15) else SLVERR for _, _, s in words]
            wanted.extend((table, k, v) for k, v, s in words if s == 15)
        assert await master.write(ctx, (index, CONFIG.tables)) == [SLVERR]
        assert ctx.get(dut.table_write_table) == table

    run_watched(script, stall, seen)
    assert seen == wanted and len(wanted) > 15


def run_watched(script, stall, seen):
    """Run ``script`` beside a bench that records table writes and stalls them at random."""
    dut = register_block(CONFIG, tuple(COUNTERS.items()))
    master = Master(dut.csr, stall)

    async def watch(ctx):
        rng = random.Random(3)
        while True:
            ready = rng.random() < 0.3
            ctx.set(dut.table_ready, ready)
            _, _, en, table, word, value = await ctx.tick().sample(
                dut.table_write_en, dut.table_write_table, dut.table_write_word,
                dut.table_write_data)
            assert ready or not en
            if en:
                seen.append((table, word, value))

    async def bench(ctx):
        await script(ctx, dut, master, {r.name: r for r in dut.registers})

    simulate(dut, bench, background=[*master.benches(), watch])


def test_table_writes_wait_until_ready():
    async def script(ctx, dut, master, registers):
        ctx.set(dut.table_ready, 0)
        master.writes.append((registers["table_word0"].address, 5, 15))
        await ctx.tick().repeat(50)
        assert not master.write_answers and not ctx.get(dut.idle)
        # Reads continue meanwhile.
        assert (await master.read(ctx, 0))[0][1] == OKAY
        ctx.set(dut.table_ready, 1)
        await ctx.tick().repeat(4)
        assert master.write_answers == [OKAY]

    run(script)


@pytest.mark.parametrize("stall", STALLS)
def test_counters_are_read_beside_writes(stall):
    async def script(ctx, dut, master, registers):
        rng = random.Random(4)
        values = {(block, name): rng.getrandbits(32)
                  for block, layout in COUNTERS.items() for name in layout.members}
        for (block, name), value in values.items():
            ctx.set(dut.counters[block][name], value)
        names = [rng.choice(list(values)) for _ in range(60)]
        port = registers["udp_port"].address
        master.writes += [(port, k, 15) for k in range(40)]
        answers = await master.read(ctx, *(registers[f"{b}.{n}"].address for b, n in names))
        assert answers == [(values[key], OKAY) for key in names]
        while len(master.write_answers) < 40:
            await ctx.tick()
        assert master.write_answers == [OKAY] * 40
        assert await master.read(ctx, port) == [(39, OKAY)]

    run(script, stall)


@pytest.mark.parametrize("stall", STALLS)
def test_held_counters_are_those_of_one_cycle(stall):
    """Hold counters that rise together: they read as equal, a wide counter a cycle late. The
    block's own counters continue."""
    layouts = {"wide": CounterLayout("beats", wide=("beats",)),
               "other": CounterLayout("a", "b"), "one": CounterLayout("c")}
    start = (1 << 32) - 40

    async def script(ctx, dut, master, registers):
        names = [name for name in registers if "." in name and name[-5:] != "_high"]
        hold = registers["counters_hold"].address

        async def values():
            found = dict(zip(names, await master.read(
                ctx, *(registers[name].address for name in names))))
            high, = await master.read(ctx, registers["wide.beats_high"].address)
            assert {status for _, status in found.values()} == {high[1]} == {OKAY}
            wide = found.pop("wide.beats")[0] | high[0] << 32
            return wide, {value for value, _ in found.values()}

        for _ in range(3):
            assert await master.write(ctx, (hold, 1)) == [OKAY]
            first, (other,) = await values()
            assert first == start + other - 1
            assert await values() == (first, {other})
            assert await master.write(ctx, (hold, 0)) == [OKAY]
            later, others = await values()
            assert later > first and min(others) > other and len(others) == len(names) - 1
        assert later > 1 << 32

    dut = register_block(CONFIG, tuple(layouts.items()))
    master = Master(dut.csr, stall, 5)

    async def rise(ctx):
        cycle = 0
        while True:
            for block, layout in layouts.items():
                for name in layout.members:
                    # The upper half of a wide counter is a cycle late, see `count`.
                    value = cycle + start * (block == "wide")
                    late = max(0, value - 1) >> 32
                    ctx.set(dut.counters[block][name], value & 0xFFFFFFFF | late << 32)
            cycle += 1
            await ctx.tick()

    async def bench(ctx):
        await script(ctx, dut, master, {r.name: r for r in dut.registers})

    simulate(dut, bench, background=[*master.benches(), rise])


def test_idle_and_latency():
    async def script(ctx, dut, master, registers):
        bus = dut.csr
        assert ctx.get(dut.idle)
        cycles = []
        for first, answer in ((bus.arvalid, bus.rvalid), (bus.awvalid, bus.bvalid)):
            ctx.set(first, 1)
            ctx.set(bus.wvalid, 1 if first is bus.awvalid else 0)
            await ctx.tick()
            ctx.set(first, 0)
            ctx.set(bus.wvalid, 0)
            cycles.append(1)
            while not ctx.get(answer):
                assert not ctx.get(dut.idle)
                await ctx.tick()
                cycles[-1] += 1
            assert not ctx.get(dut.idle)
            await ctx.tick().repeat(2)
            assert ctx.get(dut.idle)
        assert cycles == [5, 6] == [*RegisterBlock.LATENCY.values()]

    dut = RegisterBlock(CONFIG, COUNTERS)

    async def bench(ctx):
        ctx.set(dut.csr.rready, 1)
        ctx.set(dut.csr.bready, 1)
        await script(ctx, dut, None, None)

    simulate(dut, bench)


def test_outputs_of_the_bus_are_registers():
    """Readiness does not depend on valid: every channel is ready before any access."""
    dut = AxiLiteSlave()

    async def bench(ctx):
        for valid in (0, 1):
            for name in ("awvalid", "wvalid", "arvalid"):
                ctx.set(getattr(dut.bus, name), valid)
            assert ctx.get(dut.bus.awready) and ctx.get(dut.bus.wready)
            assert ctx.get(dut.bus.arready)
        await ctx.tick()
        assert not ctx.get(dut.bus.awready) and not ctx.get(dut.bus.arready)

    simulate(dut, bench)


def test_every_preset_has_a_sound_map():
    for name in ("tiny", "kaggle", "avazu", "terabyte"):
        registers = register_map(preset(name), COUNTERS)
        addresses = [r.address for r in registers]
        assert addresses == sorted(set(addresses)) and len({r.name for r in registers}) == len(
            registers)
        assert all(r.description for r in registers)
        assert RegisterBlock(preset(name), {}).registers[-1].name == "flushing"


@pytest.mark.parametrize("changes, error, message", [
    ({"width": 33}, ValueError, "width must be between 1 and 32, not 33"),
    ({"address": 6}, ValueError, "address must be a multiple of 4 below 0x10000, not 6"),
    ({"address": 1 << 16}, ValueError, "address must be a multiple of 4 below 0x10000, not 65536"),
    ({"access": "x"}, ValueError, "access must be one of ro, rw, wo, not 'x'"),
    ({"reset": 16}, ValueError, "reset of r must fit in 4 bits, not 16"),
    ({"low": 3, "reset": 2}, ValueError, "reset of r must be between 3 and 15, not 2"),
    ({"reset": "1"}, TypeError, "reset must be an integer, not '1'"),
])
def test_register_is_checked(changes, error, message):
    good = {"name": "r", "address": 4, "width": 4, "access": "rw", "reset": 5, "description": "d"}
    assert Register(**good).high == 15
    with pytest.raises(error, match=message):
        Register(**good | changes)


@pytest.mark.parametrize("counters, error, message", [
    ([], TypeError, r"counters must be a dict, not \[\]"),
    ({"a": 3}, TypeError, "counters of a must be a StructLayout, not 3"),
    ({"a": data.StructLayout({"b": 65})}, ValueError, "a.b must have at most 64 bits, not 65"),
])
def test_counters_are_checked(counters, error, message):
    with pytest.raises(error, match=message):
        RegisterBlock(CONFIG, counters)


def test_config_is_checked():
    with pytest.raises(TypeError, match="config must be a NicConfig, not 'tiny'"):
        RegisterBlock("tiny", {})


def test_the_fingerprint_tells_maps_apart():
    def fingerprint(**counters):
        layouts = {name: CounterLayout(*names) for name, names in counters.items()}
        registers = register_map(CONFIG, layouts)
        return next(r.reset for r in registers if r.name == "register_map")

    one = fingerprint(cache=["hits", "misses"])
    assert one == fingerprint(cache=["hits", "misses"])
    assert len({one, fingerprint(cache=["misses", "hits"]), fingerprint(cache=["hits"]),
                fingerprint(dedupe=["hits", "misses"])}) == 4
    registers = [Register("a", 0, 8, "rw", 3, "")]
    assert map_fingerprint(registers) == zlib.crc32(b"a 0 8 rw\n")


def test_the_policy_reads_as_its_number(monkeypatch):
    add_oldest(monkeypatch)
    for name, number in POLICY_CODES.items():
        registers = register_map(CONFIG.with_fields(policy=name), COUNTERS)
        found, = [r for r in registers if r.name == "config_policy"]
        assert (found.reset, found.access) == (number, "ro")
        assert found.description.startswith("policy of this configuration: 0 lru, ")
        assert found.description.endswith(f"{POLICY_CODES['oldest']} oldest")


def test_registers_of_training():
    config = CONFIG.with_fields(training=True)
    without = {r.name for r in register_map(CONFIG, COUNTERS)}
    registers = {r.name: r for r in register_map(config, COUNTERS)}
    added = {name for name in set(registers) - without if not name.startswith("channel_")}
    assert added == {
        "training", "overtake", "local_reduction", "gradient_partials", "optimizer",
        "learning_rate", "epsilon", "gradient_timeout", "gradient_window", "gradient_share"}

    async def script(ctx, dut, master, registers):
        for name, float32 in (("learning_rate", 0.1), ("epsilon", 1e-8)):
            place = registers[name].address
            assert await master.read(ctx, place) == [
                (int(np.float32(float32).view(np.uint32)), OKAY)]
            # Any word is a valid binary32.
            for word in (0, 0x80000000, 0x7FC00000, 0xFFFFFFFF):
                assert await master.write(ctx, (place, word)) == [OKAY]
                assert ctx.get(getattr(dut, name)) == word
        for name, allowed, refused in (
                ("training", (1, 0), 2), ("local_reduction", (0, 1), 2), ("overtake", (1, 0), 2),
                ("optimizer", (1, 0), 2), ("gradient_partials", (1,), 2),
                ("gradient_window", (2, config.partial_beats), 1), ("gradient_share", (2,), 1),
                ("gradient_timeout", (0, 0xFFFF), 0x10000)):
            for value in allowed:
                assert await master.write(ctx, (registers[name].address, value)) == [OKAY]
                assert ctx.get(getattr(dut, name)) == value
            assert await master.write(ctx, (registers[name].address, refused)) == [SLVERR]

    run(script, config=config)


def test_a_peer_is_taken_back_by_one_write():
    """A rejoin is rejected while another is in progress, for this node, and for a node outside the
    cluster. Each write counts, even with the same value."""
    config = CONFIG.with_fields(link=True)
    written = []

    async def script(ctx, dut, master, registers):
        place, busy = registers["link_rejoin"].address, registers["link_rejoining"].address
        most = (config.nodes - 1) << 8 | 0xFF
        assert await master.write(ctx, (registers["node"].address, 2)) == [OKAY]
        for value in (1 << 8 | 7, 1 << 8 | 7, 0, most):
            assert await master.write(ctx, (place, value)) == [OKAY]
            await ctx.tick()
            assert written.pop() == value and written == []
        for value in (2 << 8 | 7, most + 1, 1 << 16):
            assert await master.write(ctx, (place, value)) == [SLVERR]
        ctx.set(dut.link_rejoining, 1)
        assert await master.write(ctx, (place, 1 << 8)) == [SLVERR]
        assert await master.read(ctx, busy, place) == [(1, OKAY), (most, OKAY)]
        ctx.set(dut.link_rejoining, 0)
        assert await master.read(ctx, busy) == [(0, OKAY)]
        assert await master.write(ctx, (busy, 0)) == [SLVERR]
        assert await master.write(ctx, (registers["link_delay"].address, 5)) == [OKAY]
        await ctx.tick().repeat(3)
        assert written == []

    async def watch(ctx, dut):
        while True:
            _, _, rejoins, value = await ctx.tick().sample(dut.link_rejoins, dut.link_rejoin)
            if rejoins:
                written.append(value)

    dut = register_block(config, tuple(COUNTERS.items()))
    master = Master(dut.csr, 0.0, 0)

    async def bench(ctx):
        await script(ctx, dut, master, {r.name: r for r in dut.registers})

    simulate(dut, bench, background=[*master.benches(), lambda ctx: watch(ctx, dut)])
