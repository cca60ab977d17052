"""Link receiver: admits each packet of each peer once, and acknowledges arrived packets."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import BEAT_BITS
from rtl.formats import NODE_BITS, SEQUENCE_BITS
from rtl.memory import Ram
from rtl.monitor.counters import CounterLayout, count
from rtl.network.layouts import AtNode
from rtl.network.link.arrival_bits import WORDS, ArrivalBits
from rtl.network.link.arrival_scan import BLOCKS, ArrivalScan
from rtl.network.link.fence import Fence
from rtl.network.link.layouts import ARRIVALS, WINDOW, Acknowledged, Arrivals, PacketNumber
from rtl.network.link.renewal import Wipe
from rtl.network.link.report_queue import Came, ReportQueue
from rtl.stream import StreamFIFO

__all__ = ["LINK_RECEIVER_COUNTERS", "GoodPacket", "LinkReceiver", "link_ports"]

LINK_RECEIVER_COUNTERS = CounterLayout(
    "duplicates", "outside", "bad_epochs", "acknowledgements", "arrivals_dropped")

GoodPacket = data.StructLayout({
    "valid": 1, "link": 1, "room": 1, "bad_epoch": 1, "number": PacketNumber,
    "acknowledge": SEQUENCE_BITS, "data": BEAT_BITS})
"""Event: the last beat, ``data``, of a valid packet. With ``bad_epoch`` instead of ``valid``: of a
packet that is valid except for its epoch. ``link``: a LINK packet. ``room``: the packet can be
stored."""


def link_ports() -> dict[str, wiring.Member]:
    """Return the ports of the receiver to the rest of the NIC.

    ack_delay: cycles that an acknowledgement waits for a header to carry it.
    time: cycle counter; may jump, while ``idle``, up to ``deadline``.
    ack_node, ack_value: ``acknowledge`` of a header to ``ack_node``, combinational: the first of
    its packets that has not arrived.
    told: event :data:`rtl.network.layouts.AtNode`: a header for ``node``, equal to ``ack_node``,
    takes ``ack_value`` in this cycle.
    acknowledged: event :data:`rtl.network.link.layouts.Acknowledged` of each valid packet, admitted
    or not.
    arrived: stream of :data:`rtl.network.link.layouts.Arrivals`, contents of received LINK packets.
    links: stream of :data:`rtl.network.link.layouts.Arrivals`, contents of LINK packets to send.
    deadline, waits: while ``idle`` and ``waits``, the block becomes active when ``time`` reaches
    ``deadline``.
    mark, passed: record the received packets that are inside; all of them have left.
    held: :data:`rtl.network.layouts.AtNode`; while valid, the base of that peer stays, and its
    packets are not acknowledged.
    busy: the ``held`` peer is still being processed, or a LINK packet to it waits.
    wipe: :data:`rtl.network.link.renewal.Wipe`: the state of the peer gets its value after reset;
    only while the peer is held and not ``busy``, and no packet of it arrives.
    link_counters: :data:`LINK_RECEIVER_COUNTERS`: duplicate packets, packets beyond the window,
    packets of another epoch; LINK packets made; received LINK packets dropped for lack of room.
    """
    return {
        "mark": In(1), "passed": Out(1), "held": In(AtNode), "busy": Out(1), "wipe": In(Wipe),
        "ack_delay": In(16), "time": In(32), "ack_node": In(NODE_BITS),
        "ack_value": Out(SEQUENCE_BITS), "told": In(AtNode), "acknowledged": Out(Acknowledged),
        "arrived": Out(stream.Signature(Arrivals)), "links": Out(stream.Signature(Arrivals)),
        "deadline": Out(32), "waits": Out(1), "link_counters": Out(LINK_RECEIVER_COUNTERS)}


class LinkReceiver(wiring.Component):
    """Decide for each packet whether it is the first one with its number; record and report
    arrivals.

    Parameters
    ----------
    nodes: number of peers.
    first_sequence: number of each peer's first packet.

    Ports
    -----
    look: :data:`PacketNumber` of the arriving packet; arbitrary in other cycles.
    fresh, duplicate, outside: state of the packet at ``look`` three cycles ago: it is new, it has
        arrived before, or it is beyond the window. Before ``ready`` every packet is ``outside``.
    packet: event :data:`GoodPacket`, not in two consecutive cycles, three cycles after its number
        was at ``look``. It is admitted if it is not a LINK packet, is ``fresh`` and has ``room``.
    ready: the state is cleared after reset.
    idle: inactive until ``time`` reaches ``deadline``.

    Other ports: see :func:`link_ports`.
    """

    LATENCY = {
        ("look", "fresh, duplicate, outside"): 3, ("packet", "acknowledged"): 1,
        ("LINK packet", "what arrived"): 2,
        ("admitted packet", "ack_value, nothing else moving"): 10,
        ("admitted packet", "its LINK packet, after the delay"): 21,
    }
    RATE = "1 packet in 2 cycles"
    ARRIVED = 16
    """Received LINK packets that may wait for the sender."""

    def __init__(self, nodes: int, *, first_sequence: int = 0):
        self._nodes, self._first = nodes, first_sequence
        super().__init__({
            "look": In(PacketNumber), "fresh": Out(1), "duplicate": Out(1), "outside": Out(1),
            "packet": In(GoodPacket), "ready": Out(1), "idle": Out(1)} | link_ports())

    def elaborate(self, platform) -> Module:
        m = Module()
        nodes, packet = self._nodes, self.packet
        m.submodules.bits = bits = ArrivalBits(nodes, first_sequence=self._first)
        m.submodules.scan = scan = ArrivalScan(nodes)
        m.submodules.queue = queue = ReportQueue(nodes)
        look = Signal(PacketNumber, reset_less=True)  # the bits take one cycle longer than the base
        m.d.comb += self.ready.eq(bits.ready)
        m.d.sync += look.eq(self.look)

        wipe, wiped = self.wipe, Signal(NODE_BITS)
        m.d.comb += [
            scan.held.eq(self.held), self.busy.eq(scan.busy), bits.wipe.eq(wipe),
            # No packet is admitted in this cycle.
            bits.wipe.valid.eq(wipe.valid & ~packet.valid),
            wiped.eq(Mux(bits.ready, wipe.node, bits.clearing[WORDS.bit_length() - 1:])),
        ]
        # Bases, one copy for each reader.
        moves = bits.ready & (scan.moved.valid | ~wipe.valid)
        bases = {name: Ram(SEQUENCE_BITS, nodes, latency=0)
                 for name in ("look", "header", "scan")}
        for name, ram in bases.items():
            m.submodules[f"base_{name}"] = ram
            m.d.comb += [
                ram.write_en.eq(scan.moved.valid | ~moves),
                ram.write_addr.eq(Mux(moves, scan.moved.node, wiped)),
                ram.write_data.eq(Mux(moves, scan.moved.base, self._first)),
            ]
        m.d.comb += [
            bases["look"].read_addr.eq(look.source),
            bases["header"].read_addr.eq(self.ack_node),
            self.ack_value.eq(bases["header"].read_data),
            bases["scan"].read_addr.eq(scan.base_node), scan.base.eq(bases["scan"].read_data),
            bits.look.eq(self.look), bits.scan.eq(scan.scan), scan.scanned.eq(bits.scanned),
        ]
        self._judge(m, look.sequence, bases["look"].read_data, bits.come)

        # Arrivals are registered one cycle later.
        first, admitted = Signal(), Signal()
        came = Signal(Came)
        m.d.comb += [
            first.eq(packet.valid & ~packet.link & packet.room), admitted.eq(first & self.fresh),
            bits.mark.eq(admitted), queue.came.eq(came),
            scan.came.valid.eq(came.valid & ~came.duplicate), scan.came.node.eq(came.node),
        ]
        m.d.sync += [
            came.valid.eq(admitted | (packet.valid & ~packet.link & self.duplicate)),
            came.node.eq(packet.number.source), came.duplicate.eq(self.duplicate),
            came.block.eq(packet.number.sequence[ARRIVALS.bit_length() - 1:]),
            self.acknowledged.valid.eq(packet.valid),
            self.acknowledged.node.eq(packet.number.source),
            self.acknowledged.acknowledge.eq(packet.acknowledge),
        ]
        told_idle = self._told(m, scan, bits, wiped)
        m.submodules.arrived = arrived = StreamFIFO(Arrivals, self.ARRIVED, style="lutram")
        wiring.connect(m, arrived.o, wiring.flipped(self.arrived))
        m.submodules.fence = fence = Fence(self.ARRIVED + 1)
        m.d.comb += [
            fence.put.eq(arrived.i.valid & arrived.i.ready),
            fence.take.eq(arrived.o.valid & arrived.o.ready), fence.mark.eq(self.mark),
            self.passed.eq(fence.passed),
        ]
        m.d.comb += [
            arrived.i.valid.eq(packet.valid & packet.link),
            arrived.i.payload.node.eq(packet.number.source),
            arrived.i.payload.first.eq(packet.number.sequence),
            arrived.i.payload.bits.eq(packet.data),
            queue.time.eq(self.time), queue.delay.eq(self.ack_delay),
            queue.ready.eq(bits.ready),
            queue.clearing.eq(bits.clearing[(WORDS // BLOCKS).bit_length() - 1:]),
            self.deadline.eq(queue.deadline), self.waits.eq(queue.waits),
            self.idle.eq(bits.ready & ~self.acknowledged.valid & told_idle & scan.idle & queue.idle
                         & arrived.idle),
        ]
        wiring.connect(m, queue.reports, scan.reports)
        wiring.connect(m, scan.links, wiring.flipped(self.links))
        count(m, self.link_counters,
              duplicates=packet.valid & ~packet.link & self.duplicate,
              outside=packet.valid & ~packet.link & self.outside, bad_epochs=packet.bad_epoch,
              acknowledgements=scan.made,
              arrivals_dropped=arrived.i.valid & ~arrived.i.ready)
        return m

    def _judge(self, m, sequence, base, come) -> None:
        """Classify packet ``sequence`` by its peer's ``base`` and its bit."""
        base1, sequence1 = (Signal(SEQUENCE_BITS, reset_less=True, name=name)
                            for name in ("base1", "sequence1"))
        ahead = Signal(SEQUENCE_BITS)
        before, within, beyond = (Signal(reset_less=True, name=name)
                                  for name in ("before", "within", "beyond"))
        window = WINDOW.bit_length() - 1
        m.d.comb += ahead.eq(sequence1 - base1)
        m.d.sync += [
            base1.eq(base), sequence1.eq(sequence),
            before.eq(ahead[-1] & self.ready),
            within.eq(~ahead[window:].any() & self.ready),
            beyond.eq((~ahead[-1] & ahead[window:].any()) | ~self.ready),
        ]
        m.d.comb += [self.fresh.eq(within & ~come), self.duplicate.eq(before | (within & come)),
                     self.outside.eq(beyond)]

    def _told(self, m, scan, bits, wiped) -> Value:
        """Store the last acknowledgement in a header to each peer; return whether no header has
        just left."""
        said, event = Ram(SEQUENCE_BITS, self._nodes, latency=0), Signal(AtNode)
        m.submodules.said = said
        value = Signal(SEQUENCE_BITS, reset_less=True)
        m.d.sync += [event.node.eq(self.told.node), event.valid.eq(self.told.valid & bits.ready),
                     value.eq(self.ack_value)]
        says = bits.ready & (event.valid | ~self.wipe.valid)
        m.d.comb += [
            said.write_en.eq(event.valid | ~says),
            said.write_addr.eq(Mux(says, event.node, wiped)),
            said.write_data.eq(Mux(says, value, self._first)),
            said.read_addr.eq(scan.base_node), scan.told.eq(said.read_data),
        ]
        return ~event.valid
