"""Frame receiver: checks packets from the network or the host, and stores the valid ones."""

from amaranth.hdl import C, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import BEAT_BITS, NicConfig
from rtl.formats import CREDIT_BITS, NODE_BITS, Beat, Refused, Status
from rtl.monitor.counters import CounterLayout, count
from rtl.network.frame_check import EPOCH, VERDICTS, FrameCheck
from rtl.network.layouts import PacketBeat, received_header
from rtl.network.link.fence import Fence
from rtl.network.link.receiver import LinkReceiver, link_ports
from rtl.network.link.renewal import PeerEpoch
from rtl.network.wire import edge_of, longest_payload
from rtl.stream import PacketFIFO, StreamFIFO

__all__ = ["FRAME_RECEIVER_COUNTERS", "FrameReceiver"]

FRAME_RECEIVER_COUNTERS = CounterLayout(
    "packets", "beats", *VERDICTS, "overruns", wide=("beats",))


class FrameReceiver(wiring.Component):
    """Receive packets, store and forward: valid packets leave whole, all others are counted.

    The input is accepted in every cycle, because the MAC has no backpressure. A valid packet is
    dropped and counted if the FIFO lacks room for the largest packet. Every dropped packet counts
    once, under the first applicable reason:

    * ``errors_mac``: ``err``;
    * ``foreign``: EtherType, IP version or options, protocol, fragment; destination address or port
      of another node; source address or port that does not belong to the header's ``source``;
    * ``bad_length``: IP or UDP length, ``keep``, or longer than the configuration;
    * ``bad_crc``: IPv4 checksum or CRC-32C;
    * ``bad_opcode``: opcode or version;
    * ``bad_node``;
    * ``bad_length``: ``count`` does not match the payload;
    * ``overruns``: no room.

    Parameters
    ----------
    config: sizes; a packet may have ``net_payload_beats`` or ``host_payload_beats``.
    framing: ``ethernet`` (LOOKUPS, VECTORS); ``udp`` (the same behind a UDP stack of the shell: the
        first 42 bytes are ignored, except that bytes under the CRC must be 0); ``host`` (QUERIES,
        GPU_VECTORS, DENSE_VECTORS, STEP_OPEN, FLUSHED, READ_DATA: the first 42 bytes, nodes and CRC
        are ignored).
    depth: beats of the packet FIFO, at least twice the largest packet.
    training: also accept packets of training: PARTIALS and STEPS, or GRADIENTS, RETURNED, STATES
        and WRITTEN.
    link: packets from the network are numbered, see :mod:`rtl.network.link`. Each passes once, in
        the order of arrival, and is acknowledged. Packets of another ``epoch`` are rejected.
    first_sequence: number of each peer's first packet.
    bags: also accept packets of owner pooling: BAGS and BAG_VECTORS, or GPU_BAGS.

    Ports
    -----
    i: stream of :data:`rtl.formats.Beat`, always ready.
    node, nodes: number of this node, and the number of nodes.
    mac_base, ip_base, udp_port: addresses of node 0, as numbers. Node n has base + n.
    vector_beats: beats of a vector, 1 to 16.
    vector_packing: log2 of the vectors that share a beat, 0 to 2; must be 0 if a vector has several
        beats.
    o: stream of :data:`rtl.network.layouts.PacketBeat`, valid packets in the order of arrival.
    header: event :func:`rtl.network.layouts.received_header` of each valid packet; without
        ``link``, also of a packet that is dropped for lack of room (network only).
    read: the packet at ``o`` is READ_DATA, a register (host only).
    cut: event: the rest of a packet was dropped before this block, see
        :class:`rtl.network.reset_guards.HeadGuard`; counts as ``errors_mac``. No packet may end in
        the four cycles before (host only).
    refused: stream of :data:`rtl.formats.Refused`, dropped messages. While its FIFO of 4 is full,
        dropped messages are only counted (host only).
    dropped: payload beats of a GRADIENTS or RETURNED packet that was dropped in the previous cycle;
        0 for other packets and for a packet that is too long (host and training only).
    epoch: epoch of the peers' packets (link only).
    peer: event :data:`rtl.network.link.renewal.PeerEpoch`: changes the epoch of one peer (link
        only). The other ports with ``link``: :func:`rtl.network.link.receiver.link_ports`.
    counters: ``packets`` passed on, their payload ``beats`` (64 bits), and dropped packets by
        reason, see :class:`FrameReceiver`.
    idle: inactive until an input changes.
    settled: as ``idle``, except for packets that are not accepted yet; foreign frames do not change
        it.

    Raises
    ------
    TypeError, ValueError
        ``framing`` or ``depth`` is invalid.
    """

    LATENCY = {
        ("last beat of a frame", "its header beat"): 6,
        ("last beat of a packet of the host", "its header beat"): 6,
        ("last beat of a frame", "its header's event"): 4,
    }
    RATE = "1 beat per cycle, header beats included"

    def __init__(self, config: NicConfig, framing: str = "ethernet", *, depth: int = 512,
                 training: bool = False, link: bool = False, first_sequence: int = 0,
                 bags: bool = False):
        self._edge = edge = edge_of(framing)
        if link and edge == "host":
            raise ValueError("link must be False with framing host, not True")
        longest = longest_payload(config, edge)
        if isinstance(depth, bool) or not isinstance(depth, int):
            raise TypeError(f"depth must be an integer, not {depth!r}")
        if depth < 2 * (longest + 4):
            raise ValueError(f"depth must be at least {2 * (longest + 4)}, not {depth!r}")
        self._framing, self._max_beats, self._depth = framing, longest, depth
        self._training, self._nodes = training, config.nodes
        self._link, self._first_sequence, self._bags = link, first_sequence, bags
        self._short = config.short_vectors and edge == "host"
        super().__init__({
            "i": In(stream.Signature(Beat)),
            "node": In(NODE_BITS), "nodes": In(NODE_BITS), "mac_base": In(48), "ip_base": In(32),
            "udp_port": In(16), "vector_beats": In(5), "vector_packing": In(2),
            "o": Out(stream.Signature(PacketBeat)),
            "counters": Out(FRAME_RECEIVER_COUNTERS), "idle": Out(1), "settled": Out(1),
        } | ({"refused": Out(stream.Signature(Refused)), "read": Out(1), "cut": In(1)}
             if edge == "host" else
             {"header": Out(received_header(bags))})
          | ({"value_beats": In(5), "value_packing": In(2)} if self._short else {})
          | ({"dropped": Out(CREDIT_BITS)} if edge == "host" and training else {})
          | ({"epoch": In(8), "peer": In(PeerEpoch), **link_ports()} if link else {}))

    def elaborate(self, platform) -> Module:
        m = Module()
        longest, depth = self._max_beats, self._depth
        m.submodules.check = check = FrameCheck(
            longest, self._framing, training=self._training, link=self._link, nodes=self._nodes,
            bags=self._bags, short=self._short)
        m.submodules.fifo = fifo = PacketFIFO(BEAT_BITS, depth)
        beat = check.o
        # A packet is admitted only with room for the largest one, so the FIFO accepts every beat.
        room, admitted, admit = Signal(), Signal(), Signal()
        good, overrun = Signal(), Signal()
        drop, link_idle = (self._number(m, check, admit, fifo.o) if self._link else
                           (beat.drop, None))
        m.d.comb += [
            self.i.ready.eq(1),
            check.valid.eq(self.i.valid), check.beat.eq(self.i.payload),
            admit.eq(Mux(beat.first, room, admitted)),
            fifo.i.valid.eq(beat.valid & admit & ((beat.beats <= longest) | beat.last)),
            fifo.i.payload.item.eq(beat.data), fifo.i.payload.last.eq(beat.last),
            fifo.i.payload.drop.eq(drop),
            good.eq(beat.valid & beat.last & ~drop),
            overrun.eq(good & ~admit),
            self.o.valid.eq(fifo.o.valid), fifo.o.ready.eq(self.o.ready),
            self.o.payload.item.eq(fifo.o.payload.item),
            self.o.payload.last.eq(fifo.o.payload.last),
        ]
        for name in ("node", "nodes", "mac_base", "ip_base", "udp_port", "vector_beats",
                     "vector_packing", *(("value_beats", "value_packing") if self._short else ())):
            m.d.comb += getattr(check, name).eq(getattr(self, name))
        # Header beat and payload, one beat to end a packet that is too long, and two beats of the
        # previous packet.
        m.d.sync += room.eq(fifo.level <= depth - (longest + 4))
        with m.If(beat.valid):
            m.d.sync += admitted.eq(admit)
        verdicts = {name: beat.valid & beat.last & beat.verdict[name] for name in VERDICTS}
        if self._edge == "host":
            verdicts["errors_mac"] |= self.cut
        count(m, self.counters, packets=good & admit, beats=Mux(good & admit, beat.beats, 0),
              overruns=overrun, **verdicts)
        refusing = C(0)
        if self._edge == "host":
            refusing = self._refuse(m, beat, overrun)
            self._mark(m, good & admit, beat.read)
        else:
            m.d.comb += [
                self.header.valid.eq(good & admit if self._link else good),
                self.header.source.eq(beat.source),
                self.header.credit.eq(beat.credit), self.header.gradient.eq(beat.gradient)]
            if self._bags:
                m.d.comb += self.header.bag.eq(beat.bag)
        inside = C(0) if link_idle is None else ~link_idle
        m.d.comb += [
            self.settled.eq(fifo.idle & ~refusing & ~inside
                            & ~(beat.valid & beat.last & ~beat.drop)),
            self.idle.eq(check.idle & fifo.idle & ~refusing & ~inside),
        ]
        return m

    def _number(self, m, check, admit, out) -> tuple[Value, Value]:
        """Return whether to drop the packet, and whether the link is idle. A packet is dropped if
        it is invalid, a duplicate, LINK or PROBE. ``out`` is the stream of packets that leave."""
        m.submodules.link = link = LinkReceiver(self._nodes, first_sequence=self._first_sequence)
        beat, ends = check.o, Signal()
        m.d.comb += [
            check.epoch.eq(self.epoch), check.peer.eq(self.peer), link.look.eq(check.look),
            ends.eq(beat.valid & beat.last),
            link.packet.valid.eq(ends & ~beat.drop),
            link.packet.bad_epoch.eq(ends & beat.verdict[EPOCH]),
            link.packet.link.eq(beat.link), link.packet.room.eq(admit),
            link.packet.number.source.eq(beat.source),
            link.packet.number.sequence.eq(beat.sequence),
            link.packet.acknowledge.eq(beat.acknowledge), link.packet.data.eq(beat.data),
        ]
        drop = beat.drop | beat.link | beat.probe | ~link.fresh
        m.submodules.fence = fence = Fence(self._depth // 2 + 1)
        m.d.comb += [
            fence.put.eq(ends & ~drop & admit),
            fence.take.eq(out.valid & out.ready & out.payload.last),
            fence.mark.eq(self.mark), self.passed.eq(fence.passed & link.passed),
        ]
        for name, member in link_ports().items():
            inner, outer = getattr(link, name), getattr(self, name)
            if name == "passed":
                continue
            if not member.is_port:
                wiring.connect(m, inner, wiring.flipped(outer))
            else:
                m.d.comb += inner.eq(outer) if member.flow == In else outer.eq(inner)
        return drop, link.idle

    def _mark(self, m, good, read) -> None:
        """Drive ``read`` for the packet at the output, aligned with its beats.

        Every packet has at least two beats, so a FIFO of half as many marks as beats never blocks.
        """
        m.submodules.marks = marks = StreamFIFO(1, self._depth // 2, style="lutram")
        m.d.comb += [
            marks.i.valid.eq(good), marks.i.payload.eq(read), self.read.eq(marks.o.payload),
            marks.o.ready.eq(self.o.valid & self.o.ready & self.o.payload.last)]

    def _refuse(self, m, beat, overrun) -> Value:
        """Queue a message about a dropped packet; return whether one is pending or was just
        dropped."""
        m.submodules.refused = queue = StreamFIFO(Refused, 4)
        wiring.connect(m, queue.o, wiring.flipped(self.refused))
        m.d.comb += [
            queue.i.valid.eq(beat.valid & beat.last & (beat.drop | overrun)),
            queue.i.payload.step.eq(beat.step),
            queue.i.payload.status.eq(Mux(
                overrun, Status.CREDIT, Mux(beat.verdict.bad_opcode, Status.OPCODE, Mux(
                    beat.verdict.errors_mac, Status.TRUNCATED, Status.LENGTH)))),
        ]
        if not self._training:
            return ~queue.idle
        told = beat.beats <= self._max_beats
        m.d.sync += self.dropped.eq(Mux(queue.i.valid & beat.paid & told, beat.beats, 0))
        return ~queue.idle | (self.dropped != 0)
