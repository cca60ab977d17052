"""Round trips: measured round-trip time of each peer, and the timeout."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.formats import NODE_BITS
from rtl.memory import Ram, sweep
from rtl.network.layouts import AtNode
from rtl.network.link.packets import TIME_BITS
from rtl.network.link.renewal import Wipe

__all__ = ["RoundTrip", "RoundTrips"]

RoundTrip = data.StructLayout({"valid": 1, "node": NODE_BITS, "cycles": TIME_BITS})
"""Event: a packet to ``node`` that was sent once was acknowledged after ``cycles``."""

MOST_SHIFT = 15
"""Largest number of doublings of a timeout."""


class RoundTrips(wiring.Component):
    """Measure round trips, and compute each peer's timeout (RFC 6298).

    S is the mean round trip and V the mean deviation. The first measurement R sets S = R, V = R/2.
    Each further one sets V += (\\|R - S\\| - V)/4 and S += (R - S)/8. The timeout is S + 4V, but at
    least S + S/2: with hundreds of packets per round trip, V forgets the length of the queue
    (RFC 7323, appendix G). Only packets that were sent once are measured (Karn). If all packets
    time out, no measurement exists; each ``late`` event then doubles the timeout until the next
    measurement.

    Parameters: ``nodes``.

    Ports
    -----
    measured: event :data:`RoundTrip`; ignored while the previous one is processed.
    late: event :data:`rtl.network.layouts.AtNode`: doubles the timeout of ``node``, see
        :class:`rtl.network.link.overdue.Overdue`.
    node, timeout, doublings: a peer, its timeout before doubling, and its doublings.
    first, least, most: timeout before the first measurement, and bounds of the timeout.
    wipe: :data:`rtl.network.link.renewal.Wipe`: clears measurement and doublings of the peer; a
        measurement in progress may still take effect before the wipe ends.
    idle: inactive until an input changes.
    """

    LATENCY = {("node", "its time-out"): 4, ("round trip", "the time-out"): 8}
    RATE = "1 round trip in 4 cycles"

    def __init__(self, nodes: int):
        self._nodes = nodes
        super().__init__({
            "measured": In(RoundTrip), "late": In(AtNode), "node": In(NODE_BITS),
            "timeout": Out(TIME_BITS), "doublings": Out(range(MOST_SHIFT + 1)),
            "first": In(TIME_BITS), "least": In(TIME_BITS), "most": In(TIME_BITS),
            "wipe": In(Wipe), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        word = data.StructLayout({"known": 1, "mean": TIME_BITS + 3, "deviation": TIME_BITS + 2})
        address, swept = sweep(m, self._nodes)
        m.submodules.words = words = Ram(word.size, self._nodes, latency=0)
        m.submodules.words_shown = shown = Ram(word.size, self._nodes, latency=0)
        m.submodules.doubled = doubled = Ram(len(self.doublings), self._nodes, latency=0)
        m.submodules.doubled_shown = shifts = Ram(len(self.doublings), self._nodes, latency=0)

        # A measurement: read, compare, change, write.
        step, late = Signal(3), Signal(AtNode)
        trip = Signal(RoundTrip, reset_less=True)
        old, new = (Signal(word, name=name, reset_less=True) for name in ("old", "new"))
        error = Signal(signed(TIME_BITS + 1), reset_less=True)
        size = Signal(TIME_BITS, reset_less=True)
        m.d.sync += step.eq(Cat(self.measured.valid & swept & ~step.any(), step[:2]))
        with m.If(~step.any()):
            m.d.sync += trip.eq(self.measured)
        with m.If(step[0]):
            m.d.sync += old.eq(words.read_data)
            m.d.sync += error.eq(trip.cycles - data.View(word, words.read_data).mean[3:])
        size_of = Signal(TIME_BITS)
        m.d.comb += size_of.eq(Mux(error < 0, -error, error))
        m.d.sync += size.eq(size_of)
        with m.If(step[1]):
            m.d.sync += [
                new.known.eq(1),
                new.mean.eq(Mux(old.known, old.mean + error, trip.cycles << 3)),
                new.deviation.eq(Mux(old.known, old.deviation - old.deviation[2:],
                                     trip.cycles << 1)),
            ]
        written = Signal(word)
        m.d.comb += [
            written.eq(new),
            written.deviation.eq(new.deviation + Mux(old.known, size, 0)),
            words.read_addr.eq(trip.node), shown.read_addr.eq(self.node),
        ]
        # A write port without an event clears the peer's state.
        cleared, counts, shifts_count = Signal(NODE_BITS), Signal(), Signal()
        m.d.comb += [
            cleared.eq(Mux(swept, self.wipe.node, address)),
            counts.eq(swept & (step[2] | ~self.wipe.valid)),
            shifts_count.eq(swept & (step[2] | late.valid | ~self.wipe.valid)),
        ]
        for ram in (words, shown):
            m.d.comb += [
                ram.write_en.eq(step[2] | ~counts),
                ram.write_addr.eq(Mux(counts, trip.node, cleared)),
                ram.write_data.eq(Mux(counts, written.as_value(), 0)),
            ]
        # Doublings: one more when packets are late, 0 after a measurement.
        node = Signal(NODE_BITS)
        m.d.sync += late.eq(self.late)
        m.d.comb += [
            node.eq(Mux(step[2], trip.node, late.node)),
            doubled.read_addr.eq(late.node), shifts.read_addr.eq(self.node),
        ]
        for ram in (doubled, shifts):
            m.d.comb += [
                ram.write_en.eq(step[2] | late.valid | ~shifts_count),
                ram.write_addr.eq(Mux(shifts_count, node, cleared)),
                ram.write_data.eq(Mux(step[2] | ~shifts_count, 0, Mux(
                    doubled.read_data == MOST_SHIFT, MOST_SHIFT, doubled.read_data + 1))),
            ]
        # The timeout of ``node``, within its bounds.
        read, total = Signal(word, reset_less=True), Signal(TIME_BITS + 4, reset_less=True)
        mean, margin = (Signal(TIME_BITS + 2, name=name, reset_less=True)
                        for name in ("mean", "margin"))
        m.d.sync += [
            read.eq(shown.read_data), self.doublings.eq(shifts.read_data),
            mean.eq(Mux(read.known, read.mean[3:], self.first)),
            margin.eq(Mux(read.known, Mux(read.deviation > read.mean[4:], read.deviation,
                                          read.mean[4:]), 0)),
            total.eq(mean + margin),
            self.timeout.eq(Mux(total < self.least, self.least,
                                Mux(total > self.most, self.most, total))),
        ]
        m.d.comb += self.idle.eq(swept & ~step.any() & ~late.valid)
        return m
