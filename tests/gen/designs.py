"""Small designs that the generator tests convert."""

from dataclasses import dataclass

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.cache.tags import TagPipeline
from rtl.config import preset
from rtl.float import FloatAdder, FloatMultiplier
from rtl.formats import Key
from rtl.interaction import RepeatStore
from rtl.interaction.dot_schedule import DotSchedule
from rtl.keys.hashing import hash_bits
from rtl.memory import Ram
from rtl.query import BagRepeats
from rtl.shared import Shared
from sim.bench.bags import OWNER_BAGS, REPEAT_WORDS

Pair = data.StructLayout({"a": 8, "b": 8})


class Inner(wiring.Component):
    """Increments a word, without a register."""

    def __init__(self):
        super().__init__({"i": In(8), "o": Out(8)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.d.comb += self.o.eq(self.i + 1)
        return m


class Unit(wiring.Component):
    """Sums the members of a pair plus ``offset``; contains a shared unit itself."""

    def __init__(self, offset: int = 1):
        self.offset = offset
        super().__init__({"i": In(stream.Signature(Pair)), "o": Out(stream.Signature(8))})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.inner = inner = Shared(Inner(), "inner")
        m.d.comb += [inner.i.eq(self.i.payload.a + self.i.payload.b + self.offset),
                     self.i.ready.eq(~self.o.valid | self.o.ready)]
        with m.If(self.i.ready):
            m.d.sync += [self.o.valid.eq(self.i.valid), self.o.payload.eq(inner.o)]
        return m


@dataclass(frozen=True)
class Register:
    """The members of a register that the generator reads."""

    name: str
    address: int
    access: str
    reset: int
    description: str


class Bank(wiring.Component):
    """``count`` shared units in series, then a memory that their output addresses."""

    registers = (Register("version", 0, "ro", 1, "version of the design"),)

    def __init__(self, count: int = 3, depth: int = 5, offsets: tuple[int, ...] | None = None):
        self._count, self._depth = count, depth
        self._offsets = offsets or (1,) * count
        super().__init__({"i": In(stream.Signature(Pair)), "o": Out(stream.Signature(8)),
                          "address": In(range(depth)), "word": Out(8), "old": Out(8)})

    def elaborate(self, platform) -> Module:
        m = Module()
        previous = self.i
        for index, offset in enumerate(self._offsets):
            unit = Shared(Unit(offset), "unit")
            m.submodules[f"unit_{index}"] = unit
            if index:
                m.d.comb += unit.i.payload.a.eq(previous.payload)
            else:
                m.d.comb += unit.i.payload.eq(previous.payload)
            m.d.comb += [unit.i.valid.eq(previous.valid), previous.ready.eq(unit.i.ready)]
            previous = unit.o
        wiring.connect(m, previous, wiring.flipped(self.o))
        for name, latency, style, target in (("words", 1, "bram", self.word),
                                             ("olds", 0, "lutram", self.old)):
            ram = Ram(8, self._depth, style=style, latency=latency)
            m.submodules[name] = ram
            m.d.comb += [
                ram.write_en.eq(self.o.valid), ram.write_data.eq(self.o.payload),
                ram.write_addr.eq(self.address), ram.read_addr.eq(self.address),
                target.eq(ram.read_data)]
        return m


class Chain(wiring.Component):
    """Two unnamed submodules between registers, and further logic after the second."""

    def __init__(self):
        super().__init__({"i": In(8), "o": Out(8)})

    def elaborate(self, platform) -> Module:
        m = Module()
        before = Signal(8)
        after = Signal(8)
        units = Inner(), Inner()
        m.submodules += units
        m.d.sync += [before.eq(self.i), after.eq((units[1].o * units[0].o)[:8])]
        m.d.comb += [units[0].i.eq(before), units[1].i.eq(before ^ self.i), self.o.eq(~after)]
        return m


class Beginning(wiring.Component):
    """Outputs that are known before any input or register changes: ``chosen`` is 5 in state 2, the
    initial state; ``mark`` is 0xA0 and ``copied`` is 0x2 while ``go`` is 0."""

    def __init__(self):
        super().__init__({"go": In(1), "chosen": Out(4), "mark": Out(8), "copied": Out(4)})

    def elaborate(self, platform) -> Module:
        m = Module()
        state = Signal(2, init=2)
        with m.Switch(state):
            with m.Case(2):
                m.d.comb += self.chosen.eq(5)
                with m.If(self.go):
                    m.d.sync += state.eq(3)
            with m.Default():
                m.d.comb += self.chosen.eq(6)
        m.d.comb += [self.mark[4:].eq(0xA), self.copied[:2].eq(state)]
        with m.If(self.go):
            m.d.comb += [self.mark[:4].eq(state), self.copied[2:].eq(state)]
        return m


class Blocks(wiring.Component):
    """Blocks side by side, each with its own ports."""

    def __init__(self, blocks: dict[str, wiring.Component]):
        self._blocks = blocks
        super().__init__({name: Out(block.signature) for name, block in blocks.items()})

    def elaborate(self, platform) -> Module:
        m = Module()
        for name, block in self._blocks.items():
            m.submodules[name] = block
            wiring.connect(m, wiring.flipped(getattr(self, name)), block)
        return m


def deep_blocks() -> Blocks:
    """Return the deepest blocks of preset ``tiny`` whose synthesis takes only seconds."""
    tiny = preset("tiny")
    return Blocks({
        "schedule": DotSchedule(tiny, 64),
        "tags": TagPipeline(Key.size, 32, rows=tiny.remote_cache_rows, ways=tiny.remote_cache_ways,
                            in_flight=tiny.remote_in_flight, hash_key=hash_bits),
        "float_adder": FloatAdder(), "float_multiplier": FloatMultiplier()})


def repeat_blocks() -> Blocks:
    """Return the blocks that find repeated bags, in the sizes of ``kaggle``."""
    config = preset("kaggle").with_fields(owner_bags=OWNER_BAGS, repeat_words=REPEAT_WORDS)
    return Blocks({"bag_repeats": BagRepeats(config), "repeat_store": RepeatStore(config)})
