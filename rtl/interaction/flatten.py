"""Flattener: packs groups of dots into beats of 16."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import BEAT_BITS, LANES, NicConfig
from rtl.formats import RawBeat
from rtl.interaction.dot_schedule import DotGroup
from rtl.stream import StreamFIFO

__all__ = ["Flattener"]


class Flattener(wiring.Component):
    """Pack the dots of a sample 16 per beat (paper, section 4.1.3: the flatten).

    The dots of a group are rotated until the first one is in the next free lane of the beat. Dots
    beyond lane 15 are then in the lowest lanes, and begin the next beat. The schedule decides when
    a beat is full, and begins a group only with room for its beat, so the block never stalls.

    Ports
    -----
    valid, group, dots: from :class:`~rtl.interaction.dot_array.DotArray`.
    o: stream of :data:`~rtl.formats.RawBeat`; ``last`` marks the beat that ends a sample, with
        zeros after its last dot.
    idle: inactive until an input changes. A partial beat does not clear it.
    """

    LATENCY = {("group's dots", "beat"): 4}
    RATE = "1 group per cycle"

    def __init__(self, config: NicConfig, room: int):
        self._room, self._dots = room, 32 * config.dot_units
        super().__init__({
            "valid": In(1), "group": In(DotGroup(config)), "dots": In(self._dots),
            "o": Out(stream.Signature(RawBeat)), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.beats = beats = StreamFIFO(RawBeat, self._room)
        wiring.connect(m, beats.o, wiring.flipped(self.o))

        # 1: rotate by the lower bits of fill. In the same stage, compute the lanes of the previous
        # beat, of this group, and of the kept dots.
        group, turned = self.group, Signal(BEAT_BITS, reset_less=True)
        older, known, keep = (Signal(LANES, reset_less=True, name=name)
                              for name in ("older", "known", "keep"))
        below, emit, last = Signal(LANES), Signal(), Signal(reset_less=True)
        # A register for each half of the beat, to split the load; one is inverted, otherwise
        # synthesis would merge them.
        rest, inverse = Signal(2, reset_less=True), Signal(2, reset_less=True)
        filled = Signal(range(2 * LANES + 1))
        m.d.comb += [
            filled.eq(group.fill + group.count),
            below.eq(Cat(lane < group.fill for lane in range(LANES - 1))),
        ]
        with m.If(self.valid & (group.count.any() | group.emit)):
            m.d.sync += [
                turned.eq(_turned(self.dots, group.fill[:2], 32)),
                rest.eq(group.fill[2:]), inverse.eq(~group.fill[2:]),
                older.eq(below),
                known.eq(Cat(lane < filled for lane in range(LANES))),
                # Lanes from fill on are free, and those below if the dots wrap around to them.
                keep.eq(~below | Cat(lane + LANES < filled for lane in range(LANES))),
                last.eq(group.last),
            ]
        m.d.sync += emit.eq(self.valid & group.emit)
        # 2: rotate by the rest, and merge with the kept dots.
        dots, kept = Signal(BEAT_BITS), Signal(BEAT_BITS, reset_less=True)
        m.d.comb += [
            dots.eq(Cat(_turned(turned, rest, 128)[:BEAT_BITS // 2],
                        _turned(turned, ~inverse, 128)[BEAT_BITS // 2:])),
            beats.i.valid.eq(emit), beats.i.payload.last.eq(last),
        ]
        moved = Signal()
        m.d.sync += moved.eq(self.valid & group.count.any())
        for lane in range(LANES):
            bits = slice(32 * lane, 32 * lane + 32)
            m.d.comb += beats.i.payload.data[bits].eq(Mux(
                older[lane], kept[bits], Mux(known[lane], dots[bits], 0)))
            with m.If(moved & keep[lane]):
                m.d.sync += kept[bits].eq(dots[bits])
        m.d.comb += self.idle.eq(beats.idle & ~emit & ~moved)
        return m


def _turned(value, by: Signal, bits: int):
    """Return ``value``, padded to a beat, rotated up by 0 to 3 times ``bits``."""
    beat = Cat(value, Signal(BEAT_BITS - len(value))) if len(value) < BEAT_BITS else value
    return Mux(by[1],
               Mux(by[0], beat.rotate_left(3 * bits), beat.rotate_left(2 * bits)),
               Mux(by[0], beat.rotate_left(bits), beat))
