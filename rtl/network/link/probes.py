"""Probes: packets to silent peers while this NIC waits for peers."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.formats import NODE_BITS, RECORDS_PER_BEAT, FrameInfo, Opcode, RawBeat
from rtl.monitor.counters import CounterLayout, count
from rtl.network.credits import check_nodes
from rtl.network.layouts import AtNode
from rtl.network.link.packets import TIME_BITS
from rtl.stream import SkidBuffer

__all__ = ["PROBE_COUNTERS", "Probes"]

PROBE_COUNTERS = CounterLayout("sent")


class Probes(wiring.Component):
    """Send a PROBE packet to each peer that was silent for a period while this NIC waits.

    A peer that acknowledges requests and dies before it answers would go unnoticed: no packet to it
    remains that could time out. A live peer acknowledges a PROBE and does nothing else. A dead peer
    fails after the last try.

    Periods follow each other while ``waiting``. At the end of each period, one PROBE goes to each
    other node that has sent no valid packet in the period and has not failed.

    Parameters: ``nodes``, the largest number of nodes.

    Ports
    -----
    waiting: this NIC waits for other nodes.
    came: event :data:`rtl.network.layouts.AtNode`: a valid packet of this node arrived.
    lost: bit mask of failed nodes.
    node, nodes: number of this node, and the number of nodes.
    after: cycles of a period, at least 1.
    time: cycle counter; may jump, while ``idle``, up to ``deadline``.
    headers, payload: streams of :data:`rtl.formats.FrameInfo` and :data:`rtl.formats.RawBeat`; a
        packet has one beat of zeros.
    deadline, waits: while ``idle`` and ``waits``, the block becomes active when ``time`` reaches
        ``deadline``.
    counters: probes ``sent``.
    idle: inactive until an input changes.

    Raises ``TypeError`` or ``ValueError`` unless ``nodes`` is an integer from 1 to 256.
    """

    LATENCY = {("end of a period", "header for node k"): "3 + k"}
    RATE = "1 probe in 2 cycles"

    def __init__(self, nodes: int):
        check_nodes(nodes)
        self._most = nodes
        super().__init__({
            "waiting": In(1), "came": In(AtNode), "lost": In(nodes), "node": In(NODE_BITS),
            "nodes": In(NODE_BITS, init=1), "after": In(TIME_BITS), "time": In(32),
            "headers": Out(stream.Signature(FrameInfo)),
            "payload": Out(stream.Signature(RawBeat)), "deadline": Out(32), "waits": Out(1),
            "counters": Out(PROBE_COUNTERS), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        most = self._most
        m.submodules.headers = headers = SkidBuffer(FrameInfo)
        m.submodules.payload = payload = SkidBuffer(RawBeat)
        wiring.connect(m, headers.o, wiring.flipped(self.headers))
        wiring.connect(m, payload.o, wiring.flipped(self.payload))
        heard, left = (Signal(most, name=name) for name in ("heard", "left"))
        peers = Signal(most, reset_less=True)
        place, final = Signal(range(most)), Signal(NODE_BITS, reset_less=True)
        until = Signal(32, reset_less=True)
        runs, over, sends = Signal(), Signal(), Signal()
        m.d.sync += [
            final.eq(self.nodes - 1),
            peers.eq(Cat((self.nodes > n) & (self.node != n) & ~self.lost[n]
                         for n in range(most))),
        ]
        m.d.comb += [
            self.deadline.eq(until),
            headers.i.payload.opcode.eq(Opcode.PROBE), headers.i.payload.destination.eq(place),
            headers.i.payload.count.eq(RECORDS_PER_BEAT), payload.i.payload.last.eq(1),
            headers.i.valid.eq(sends & payload.i.ready),
            payload.i.valid.eq(sends & headers.i.ready),
        ]
        with m.FSM() as states:
            with m.State("REST"):
                m.d.sync += [until.eq(self.time + self.after), heard.eq(0), over.eq(0)]
                with m.If(self.waiting):
                    m.next = "WAIT"
            with m.State("WAIT"):
                m.d.comb += self.waits.eq(1)
                m.d.sync += over.eq(~(self.time - until)[31])
                with m.If(~self.waiting):
                    m.next = "REST"
                with m.Elif(over):
                    m.d.sync += [
                        left.eq(peers & ~heard), heard.eq(0), until.eq(self.time + self.after),
                        over.eq(0), place.eq(0)]
                    m.next = "SEND"
            with m.State("SEND"):
                m.d.comb += sends.eq(left.bit_select(place, 1))
                with m.If(~sends | (headers.i.ready & payload.i.ready)):
                    m.d.sync += place.eq(place + 1)
                    with m.If(place == final):
                        m.next = "WAIT"
        with m.If(self.came.valid & ~states.ongoing("REST")):
            m.d.sync += heard.bit_select(self.came.node, 1).eq(1)
        m.d.comb += [
            runs.eq(states.ongoing("SEND") | (states.ongoing("REST") & self.waiting)
                    | (states.ongoing("WAIT") & (over | ~self.waiting))),
            self.idle.eq(~runs & headers.idle & payload.idle)]
        count(m, self.counters, sent=headers.i.valid & headers.i.ready)
        return m
