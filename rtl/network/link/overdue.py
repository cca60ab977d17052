"""Overdue packets: finds packets to repeat, the time of the next check, and failed peers."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.formats import NODE_BITS
from rtl.keys.hashing import hash_bits, scale
from rtl.network.layouts import AtNode
from rtl.network.link.deadlines import Deadline
from rtl.network.link.layouts import Failed
from rtl.network.link.packets import TIME_BITS, Found, Record, Repeat
from rtl.network.link.round_trips import MOST_SHIFT

__all__ = ["Overdue"]

_CHANCE_BITS = 4
"""Bits of the hash that spreads a timeout."""


class Overdue(wiring.Component):
    """Decide for each packet of a walk whether it is overdue, and record when the others will be.

    The timeout of a packet is its peer's timeout, doubled for each repetition except the first, or
    as often as the peer's own timeout is doubled if that is more. A repeated packet has jitter: its
    timeout is longer by up to a quarter. Without jitter, packets meet the same part of a periodic
    outage again and again. The jitter depends only on both nodes, the packet's number and its
    tries, so a run is repeatable. Packets that were lost together are therefore overdue one after
    the other, and only the first of them doubles the timeout of the peer.

    An overdue packet is sent again. After ``tries`` transmissions, its peer has failed. The walk
    stops at the first packet that was sent only once and is not overdue, because later packets were
    sent later.

    Parameters
    ----------
    beats: beats of the pool.
    most: most beats of a packet.

    Ports
    -----
    begins: a walk over packets of ``node`` begins.
    i: stream of :func:`rtl.network.link.packets.Found`, one packet of the walk.
    decided, stop: the packet is done; the walk is done too.
    over: event: the walk ends.
    own: number of this node.
    timeout, doublings: timeout state of ``node``.
    most, tries: see :class:`rtl.network.link.sender.LinkSender`.
    time: cycle counter.
    again: stream of {first, record}, to a :class:`rtl.network.link.packet_table.PacketTable`.
    repeats: stream of :func:`rtl.network.link.packets.Repeat`.
    deadline: event :data:`rtl.network.link.deadlines.Deadline`, in the cycle after ``over``.
    late: event :data:`rtl.network.layouts.AtNode`, in the same cycle: doubles the timeout of the
        peer. A packet was repeated that had been sent once, or more often than the timeout was
        doubled.
    failed: event :data:`rtl.network.link.layouts.Failed`.
    idle: inactive until an input changes.
    """

    LATENCY = {("packet sent once", "decided"): 7, ("packet sent again before", "decided"): 9}
    RATE = "1 packet in 8 cycles, or 10 if it was sent again"

    def __init__(self, beats: int, most: int):
        self._record = Record(beats, most)
        super().__init__({
            "begins": In(1), "node": In(NODE_BITS), "i": In(stream.Signature(Found(beats, most))),
            "decided": Out(1), "stop": Out(1), "over": In(1), "own": In(NODE_BITS),
            "timeout": In(TIME_BITS),
            "doublings": In(range(MOST_SHIFT + 1)), "most": In(TIME_BITS), "tries": In(8),
            "time": In(32), "again": Out(stream.Signature(data.StructLayout({
                "first": range(beats), "record": self._record}))),
            "repeats": Out(stream.Signature(Repeat(beats, most))),
            "deadline": Out(Deadline), "late": Out(AtNode), "failed": Out(Failed),
            "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        packet, record = self.i.payload, self.i.payload.record
        wide = TIME_BITS + MOST_SHIFT + 1
        shift = Signal(range(MOST_SHIFT + 1), reset_less=True)
        coarse, age = Signal(TIME_BITS + 12, reset_less=True), Signal(TIME_BITS, reset_less=True)
        doubled, once = Signal(wide, reset_less=True), Signal(wide + 1)
        due, last, spent = Signal(), Signal(reset_less=True), Signal(reset_less=True)
        limit, longer = (Signal(TIME_BITS, name=name, reset_less=True)
                         for name in ("limit", "longer"))
        chance, spread = (Signal(width, name=name, reset_less=True)
                          for name, width in (("chance", _CHANCE_BITS), ("spread", TIME_BITS - 2)))
        now, sent = Signal(32, reset_less=True), Signal(reset_less=True)
        some, best = Signal(), Signal(32, reset_less=True)
        late, doubles = Signal(), Signal(reset_less=True)
        at, notes = Signal(32, reset_less=True), Signal()
        beyond, beyond_once = (Signal(reset_less=True, name=name)
                               for name in ("beyond", "beyond_once"))
        more = Signal(8)
        m.d.comb += [
            more.eq(Mux(record.tries <= 2, 0, record.tries - 2)),
            # The second try waits as long as the first, so a packet lost twice does not block the
            # window for long.
            once.eq(Mux(last, doubled, doubled << 1)), due.eq(age >= limit),
            self.again.payload.first.eq(packet.first), self.again.payload.record.eq(record),
            self.again.payload.record.tries.eq(record.tries + ~record.tries.all()),
            self.again.payload.record.time.eq(self.time),
            *(self.repeats.payload[name].eq(packet[name])
              for name in ("node", "sequence", "first", "record")),
            self.failed.node.eq(packet.node), self.failed.step.eq(record.step),
        ]

        with m.FSM(init="IDLE"):
            with m.State("IDLE"):
                m.d.comb += self.idle.eq(~self.i.valid & ~self.deadline.valid & ~self.late.valid)
                m.d.sync += [
                    shift.eq(Mux(more > self.doublings,
                                 Mux(more > MOST_SHIFT, MOST_SHIFT, more), self.doublings)),
                    age.eq(self.time - record.time), last.eq(record.tries == 1),
                    spent.eq(record.tries >= self.tries), sent.eq(0),
                    doubles.eq((record.tries == 1) | (record.tries > self.doublings + 1)),
                    chance.eq(self._chance(record.tries))]
                with m.If(self.i.valid):
                    m.next = "SHIFT"
            with m.State("SHIFT"):
                m.d.sync += coarse.eq(self.timeout << (shift & 12))
                m.next = "SHIFT_REST"
            with m.State("SHIFT_REST"):
                m.d.sync += doubled.eq(coarse << shift[:2])
                m.next = "LIMIT"
            with m.State("LIMIT"):
                # For this timeout, and for the next one if the packet is sent again now.
                m.d.sync += [beyond.eq(doubled > self.most), beyond_once.eq(once > self.most)]
                m.next = "CUT"
            with m.State("CUT"):
                m.d.sync += [limit.eq(Mux(beyond, self.most, doubled)),
                             longer.eq(Mux(beyond_once, self.most, once))]
                with m.If(last):
                    m.next = "COMPARE"
                with m.Else():
                    m.next = "SPREAD"
            with m.State("SPREAD"):
                m.d.sync += spread.eq(scale(chance, limit >> 2))
                m.next = "LENGTHEN"
            with m.State("LENGTHEN"):
                m.d.sync += limit.eq(limit + spread)
                with m.If(sent):
                    m.next = "NOTE"
                with m.Else():
                    m.next = "COMPARE"
            with m.State("COMPARE"):
                m.d.sync += [now.eq(self.time), notes.eq(~due | ~spent),
                             self.stop.eq(Mux(due, spent, last))]
                with m.If(~due):
                    m.next = "NOTE"
                with m.Elif(spent):
                    m.next = "FAIL"
                with m.Else():
                    m.next = "REPEAT"
            with m.State("REPEAT"):
                m.d.comb += [self.again.valid.eq(self.repeats.ready),
                             self.repeats.valid.eq(self.again.ready)]
                m.d.sync += [now.eq(self.time), age.eq(0), limit.eq(longer), sent.eq(1),
                             chance.eq(self._chance(record.tries + 1))]
                with m.If(self.again.ready & self.repeats.ready):
                    m.d.sync += late.eq(late | doubles)
                    m.next = "SPREAD"
            with m.State("FAIL"):
                m.d.comb += self.failed.valid.eq(1)
                m.next = "NOTE"
            with m.State("NOTE"):
                m.d.sync += at.eq(now + (limit - age))
                m.next = "DONE"
            with m.State("DONE"):
                with m.If(notes & ((at - best)[31] | ~some)):
                    m.d.sync += best.eq(at)
                m.d.sync += some.eq(some | notes)
                m.d.comb += [self.decided.eq(1), self.i.ready.eq(1)]
                m.next = "IDLE"
        m.d.sync += [
            self.deadline.valid.eq(self.over & (some | (self.decided & notes))),
            self.late.valid.eq(self.over & late), self.late.node.eq(self.node),
            self.deadline.node.eq(self.node),
        ]
        m.d.comb += self.deadline.time.eq(best)
        with m.If(self.over | self.begins):
            m.d.sync += [some.eq(0), late.eq(0)]
        return m

    def _chance(self, tries: Value) -> Value:
        """Return the jitter bits of the packet, which was sent ``tries`` times.

        The bits depend on both nodes, the direction between them, the number and the tries.
        """
        packet = self.i.payload
        key = Cat(packet.sequence, self.own, packet.node, tries[:8])
        return Value.cast(hash_bits(key)[-_CHANCE_BITS:])
