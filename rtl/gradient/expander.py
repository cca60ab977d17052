"""Gradient expander: repeats the vector of a bag for each of its keys."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import BEAT_BITS, NicConfig
from rtl.formats import STEP_BITS, GradientBeat, RawBeat
from rtl.gradient.bags import BagKey, bag_length
from rtl.gradient.divider import GradientDivider
from rtl.memory import Ram
from rtl.monitor.counters import CounterLayout, count
from rtl.stream import Level, SkidBuffer, packet_layout

__all__ = ["GRADIENT_EXPANDER_COUNTERS", "GradientExpander"]

GRADIENT_EXPANDER_COUNTERS = CounterLayout("bags", "keys", "beats", "stall_sink", "stall_vector")

_RING = 64
"""Beats of vectors between the divider and their last key: 4 of the longest vectors, and more than
the cycles from the start of a beat to the release of its place."""


class GradientExpander(wiring.Component):
    """Repeat the vector of each bag, divided once for a mean, for each of the bag's keys.

    Vectors wait in a ring of 64 beats until their last key has left, so the next bags are divided
    meanwhile. A vector is output once it is complete.

    Ports
    -----
    keys: packet stream (:func:`rtl.stream.packet_layout`) of :data:`~rtl.gradient.bags.BagKey`.
    bags, verdicts, vectors, vector_beats, vector_packing, mean: see
        :class:`~rtl.gradient.divider.GradientDivider`.
    o: stream of :data:`rtl.formats.GradientBeat`, keys in the order of their records.
    flush: stream of the step whose gradients end, offered after every earlier beat was taken. No
        beat is offered until it is taken.
    counters: ``bags`` whose vector was taken; ``keys`` and ``beats`` output; ``stall_sink``, cycles
        in which a beat was not taken; ``stall_vector``, cycles in which a key waited for its vector
        while the sink waited for a beat.
    idle: inactive until an input changes.
    """

    LATENCY = {
        ("keys, bags and verdict of a packet", "first beat, of a vector of one"): 30,
        ("keys, bags and verdict of a packet", "the same, of a mean"): 36,
    }
    RATE = "1 beat per cycle out for any lengths of bags"

    def __init__(self, config: NicConfig):
        if not isinstance(config, NicConfig):
            raise TypeError(f"config must be a NicConfig, not {config!r}")
        length = bag_length(config)
        self._divider = GradientDivider(length)
        super().__init__({
            "keys": In(stream.Signature(packet_layout(BagKey))),
            "bags": In(stream.Signature(packet_layout(length))),
            "verdicts": In(stream.Signature(1)), "vectors": In(stream.Signature(RawBeat)),
            "vector_beats": In(5), "vector_packing": In(2), "mean": In(1),
            "o": Out(stream.Signature(GradientBeat)), "flush": Out(stream.Signature(STEP_BITS)),
            "counters": Out(GRADIENT_EXPANDER_COUNTERS), "idle": Out(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.divider = divider = self._divider
        # Block RAM, although an eighth of it is used: LUTs are scarce in a NIC that trains.
        m.submodules.ring = ring = Ram(BEAT_BITS, _RING, style="bram")
        # A buffer between the memory of the keys and the logic that depends on them, such as its
        # pointers.
        m.submodules.keys = keys = SkidBuffer(packet_layout(BagKey))
        wiring.connect(m, wiring.flipped(self.keys), keys.i)
        for name in ("bags", "verdicts", "vectors"):
            wiring.connect(m, wiring.flipped(getattr(self, name)), getattr(divider, name))
        for name in ("vector_beats", "vector_packing", "mean"):
            m.d.comb += getattr(divider, name).eq(getattr(self, name))

        # Beats with a reserved place, complete vectors, and the begin of the oldest vector.
        promised, room = Signal(range(_RING + 1)), Signal(init=1)
        m.submodules.present = present = Level(_RING)
        base, end = Signal(range(_RING)), Signal(range(_RING))
        part, come, final_part = Signal(4), Signal(4), Signal(4)
        valid, advance, here, issue = Signal(), Signal(), Signal(), Signal()
        final, done, gone, freed = Signal(), Signal(), Signal(), Signal(5)
        key = keys.o.payload.item
        m.d.sync += final_part.eq(self.vector_beats - 1)
        m.d.comb += [
            divider.go.eq(room), advance.eq(self.o.ready | ~valid),
            # A vector counts as present for one cycle after its last key.
            here.eq(present.many | (present.some & ~gone)),
            issue.eq(keys.o.valid & ~key.over & here & advance), final.eq(part == final_part),
            self.flush.valid.eq(keys.o.valid & key.over & ~valid),
            self.flush.payload.eq(key.step),
            keys.o.ready.eq((issue & final) | (self.flush.valid & self.flush.ready)),
            done.eq(issue & final & key.end), present.down.eq(gone),
            present.up.eq(divider.o.valid & (come == final_part)),
            ring.write_en.eq(divider.o.valid), ring.write_addr.eq(end),
            ring.write_data.eq(divider.o.data),
            ring.read_en.eq(advance), ring.read_addr.eq((base + part)[:len(base)]),
        ]
        m.d.sync += [
            # Places become free one cycle late, and ``room`` is one cycle old: another beat may
            # have started.
            gone.eq(done), freed.eq(Mux(done, self.vector_beats, 0)),
            promised.eq(promised + divider.begun - freed), room.eq(promised < _RING - 1),
            end.eq(end + divider.o.valid),
        ]
        # ``done`` depends on the sink's ready and is late: it enables registers, and no carry
        # chain.
        with m.If(done):
            m.d.sync += base.eq(base + self.vector_beats)
        with m.If(divider.o.valid):
            m.d.sync += come.eq(Mux(come == final_part, 0, come + 1))
        with m.If(issue):
            m.d.sync += part.eq(Mux(final, 0, part + 1))

        out, last = Signal(GradientBeat, reset_less=True), Signal(reset_less=True)
        with m.If(advance):
            m.d.sync += [valid.eq(issue), out.key.eq(key.key), out.step.eq(key.step),
                         out.beat.eq(part), last.eq(final)]
        m.d.comb += [
            self.o.valid.eq(valid), self.o.payload.eq(out), self.o.payload.data.eq(ring.read_data),
            self.idle.eq(divider.idle & (promised == 0) & ~self.keys.valid & keys.idle & ~valid),
        ]
        count(m, self.counters, bags=divider.bag_begun,
              keys=valid & self.o.ready & last, beats=valid & self.o.ready,
              stall_sink=valid & ~self.o.ready,
              stall_vector=keys.o.valid & ~key.over & advance & ~here)
        return m
