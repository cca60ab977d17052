"""Packet parser: splits received packets into records and vectors."""

from contextlib import nullcontext

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import BEAT_BITS, NicConfig
from rtl.formats import (
    BEAT_INDEX_BITS,
    NODE_BITS,
    RECORDS_PER_BEAT,
    TAG_BITS,
    TAGS_PER_BEAT,
    Opcode,
    PeerBeat,
    RecordBeat,
    TaggedBeat,
)
from rtl.memory import Ram
from rtl.network.layouts import (
    CountedBeat,
    Credit,
    PacketBeat,
    received_header,
    received_vector,
)
from rtl.network.opcodes import BAG_VECTORS, VALUES, more_records, vectors_of
from rtl.network.vector_unpacker import VectorUnpacker
from rtl.network.wire import header as header_of
from rtl.network.wire import longest_payload
from rtl.stream import SkidBuffer

__all__ = ["PacketParser"]


class PacketParser(wiring.Component):
    """Output the records, values and vectors of packets, and the credits of their headers.

    The input comes from a :class:`rtl.network.FrameReceiver`: valid packets, header beat first.
    Every output keeps the order of arrival. Several vectors of one beat leave one per cycle; they
    wait in a separate FIFO and do not block other packets
    (:class:`rtl.network.vector_unpacker.VectorUnpacker`).

    Parameters
    ----------
    config: sizes; a packet may have ``net_payload_beats`` or ``host_payload_beats``.
    edge: source of the packets: ``network`` (LOOKUPS, VECTORS) or ``host`` (QUERIES, GPU_VECTORS,
        DENSE_VECTORS, STEP_OPEN, FLUSHED).
    training: accept packets of training: PARTIALS and STEPS, or GRADIENTS, RETURNED, STATES and
        WRITTEN.
    bags: accept packets of owner pooling: BAGS and BAG_VECTORS, or GPU_BAGS.

    Ports
    -----
    i: stream of :data:`rtl.network.layouts.PacketBeat`.
    header: event :func:`rtl.network.layouts.received_header` (network only).
    vector_beats: beats of a vector, 1 to 16; those of a bag's vector are in its packet's header.
    vector_packing: log2 of the vectors that share a beat, 0 to 2; must be 0 if a vector has several
        beats. Unused lanes of a vector leave as +0.
    value_beats, value_packing: ``vector_beats`` and ``vector_packing`` of dense vectors, with
        ``config.short_vectors``; other vectors have 16-bit values (host only). The packing is 0 if
        ``vector_packing`` is 0.
    records: stream of :data:`rtl.formats.RecordBeat`, payload beats of LOOKUPS or QUERIES.
    vectors: stream of :data:`rtl.formats.PeerBeat` (network) or :data:`rtl.formats.TaggedBeat`
        (host), the vectors of VECTORS or GPU_VECTORS.
    dense: stream of :data:`rtl.formats.TaggedBeat`, the vectors of DENSE_VECTORS (host only).
    credit: event :data:`rtl.network.layouts.Credit` of each ``header`` (network only).
    gradient_credit: as ``credit``, for packets of training, which then do not drive ``credit``
        (network and training only).
    partials, returned: stream of :data:`rtl.network.layouts.CountedBeat`, payload beats of PARTIALS
        (network) and RETURNED (host; training only).
    gradients: stream of :data:`rtl.formats.RecordBeat`, payload beats of GRADIENTS; ``records`` is
        0 in beats of vectors (host and training only).
    steps, states, written: stream of :data:`rtl.formats.RecordBeat`, payload beats of STEPS
        (network), STATES and WRITTEN (host; training only).
    opens, flushed: stream of :data:`rtl.formats.RecordBeat`, payload beats of STEP_OPEN and FLUSHED
        (host only).
    bags: stream of :data:`rtl.formats.RecordBeat`, payload beats of BAGS; ``records`` are words
        (network and bags only).
    bag_vectors: stream of :data:`rtl.formats.PeerBeat` (network) or :data:`rtl.formats.TaggedBeat`
        (host), the vectors of BAG_VECTORS or GPU_BAGS (bags only).
    bag_credit: as ``credit``, for BAGS and BAG_VECTORS, which then do not drive ``credit`` (network
        and bags only).
    idle: no output pending. A packet whose rest has not arrived does not clear ``idle``.

    Raises
    ------
    TypeError, ValueError
        ``edge`` is invalid.
    """

    LATENCY = {
        ("header beat", "first record"): 2,
        ("header beat", "first vector beat"): 3,
        ("header beat", "first vector beat, where beats hold several vectors"): 6,
        ("header's event", "its credit"): 1,
    }
    RATE = "1 beat per cycle, header and tag beats included"

    def __init__(self, config: NicConfig, edge: str = "network", *, training: bool = False,
                 bags: bool = False):
        if not isinstance(edge, str):
            raise TypeError(f"edge must be a string, not {edge!r}")
        if edge not in ("network", "host"):
            raise ValueError(f"edge must be network or host, not {edge!r}")
        self._edge, self._max_beats = edge, longest_payload(config, edge)
        self._in_flight = (config.remote_in_flight if edge == "network" else
                           config.misses_in_flight + config.dense_vectors)
        self._in_flight += config.owner_bags if bags else 0
        self._origin = (NODE_BITS if edge == "network" else 1) + bags
        self._more = more_records(edge, training, bags)
        self._trains, self._bags = training, bags
        self._short = config.short_vectors and edge == "host"
        self._received = data.StructLayout({
            "beat": RecordBeat, **({"kind": range(1 + len(self._more))} if self._more else {}),
            **({"count": 16} if training else {})})
        super().__init__({
            "i": In(stream.Signature(PacketBeat)),
            "vector_beats": In(5), "vector_packing": In(2),
            "records": Out(stream.Signature(RecordBeat)),
            "vectors": Out(stream.Signature(PeerBeat if edge == "network" else TaggedBeat)),
            "idle": Out(1),
        } | ({"dense": Out(stream.Signature(TaggedBeat))} if edge == "host" else
             {"header": In(received_header(bags)), "credit": Out(Credit)})
          | ({"value_beats": In(5), "value_packing": In(2)} if self._short else {})
          | ({"gradient_credit": Out(Credit)} if edge == "network" and training else {})
          | ({"bag_credit": Out(Credit)} if edge == "network" and bags else {})
          | ({"bag_vectors": Out(stream.Signature(
              PeerBeat if edge == "network" else TaggedBeat))} if bags else {})
          | {name: Out(stream.Signature(CountedBeat if opcode in VALUES else RecordBeat))
             for name, opcode in self._more.items()})

    def elaborate(self, platform) -> Module:
        m = Module()
        pending = self._read(m, self.i)
        if self._edge == "network":
            pending = pending | self._credit(m)
        m.d.comb += self.idle.eq(~pending)
        return m

    def _credit(self, m) -> Value:
        """Report the credit of each header; return whether one is pending."""
        header, of_lookups = self.header, ~self.header.gradient
        ways = []
        if self._trains:
            ways.append((self.gradient_credit, header.gradient))
        if self._bags:
            of_lookups &= ~header.bag
            ways.append((self.bag_credit, header.bag))
        ways.insert(0, (self.credit, of_lookups))
        for way, chosen in ways:
            m.d.sync += [way.valid.eq(header.valid & chosen), way.node.eq(header.source),
                         way.value.eq(header.credit)]
        return Cat(way.valid for way, _ in ways).any()

    def _read(self, m, packets) -> Value:
        """Split packets; return whether any output is pending."""
        m.submodules.records = records = SkidBuffer(self._received)
        m.submodules.vectors = vectors = SkidBuffer(received_vector(self._origin))
        self._hand_out_records(m, records.o)
        self._hand_out(m, vectors.o)
        m.submodules.unpacker = unpacker = VectorUnpacker(
            self._in_flight, self._origin, mixed=self._short)
        # At least 8 beats of vectors follow 32 tags, and at least one beat follows fewer tags.
        tag_beats = (self._max_beats + 7) // 9
        m.submodules.tags = tags = Ram(BEAT_BITS, max(2, tag_beats), latency=0)
        item = packets.payload.item
        ember = header_of(item).ember
        source, step, dense = Signal(NODE_BITS), Signal(16), Signal()
        origin, bag = source if self._edge == "network" else dense, Signal()
        if self._bags:
            origin = Cat(origin, bag)
        remaining, tags_left = Signal(16), Signal(range(tag_beats + 1))
        # The tag of a vector that shares no beat is in a register; the index is that of the next
        # one.
        tag_index, vector_index = Signal(range(max(2, tag_beats))), Signal(16)
        tag = Signal(TAG_BITS, reset_less=True)
        part, final_part, vector_last = Signal(5), Signal(5), Signal()
        shared, most, final, packed = Signal(), Signal(range(5)), Signal(2), unpacker.i.payload
        alone = Signal(init=1)  # inverse of ``shared``, to split the load of the data bits
        m.d.sync += [
            final_part.eq(self.vector_beats - 1), shared.eq(self.vector_packing != 0),
            alone.eq(self.vector_packing == 0),
        ]
        if not self._short:
            m.d.comb += unpacker.vector_packing.eq(self.vector_packing)
            m.d.sync += most.eq(1 << self.vector_packing)
        else:
            # All vectors pass the unpacker if any share beats; each packet has its own packing.
            own_packing = Signal(2)
            m.d.comb += [packed.packing.eq(own_packing), most.eq(1 << own_packing)]
        tags_here = tags.read_data.word_select(vector_index[2:5], 4 * TAG_BITS)
        if self._short:
            tags_here = Mux(vector_index[0], tags_here >> TAG_BITS, tags_here)
        m.d.comb += [
            final.eq(Mux(remaining > most, most - 1, remaining - 1)),
            packed.data.eq(item), packed.final.eq(final), packed.origin.eq(origin),
            packed.tags.eq(Mux(vector_index[1], tags_here >> 2 * TAG_BITS, tags_here)),
        ]
        beat = vectors.i.payload.beat
        received = records.i.payload
        m.d.comb += [
            received.beat.data.eq(item), received.beat.source.eq(source),
            received.beat.step.eq(step), received.beat.last.eq(packets.payload.last),
            received.beat.records.eq(Mux(
                remaining > RECORDS_PER_BEAT, RECORDS_PER_BEAT, remaining)),
            vectors.i.valid.eq(unpacker.o.valid), unpacker.o.ready.eq(vectors.i.ready),
            tags.read_addr.eq(vector_index[5:]), tags.read_en.eq(1),
            tags.write_addr.eq(tag_index), tags.write_data.eq(item),
        ]
        with m.If(alone):
            m.d.comb += [
                beat.data.eq(item), beat.last.eq(vector_last), beat.tag.eq(tag),
                vectors.i.payload.origin.eq(origin),
            ]
        with m.Else():
            m.d.comb += vectors.i.payload.eq(unpacker.o.payload)
        # The two halves of the data have separate select registers, to split the load.
        upper = slice(BEAT_BITS // 2, BEAT_BITS)
        m.d.comb += beat.data[upper].eq(
            Mux(shared, unpacker.o.payload.beat.data[upper], item[upper]))
        kind = Signal(range(1 + len(self._more)))
        if self._more:
            m.d.comb += received.kind.eq(kind)
        if self._trains:
            m.d.comb += received.count.eq(remaining)
        ends_vector = final_part
        if self._bags or self._short:
            # In a packet of bags' vectors, of which the header states the size, or of float32.
            ends_vector = Signal(BEAT_INDEX_BITS, reset_less=True)
        m.d.comb += vector_last.eq(part == ends_vector)
        with m.FSM(name="reader"):
            with m.State("HEADER"):
                m.d.comb += packets.ready.eq(1)
                m.d.sync += [
                    source.eq(ember.source), step.eq(ember.step), remaining.eq(ember.count),
                    tags_left.eq((ember.count + TAGS_PER_BEAT - 1) >> 5),
                    tag_index.eq(0), vector_index.eq(~shared), part.eq(0),
                ]
                if self._edge == "host":
                    m.d.sync += dense.eq(ember.opcode == Opcode.DENSE_VECTORS)
                if self._short:
                    values = ember.opcode == Opcode.DENSE_VECTORS
                    m.d.sync += [own_packing.eq(Mux(values, self.value_packing,
                                                    self.vector_packing)),
                                 ends_vector.eq(Mux(values, self.value_beats - 1, final_part))]
                    if self._bags:
                        with m.If(ember.opcode == BAG_VECTORS[self._edge][0]):
                            m.d.sync += ends_vector.eq(ember.final_beat)
                elif self._bags:
                    m.d.sync += ends_vector.eq(Mux(
                        ember.opcode == BAG_VECTORS[self._edge][0], ember.final_beat, final_part))
                if self._bags:
                    m.d.sync += bag.eq(ember.opcode == BAG_VECTORS[self._edge][0])
                if self._more:
                    m.d.sync += kind.eq(0)
                for number, opcode in enumerate(self._more.values(), 1):
                    with m.If(ember.opcode == opcode):
                        m.d.sync += kind.eq(number)
                with m.If(packets.valid):
                    with m.If(Cat(ember.opcode == opcode for opcode in vectors_of(
                            self._edge, self._bags)).any()):
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
                    with m.If(tag_index == 0):
                        m.d.sync += tag.eq(item[:TAG_BITS])
                    with m.If(packets.payload.last):  # vector_beats is 0: no vectors follow
                        m.next = "HEADER"
                    with m.Elif(tags_left == 1):
                        m.next = "VECTORS"
            with m.State("VECTORS"):
                with m.If(shared):
                    m.d.comb += [unpacker.i.valid.eq(packets.valid),
                                 packets.ready.eq(unpacker.i.ready)]
                with m.Else():
                    m.d.comb += [vectors.i.valid.eq(packets.valid),
                                 packets.ready.eq(vectors.i.ready)]
                with m.If(packets.valid & packets.ready):
                    m.d.sync += [part.eq(Mux(vector_last, 0, part + 1)),
                                 remaining.eq(remaining - most)]
                    with m.If(vector_last):
                        m.d.sync += [
                            vector_index.eq(vector_index + most),
                            tag.eq(tags.read_data.word_select(vector_index[:5], TAG_BITS)),
                        ]
                    with m.If(packets.payload.last):
                        m.next = "HEADER"
        return ~(records.idle & vectors.idle & unpacker.idle)

    def _hand_out_records(self, m: Module, received) -> None:
        """Output beats of records, and of the values after them, at the port of their kind."""
        for number, name in enumerate(("records", *self._more)):
            way = getattr(self, name)
            of_values = self._more.get(name) in VALUES
            m.d.comb += (way.payload.beat if of_values else way.payload).eq(received.payload.beat)
            if of_values:
                m.d.comb += way.payload.count.eq(received.payload.count)
            with m.If(received.payload.kind == number if self._more else 1):
                m.d.comb += [way.valid.eq(received.valid), received.ready.eq(way.ready)]

    def _hand_out(self, m: Module, received) -> None:
        """Output vectors at the port of their kind."""
        beat, origin = received.payload.beat, received.payload.origin
        network, own, of_bag = self._edge == "network", origin, C(0)
        if self._bags:
            own, of_bag = origin[:-1], origin[-1]
        # Ports, and whether a beat is for them; the only port without owner pooling takes all.
        ways = [(self.vectors, None)]
        if not network:
            ways = [(self.vectors, ~own), (self.dense, own)]
        if self._bags:
            ways = [(way, ~of_bag if mine is None else ~of_bag & mine) for way, mine in ways]
            ways.append((self.bag_vectors, of_bag))
        for way, _ in ways:
            if way is getattr(self, "dense", None):
                m.d.comb += way.payload.eq(beat)
            else:
                m.d.comb += [way.payload[name].eq(beat[name]) for name, _ in beat.shape()]
            if network:
                m.d.comb += way.payload.source.eq(own)
        for way, mine in ways:
            with m.If(mine) if mine is not None else nullcontext():
                m.d.comb += [way.valid.eq(received.valid), received.ready.eq(way.ready)]
