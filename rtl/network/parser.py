"""Frame parser: checks whole packets from the network or the host, and takes them apart."""

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import BEAT_BITS, NicConfig
from rtl.formats import (
    CREDIT_BITS,
    NODE_BITS,
    RECORDS_PER_BEAT,
    TAG_BITS,
    TAGS_PER_BEAT,
    Beat,
    Opcode,
    RecordBeat,
    Refused,
    Status,
    TaggedBeat,
)
from rtl.memory import Ram
from rtl.monitor.counters import CounterLayout, count
from rtl.network.frame_check import VERDICTS, FrameCheck
from rtl.network.layouts import CountedBeat, Credit, ReceivedVector
from rtl.network.opcodes import TRAINING, VALUES, VECTORS
from rtl.network.vector_unpacker import VectorUnpacker
from rtl.network.wire import edge_of
from rtl.network.wire import header as header_of
from rtl.stream import PacketFIFO, SkidBuffer, StreamFIFO

__all__ = ["PARSER_COUNTERS", "FrameParser"]

PARSER_COUNTERS = CounterLayout("packets", "beats", *VERDICTS, "overruns")


class FrameParser(wiring.Component):
    """Receive packets, store and forward, and output their records and vectors.

    The input is accepted in every cycle, since the MAC has no back-pressure: a good packet that
    finds no room for the largest one is dropped and counted. Every refused packet counts once,
    under the first of: ``errors_mac`` (``err``); ``foreign`` (MAC or IP address, port, EtherType,
    protocol, IP version or options, fragment); ``bad_length`` (IP or UDP length, ``keep``, longer
    than the configuration); ``bad_crc`` (IPv4 checksum or CRC-32C); ``bad_opcode`` (or version);
    ``bad_node``; ``bad_length`` (``count`` against payload); ``overruns``.

    Latency and rate: see ``LATENCY`` and ``RATE``. Several vectors of a beat leave one a cycle and
    wait in a FIFO of their own, so that nothing else does, see
    :class:`rtl.network.vector_unpacker.VectorUnpacker`.

    Parameters
    ----------
    config: sizes; a packet may have ``net_payload_beats`` or ``host_payload_beats``.
    framing: ``ethernet`` (LOOKUPS, VECTORS); ``udp`` (the same after a UDP stack of the shell: the
        first 42 bytes must be those that the CRC covers as 0, and are otherwise ignored); ``host``
        (QUERIES, GPU_VECTORS, DENSE_VECTORS: the first 42 bytes, nodes and CRC are ignored).
    depth: beats of the packet FIFO, at least twice the largest packet.
    training: also accept packets of training: PARTIALS and STEPS, or GRADIENTS, RETURNED, STATES
        and WRITTEN.

    Ports
    -----
    i: stream of :data:`rtl.formats.Beat`, always ready.
    node, nodes: this node's number, and the number of nodes.
    mac_base, ip_base, udp_port: addresses of node 0 (others add their number), as numbers.
    vector_beats: beats of a vector, 1 to 16. vector_packing: log2 of the vectors that share a beat,
        0 to 2; 0 with more beats than 1. Lanes that a vector does not use leave as +0.
    records: stream of :data:`rtl.formats.RecordBeat`, payload beats of LOOKUPS or QUERIES.
    vectors: stream of :data:`rtl.formats.TaggedBeat`, the vectors of VECTORS or GPU_VECTORS.
    dense: the same, the vectors of DENSE_VECTORS (host only).
    credit: event :data:`Credit`, the header's credit of a good packet (network only).
    gradient_credit: the same for packets of training, which then do not count for ``credit``
        (network and training only).
    partials, returned: stream of :data:`rtl.network.layouts.CountedBeat`, payload beats of PARTIALS
        and RETURNED (network or host; training only).
    gradients: stream of :data:`rtl.formats.RecordBeat`, those of GRADIENTS; in beats of vectors
        ``records`` is 0 (host and training only).
    steps, states, written: stream of :data:`rtl.formats.RecordBeat`, payload beats of STEPS
        (network), STATES and WRITTEN (host; training only).
    refused: stream of :data:`rtl.formats.Refused`, host messages that were dropped (host only);
        when its FIFO of 4 is full they are only counted.
    dropped: beats after the header of a GRADIENTS or RETURNED packet that was dropped in the
        previous cycle; 0 for others and for one that is too long (host and training only).
    counters: ``packets`` passed on and their payload ``beats``, and the reasons above. idle.

    Raises
    ------
    TypeError, ValueError
        ``framing`` or ``depth`` is wrong.
    """

    LATENCY = {
        ("last beat of a frame", "first record"): 8,
        ("last beat of a packet of the host", "first record"): 8,
        ("last beat of a frame", "first vector beat"): 9,
        ("last beat of a frame", "first vector beat, where beats hold several vectors"): 11,
        ("header read", "first record"): 2,
    }
    RATE = "1 beat per cycle, header and tag beats included"

    def __init__(self, config: NicConfig, framing: str = "ethernet", *, depth: int = 512,
                 training: bool = False):
        self._edge = edge = edge_of(framing)
        longest = config.net_payload_beats if edge == "network" else config.host_payload_beats
        if isinstance(depth, bool) or not isinstance(depth, int):
            raise TypeError(f"depth must be an integer, not {depth!r}")
        if depth < 2 * (longest + 4):
            raise ValueError(f"depth must be at least {2 * (longest + 4)}, not {depth!r}")
        self._framing, self._max_beats, self._depth = framing, longest, depth
        self._in_flight = (config.remote_in_flight if edge == "network" else
                           config.misses_in_flight + config.dense_vectors)
        self._training = TRAINING[edge] if training else {}
        self._received = data.StructLayout({
            "beat": RecordBeat,
            **({"count": 16, "kind": range(1 + len(self._training))} if training else {})})
        super().__init__({
            "i": In(stream.Signature(Beat)),
            "node": In(NODE_BITS), "nodes": In(NODE_BITS), "mac_base": In(48), "ip_base": In(32),
            "udp_port": In(16), "vector_beats": In(5), "vector_packing": In(2),
            "records": Out(stream.Signature(RecordBeat)),
            "vectors": Out(stream.Signature(TaggedBeat)),
            "credit": Out(Credit),
            "refused": Out(stream.Signature(Refused)),
            "counters": Out(PARSER_COUNTERS), "idle": Out(1),
        } | ({"dense": Out(stream.Signature(TaggedBeat))} if edge == "host" else {})
          | ({"gradient_credit": Out(Credit)} if edge == "network" and training else {})
          | ({"dropped": Out(CREDIT_BITS)} if edge == "host" and training else {})
          | {name: Out(stream.Signature(CountedBeat if opcode in VALUES else RecordBeat))
             for name, opcode in self._training.items()})

    def elaborate(self, platform) -> Module:
        m = Module()
        longest, depth = self._max_beats, self._depth
        m.submodules.check = check = FrameCheck(
            longest, self._framing, training=bool(self._training))
        m.submodules.fifo = fifo = PacketFIFO(BEAT_BITS, depth)
        beat = check.o
        # A packet is admitted only with room for the largest, so the FIFO never refuses a beat.
        room, admitted, admit = Signal(), Signal(), Signal()
        good, overrun = Signal(), Signal()
        m.d.comb += [
            self.i.ready.eq(1),
            check.valid.eq(self.i.valid), check.beat.eq(self.i.payload),
            admit.eq(Mux(beat.first, room, admitted)),
            fifo.i.valid.eq(beat.valid & admit & ((beat.beats <= longest) | beat.last)),
            fifo.i.payload.item.eq(beat.data), fifo.i.payload.last.eq(beat.last),
            fifo.i.payload.drop.eq(beat.drop),
            good.eq(beat.valid & beat.last & ~beat.drop),
            overrun.eq(good & ~admit),
        ]
        for name in ("node", "nodes", "mac_base", "ip_base", "udp_port", "vector_beats",
                     "vector_packing"):
            m.d.comb += getattr(check, name).eq(getattr(self, name))
        # Header beat and payload, one more to end a packet that is too long, and the last packet's
        # last two.
        m.d.sync += room.eq(fifo.level <= depth - (longest + 4))
        with m.If(beat.valid):
            m.d.sync += admitted.eq(admit)
        count(m, self.counters, packets=good & admit, beats=Mux(good & admit, beat.beats, 0),
              overruns=overrun,
              **{name: beat.valid & beat.last & beat.verdict[name] for name in VERDICTS})
        crediting = self._credit(m, beat, good)
        refusing = self._refuse(m, beat, overrun)
        reading = self._read(m, fifo.o)
        m.d.comb += self.idle.eq(check.idle & fifo.idle & ~refusing & ~reading & ~crediting)
        return m

    def _credit(self, m, beat, good) -> Value:
        """Report the credit of a good packet's header; return whether there is one."""
        if self._edge == "host":
            return C(0)
        ways = [(self.credit, ~beat.gradient)]
        if self._training:
            ways.append((self.gradient_credit, beat.gradient))
        for way, chosen in ways:
            m.d.sync += [way.valid.eq(good & chosen), way.node.eq(beat.source),
                         way.value.eq(beat.credit)]
        return Cat(way.valid for way, _ in ways).any()

    def _refuse(self, m, beat, overrun):
        """Queue a refused host message; return whether any waits."""
        if self._edge == "network":
            return C(0)
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

    def _read(self, m, packets):
        """Take stored packets apart; return whether any output is pending."""
        m.submodules.records = records = SkidBuffer(self._received)
        m.submodules.vectors = vectors = SkidBuffer(ReceivedVector)
        self._hand_out_records(m, records.o)
        self._hand_out(m, vectors.o)
        m.submodules.unpacker = unpacker = VectorUnpacker(self._in_flight)
        # After 32 tags come at least 8 beats of vectors, and at least one beat after fewer tags.
        tag_beats = (self._max_beats + 7) // 9
        m.submodules.tags = tags = Ram(BEAT_BITS, max(2, tag_beats), latency=0)
        item = packets.payload.item
        ember = header_of(item).ember
        source, step, dense = Signal(NODE_BITS), Signal(16), Signal()
        remaining, tags_left = Signal(16), Signal(range(tag_beats + 1))
        tag_index, vector_index = Signal(range(max(2, tag_beats))), Signal(16)
        part, final_part, vector_last = Signal(5), Signal(5), Signal()
        shared, most, final, packed = Signal(), Signal(range(5)), Signal(2), unpacker.i.payload
        m.d.sync += [
            final_part.eq(self.vector_beats - 1), shared.eq(self.vector_packing != 0),
            most.eq(1 << self.vector_packing),
        ]
        tags_here = tags.read_data.word_select(vector_index[2:5], 4 * TAG_BITS)
        m.d.comb += [
            unpacker.vector_packing.eq(self.vector_packing),
            final.eq(Mux(remaining > most, most - 1, remaining - 1)),
            packed.data.eq(item), packed.final.eq(final), packed.dense.eq(dense),
            packed.tags.eq(Mux(vector_index[1], tags_here >> 2 * TAG_BITS, tags_here)),
        ]
        beat = vectors.i.payload.beat
        received = records.i.payload
        m.d.comb += [
            received.beat.data.eq(item), received.beat.source.eq(source),
            received.beat.step.eq(step), received.beat.last.eq(packets.payload.last),
            received.beat.records.eq(Mux(
                remaining > RECORDS_PER_BEAT, RECORDS_PER_BEAT, remaining)),
            vector_last.eq(part == final_part),
            vectors.i.valid.eq(unpacker.o.valid), unpacker.o.ready.eq(vectors.i.ready),
            vectors.i.payload.eq(unpacker.o.payload),
            tags.read_addr.eq(vector_index[5:]), tags.read_en.eq(1),
            tags.write_addr.eq(tag_index), tags.write_data.eq(item),
        ]
        if self._training:
            kind = Signal(range(1 + len(self._training)))
            m.d.comb += [received.count.eq(remaining), received.kind.eq(kind)]
        with m.FSM(name="reader"):
            with m.State("HEADER"):
                m.d.comb += packets.ready.eq(1)
                m.d.sync += [
                    source.eq(ember.source), step.eq(ember.step), remaining.eq(ember.count),
                    tags_left.eq((ember.count + TAGS_PER_BEAT - 1) >> 5),
                    tag_index.eq(0), vector_index.eq(0), part.eq(0),
                ]
                if self._edge == "host":
                    m.d.sync += dense.eq(ember.opcode == Opcode.DENSE_VECTORS)
                if self._training:
                    m.d.sync += kind.eq(0)
                for number, opcode in enumerate(self._training.values(), 1):
                    with m.If(ember.opcode == opcode):
                        m.d.sync += kind.eq(number)
                with m.If(packets.valid):
                    with m.If(Cat(ember.opcode == opcode
                                  for opcode in VECTORS[self._edge]).any()):
                        m.next = "TAGS"
                    with m.Else():
                        m.next = "RECORDS"
            with m.State("RECORDS"):
                m.d.comb += [records.i.valid.eq(packets.valid), packets.ready.eq(records.i.ready)]
                with m.If(packets.valid & records.i.ready):
                    m.d.sync += remaining.eq(Mux(
                        remaining > RECORDS_PER_BEAT, remaining - RECORDS_PER_BEAT, 0))
                    with m.If(packets.payload.last):
                        m.next = "HEADER"
            with m.State("TAGS"):
                m.d.comb += [packets.ready.eq(1), tags.write_en.eq(packets.valid)]
                with m.If(packets.valid):
                    m.d.sync += [tag_index.eq(tag_index + 1), tags_left.eq(tags_left - 1)]
                    with m.If(packets.payload.last):  # vector_beats is 0: nothing follows
                        m.next = "HEADER"
                    with m.Elif(tags_left == 1):
                        m.next = "VECTORS"
            with m.State("VECTORS"):
                with m.If(shared):
                    m.d.comb += [unpacker.i.valid.eq(packets.valid),
                                 packets.ready.eq(unpacker.i.ready)]
                with m.Else():
                    m.d.comb += [
                        vectors.i.valid.eq(packets.valid), packets.ready.eq(vectors.i.ready),
                        beat.data.eq(item), beat.last.eq(vector_last),
                        beat.tag.eq(tags.read_data.word_select(vector_index[:5], TAG_BITS)),
                        vectors.i.payload.dense.eq(dense),
                    ]
                with m.If(packets.valid & packets.ready):
                    m.d.sync += [part.eq(Mux(vector_last, 0, part + 1)),
                                 remaining.eq(remaining - most)]
                    with m.If(vector_last):
                        m.d.sync += vector_index.eq(vector_index + most)
                    with m.If(packets.payload.last):
                        m.next = "HEADER"
        return ~(records.idle & vectors.idle & unpacker.idle)

    def _hand_out_records(self, m: Module, received) -> None:
        """Output beats of records, and of values after them, at the port of their kind."""
        for number, name in enumerate(("records", *self._training)):
            way = getattr(self, name)
            of_values = self._training.get(name) in VALUES
            m.d.comb += (way.payload.beat if of_values else way.payload).eq(received.payload.beat)
            if of_values:
                m.d.comb += way.payload.count.eq(received.payload.count)
            with m.If(received.payload.kind == number if self._training else 1):
                m.d.comb += [way.valid.eq(received.valid), received.ready.eq(way.ready)]

    def _hand_out(self, m: Module, received) -> None:
        """Output vectors at the port of their kind."""
        ways = [(~received.payload.dense, self.vectors)]
        if self._edge == "host":
            ways.append((received.payload.dense, self.dense))
        for chosen, way in ways:
            m.d.comb += way.payload.eq(received.payload.beat)
            with m.If(chosen):
                m.d.comb += [way.valid.eq(received.valid), received.ready.eq(way.ready)]
