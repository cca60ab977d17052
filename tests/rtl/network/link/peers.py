"""Peers and the network to them, for tests of the sender of the reliable link."""

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from amaranth.hdl import Cat, Value

from rtl.formats import Opcode
from rtl.network.link.layouts import ARRIVALS
from rtl.network.link.sender import LinkSender

__all__ = ["HALF", "NUMBERS", "Network", "Packet", "Peer", "Settings"]

NUMBERS, HALF = 1 << 24, 1 << 23
HALF_TIME = 1 << 31


@dataclass(frozen=True)
class Packet:
    """A packet of a test: the fields of its header, and its payload."""

    opcode: int
    destination: int
    step: int
    count: int
    beats: tuple[int, ...]

    @property
    def header(self) -> dict[str, int]:
        return {"opcode": self.opcode, "destination": self.destination, "step": self.step,
                "count": self.count, "credit": 0x5555, "empty": int(not self.beats)}


@dataclass
class Settings:
    """Settings of the network and the peers.

    delay: least cycles from a packet's last beat to its peer's answer.
    loss: share of packets and answers that are lost.
    repeat: share of answers that arrive twice.
    reorder: most cycles by which an answer is delayed further.
    silent: peers that never answer.
    stall: share of cycles in which the assembler is not ready.
    links: share of answers that acknowledge packets one by one.
    jump: time jumps over idle cycles.
    """

    delay: int = 60
    loss: float = 0.0
    repeat: float = 0.0
    reorder: int = 0
    silent: frozenset[int] = frozenset()
    stall: float = 0.0
    links: float = 0.3
    jump: bool = False


@dataclass
class Peer:
    """A receiver: the arrived packets to it."""

    first: int
    came: set[int] = field(default_factory=set)
    base: int = 0

    def take(self, number: int) -> None:
        """Take packet ``number``, counted from the first one without wrapping."""
        self.came.add(number)
        while self.base in self.came:
            self.base += 1


class Network:
    """Takes the output of a :class:`LinkSender`, checks it, and lets the peers answer.

    Members
    -------
    sent: for each peer, the packets in the order of their numbers.
    times: the time of each transmission.
    heard: the cycle in which the sender got the acknowledgement of each packet.
    links, failed: LINK packets, and events.
    now, jumps: cycles, and jumps of time.
    most: most unacknowledged beats of a peer.
    lies: acknowledgements to send unchanged.
    """

    def __init__(self, dut: LinkSender, nodes: int, settings: Settings, first: int, seed: int,
                 timeout_least: int):
        self.dut, self.settings, self.rng = dut, settings, random.Random(seed)
        self.first, self.least = first, timeout_least
        self.peers = [Peer(first) for _ in range(nodes)]
        self.sent: list[list[Packet]] = [[] for _ in range(nodes)]
        self.times: dict[tuple[int, int], list[int]] = {}
        self.heard: dict[tuple[int, int], int] = {}
        self.links: list[tuple[int, int, int]] = []
        self.failed: list[tuple[int, int]] = []
        self.repeated = self.jumps = self.now = self.most = 0
        self.base = random.Random(seed).getrandbits(32)
        self.told: list[tuple[int, ...]] = []
        self.bag_credit = [dut.bag_credit] if "bag_credit" in dut.signature.members else []
        self.headers: list[dict[str, int]] = []
        self.payloads: list[tuple[int, ...]] = []
        self.beats: list[int] = []
        self.events: list[tuple[int, int, Callable[[], None]]] = []
        self._serial = 0
        self.lies: list[tuple[int, int]] = []
        self.acknowledgements: list[tuple[int, int]] = []
        self.arrivals: list[tuple[int, int, int, int]] = []

    def at(self, cycle: int, event: Callable[[], None]) -> None:
        self._serial += 1
        heapq.heappush(self.events, (cycle, self._serial, event))

    def number(self, node: int, sequence: int) -> int:
        """Return the packet's number without wrapping, the one nearest to the last one sent."""
        last = len(self.sent[node])
        ahead = (sequence - self.first - last) % NUMBERS
        return last + (ahead if ahead < HALF else ahead - NUMBERS)

    def packet(self, header: dict[str, int], beats: tuple[int, ...]) -> None:
        """Process a complete packet."""
        node = header["destination"]
        told, value, lookups, gradients, *bags = self.told.pop(0)
        credit = {Opcode.LINK: 0, Opcode.PARTIALS: gradients, Opcode.STEPS: gradients,
                  **{opcode: credit for credit in bags for opcode in (
                      Opcode.BAGS, Opcode.BAG_VECTORS)}}.get(header["opcode"], lookups)
        assert (node, header["acknowledge"], header["credit"]) == (told, value, credit)
        if header["opcode"] == Opcode.LINK:
            assert (header["count"], header["step"]) == (8, 0)
            self.links.append((node, header["sequence"], *beats))
            return
        packet = Packet(header["opcode"], node, header["step"], header["count"], beats)
        number = self.number(node, header["sequence"])
        key = node, number
        if number == len(self.sent[node]):
            self.sent[node].append(packet)
            self.times[key] = []
        else:
            assert 0 <= number < len(self.sent[node]), "numbers follow each other"
            assert self.sent[node][number] == packet, "what is sent again is the same"
            assert self.now - self.times[key][-1] >= self.least - 100, "not before its time"
            assert self.now - self.heard.get(key, self.now) < 200, "not after it is acknowledged"
            self.repeated += 1
        self.times[key].append(self.now)
        if key not in self.heard:
            self.most = max(self.most, sum(
                max(1, len(self.sent[node][k].beats)) for k in range(len(self.sent[node]))
                if (node, k) not in self.heard))
        rng, settings = self.rng, self.settings
        if node not in settings.silent and rng.random() >= settings.loss:
            self.at(self.now + settings.delay // 2, lambda: self._arrives(node, number))

    def _arrives(self, node: int, number: int) -> None:
        rng, settings, peer = self.rng, self.settings, self.peers[node]
        peer.take(number)
        base = peer.base
        news = [(base, None)]
        if rng.random() < settings.links or base <= number:
            start = (self.first + number) % NUMBERS // ARRIVALS * ARRIVALS
            zero = self.number(node, start)
            bits = sum(1 << k for k in range(ARRIVALS) if zero + k in peer.came)
            news.append((base, (start, zero, bits)))
        for what in news:
            for _ in range(1 + (rng.random() < settings.repeat)):
                if rng.random() >= settings.loss:
                    late = rng.randrange(settings.reorder + 1)
                    self.at(self.now + settings.delay // 2 + late,
                            lambda what=what: self._answer(node, *what))

    def _answer(self, node: int, base: int, arrivals) -> None:
        self.acknowledgements.append((node, base))
        if arrivals is not None and len(self.arrivals) < 4:
            self.arrivals.append((node, *arrivals))

    def _told(self, node: int, numbers) -> None:
        for number in numbers:
            self.heard.setdefault((node, number), self.now)

    def _jump(self, deadline: int) -> None:
        """Advance time at once to the deadline, or to an earlier answer of a peer."""
        left = (deadline - self.base - self.now + HALF_TIME) % (1 << 32) - HALF_TIME
        if self.events:
            left = min(left, self.events[0][0] - self.now)
        if left > 0 and not self.acknowledgements and not self.arrivals:
            self.now += left
            self.jumps += 1

    async def fresh(self, ctx):
        """An endless testbench: acknowledgement and credits change all the time."""
        dut, rng = self.dut, random.Random(self.base)
        while True:
            node = ctx.get(dut.ack_node)
            ctx.set(dut.ack_value, rng.getrandbits(16) << 8 | node)
            ctx.set(dut.lookup_credit, rng.getrandbits(8) << 8 | node)
            ctx.set(dut.gradient_credit, rng.getrandbits(8) << 8 | node)
            for credit in self.bag_credit:
                ctx.set(credit, rng.getrandbits(8) << 8 | node)
            await ctx.tick().until(dut.told.valid) if rng.random() < 0.1 else await ctx.changed(
                dut.ack_node)

    async def run(self, ctx):
        """An endless testbench."""
        dut, rng = self.dut, random.Random(self.rng.random())
        header_bits, event = Value.cast(dut.header_out.payload), dut.acknowledged
        fields = list(dut.header_out.payload.shape())
        shape = [(name, part.offset, (1 << part.width) - 1) for name, part in fields]
        driven = Cat(dut.time, dut.header_out.ready, dut.payload_out.ready, event)
        reported = [0] * len(self.peers)
        offered = False
        while True:
            taking = [rng.random() >= self.settings.stall for _ in range(2)]
            told = {"valid": 0, "node": 0, "acknowledge": 0}
            if self.acknowledgements:
                node, base = self.acknowledgements.pop(0)
                told = {"valid": 1, "node": node, "acknowledge": (self.first + base) % NUMBERS}
                self._told(node, range(reported[node], base))
                reported[node] = max(reported[node], base)
            elif self.lies:
                node, number = self.lies.pop(0)
                told = {"valid": 1, "node": node, "acknowledge": number}
            # All inputs at once, because the simulator settles after each change.
            ctx.set(driven, (self.base + self.now) % (1 << 32) | taking[0] << 32 | taking[1] << 33
                    | event.shape().const(told).as_bits() << 34)
            if self.arrivals and not offered:
                node, start, zero, bits = self.arrivals[0]
                ctx.set(dut.arrived.payload, {"node": node, "first": start, "bits": bits})
                ctx.set(dut.arrived.valid, 1)
                offered = True
            (_, _, header_valid, header_ready, header, valid, ready, beat, taken, failed, step,
             lost, told, node, *fresh) = await ctx.tick().sample(
                dut.header_out.valid, dut.header_out.ready, header_bits, dut.payload_out.valid,
                dut.payload_out.ready, Value.cast(dut.payload_out.payload), dut.arrived.ready,
                dut.failed.valid, dut.failed.step, dut.failed.node, dut.told.valid, dut.told.node,
                dut.ack_node, dut.credit_node, dut.ack_value, dut.lookup_credit,
                dut.gradient_credit, *self.bag_credit)
            self.now += 1
            if told:
                assert fresh[:2] == [node, node]
                self.told.append((node, *fresh[2:]))
            if offered and taken:
                node, start, zero, bits = self.arrivals.pop(0)
                self._told(node, (zero + k for k in range(ARRIVALS) if bits >> k & 1))
                ctx.set(dut.arrived.valid, 0)
                offered = False
            if failed:
                self.failed.append((lost, step))
            if header_valid and header_ready:
                self.headers.append({name: header >> offset & mask
                                     for name, offset, mask in shape})
            if valid and ready:
                self.beats.append(beat & (1 << 512) - 1)
                if beat >> 512:
                    self.payloads.append(tuple(self.beats))
                    self.beats = []
            # The two outputs do not wait for each other.
            while self.headers and (self.headers[0]["empty"] or self.payloads):
                header = self.headers.pop(0)
                self.packet(header, () if header["empty"] else self.payloads.pop(0))
            while self.events and self.events[0][0] <= self.now:
                heapq.heappop(self.events)[2]()
            if self.settings.jump and ctx.get(dut.idle) and ctx.get(dut.waits):
                self._jump(ctx.get(dut.deadline))
