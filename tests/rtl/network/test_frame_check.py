"""Frame check against the format in plain Python: the verdict on every packet, and its cycle."""

import random
import struct
from dataclasses import replace
from types import MappingProxyType

import google_crc32c
import pytest
from amaranth.hdl import Cat, Value

from rtl.formats import Opcode
from rtl.network.frame_check import EPOCH, VERDICTS, FrameCheck
from tests.rtl.network.frames import EMBER, IP_BASE, MAC_BASE, PORT, Frame, checksum
from tests.rtl.network.random_frames import NODE, NODES, broken, records_frame, vectors_frame
from tests.support import decoder, made, simulate

LATENCY = FrameCheck.LATENCY["beat", "the same beat"]
FULL = (1 << 64) - 1
NETWORK = (Opcode.LOOKUPS, Opcode.VECTORS), (Opcode.PARTIALS, Opcode.STEPS)
HOST = ((Opcode.QUERIES, Opcode.GPU_VECTORS, Opcode.DENSE_VECTORS, Opcode.READ_DATA),
        (Opcode.GRADIENTS, Opcode.RETURNED, Opcode.STATES, Opcode.WRITTEN))
OF_VECTORS = (Opcode.VECTORS, Opcode.GPU_VECTORS, Opcode.DENSE_VECTORS, Opcode.BAG_VECTORS,
              Opcode.GPU_BAGS)
SIZED = Opcode.BAG_VECTORS, Opcode.GPU_BAGS
"""Packets whose header states the size of their vectors."""
BAGS = {"network": (Opcode.BAGS, Opcode.BAG_VECTORS), "host": (Opcode.GPU_BAGS,)}
OWN_EPOCH = 0x5A
PAID = (Opcode.PARTIALS, Opcode.RETURNED, Opcode.GRADIENTS)


class Receiver:
    """A frame check with its settings, and its expected verdicts."""

    def __init__(self, framing="ethernet", training=False, longest=22, beats=1, packing=0,
                 node=NODE, nodes=NODES, link=False, bags=False):
        self.framing, self.longest, self.beats, self.packing = framing, longest, beats, packing
        self.node, self.nodes = node, nodes
        inference, more = HOST if framing == "host" else NETWORK
        self.training = more if training else ()
        self.bags = BAGS["host" if framing == "host" else "network"] if bags else ()
        self.opcodes = inference + self.training + self.bags + (Opcode.LINK,) * link
        self.link, self.verdicts = link, (*VERDICTS, EPOCH) if link else VERDICTS
        self.peers: dict[int, int | None] = {}
        self.dut = made(FrameCheck, longest, framing, training=training,
                        **({"bags": True} if bags else {}),
                        **({"link": True, "nodes": NODES} if link else {}))

    def needed(self, opcode, count, final_beat=0):
        """Return the payload beats that a count requires; of GRADIENTS, the least."""
        if opcode in OF_VECTORS:
            beats = final_beat + 1 if opcode in SIZED else self.beats
            return -(-count // 32) + -(-count * beats // (1 << self.packing))
        return -(-count // 8) + (-(-count // (1 << self.packing)) if opcode in PAID[:2] else 0)

    def reasons(self, beats):
        """Return every reason to drop a packet, in order of priority."""
        head, *rest = (beat["data"].to_bytes(64, "little") for beat in beats)
        payload, framed = b"".join(rest), self.framing == "ethernet"
        version, opcode, source, destination, epoch, final, *_, count, crc = EMBER.unpack(head[42:])
        size, mac = len(payload), int.from_bytes(head[:6], "big")
        (from_mac, ethertype, version_ihl, length, fragment, protocol, from_ip, ip, from_port, port,
         udp_length) = struct.unpack(">6x6sHBxH2xHxB2xIIHHH2x", head[:42])
        covered = bytes(26) + head[26:34] + bytes(8) + head[42:60] + bytes(4) + payload
        needed, sized = self.needed(opcode, count, final), self.bags and opcode in SIZED
        return [name for name, holds in (
            ("errors_mac", beats[-1]["err"]),
            ("foreign", framed and (
                mac != MAC_BASE + self.node or ip != IP_BASE + self.node or port != PORT
                or int.from_bytes(from_mac, "big") != (MAC_BASE + source) % (1 << 48)
                or from_ip != (IP_BASE + source) % (1 << 32) or from_port != PORT
                or ethertype != 0x800 or version_ihl != 0x45 or protocol != 17
                or fragment not in (0, 0x4000))),
            ("bad_length", (framed and (length != 50 + size or udp_length != 30 + size))
             or any(beat["keep"] != FULL for beat in beats) or size > 64 * self.longest),
            ("bad_crc", (framed and checksum(head[14:34]) != 0)
             or (self.framing != "host" and google_crc32c.value(covered) != crc)),
            ("bad_opcode", version != 1 or opcode not in self.opcodes),
            ("bad_node", self.framing != "host" and (
                destination != self.node or source >= self.nodes or source == self.node)),
            (EPOCH, self.link and epoch != self.peers.get(source, OWN_EPOCH)),
            ("bad_length", count == 0 or (sized and final >= self.beats) or (
                opcode == Opcode.LINK and count != 8) or (
                needed != size // 64 and not (
                    opcode == Opcode.GRADIENTS and needed < size // 64))),
        ) if holds]

    def out(self, beats):
        """Return the expected output for a beat of a packet; before the last beat, fewer fields are
        valid."""
        verdict, head = (*self.reasons(beats), "")[0], beats[0]["data"].to_bytes(64, "little")
        _, opcode, source, *_, step, sequence, acknowledge, credit, _, _ = EMBER.unpack(head[42:])
        items = [{"valid": 1, "first": int(k == 0), "last": beat["last"], "data": beat["data"],
                  "beats": min(k, self.longest + 1)} for k, beat in enumerate(beats)]
        items[-1] |= {
            "drop": int(verdict != ""),
            "verdict": {name: int(name == verdict) for name in self.verdicts}, "source": source,
            "step": step, "credit": credit, "gradient": int(opcode in self.training),
            "read": int(self.framing == "host" and opcode == Opcode.READ_DATA),
            "paid": int(opcode in self.training and opcode in PAID)} | (
                {"bag": int(opcode in self.bags)} if self.bags and self.framing != "host" else {}
            ) | ({
                "sequence": int.from_bytes(sequence, "little"), "link": int(opcode == Opcode.LINK),
                "acknowledge": int.from_bytes(acknowledge, "little")} if self.link else {})
        return items

    def frame(self, rng, opcode):
        """Return a valid packet; the check ignores its payload."""
        final = rng.randrange(self.beats) if opcode in SIZED else 0
        counts = [n for n in range(1, 1200) if self.needed(opcode, n, final) <= self.longest]
        count = 8 if opcode == Opcode.LINK else rng.choice((1, counts[-1], rng.choice(counts)))
        size = self.needed(opcode, count, final)
        if opcode == Opcode.GRADIENTS:
            size = rng.randrange(size, self.longest + 1)
        return Frame(
            opcode=opcode, source=rng.choice([n for n in range(self.nodes) if n != self.node]),
            destination=self.node, step=rng.getrandbits(16), credit=rng.getrandbits(16),
            count=count, sequence=rng.getrandbits(24), acknowledge=rng.getrandbits(24),
            payload=rng.randbytes(64 * size), framing=self.framing,
            final_beat=final, epoch=OWN_EPOCH * self.link)

    def run_counts(self, rng, opcodes, least):
        """Send every count of each opcode, with the beats that it requires, or one off; ``least``
        of the packets must be good."""
        packets, good = [], 0
        for opcode in opcodes:
            frame = self.frame(rng, opcode)
            for count in (*range(8 * self.longest + 3), *(1 + (1 << bit) for bit in range(6, 16))):
                if opcode in SIZED:  # or a beat too long
                    frame = replace(frame, final_beat=rng.randrange(self.beats + 1))
                size = self.needed(opcode, count, frame.final_beat) + rng.choice((-1, 0, 0, 1))
                packet = replace(frame, count=count, payload=rng.randbytes(
                    64 * min(max(size, 0), self.longest + 1))).beats()
                good += not self.reasons(packet)
                packets.append(packet)
        assert good >= least
        self.run(packets)

    def run(self, packets, *, gap=0.0, seed=0, peers=MappingProxyType({})):
        """Send packets; each beat must leave LATENCY cycles later. Return the number of cycles.

        peers: by number of a packet, a node and its epoch (None: closed) from the packet's second
        beat on, at least two cycles after the end of the previous packet.
        """
        dut, shape, items, events = self.dut, self.dut.beat.shape(), [], {}
        for number, packet in enumerate(packets):
            if number in peers:
                node, epoch = peers[number]
                events[len(items) + 1] = {"valid": 1, "node": node, "closed": epoch is None,
                                      "change": OWN_EPOCH ^ (epoch or 0)}
                self.peers[node] = epoch
            items += self.out(packet)
        expected = iter(items)
        inputs = Cat(Value.cast(dut.beat), dut.valid)
        output, decode = Value.cast(dut.o), decoder(dut.o.shape())
        settling = 2 + NODES * self.link

        async def bench(ctx):
            for name, value in (
                    ("node", self.node), ("nodes", self.nodes), ("mac_base", MAC_BASE),
                    ("ip_base", IP_BASE), ("udp_port", PORT), ("vector_beats", self.beats),
                    ("vector_packing", self.packing)):
                ctx.set(getattr(dut, name), value)
            if self.link:
                ctx.set(dut.epoch, OWN_EPOCH)
            await ctx.tick().repeat(settling)
            rng = random.Random(seed)
            # ``err`` counts on the last beat alone.
            left = [shape.const(beat if beat["last"] else beat | {"err": rng.getrandbits(1)})
                    for packet in reversed(packets) for beat in reversed(packet)]
            inside, looks, no_event = [False] * LATENCY, [0, 0, 0], {"valid": 0}
            look = Value.cast(dut.look) if self.link else dut.valid
            while left or any(inside):
                valid = bool(left) and rng.random() >= gap
                word = left.pop().as_bits() if valid else rng.getrandbits(shape.size)
                ctx.set(inputs, word | valid << shape.size)
                if events:
                    ctx.set(dut.peer, events.get(len(items) - len(left) - 1, no_event)
                            if valid else no_event)
                *_, out, idle, number = await ctx.tick().sample(output, dut.idle, look)
                assert idle == (not any(inside)), "idle while no beat is inside"
                item = decode(out)
                assert bool(item["valid"]) == inside.pop(0)
                inside.append(valid)
                if item["valid"]:
                    wanted = next(expected)
                    assert {name: item[name] for name in wanted} == wanted
                    if self.link and item["last"] and item["beats"]:
                        assert looks[0] == item["source"] | item["sequence"] << 8
                looks = [*looks[1:], number]

        cycles = simulate(dut, bench, limit=20_000)
        assert not list(expected)
        return cycles - settling


def defects(rng, frame, nodes):
    """Return possible defects of a frame: fields, each independent of the others."""
    node, size, own = frame.destination, len(frame.payload), {
        "mac": MAC_BASE + frame.destination, "ip": IP_BASE + frame.destination}
    return [
        {"mac": own["mac"] ^ 1 << rng.randrange(48)}, {"ip": own["ip"] ^ 1 << rng.randrange(32)},
        {"port": PORT ^ 1 << rng.randrange(16)},
        *({name: value ^ 1 << rng.randrange(bits) for name, value, bits in each} for each in (
            [("from_port", PORT, 16)], [("from_mac", MAC_BASE + frame.source, 48)],
            [("from_ip", IP_BASE + frame.source, 32)]) if frame.framing == "ethernet"),
        {"fragment": rng.choice((0, 0x4000)) ^ 1 << rng.randrange(16)},
        {"ip_length": 50 + size ^ 1 << rng.randrange(16)},
        {"udp_length": 30 + size ^ 1 << rng.randrange(16)},
        {"checksum_error": 1 << rng.randrange(16)}, {"crc_error": 1 << rng.randrange(32)},
        {"version": 1 ^ 1 << rng.randrange(8)}, {"opcode": rng.randrange(0x30)},
        {"source": rng.choice((node, nodes, 255))}, {"destination": node ^ 1, **own},
        *({"epoch": frame.epoch ^ 1 << bit} for bit in (0, 7) if frame.epoch),
        {"count": rng.choice((0, frame.count - 1, frame.count + 1, frame.count ^ 0x800))},
        *({"final_beat": frame.final_beat ^ 1 << bit} for bit in (0, 3, 7)
          if frame.opcode in SIZED),
        {"payload": frame.payload[:-64]}, {"payload": frame.payload + rng.randbytes(64)},
        {"payload": rng.randbytes(64 * rng.choice((0, 1, 23, 24, 32 + size // 64)))}, {"err": 1},
    ]


@pytest.mark.few(3)
@pytest.mark.parametrize("framing, training, beats, packing, gap", [
    ("ethernet", False, 1, 0, 0.0), ("ethernet", True, 1, 2, 0.3), ("udp", False, 2, 0, 0.5),
    ("udp", True, 4, 0, 0.0), ("host", False, 1, 1, 0.2), ("host", True, 1, 1, 0.0),
    ("ethernet", "link", 1, 0, 0.1), ("udp", "link", 4, 0, 0.0)])
def test_any_defects_at_once(framing, training, beats, packing, gap):
    """Packets with up to three things wrong, bits that flip and packets that are cut."""
    rng = random.Random(beats)
    check = Receiver(framing, training is True, beats=beats, packing=packing,
                     link=training == "link")
    defects_at_once(rng, check, beats, gap)


@pytest.mark.few(2)
@pytest.mark.parametrize("framing, training, beats, packing, gap", [
    ("ethernet", False, 2, 0, 0.0), ("host", True, 1, 1, 0.3), ("udp", True, 1, 2, 0.0)])
def test_any_defects_of_packets_of_bags(framing, training, beats, packing, gap):
    rng = random.Random(10 + beats)
    check = Receiver(framing, training, beats=beats, packing=packing, bags=True)
    defects_at_once(rng, check, beats, gap)


def defects_at_once(rng, check, beats, gap):
    framing = check.framing
    packets, met, several = [], dict.fromkeys((*check.verdicts, ""), 0), 0
    for _ in range(150):
        frame = check.frame(rng, rng.choice(check.opcodes))
        for fields in rng.sample(defects(rng, frame, NODES), rng.choice((0, 1, 2, 2, 3))):
            frame = replace(frame, **fields)
        packet = frame.beats()
        for name, width in (("data", 512), ("keep", 64)):
            if rng.random() < 0.1:
                packet[rng.randrange(len(packet))][name] ^= 1 << rng.randrange(width)
        if rng.random() < 0.1:
            packet = packet[:rng.randrange(len(packet)) + 1]
            packet[-1]["last"] = 1
        reasons = check.reasons(packet)
        met[(*reasons, "")[0]] += 1
        several += len(set(reasons)) > 1
        packets.append(packet)
    never = {"ethernet": set(), "udp": {"foreign"}, "host": {"foreign", "bad_crc", "bad_node"}}
    assert {name for name in met if not met[name]} == never[framing] and several >= 15
    check.run(packets, gap=gap, seed=beats)


def test_every_defect_by_name():
    """Each kind of broken frame between two good ones."""
    rng, check, packets, met = random.Random(7), Receiver(), [], set()
    for _ in range(120):
        frame, _ = rng.choice((records_frame, vectors_frame))(rng, limit=2)
        name, packet = broken(rng, frame)
        assert check.reasons(packet)[0] == name and not check.reasons(frame.beats())
        met.add(name)
        packets += [packet, frame.beats()]
    assert met == set(VERDICTS)
    check.run(packets)


def test_who_sent_it():
    """For every node that a header may name: its own addresses, and those of each other."""
    rng, check, packets, good = random.Random(4), Receiver(node=3, nodes=255), [], 0
    base = check.frame(rng, Opcode.LOOKUPS)
    for source in (*range(16), *range(240, 256)):
        frame = replace(base, source=source, count=8, payload=bytes(64))
        packets.append(frame.beats())
        good += not check.reasons(packets[-1])
        other = rng.choice([n for n in range(256) if n != source])
        for fields in ({"from_mac": MAC_BASE + other}, {"from_ip": IP_BASE + other},
                       {"from_mac": MAC_BASE + other, "from_ip": IP_BASE + other}):
            packets.append(replace(frame, **fields).beats())
            assert check.reasons(packets[-1])[0] == "foreign"
    assert good == 30
    check.run(packets)


def test_every_bit_of_a_header():
    """Each flips once, the sums stay: the UDP checksum alone counts for nothing."""
    rng, check, packets = random.Random(9), Receiver(), []
    for bit in range(512):
        frame = replace(check.frame(rng, Opcode.LOOKUPS), count=8, payload=bytes(64))
        packets.append(frame.beats())
        packets[-1][0]["data"] ^= 1 << bit
    assert [bit // 8 for bit in range(0, 512, 8) if not check.reasons(packets[bit])] == [
        40, 41]
    check.run(packets)


@pytest.mark.parametrize("framing, ignored", [
    ("udp", (*range(26), *range(34, 42))), ("host", (*range(42), 44, 45, *range(60, 64)))])
def test_bytes_that_a_framing_ignores(framing, ignored):
    """The shell's UDP stack, or PCIe, has checked what they stand for: all of it may be wrong."""
    rng, check, packets = random.Random(3), Receiver(framing, True, longest=6), []
    for _ in range(40):
        packet = check.frame(rng, rng.choice(check.opcodes)).beats()
        for k in ignored:
            packet[0]["data"] ^= rng.getrandbits(8) << 8 * k
        assert not check.reasons(packet)
        packets.append(packet)
    check.run(packets)


@pytest.mark.few(2)
@pytest.mark.parametrize("framing, beats, packing", [
    ("ethernet", 1, 2), ("ethernet", 3, 0), ("host", 5, 0), ("host", 1, 1)])
def test_every_count(framing, beats, packing):
    """Of each kind of packet every count, with the beats that it requires, or one off."""
    rng, check = random.Random(beats), Receiver(framing, True, 6, beats, packing)
    check.run_counts(rng, check.opcodes, 25)


@pytest.mark.parametrize("framing, beats, packing", [("ethernet", 3, 0), ("host", 1, 2)])
def test_every_count_of_bags(framing, beats, packing):
    """Each count of words or vectors, with the beats that it requires, or one off."""
    rng, check = random.Random(beats), Receiver(framing, False, 6, beats, packing, bags=True)
    check.run_counts(rng, check.bags, 5)


@pytest.mark.parametrize("framing", ["ethernet", "host"])
def test_without_owner_pooling_packets_of_bags_are_unknown(framing):
    rng, known, packets = random.Random(5), Receiver(framing, bags=True), []
    check = Receiver(framing)
    for opcode in known.bags:
        packets.append(known.frame(rng, opcode).beats())
        assert not known.reasons(packets[-1]) and check.reasons(packets[-1]) == ["bad_opcode"]
    check.run(packets)


@pytest.mark.parametrize("node", [0, 254])
def test_packets_back_to_back(node):
    """The longest packets and those of one beat, at both ends of the cluster: no cycle is lost."""
    rng, check, packets = random.Random(node), Receiver(longest=140, node=node, nodes=255), []
    for source in (255, 254, 0, 1, 130):
        bare = replace(check.frame(rng, Opcode.LOOKUPS), source=source, count=1120, payload=b"")
        frame = replace(bare, payload=rng.randbytes(64 * 140))
        assert bool(check.reasons(frame.beats())) == (source in (node, 255))
        assert check.reasons(bare.beats())[-1] == "bad_length"
        packets += [frame.beats()] + 3 * [bare.beats()]
    assert check.run(packets) == sum(map(len, packets)) + LATENCY


@pytest.mark.parametrize("gap", [0.0, 0.3])
def test_each_peer_has_an_epoch_or_is_closed(gap):
    """It counts for all packets that end after the event, and for no other peer."""
    rng, check, packets, peers = random.Random(11), Receiver(link=True), [], {}
    sources = [node for node in range(NODES) if node != NODE]
    known = dict.fromkeys(sources, OWN_EPOCH)
    for number in range(120):
        if rng.random() < 0.3:
            node = rng.choice(sources)
            known[node] = rng.choice([None, OWN_EPOCH, rng.randrange(256)])
            peers[number] = node, known[node]
        frame = check.frame(rng, Opcode.LOOKUPS)
        own = known[frame.source]
        epoch = rng.choice([OWN_EPOCH if own is None else own, OWN_EPOCH, rng.randrange(256)])
        packets.append(replace(frame, epoch=epoch, count=24, payload=rng.randbytes(192)).beats())
    check.run(packets, gap=gap, peers=peers)
    assert len(peers) > 20
