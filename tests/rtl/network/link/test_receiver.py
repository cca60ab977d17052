"""Link receiver against a plain model: each packet is admitted once, and its sender gets to know."""

import random

import pytest
from amaranth.hdl import Cat, Value

from rtl.network.link.receiver import LINK_RECEIVER_COUNTERS, LinkReceiver
from tests.rtl.network.dirty import simulate
from tests.rtl.network.link.arrivals import ARRIVALS, MASK, Peer, outcome
from tests.support import decoder, made

VERDICTS = ("fresh", "duplicate", "outside")
LAG = 40
"""Cycles that a LINK packet may need to be made; what came in them may be missing in it."""


class Node:
    """A link receiver among peers that send, lose, repeat and delay, and hear what it tells."""

    def __init__(self, nodes, first=0, seed=0, *, delay=40, gap=0.3, faults=0.2, headers=0.0,
                 room=0.9, links=0.05, stall=0.3, jumps=False):
        self.dut = made(LinkReceiver, nodes, first_sequence=first)
        self.rng = random.Random(seed)
        self.nodes, self.delay, self.gap, self.faults = nodes, delay, gap, faults
        self.headers, self.room, self.links, self.stall = headers, room, links, stall
        self.jumps = jumps
        self.peers = [Peer(first) for _ in range(nodes)]
        self.counted = dict.fromkeys(LINK_RECEIVER_COUNTERS.members, 0)
        self.cycle = self.time = 0
        self.acknowledged, self.arrived, self.admitted = [], [], 0
        self.heard, self.heads = [], []  # LINK packets, and headers under way: (cycle, node)
        self.jumped = 0

    def packet(self):
        """Return the next packet."""
        rng, source = self.rng, self.rng.randrange(self.nodes)
        kind = rng.random()
        link, bad = kind < self.links, self.links <= kind < 1.2 * self.links
        sequence = (rng.randrange(1 << 15) * ARRIVALS if link else rng.getrandbits(24) if bad
                    else self.peers[source].choose(rng, self.faults))
        return {"number": {"source": source, "sequence": sequence}, "link": int(link),
                "valid": int(not bad), "bad_epoch": int(bad),
                "room": int(rng.random() < self.room),
                "acknowledge": rng.getrandbits(24), "data": rng.getrandbits(512)}

    def plan(self, end):
        """Return when the next packet's number is known, and its last cycle, after one's ``end``.

        The number may come a cycle before that."""
        rng, gap = self.rng, 0
        while rng.random() < self.gap:
            gap += rng.choice((1, 1, 2, 5))
        if self.jumps and rng.random() < 0.05:
            gap += rng.randrange(20 * self.delay)
        return rng.randint(end - 1, end + gap), end + 2 + gap

    def nothing(self):
        """Return what no packet's last cycle may have."""
        return {"valid": 0, "link": self.rng.getrandbits(1), "room": self.rng.getrandbits(1)}

    def judge(self, packet, verdict):
        """Compare what the node says of a packet in its last cycle with what it may say."""
        assert sum(verdict.values()) == 1
        number = packet["number"]
        peer, sequence = self.peers[number["source"]], number["sequence"]
        if packet["bad_epoch"]:
            self.counted["bad_epochs"] += 1
            return
        self.acknowledged.append((number["source"], packet["acknowledge"]))
        if packet["link"]:
            self.arrived.append(
                {"node": number["source"], "first": sequence, "bits": packet["data"]})
            return
        said, = (name for name in VERDICTS if verdict[name])
        assert said in outcome(peer, sequence), (said, sequence, peer.base, peer.shown)
        if said == "fresh":
            if packet["room"]:
                peer.admit(sequence, self.cycle)
                self.admitted += 1
            else:
                peer.missing.append(sequence)
        else:
            self.counted["duplicates" if said == "duplicate" else said] += 1

    def run(self, packets, limit=100_000):
        """Send ``packets`` and wait until nothing moves nor waits."""
        dut, rng = self.dut, self.rng
        watched = {"fresh": dut.fresh, "duplicate": dut.duplicate, "outside": dut.outside,
                   "ack": dut.ack_value, "idle": dut.idle, "waits": dut.waits,
                   "deadline": dut.deadline, "valid": dut.links.valid}
        offers = [0]

        async def cycle(ctx, *, quiet=False):
            """Let a cycle pass, with headers that leave; return what was seen in it."""
            asked = rng.randrange(self.nodes)
            due = [head for head in self.heads if head[0] <= self.cycle]
            if due and due[0][2] is None:
                asked = due[0][1]
            ctx.set(dut.ack_node, asked)
            told = [head for head in self.heads if head[2] is not None and head[0] <= self.cycle]
            ctx.set(dut.told, {"valid": int(bool(told)), "node": told[0][1] if told else 0})
            if told:
                self.heads.remove(told[0])
            ctx.set(dut.time, self.time)
            *_, values = await ctx.tick().sample(Cat(watched.values()))
            seen, offset = {}, 0
            for name, value in watched.items():
                seen[name] = values >> offset & (1 << len(value)) - 1
                offset += len(value)
            self.peers[asked].show(seen["ack"])
            if due and due[0][2] is None and not told:
                due[0][2] = seen["ack"]
                self.peers[asked].hear(seen["ack"])
                due[0][0] = self.cycle + rng.randrange(1, 5)
            if seen["valid"] and not offers[0]:
                offers[0] = self.cycle
            if not quiet and rng.random() < self.headers:
                self.heads.append([self.cycle, rng.randrange(self.nodes), None])
            self.cycle += 1
            self.time += 1
            return seen

        async def traffic(ctx):
            ctx.set(dut.ack_delay, self.delay)
            await ctx.tick().until(dut.ready)
            flight, left, at, (look, end) = [], packets, 0, self.plan(2)
            while left or flight:
                if left and at == look:
                    flight.append((self.packet(), end))
                    ctx.set(dut.look, flight[-1][0]["number"])
                    left -= 1
                    look, end = self.plan(end)
                ends = bool(flight) and flight[0][1] == at
                ctx.set(dut.packet, flight[0][0] if ends else self.nothing())
                if self.jumps and not flight and rng.random() < 0.5:
                    self.jump(ctx)
                seen = await cycle(ctx)
                if ends:
                    self.judge(flight.pop(0)[0], {name: seen[name] for name in VERDICTS})
                at += 1
            ctx.set(dut.packet.valid, 0)
            while not (seen := await cycle(ctx, quiet=True))["idle"] or seen["waits"] or self.heads:
                self.jump(ctx)
            self.counters = {name: ctx.get(dut.link_counters[name]) for name in self.counted}

        async def take_links(ctx):
            bits, decode = Value.cast(dut.links.payload), decoder(dut.links.payload.shape())
            while True:
                held = None
                while rng.random() < self.stall:
                    ctx.set(dut.links.ready, 0)
                    *_, valid, payload = await ctx.tick().sample(dut.links.valid, bits)
                    assert held is None or (valid and payload == held)
                    held = payload if valid else None
                ctx.set(dut.links.ready, 1)
                *_, valid, payload = await ctx.tick().sample(dut.links.valid, bits)
                assert held is None or (valid and payload == held)
                if valid:
                    item = decode(payload)
                    self.peers[item["node"]].hear_bits(
                        item["first"], item["bits"], (offers[0] or self.cycle) - LAG)
                    offers[0] = 0
                    self.heard.append(item)
                    self.heads.append([self.cycle, item["node"], None])

        async def watch(ctx):
            events, arrivals = [], []
            self.seen = events, arrivals
            ctx.set(dut.arrived.ready, 1)
            decode = decoder(dut.arrived.payload.shape())
            async for _, _, event, valid, item in ctx.tick().sample(
                    dut.acknowledged, dut.arrived.valid, Value.cast(dut.arrived.payload)):
                if event.valid:
                    events.append((event.node, event.acknowledge))
                if valid:
                    arrivals.append(decode(item))

        simulate(dut, traffic, background=[take_links, watch], limit=limit)
        self.counted["acknowledgements"] = len(self.heard)
        assert self.counters == self.counted
        assert self.seen == (self.acknowledged, self.arrived)
        for peer in self.peers:
            assert peer.unheard() == [], "the peer is told of all that has come"

    def jump(self, ctx):
        """Pass over time in which nothing moves."""
        dut = self.dut
        if not self.heads and ctx.get(dut.idle) and ctx.get(dut.waits):
            left = (ctx.get(dut.deadline) - self.time) & 0xFFFFFFFF
            assert 0 < left <= self.delay
            self.jumped += left
            self.time += left
            ctx.set(dut.time, self.time)


@pytest.mark.parametrize("nodes, first, seed, options", [
    (3, 0, 1, {}), (4, MASK - 300, 2, {"headers": 0.05}), (5, 1000, 3, {"gap": 0.0, "faults": 0.5}),
    (2, (1 << 23) - 100, 4, {"delay": 0, "stall": 0.9}),
    (3, 77, 5, {"jumps": True, "delay": 120, "headers": 0.01})])
def test_packets_of_all_kinds(nodes, first, seed, options):
    node = Node(nodes, first, seed, **options)
    node.run(800)
    assert node.admitted > 300 and all(node.counted[name] for name in (
        "duplicates", "outside", "bad_epochs", "acknowledgements"))
    assert node.jumped > 100 or not options.get("jumps")
