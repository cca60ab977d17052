"""Link sender: stores each packet until its peer acknowledges it, and repeats it until then."""

from types import SimpleNamespace

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import LINK_POOL_BEATS, NicConfig
from rtl.formats import CREDIT_BITS, NODE_BITS, SEQUENCE_BITS, FrameInfo, Opcode, RawBeat
from rtl.monitor.counters import CounterLayout, count
from rtl.network.layouts import AtNode
from rtl.network.link.deadlines import Deadlines
from rtl.network.link.frame_pool import FramePool
from rtl.network.link.intake import LinkIntake
from rtl.network.link.layouts import Acknowledged, Arrivals, Failed, LinkedFrame
from rtl.network.link.node_queue import NodeQueue
from rtl.network.link.overdue import Overdue
from rtl.network.link.packet_table import PacketTable
from rtl.network.link.packets import TIME_BITS, Found
from rtl.network.link.peer_states import PeerStates
from rtl.network.link.peer_windows import PeerWindows
from rtl.network.link.pool_room import PoolRoom
from rtl.network.link.renewal import Rejoined, Wipe, renew
from rtl.network.link.repeat_reader import RepeatReader
from rtl.network.link.round_trips import RoundTrips
from rtl.network.link.walker import Walker
from rtl.network.packet_mux import PacketMux
from rtl.stream import SkidBuffer

__all__ = ["LINK_SENDER_COUNTERS", "POOL_BEATS", "LinkSender"]

LINK_SENDER_COUNTERS = CounterLayout(
    "packets", "links", "repeated", "timeouts", "failures", "swallowed", "stall_window",
    "stall_pool", "bad_acknowledgements")

LINK_RECORDS = 8
"""Count in the header of a LINK packet: words of 64 bits."""

POOL_BEATS = LINK_POOL_BEATS
"""Payload beats of all unacknowledged packets."""


class LinkSender(wiring.Component):
    """Number the packets to each peer, store them until they are acknowledged, and repeat them.

    The block is between packet multiplexer and frame assembler. First transmissions keep their
    order.

    Parameters
    ----------
    config: sizes; ``nodes`` peers, ``net_payload_beats`` of the largest packet.
    first_sequence: number of the first packet to each peer.
    beats: beats of the pool, a power of two.

    Ports
    -----
    headers, payload: new packets, streams of :data:`rtl.formats.FrameInfo`, whose ``credit`` is
        ignored, and :data:`rtl.formats.RawBeat`. A header with ``empty`` set has no payload.
    links: stream of :data:`rtl.network.link.layouts.Arrivals`; each is sent in a LINK packet to its
        ``node``.
    header_out: stream of :data:`rtl.network.link.layouts.LinkedFrame`, to the assembler.
    payload_out: stream of :data:`rtl.formats.RawBeat`, packets in the order of their headers.
    acknowledged: event :data:`rtl.network.link.layouts.Acknowledged`, in any cycle.
    arrived: stream of :data:`rtl.network.link.layouts.Arrivals`, contents of received LINK packets.
    ack_node, ack_value: ``acknowledge`` of a header to ``ack_node``, combinational.
    credit_node, lookup_credit, gradient_credit, bag_credit: credits in a header to ``credit_node``,
        combinational: of partials in PARTIALS and STEPS, of bags in BAGS and BAG_VECTORS, else of
        lookups; ``bag_credit`` only with ``config.owner_bags``.
    told: event :data:`rtl.network.layouts.AtNode`: a header for ``node`` takes ``ack_value`` in
        this cycle.
    node: number of this node.
    time: cycle counter; may jump, while ``idle``, up to ``deadline``.
    timeout_first: cycles until a packet is repeated, before the first measured round trip to its
        peer.
    timeout_least, timeout_most: bounds of the timeout after that, in cycles; below 2^23. A repeated
        packet waits up to a quarter longer (:class:`rtl.network.link.overdue.Overdue`).
    tries: transmissions of a packet before its peer has failed; 0 counts as 1.
    failed: event :data:`rtl.network.link.layouts.Failed`: a peer has failed.
    lost: bit mask of failed peers, see :class:`rtl.network.link.peer_states.PeerStates`.
    close, closed: :data:`rtl.network.layouts.AtNode`, held until ``closed``: declare the peer
        failed unless it has failed; the step in ``failed`` is that of the last packet taken.
    held: :data:`rtl.network.layouts.AtNode`; while valid, the block ignores events of that peer,
        which has failed and has no packet in the pool.
    empty, busy: the ``held`` peer has no packet; a walk over its packets runs.
    wipe: :data:`rtl.network.link.renewal.Wipe`: the state of the peer gets its value after reset;
        only while the peer is held and not ``busy``.
    rejoined: event :data:`rtl.network.link.renewal.Rejoined`: packets to the peer are sent again.
    deadline, waits: while ``idle`` and ``waits``, the block becomes active when ``time`` reaches
        ``deadline``.
    counters: ``packets`` taken (including ``swallowed``, discarded packets to a failed peer);
        ``links`` sent; packets ``repeated``; ``timeouts``, doublings of a peer's timeout; failed
        peers (``failures``); cycles in which a packet waits for its peer's window
        (``stall_window``) or for beats of the pool (``stall_pool``); ``bad_acknowledgements``, of
        packets that were never sent.
    idle: inactive until ``time`` reaches ``deadline``.
    """

    LATENCY = {
        ("header", "the same header"): 4,
        ("payload beat of that header", "the same beat"): 1,
        ("acknowledgement", "its packet's beats are given back"): 17,
    }
    RATE = (
        "1 payload beat per cycle, and a header in 2 cycles, which passes while the payload of an "
        "earlier packet does")

    def __init__(self, config: NicConfig, *, first_sequence: int = 0, beats: int = POOL_BEATS):
        self._nodes, self._most = config.nodes, config.net_payload_beats
        self._first_sequence, self._beats = first_sequence, beats
        self._bags = config.owner_bags > 0
        super().__init__({
            "headers": In(stream.Signature(FrameInfo)), "payload": In(stream.Signature(RawBeat)),
            "links": In(stream.Signature(Arrivals)),
            "header_out": Out(stream.Signature(LinkedFrame)),
            "payload_out": Out(stream.Signature(RawBeat)),
            "acknowledged": In(Acknowledged), "arrived": In(stream.Signature(Arrivals)),
            "ack_node": Out(NODE_BITS), "ack_value": In(SEQUENCE_BITS),
            "credit_node": Out(NODE_BITS), "lookup_credit": In(CREDIT_BITS),
            "gradient_credit": In(CREDIT_BITS), "told": Out(AtNode), "node": In(NODE_BITS),
            "time": In(32), "timeout_first": In(TIME_BITS), "timeout_least": In(TIME_BITS),
            "timeout_most": In(TIME_BITS), "tries": In(8),
            "close": In(AtNode), "closed": Out(1), "held": In(AtNode), "empty": Out(1),
            "busy": Out(1), "wipe": In(Wipe), "rejoined": In(Rejoined),
            "failed": Out(Failed), "lost": Out(config.nodes), "deadline": Out(32), "waits": Out(1),
            "counters": Out(LINK_SENDER_COUNTERS), "idle": Out(1),
            **({"bag_credit": In(CREDIT_BITS)} if self._bags else {})})

    def elaborate(self, platform) -> Module:
        m = Module()
        nodes, beats, most = self._nodes, self._beats, self._most
        parts = SimpleNamespace(
            intake=LinkIntake(beats, most), pool=FramePool(beats),
            room=PoolRoom(nodes, beats, most), windows=PeerWindows(nodes, self._first_sequence),
            table=PacketTable(nodes, beats, most), walker=Walker(nodes, self._first_sequence),
            overdue=Overdue(beats, most), repeats=RepeatReader(beats, most),
            trips=RoundTrips(nodes), deadlines=Deadlines(nodes), heard=NodeQueue(nodes, 3),
            looks=NodeQueue(nodes, 2), peers=PeerStates(nodes), mux=PacketMux(3, LinkedFrame),
            answers=SkidBuffer(Found(beats, most)))
        for name, part in vars(parts).items():
            m.submodules[name] = part
        parts.due, parts.freeing = Signal(AtNode), Signal()
        lost = parts.peers.lost
        self._leave(m, parts)
        self._take(m, parts, lost)
        self._walk(m, parts, lost)
        renew(m, self, parts)
        self._release(m, parts)
        self._time(m, parts)
        intake, windows, overdue = parts.intake, parts.windows, parts.overdue
        repeats = parts.repeats.i
        count(m, self.counters, packets=self.headers.valid & self.headers.ready,
              links=self.links.valid & self.links.ready,
              repeated=repeats.valid & repeats.ready, timeouts=overdue.late.valid,
              failures=self.failed.valid, swallowed=intake.swallowed,
              stall_window=intake.stall_window, stall_pool=intake.stall_pool,
              bad_acknowledgements=windows.bad)
        return m

    def _leave(self, m, parts):
        """Merge LINK packets, repeated and new packets; acknowledge in each header that leaves."""
        mux, said, headed = parts.mux, self.links.payload, Signal()
        link, data = mux.headers[0], mux.payload[0]
        m.d.comb += [
            link.valid.eq(self.links.valid & ~headed),
            link.payload.opcode.eq(Opcode.LINK), link.payload.destination.eq(said.node),
            link.payload.sequence.eq(said.first), link.payload.count.eq(LINK_RECORDS),
            data.valid.eq(headed), data.payload.data.eq(said.bits), data.payload.last.eq(1),
            self.links.ready.eq(headed & data.ready),
        ]
        with m.If(headed):
            m.d.sync += headed.eq(~data.ready)
        with m.Elif(link.valid & link.ready):
            m.d.sync += headed.eq(1)
        leaving = [(port.valid & port.ready, header.payload) for port, header in zip(
            mux.headers, (link, parts.repeats.headers, parts.intake.header_out))]
        leaves = Cat(valid for valid, _ in leaving)
        node = Signal(NODE_BITS)
        m.d.comb += [
            node.eq(Mux(leaves[0], said.node, Mux(
                leaves[1], parts.repeats.headers.payload.destination,
                parts.intake.header_out.payload.destination))),
            self.told.valid.eq(leaves.any()), self.told.node.eq(node),
            self.ack_node.eq(node), self.credit_node.eq(node),
        ]
        for port, source in ((1, parts.repeats), (2, parts.intake)):
            into, out = mux.headers[port], mux.payload[port]
            header = source.headers if port == 1 else source.header_out
            payload = source.payload if port == 1 else source.payload_out
            training = (header.payload.opcode == Opcode.PARTIALS) | (
                header.payload.opcode == Opcode.STEPS)
            credit = Mux(training, self.gradient_credit, self.lookup_credit)
            if self._bags:
                of_bags = (header.payload.opcode == Opcode.BAGS) | (
                    header.payload.opcode == Opcode.BAG_VECTORS)
                credit = Mux(of_bags, self.bag_credit, credit)
            m.d.comb += [
                into.valid.eq(header.valid), header.ready.eq(into.ready),
                into.payload.eq(header.payload),
                into.payload.credit.eq(credit),
                out.valid.eq(payload.valid), payload.ready.eq(out.ready),
                out.payload.eq(payload.payload),
            ]
        m.d.comb += parts.peers.node.eq(node)
        m.d.comb += [field.eq(value) for port in mux.headers for field, value in (
            (port.payload.acknowledge, self.ack_value),
            (port.payload.change, parts.peers.change))]
        wiring.connect(m, mux.header_out, wiring.flipped(self.header_out))
        wiring.connect(m, mux.payload_out, wiring.flipped(self.payload_out))

    def _take(self, m, parts, lost):
        """Admit new packets, with numbers and beats of the pool."""
        intake, windows, room, pool = parts.intake, parts.windows, parts.room, parts.pool
        wiring.connect(m, wiring.flipped(self.headers), intake.headers)
        wiring.connect(m, wiring.flipped(self.payload), intake.payload)
        kept = intake.kept
        m.d.comb += [
            windows.new_node.eq(intake.node), room.node.eq(intake.node),
            intake.lost.eq(lost.bit_select(intake.node, 1)), intake.full.eq(windows.full),
            intake.fits.eq(room.fits), intake.sequence.eq(windows.next),
            windows.number.eq(intake.number), room.claim.eq(intake.claim),
            pool.take.eq(intake.take), pool.data.eq(intake.data), intake.beat.eq(pool.beat),
            intake.time.eq(self.time), parts.table.kept.eq(kept),
            windows.kept.valid.eq(kept.valid), windows.kept.node.eq(kept.node),
            windows.kept.sequence.eq(kept.sequence), room.kept.valid.eq(kept.valid),
            room.kept.node.eq(kept.node), room.kept.beats.eq(kept.record.beats),
        ]
        # Two cycles later: by then, a walk that did not see the packet may have ended the deadline.
        coming, came = parts.coming, parts.came = [
            Signal(AtNode, name=name) for name in ("coming", "came")]
        looks, drops = parts.looks_new, parts.drops = [
            Signal(AtNode, name=name) for name in ("looks_new", "drops")]
        m.d.sync += [
            coming.valid.eq(kept.valid), coming.node.eq(kept.node), came.eq(coming),
            looks.valid.eq(came.valid & ~parts.deadlines.active.bit_select(came.node, 1)),
            drops.valid.eq(came.valid & lost.bit_select(came.node, 1)),
            looks.node.eq(came.node), drops.node.eq(came.node),
        ]
        m.d.comb += [parts.looks.set[1].eq(looks), parts.heard.set[2].eq(drops)]

    def _walk(self, m, parts, lost):
        """Walk over a peer's packets after its acknowledgements and timeouts."""
        windows, walker, overdue, trips = parts.windows, parts.walker, parts.overdue, parts.trips
        deadlines, heard, failed = parts.deadlines, parts.heard, parts.peers.failed
        wiring.connect(m, heard.o, walker.heard)
        wiring.connect(m, parts.looks.o, walker.looks)
        wiring.connect(m, wiring.flipped(self.arrived), walker.arrived)
        m.d.comb += [
            windows.acknowledged.eq(self.acknowledged), heard.set[0].eq(windows.heard),
            heard.set[1].valid.eq(failed.valid), heard.set[1].node.eq(failed.node),
            parts.peers.spent.eq(overdue.failed), walker.lost.eq(lost), self.failed.eq(failed),
            self.lost.eq(lost),
            windows.node.eq(walker.node),
            *(getattr(walker, name).eq(getattr(windows, name))
              for name in ("oldest", "told", "sent")),
            windows.freed.eq(walker.freed),
            deadlines.set.eq(overdue.deadline), deadlines.time.eq(self.time),
            parts.looks.set[0].eq(parts.due),
            walker.free.eq(parts.table.free), parts.table.reserve.eq(walker.reserve),
            parts.table.unused.eq(walker.unused),
            parts.table.look.eq(walker.look), overdue.begins.eq(walker.begins),
            overdue.node.eq(walker.node), overdue.own.eq(self.node), overdue.over.eq(walker.over),
            walker.decided.eq(overdue.decided), walker.stop.eq(overdue.stop),
            trips.node.eq(walker.node), overdue.timeout.eq(trips.timeout),
            overdue.doublings.eq(trips.doublings), overdue.most.eq(self.timeout_most),
            overdue.tries.eq(self.tries), overdue.time.eq(self.time), trips.late.eq(overdue.late),
            trips.first.eq(self.timeout_first), trips.least.eq(self.timeout_least),
            trips.most.eq(self.timeout_most),
        ]
        m.d.sync += parts.due.eq(deadlines.due)
        wiring.connect(m, overdue.again, parts.table.again)
        wiring.connect(m, overdue.repeats, parts.repeats.i)

    def _release(self, m, parts):
        """Free the beats of acknowledged packets, and read repeated packets."""
        pool, room, repeats, answer = parts.pool, parts.room, parts.repeats, parts.answers.o
        found, trip = answer.payload, parts.trips.measured
        wiring.connect(m, parts.table.o, parts.answers.i)
        # The packet to free. It waits while it is being repeated: a repetition begins before the
        # question and ends when ``holds`` falls.
        packet, blocked = Signal(found.shape(), reset_less=True), Signal()
        freeing, goes, room_here = parts.freeing, Signal(), Signal()
        record = packet.record
        m.d.comb += [
            parts.overdue.i.valid.eq(answer.valid & found.due),
            parts.overdue.i.payload.eq(found),
            goes.eq(freeing & ~blocked & pool.give.ready & room.freed.ready),
            room_here.eq(~freeing | goes),
            answer.ready.eq(Mux(found.due, parts.overdue.i.ready, room_here)),
            pool.give.valid.eq(freeing & ~blocked & room.freed.ready),
            pool.give.payload.first.eq(packet.first), pool.give.payload.last.eq(record.last),
            room.freed.valid.eq(freeing & ~blocked & pool.give.ready),
            room.freed.payload.node.eq(packet.node), room.freed.payload.beats.eq(record.beats),
            trip.valid.eq(goes & packet.newest & (record.tries == 1)),
            trip.node.eq(packet.node), trip.cycles.eq(self.time - record.time),
            pool.read.eq(repeats.read), pool.follow.eq(repeats.follow),
            pool.first.eq(repeats.first), repeats.read_data.eq(pool.read_data),
        ]
        with m.If(room_here):
            m.d.sync += [freeing.eq(answer.valid & ~found.due), packet.eq(found),
                         blocked.eq(repeats.holds & (repeats.held == found.first))]
        with m.Else():
            m.d.sync += blocked.eq(blocked & repeats.holds)

    def _time(self, m, parts):
        """Compute the next time of activity."""
        still = Cat(~parts.freeing, *(~event.valid for event in (
            parts.coming, parts.came, parts.looks_new, parts.drops, parts.due)), *(
            part.idle for part in vars(parts).values()
            if isinstance(part, wiring.Component) and hasattr(part, "idle")))
        m.d.comb += [
            self.deadline.eq(parts.deadlines.deadline), self.waits.eq(parts.deadlines.waits),
            self.idle.eq(still.all() & ~self.links.valid),
        ]
