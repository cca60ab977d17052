"""Frame assembler: header beat, checksums and CRC of each outgoing packet."""

from amaranth.hdl import C, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import BEAT_BITS, NicConfig
from rtl.formats import (
    BEAT_BYTES,
    CREDIT_BITS,
    ETHERTYPE_IPV4,
    IP_PROTOCOL_UDP,
    NODE_BITS,
    VERSION,
    Beat,
    EmberHeader,
    FrameInfo,
    HeaderBeat,
    HostFrame,
    HostHeaderBeat,
    RawBeat,
)
from rtl.gateable import Gateable
from rtl.monitor.counters import CounterLayout, count
from rtl.network.crc import Crc32c
from rtl.network.link.layouts import LinkedFrame
from rtl.network.wire import (
    DONT_FRAGMENT,
    IP_LENGTH,
    IP_TTL,
    IP_VERSION_IHL,
    UDP_LENGTH,
    address,
    covered,
    edge_of,
    longest_payload,
    swap_bytes,
)
from rtl.stream import SkidBuffer, StreamFIFO

__all__ = ["ASSEMBLER_COUNTERS", "FrameAssembler"]

ASSEMBLER_COUNTERS = CounterLayout("packets", "beats", "stall_output", wide=("beats",))


class FrameAssembler(Gateable, wiring.Component):
    """Send each packet: the header beat, then the payload.

    A FIFO of two maximum-size packets holds the payload until the CRC-32C is known. The IPv4 header
    has no options, DF set, identification 0 (RFC 6864) and TTL 64. The UDP checksum is 0 (RFC 768),
    because the CRC covers addresses, header and payload. ``sequence`` counts the packets of this
    assembler mod 2^24; with ``link``, the reliable link numbers the packets.

    Parameters
    ----------
    config: sizes. A packet has at most ``net_payload_beats`` or ``host_payload_beats``; a longer
        packet never leaves.
    framing: ``ethernet``; ``udp`` for a shell with its own UDP stack: the first 42 bytes are 0, and
        the CRC covers them as 0; ``host``: like ``udp``, and the CRC is 0.
    link: packets come from a :class:`rtl.network.link.sender.LinkSender`.

    Ports
    -----
    headers: stream of packet headers, one per packet: :data:`rtl.formats.FrameInfo`; with framing
        ``host`` :data:`rtl.formats.HostFrame`, whose ``address`` fills the first bytes of the
        header beat; with ``link`` :data:`rtl.network.link.layouts.LinkedFrame`.
    payload: stream of :data:`rtl.formats.RawBeat`, in the order of the headers. A header with
        ``empty`` set has no payload.
    o: stream of :data:`rtl.formats.Beat`, ``keep`` all ones, ``err`` 0.
    bytes: length of the packet at ``o``, header beat included; stable with the beat.
    acknowledge: value of the header field ``acknowledge``; without ``link``.
    epoch: value of the header field ``epoch``, XORed with ``change`` of the header; with ``link``.
    node: number of this node, the source in the header.
    mac_base, ip_base, udp_port: addresses of node 0, as numbers. Node n has base + n.
    counters: ``packets`` sent, their payload ``beats`` (64 bits); ``stall_output``, cycles in which
        a beat waits for ``o.ready``.
    idle: inactive until an input changes.

    Raises ``TypeError`` or ``ValueError`` for an invalid ``framing`` and for ``link`` with framing
    ``host``.
    """

    LATENCY = {
        ("last payload beat of a packet", "its header beat"): 10,
        ("last payload beat behind its buffer", "CRC and length, for the header"): 5,
    }
    RATE = "a packet of n payload beats leaves in n + 1 cycles, packets back to back"
    PACKETS = 16
    """Capacity of the queue of finished packets, including packets in the CRC pipeline."""
    ROOM = PACKETS - 6
    """Highest level of that queue at which a new packet may start: up to 4 packets are still in the
    CRC pipeline."""

    def __init__(self, config: NicConfig, framing: str = "ethernet", *, link: bool = False):
        self._framing, self._max_beats = framing, longest_payload(config, edge_of(framing))
        if link and framing == "host":
            raise ValueError("framing must be ethernet or udp with a link, not 'host'")
        self._link = link
        self._header = (HostFrame if framing == "host" else LinkedFrame if link else FrameInfo)
        super().__init__({
            "headers": In(stream.Signature(self._header)),
            "payload": In(stream.Signature(RawBeat)),
            "o": Out(stream.Signature(Beat)), "bytes": Out(16),
            **({"epoch": In(EmberHeader["epoch"].width)} if link
               else {"acknowledge": In(CREDIT_BITS)}),
            "node": In(NODE_BITS), "mac_base": In(48), "ip_base": In(32), "udp_port": In(16),
            "counters": Out(ASSEMBLER_COUNTERS), "idle": Out(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        beats_shape = range(self._max_beats + 1)
        finished = data.StructLayout({
            "ember": EmberHeader, "beats": beats_shape,
            **({"address": 64} if self._framing == "host" else {})})
        m.submodules.waiting = waiting = StreamFIFO(RawBeat, 2 * self._max_beats + 4)
        m.submodules.finished = done = StreamFIFO(finished, self.PACKETS)
        offered = data.StructLayout({"beat": Beat, "beats": range(self._max_beats + 2)})
        m.submodules.output = output = SkidBuffer(offered)
        m.d.comb += [
            self.o.valid.eq(output.o.valid), output.o.ready.eq(self.o.ready),
            self.o.payload.eq(output.o.payload.beat),
            self.bytes.eq(output.o.payload.beats * BEAT_BYTES),
        ]
        taking = self._take(m, waiting.i, done, beats_shape)
        building = self._send(m, waiting.o, done.o, output.i)
        m.d.comb += self.idle.eq(~taking & ~building & waiting.idle & done.idle & output.idle)
        return m

    def _take(self, m, waiting, done, beats_shape):
        """Pass header and payload of each packet through the CRC into the FIFOs."""
        inside, room = Signal(), Signal()
        ember, sequence = Signal(EmberHeader), Signal(24)
        take_header, take_beat = Signal(), Signal()
        m.submodules.info = info = SkidBuffer(self._header)
        m.submodules.beats = beats = SkidBuffer(RawBeat)
        wiring.connect(m, wiring.flipped(self.headers), info.i)
        wiring.connect(m, wiring.flipped(self.payload), beats.i)
        item = info.o.payload
        m.d.sync += room.eq(done.level <= self.ROOM)
        m.d.comb += [
            info.o.ready.eq(~inside & room), take_header.eq(info.o.valid & info.o.ready),
            beats.o.ready.eq(inside & waiting.ready), take_beat.eq(beats.o.valid & beats.o.ready),
            waiting.valid.eq(beats.o.valid & inside), waiting.payload.eq(beats.o.payload),
            ember.version.eq(VERSION), ember.source.eq(self.node),
        ]
        if self._link:
            m.d.comb += [ember.sequence.eq(item.sequence), ember.epoch.eq(self.epoch ^ item.change),
                         ember.acknowledge.eq(item.acknowledge)]
        else:
            m.d.comb += [ember.sequence.eq(sequence), ember.acknowledge.eq(self.acknowledge)]
        m.d.comb += [ember[name].eq(item[name])
                     for name in ("opcode", "destination", "step", "credit", "count", "final_beat")]
        with m.If(take_header):
            m.d.sync += inside.eq(~item.empty)
            if not self._link:
                m.d.sync += sequence.eq(sequence + 1)
        with m.If(take_beat & beats.o.payload.last):
            m.d.sync += inside.eq(0)

        # The CRC result is 3 stages later: one stage prepares the beat, the CRC takes two.
        stage = data.StructLayout({"valid": 1, "first": 1, "last": 1})
        track = [Signal(stage, name=f"track{k}") for k in range(3)]
        held = [Signal(EmberHeader, reset_less=True, name=f"ember{k}") for k in range(3)]
        length = [Signal(beats_shape, reset_less=True, name=f"length{k}") for k in range(3)]
        m.d.sync += [
            track[0].valid.eq(take_header | take_beat), track[0].first.eq(take_header),
            track[0].last.eq(Mux(take_header, item.empty, beats.o.payload.last)),
        ]
        with m.If(take_header):
            m.d.sync += [held[0].eq(ember), length[0].eq(0)]
        with m.If(take_beat):
            m.d.sync += length[0].eq(length[0] + 1)
        for k in (1, 2):
            m.d.sync += [track[k].eq(track[k - 1]), held[k].eq(held[k - 1]),
                         length[k].eq(length[k - 1])]
        m.d.comb += [
            done.i.valid.eq(track[2].valid & track[2].last),
            done.i.payload.beats.eq(length[2]), done.i.payload.ember.eq(held[2]),
        ]
        if self._framing == "host":
            places = [Signal(64, reset_less=True, name=f"place{k}") for k in range(3)]
            m.d.sync += [places[k].eq(places[k - 1]) for k in (1, 2)]
            m.d.comb += done.i.payload.address.eq(places[2])
            with m.If(take_header):
                m.d.sync += places[0].eq(item.address)
        else:
            seen, header = Signal(BEAT_BITS, reset_less=True), Signal(HeaderBeat)
            m.d.comb += header.ember.eq(ember)
            if self._framing == "ethernet":
                own_ip = Signal(32, reset_less=True)
                m.d.sync += own_ip.eq(address(self.ip_base, self.node, 32))
                m.d.comb += [
                    header.ip_source.eq(swap_bytes(own_ip)),
                    header.ip_destination.eq(swap_bytes(
                        address(self.ip_base, item.destination, 32))),
                ]
            # Selected by a register alone, not by the handshake: the select signal has 500 loads.
            with m.If(inside):
                m.d.sync += seen.eq(beats.o.payload.data)
            with m.Else():
                m.d.sync += seen.eq(covered(header, C(1)))
            m.submodules.crc32c = crc = Crc32c()
            m.d.comb += [crc.valid.eq(track[0].valid), crc.first.eq(track[0].first),
                         crc.data.eq(seen), done.i.payload.ember.crc.eq(crc.crc)]
        busy = track[0].valid | track[1].valid | track[2].valid | inside
        return busy | ~info.idle | ~beats.idle

    def _send(self, m, waiting, done, out):
        """Build header beats two ahead; send each header beat before its payload."""
        # Stage 1: lengths and addresses; stage 2: checksum; then the header beat is complete.
        valid1, valid2, valid3 = Signal(), Signal(), Signal()
        item1, item2 = (Signal(done.payload.shape(), reset_less=True, name=f"item{k}")
                        for k in (1, 2))
        header, empty = Signal(HeaderBeat, reset_less=True), Signal(reset_less=True)
        following = Signal(HeaderBeat)  # fields without an assignment stay 0
        beats, rest = (Signal(out.payload.beats.shape(), reset_less=True, name=name)
                       for name in ("beats", "rest"))
        sending, move, take = Signal(), Signal(), Signal()
        heading = Signal(init=1)  # inverse of ``sending``, to split the load of the beat's bits
        m.d.comb += [move.eq(~valid3 | take), done.ready.eq(move)]
        with m.If(move):
            m.d.sync += [valid1.eq(done.valid), item1.eq(done.payload), valid2.eq(valid1),
                         item2.eq(item1), valid3.eq(valid2), empty.eq(item2.beats == 0),
                         beats.eq(item2.beats + 1), header.eq(following)]
        whole = header
        if self._framing == "host":
            m.d.comb += data.View(HostHeaderBeat, following.as_value()).address.eq(item2.address)
        if self._framing == "ethernet":
            whole = self._build(m, move, item1, item2, following, header)
        m.d.comb += [
            following.ember.eq(item2.ember),
            out.payload.beat.keep.eq((1 << BEAT_BYTES) - 1),
            out.payload.beats.eq(Mux(sending, rest, beats)),
            out.payload.beat.data.eq(Mux(heading, whole, waiting.payload.data)),
            take.eq(~sending & valid3 & out.ready),
        ]
        with m.If(sending):
            m.d.comb += [out.valid.eq(waiting.valid), waiting.ready.eq(out.ready),
                         out.payload.beat.last.eq(waiting.payload.last)]
            with m.If(waiting.valid & out.ready & waiting.payload.last):
                m.d.sync += [sending.eq(0), heading.eq(1)]
        with m.Else():
            m.d.comb += [out.valid.eq(valid3), out.payload.beat.last.eq(empty)]
            with m.If(take):
                m.d.sync += [sending.eq(~empty), heading.eq(empty), rest.eq(beats)]
        count(m, self.counters, packets=take, beats=sending & waiting.valid & out.ready,
              stall_output=self.o.valid & ~self.o.ready)
        return valid1 | valid2 | valid3 | sending

    def _build(self, m, move, item1, item2, following, header):
        """Fill in Ethernet, IPv4 and UDP fields; return the header beat with its checksum."""
        own_mac, mac2 = (Signal(48, reset_less=True, name=name) for name in ("own_mac", "mac2"))
        own_ip, ip2 = (Signal(32, reset_less=True, name=name) for name in ("own_ip", "ip2"))
        common, sum2, total3 = (Signal(20, reset_less=True, name=name)
                                for name in ("common", "sum2", "total3"))
        # Constant part of the IPv4 checksum, as 16-bit words in network byte order.
        fixed = (IP_VERSION_IHL << 8) + DONT_FRAGMENT + (IP_TTL << 8 | IP_PROTOCOL_UDP)
        m.d.sync += [
            own_mac.eq(address(self.mac_base, self.node, 48)),
            own_ip.eq(address(self.ip_base, self.node, 32)),
            common.eq(own_ip[:16] + own_ip[16:] + fixed),
        ]
        length1 = Cat(C(IP_LENGTH, 6), item1.beats)
        length2 = Cat(C(IP_LENGTH, 6), item2.beats)
        with m.If(move):
            m.d.sync += [
                mac2.eq(address(self.mac_base, item1.ember.destination, 48)),
                ip2.eq(address(self.ip_base, item1.ember.destination, 32)),
                sum2.eq(common + length1),
                total3.eq(sum2 + ip2[:16] + ip2[16:]),
            ]
        m.d.comb += [
            following.mac_destination.eq(swap_bytes(mac2)),
            following.mac_source.eq(swap_bytes(own_mac)),
            following.ethertype.eq(swap_bytes(C(ETHERTYPE_IPV4, 16))),
            following.ip_version_ihl.eq(IP_VERSION_IHL),
            following.ip_length.eq(swap_bytes(Cat(length2, C(0, 16))[:16])),
            following.ip_fragment.eq(swap_bytes(C(DONT_FRAGMENT, 16))),
            following.ip_ttl.eq(IP_TTL), following.ip_protocol.eq(IP_PROTOCOL_UDP),
            following.ip_source.eq(swap_bytes(own_ip)),
            following.ip_destination.eq(swap_bytes(ip2)),
            following.udp_source.eq(swap_bytes(self.udp_port)),
            following.udp_destination.eq(swap_bytes(self.udp_port)),
            following.udp_length.eq(swap_bytes(
                Cat(C(UDP_LENGTH, 6), item2.beats, C(0, 16))[:16])),
        ]
        whole, once = Signal(HeaderBeat), Signal(17)
        m.d.comb += [
            once.eq(total3[:16] + total3[16:]), whole.eq(header),
            whole.ip_checksum.eq(swap_bytes(~(once[:16] + once[16])[:16])),
        ]
        return whole
