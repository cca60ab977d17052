"""Frame check: decides whether a packet is valid, with its last beat."""

from collections.abc import Iterable

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import BEAT_BITS
from rtl.formats import (
    CREDIT_BITS,
    ETHERTYPE_IPV4,
    IP_PROTOCOL_UDP,
    NODE_BITS,
    RECORDS_PER_BEAT,
    SEQUENCE_BITS,
    STEP_BITS,
    TAGS_PER_BEAT,
    VERSION,
    Beat,
    HeaderBeat,
    Opcode,
)
from rtl.memory import Ram, sweep
from rtl.network.crc import Crc32c
from rtl.network.credits import check_nodes
from rtl.network.link.layouts import PacketNumber
from rtl.network.link.renewal import EPOCH_BITS, PeerEpoch
from rtl.network.opcodes import (
    BAG_GRADIENTS,
    BAG_VECTORS,
    BAGS,
    READS,
    RECORDS,
    TRAINING,
    UNCOUNTED,
    VALUES,
    more_records,
    vectors_of,
)
from rtl.network.wire import (
    DONT_FRAGMENT,
    IP_LENGTH,
    IP_VERSION_IHL,
    UDP_LENGTH,
    address,
    covered,
    edge_of,
    is_address,
    swap_bytes,
)

__all__ = ["EPOCH", "VERDICTS", "CheckedBeat", "FrameCheck"]

VERDICTS = ("errors_mac", "foreign", "bad_length", "bad_crc", "bad_opcode", "bad_node")
"""Reasons to drop a packet, in order of priority. ``bad_length`` appears twice in the order: a
header ``count`` that does not match the packet length counts only if no other reason applies,
because the packet may be damaged."""

EPOCH = "bad_epoch"
"""Additional reason with a reliable link, after ``VERDICTS``: the packet has another epoch."""


def CheckedBeat(max_beats: int, link: bool = False, bags: bool = False) -> data.StructLayout:
    """Layout of a beat after the check. Verdict and header fields are valid with the last beat.

    read: a packet READ_DATA.
    gradient: a packet of training, whose ``credit`` counts partials.
    paid: a packet that is sent against gradient credits.
    bag: a packet BAGS or BAG_VECTORS, whose ``credit`` counts bags; with ``bags`` only.
    sequence, acknowledge: header fields; with ``link`` only.
    link, probe: a LINK packet, a PROBE packet; with ``link`` only.
    """
    verdicts = (*VERDICTS, EPOCH) if link else VERDICTS
    return data.StructLayout({
        "valid": 1, "first": 1, "last": 1, "data": BEAT_BITS, "beats": range(max_beats + 2),
        "drop": 1, "verdict": data.StructLayout({name: 1 for name in verdicts}),
        "read": 1, "source": NODE_BITS, "step": STEP_BITS, "credit": CREDIT_BITS, "gradient": 1,
        "paid": 1,
        **({"sequence": SEQUENCE_BITS, "acknowledge": SEQUENCE_BITS, "link": 1,
            "probe": 1} if link else {}),
        **({"bag": 1} if bags else {})})


class FrameCheck(wiring.Component):
    """Check packets at full rate: addresses, lengths, CRC-32C, opcode, nodes, count.

    The block is a fixed pipeline without backpressure. The sender's MAC address, IP address and
    port must belong to the node named by the header field ``source``. Framing ``host`` checks only
    length, opcode and count, because PCIe protects the rest. Framing ``udp`` also checks CRC-32C
    and nodes; the UDP stack of the shell has checked and removed the other headers.

    The header of bags' vectors states their size: ``final_beat``, below ``vector_beats``. All other
    vectors have ``vector_beats``. For gradients, ``count`` is compared only with the beats of
    records, because the records determine the number of value beats.

    Parameters
    ----------
    max_beats: longest accepted payload, in beats.
    framing: ``ethernet``, ``udp`` or ``host``.
    training: accept packets of training.
    link: accept packets LINK and PROBE, of one beat each, and reject packets of another epoch.
    nodes: number of peers with ``link``.
    bags: accept packets of owner pooling: BAGS and BAG_VECTORS, or GPU_BAGS.
    short: dense vectors have ``value_beats`` and ``value_packing``, other vectors the ports of
        16-bit values; only with framing ``host``.

    Ports
    -----
    valid, beat: an input beat, :data:`rtl.formats.Beat`.
    node, nodes, mac_base, ip_base, udp_port, vector_beats, vector_packing: see
        :class:`rtl.network.FrameReceiver`.
    value_beats, value_packing: ``vector_beats`` and ``vector_packing`` of float32, with ``short``.
    epoch: epoch of accepted packets, unless ``peer`` has set another one for the sender; with
        ``link``.
    peer: event :data:`rtl.network.link.renewal.PeerEpoch`: changes the epoch of one peer; with
        ``link``. It applies to packets whose last beat arrives in the previous cycle or later.
    look: number of the packet whose last beat, if it has payload, is at ``o`` three cycles later;
        with ``link``.
    o: :func:`CheckedBeat`. ``beats`` counts payload beats including this one, up to ``max_beats`` +
        1. ``verdict`` has at most one bit set, the first reason in order of priority; ``drop`` is
        the OR of its bits.
    idle: inactive until an input changes.
    """

    LATENCY = {("beat", "the same beat"): 4}
    RATE = "1 beat per cycle"

    def __init__(self, max_beats: int, framing: str, *, training: bool = False,
                 link: bool = False, nodes: int = 1 << NODE_BITS, bags: bool = False,
                 short: bool = False):
        check_nodes(nodes)
        edge = edge_of(framing)
        self._max_beats, self._framing = max_beats, framing
        self._records, self._vectors = RECORDS[edge], vectors_of(edge, bags)
        self._reads, self._sized = READS[edge], BAG_VECTORS[edge] if bags else ()
        self._training = tuple(TRAINING[edge].values()) if training else ()
        self._known = (self._records, *more_records(edge, training, bags).values(), *self._reads,
                       *((Opcode.LINK, Opcode.PROBE) if link else ()))
        self._link, self._nodes, self._short = link, nodes, short
        self._words = tuple(BAG_GRADIENTS[edge].values()) if training and bags else ()
        # Packets with credits of bags.
        self._bags = ((*BAGS[edge].values(), *BAG_VECTORS[edge])
                      if bags and edge == "network" else ())
        super().__init__({
            "valid": In(1), "beat": In(Beat),
            "node": In(NODE_BITS), "nodes": In(NODE_BITS), "mac_base": In(48), "ip_base": In(32),
            "udp_port": In(16), "vector_beats": In(5), "vector_packing": In(2),
            "o": Out(CheckedBeat(max_beats, link, bool(self._bags))), "idle": Out(1),
        } | ({"epoch": In(EPOCH_BITS), "peer": In(PeerEpoch), "look": Out(PacketNumber)}
             if link else {}) | ({"value_beats": In(5), "value_packing": In(2)} if short else {}))

    def elaborate(self, platform) -> Module:
        m = Module()
        longest = self._max_beats
        beats_shape = range(longest + 2)
        # Stage 0: the input beat.
        inside = Signal()
        valid0, valid1, valid2, valid3 = (Signal(name=f"valid{k}") for k in range(4))
        stage = data.StructLayout(
            {"first": 1, "last": 1, "err": 1, "partial": 1, "data": BEAT_BITS})
        beat = Signal(stage, reset_less=True)
        seen = Signal(BEAT_BITS, reset_less=True)  # the part of the beat that the CRC covers
        m.d.sync += [valid0.eq(self.valid), valid1.eq(valid0), valid2.eq(valid1),
                     valid3.eq(valid2)]
        with m.If(self.valid):
            m.d.sync += inside.eq(~self.beat.last)
        # Without an enable, which would have as many loads as these registers have bits.
        m.d.sync += [
            beat.first.eq(~inside), beat.last.eq(self.beat.last),
            beat.err.eq(self.beat.err & self.beat.last),
            beat.partial.eq(~self.beat.keep.all()), beat.data.eq(self.beat.data),
        ]
        if self._framing != "host":
            m.d.sync += seen.eq(covered(self.beat.data, ~inside))
        # Stage 1: header fields and their comparisons, held until the next header.
        stage1, beats1 = Signal(stage, reset_less=True), Signal(beats_shape, reset_less=True)
        linked = {"sequence": SEQUENCE_BITS, "acknowledge": SEQUENCE_BITS, "link": 1,
                  "probe": 1, "epoch": EPOCH_BITS} if self._link else {}
        head1 = Signal(data.StructLayout({
            "source": NODE_BITS, "step": STEP_BITS, "credit": CREDIT_BITS, "count": 16, "crc": 32,
            "vectors": 1, "bad_opcode": 1, "read": 1, "gradient": 1, "values": 1,
            "uncounted": 1, "factor": 5, **linked, **({"bag": 1} if self._bags else {}),
            **({"dense": 1} if self._short else {}),
            **({"words": 1} if self._words else {}), **({"long": 1} if self._sized else {})}),
            reset_less=True)
        bad_epoch2 = self._epochs(m, head1) if self._link else C(0)
        header = data.View(HeaderBeat, beat.data)
        ember = header.ember
        of_vectors, of_training = Signal(), Signal()
        m.d.comb += [of_vectors.eq(_one_of(ember.opcode, self._vectors)),
                     of_training.eq(_one_of(ember.opcode, self._training))]
        values, uncounted = (tuple(opcode for opcode in self._training if opcode in kind)
                             for kind in (VALUES, UNCOUNTED))
        with m.If(valid0):
            m.d.sync += [
                stage1.first.eq(beat.first), stage1.last.eq(beat.last), stage1.err.eq(beat.err),
                stage1.data.eq(beat.data),
                stage1.partial.eq((stage1.partial & ~beat.first) | beat.partial),
                beats1.eq(Mux(beat.first, 0, Mux(beats1 == longest + 1, beats1, beats1 + 1))),
            ]
            with m.If(beat.first):
                m.d.sync += [head1[name].eq(ember[name])
                             for name in ("source", "step", "credit", "count", "crc")]
                m.d.sync += [
                    head1.vectors.eq(of_vectors),
                    head1.bad_opcode.eq((ember.version != VERSION) | ~(
                        of_vectors | _one_of(ember.opcode, self._known))),
                    head1.read.eq(_one_of(ember.opcode, self._reads)),
                    head1.gradient.eq(of_training),
                    head1.values.eq(_one_of(ember.opcode, values)),
                    head1.factor.eq(Mux(_one_of(ember.opcode, values), 1, self.vector_beats)),
                    head1.uncounted.eq(_one_of(ember.opcode, uncounted)),
                ]
                if self._short:
                    dense = ember.opcode == Opcode.DENSE_VECTORS
                    m.d.sync += head1.dense.eq(dense)
                    with m.If(dense):
                        m.d.sync += head1.factor.eq(self.value_beats)
                if self._sized:
                    sized = _one_of(ember.opcode, self._sized)
                    m.d.sync += head1.long.eq(sized & (ember.final_beat >= self.vector_beats))
                    with m.If(sized):
                        m.d.sync += head1.factor.eq(ember.final_beat + 1)
                if self._bags:
                    m.d.sync += head1.bag.eq(_one_of(ember.opcode, self._bags))
                if self._words:
                    m.d.sync += head1.words.eq(_one_of(ember.opcode, self._words))
                if self._link:
                    m.d.sync += [
                        head1.sequence.eq(ember.sequence), head1.acknowledge.eq(ember.acknowledge),
                        head1.link.eq(ember.opcode == Opcode.LINK),
                        head1.probe.eq(ember.opcode == Opcode.PROBE),
                        head1.epoch.eq(ember.epoch),
                    ]
        # Stage 2: the number of beats that ``count`` requires. The beats of vectors are computed
        # separately from the beats of tags or records, which are subtracted from the received
        # beats.
        stage2, head2 = Signal(stage, reset_less=True), Signal(
            head1.shape(), reset_less=True, name="head2")
        beats2 = Signal(beats_shape, reset_less=True)
        left2, count_range2 = Signal(signed(17), reset_less=True), Signal(reset_less=True)
        count = head1.count[:11]  # enough for the longest packet; count_range2 checks the rest
        # A vector has several beats, one beat, or a share of a beat. The last beat may be partly
        # empty.
        whole2, shared2 = (Signal(16, reset_less=True, name=name) for name in ("whole2", "shared2"))
        some, shared, rest = Signal(), Signal(), Signal(2)
        packing = self.vector_packing
        if self._short:
            packing = Mux(head1.dense, self.value_packing, packing)
        # Fixed, unless dense vectors have a packing of their own.
        m.d["comb" if self._short else "sync"] += rest.eq(Cat(packing.any(), packing[1]))
        count_range = (head1.count == 0) | (head1.count > RECORDS_PER_BEAT * longest)
        if self._sized:
            count_range |= head1.long
        if self._link:
            count_range |= (head1.link | head1.probe) & (head1.count != RECORDS_PER_BEAT)
        m.d.sync += [
            shared.eq(packing.any()),
            some.eq(head1.vectors | head1.values),
            whole2.eq(count * head1.factor),
            shared2.eq((count + rest) >> Mux(packing[1], 2, 1)),
            stage2.eq(stage1), beats2.eq(beats1), head2.eq(head1),
            left2.eq(beats1 - Mux(head1.vectors, (count + TAGS_PER_BEAT - 1) >> 5,
                                  (count + RECORDS_PER_BEAT - 1) >> 3)),
            count_range2.eq(count_range),
        ]
        fits = Mux(some, Mux(shared, left2 == shared2, left2 == whole2), left2 == 0)
        # Stage 3: the first reason that applies.
        foreign, lengths, crc, node = C(0), C(0), C(0), C(0)
        if self._framing == "ethernet":
            foreign, lengths, crc = self._ethernet_checks(m, valid0 & beat.first, header, beats1)
        if self._framing != "host":
            bad_crc, node = self._peer_checks(m, valid0, beat.first, header.ember, seen, head2)
            crc = crc | bad_crc
        reasons = (
            ("errors_mac", stage2.err),
            ("foreign", foreign),
            ("bad_length", lengths | stage2.partial | (beats2 > longest)),
            ("bad_crc", crc),
            ("bad_opcode", head2.bad_opcode),
            ("bad_node", node),
            *(((EPOCH, bad_epoch2),) if self._link else ()),
            ("bad_length", count_range2 | ~(fits | (head2.uncounted & (left2 > 0)))),
        )
        earlier = C(0)
        verdict = {name: C(0) for name in ((*VERDICTS, EPOCH) if self._link else VERDICTS)}
        for name, reason in reasons:
            verdict[name] = verdict[name] | (reason & ~earlier)
            earlier = earlier | reason
        checked = Signal(self.o.shape(), reset_less=True)
        paid = head2.values | head2.uncounted
        m.d.sync += [
            checked.first.eq(stage2.first), checked.last.eq(stage2.last),
            checked.data.eq(stage2.data), checked.beats.eq(beats2), checked.drop.eq(earlier),
            checked.read.eq(head2.read), checked.source.eq(head2.source),
            checked.step.eq(head2.step), checked.credit.eq(head2.credit),
            checked.gradient.eq(head2.gradient),
            checked.paid.eq(paid | head2.words if self._words else paid),
        ]
        m.d.sync += [checked.verdict[name].eq(value) for name, value in verdict.items()]
        if self._bags:
            m.d.sync += checked.bag.eq(head2.bag)
        if self._link:
            m.d.sync += [checked[name].eq(head2[name])
                         for name in ("sequence", "acknowledge", "link", "probe")]
            m.d.comb += [self.look.source.eq(head1.source), self.look.sequence.eq(head1.sequence)]
        m.d.comb += [self.o.eq(checked), self.o.valid.eq(valid3),
                     self.idle.eq(~(valid0 | valid1 | valid2 | valid3))]
        return m

    def _epochs(self, m, head) -> Value:
        """Return whether the packet with header ``head`` has an epoch other than its peer's, or
        comes from a closed peer; one cycle after the header."""
        address, swept = sweep(m, self._nodes)
        m.submodules.epochs = epochs = Ram(1 + EPOCH_BITS, self._nodes, latency=0)
        peer, bad = self.peer, Signal(reset_less=True)
        known = Mux(swept, epochs.read_data, 0)
        m.d.comb += [
            epochs.write_en.eq(peer.valid | ~swept),
            epochs.write_addr.eq(Mux(swept, peer.node, address)),
            epochs.write_data.eq(Mux(swept, Cat(peer.closed, peer.change), 0)),
            epochs.read_addr.eq(head.source),
        ]
        m.d.sync += bad.eq(known[0] | ((head.epoch ^ self.epoch) != known[1:]))
        return bad

    def _peer_checks(self, m, valid, first, ember, seen, head2):
        """Return (bad CRC, bad node), valid after stage 2."""
        node1, node2 = Signal(3, reset_less=True), Signal(reset_less=True)
        with m.If(valid & first):
            m.d.sync += node1.eq(Cat(ember.destination != self.node, ember.source >= self.nodes,
                                     ember.source == self.node))
        m.d.sync += node2.eq(node1.any())
        m.submodules.crc32c = crc = Crc32c()
        m.d.comb += [crc.valid.eq(valid), crc.first.eq(first), crc.data.eq(seen)]
        return crc.crc != head2.crc, node2

    def _ethernet_checks(self, m, begins, header, beats1):
        """Return (foreign, bad lengths, bad checksum), valid after stage 2."""
        own_mac, own_ip = Signal(48, reset_less=True), Signal(32, reset_less=True)
        m.d.sync += [own_mac.eq(address(self.mac_base, self.node, 48)),
                     own_ip.eq(address(self.ip_base, self.node, 32))]
        # Foreign: another destination, another protocol, or addresses that do not belong to the
        # header's source. Six groups of comparisons.
        foreign1, foreign2 = Signal(6, reset_less=True), Signal(reset_less=True)
        ip_length1, udp_length1 = (Signal(16, reset_less=True, name=f"{name}_length1")
                                   for name in ("ip", "udp"))
        lengths2 = Signal(reset_less=True)
        sums1, sum2 = (Signal(shape, reset_less=True, name=name) for name, shape in (
            ("sums1", data.ArrayLayout(18, 3)), ("sum2", 20)))
        wire, source = header.as_value(), header.ember.source
        start = HeaderBeat["ip_version_ihl"].offset
        words = [wire[start + 16 * k:start + 16 * k + 16] for k in range(10)]
        with m.If(begins):
            m.d.sync += [
                foreign1.eq(Cat(
                    swap_bytes(header.mac_destination) != own_mac,
                    swap_bytes(header.ip_destination) != own_ip,
                    (swap_bytes(header.ethertype) != ETHERTYPE_IPV4)
                    | (header.ip_version_ihl != IP_VERSION_IHL)
                    | (header.ip_protocol != IP_PROTOCOL_UDP),
                    (swap_bytes(header.udp_destination) != self.udp_port)
                    | ((swap_bytes(header.ip_fragment) & ~DONT_FRAGMENT & 0xFFFF) != 0),
                    ~is_address(swap_bytes(header.mac_source), self.mac_base, source),
                    ~is_address(swap_bytes(header.ip_source), self.ip_base, source)
                    | (swap_bytes(header.udp_source) != self.udp_port))),
                ip_length1.eq(swap_bytes(header.ip_length)),
                udp_length1.eq(swap_bytes(header.udp_length)),
                # The one's complement sum is independent of byte order (RFC 1071).
                sums1[0].eq(words[0] + words[1] + words[2] + words[3]),
                sums1[1].eq(words[4] + words[5] + words[6]),
                sums1[2].eq(words[7] + words[8] + words[9]),
            ]
        m.d.sync += [
            foreign2.eq(foreign1.any()),
            # A payload beat has 64 bytes, more than either length of a packet without payload.
            lengths2.eq((ip_length1 != Cat(C(IP_LENGTH, 6), beats1))
                        | (udp_length1 != Cat(C(UDP_LENGTH, 6), beats1))),
            sum2.eq(sums1[0] + sums1[1] + sums1[2]),
        ]
        return foreign2, lengths2, (sum2[:16] + sum2[16:]) != 0xFFFF


def _one_of(opcode: Value, opcodes: Iterable[Opcode]) -> Value:
    return Cat(opcode == one for one in opcodes).any()
