"""Link receiver against a plain model: it admits each packet once, and its sender is informed."""

import random

import pytest
from amaranth.hdl import Cat, Value

from rtl.network.link.receiver import LinkReceiver
from tests.rtl.network.dirty import simulate
from tests.rtl.network.link.arrivals import ARRIVALS, MASK, Peer, outcome
from tests.support import counts_of, decoder, made

VERDICTS = ("fresh", "duplicate", "outside")
LAG = 40
"""Most cycles to make a LINK packet; arrivals in them may be missing in it."""


class Node:
    """A link receiver among peers that send, lose, repeat and delay, and process its
    acknowledgements."""

    def __init__(self, nodes, first=0, seed=0, *, delay=40, gap=0.3, faults=0.2, headers=0.0,
                 room=0.9, links=0.05, stall=0.3, jumps=False):
        self.dut = made(LinkReceiver, nodes, first_sequence=first)
        self.rng = random.Random(seed)
        self.nodes, self.delay, self.gap, self.faults = nodes, delay, gap, faults
        self.headers, self.room, self.links, self.stall = headers, room, links, stall
        self.jumps = jumps
        self.peers = [Peer(first) for _ in range(nodes)]
        self.counted = dict.fromkeys(
            ("duplicates", "outside", "bad_epochs", "arrivals_dropped"), 0)
        self.cycle = self.time = 0
        self.acknowledged, self.arrived, self.admitted = [], [], 0
        self.heard, self.heads = [], []  # LINK packets, and destinations of the next headers
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
        """Return the cycles of the next packet's number and of its last cycle, after the previous
        ``end``.

        The number may be two cycles earlier.
        """
        rng, gap = self.rng, 0
        while rng.random() < self.gap:
            gap += rng.choice((1, 1, 2, 5))
        if self.jumps and rng.random() < 0.05:
            gap += rng.randrange(4 * self.delay)
        return rng.randint(end - 2, end + gap - 1), end + 2 + gap

    def nothing(self):
        """Return random inputs that do not end a packet."""
        return {"valid": 0, "link": self.rng.getrandbits(1), "room": self.rng.getrandbits(1)}

    def judge(self, packet, verdict):
        """Compare the node's verdict on a packet in its last cycle with the allowed ones."""
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
        """Send ``packets`` and wait until the block is idle and waits for no deadline."""
        dut, rng = self.dut, self.rng
        watched = {"fresh": dut.fresh, "duplicate": dut.duplicate, "outside": dut.outside,
                   "ack": dut.ack_value, "idle": dut.idle, "waits": dut.waits,
                   "deadline": dut.deadline, "valid": dut.links.valid}
        offers = [0]

        async def cycle(ctx, *, quiet=False):
            """Run a cycle, with headers that leave; return the events in it."""
            asked = rng.randrange(self.nodes)
            leaves = bool(self.heads) and rng.random() < 0.3
            if leaves:
                asked = self.heads.pop(0)
            ctx.set(dut.ack_node, asked)
            ctx.set(dut.told, {"valid": int(leaves), "node": asked})
            ctx.set(dut.time, self.time)
            *_, values = await ctx.tick().sample(Cat(watched.values()))
            seen, offset = {}, 0
            for name, value in watched.items():
                seen[name] = values >> offset & (1 << len(value)) - 1
                offset += len(value)
            self.peers[asked].show(seen["ack"])
            if leaves:
                self.peers[asked].hear(seen["ack"])
            if seen["valid"] and not offers[0]:
                offers[0] = self.cycle
            if not quiet and rng.random() < self.headers:
                self.heads.append(rng.randrange(self.nodes))
            self.cycle += 1
            self.time += 1
            return seen

        async def traffic(ctx):
            ctx.set(dut.ack_delay, self.delay)
            await ctx.tick().until(dut.ready)
            flight, left, at, (look, end) = [], packets, 0, self.plan(3)
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
            self.counters = counts_of(ctx, dut.link_counters)

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
                    self.heads.append(item["node"])

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
        assert self.counters == self.counters | self.counted
        assert self.seen == (self.acknowledged, self.arrived)
        for peer in self.peers:
            assert peer.unheard() == [], "the peer is told of all that has come"

    def jump(self, ctx):
        """Skip idle time."""
        dut = self.dut
        ctx.set(dut.time, self.time)
        if not self.heads and ctx.get(dut.idle) and ctx.get(dut.waits):
            left = (ctx.get(dut.deadline) - self.time) & 0xFFFFFFFF
            assert 0 < left <= self.delay
            self.jumped += left
            self.time += left
            ctx.set(dut.time, self.time)


@pytest.mark.thorough
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


@pytest.mark.thorough
@pytest.mark.parametrize("first, faults", [
    (2048, 0.0), pytest.param(MASK - 3000, 0.02, marks=pytest.mark.slow)])
def test_laps_of_the_window(first, faults):
    """Places of the window are used again and again, up to the window's end, at full rate."""
    node = Node(2, first, 7, gap=0.0, faults=faults, links=0.0, room=1 - faults, delay=300)
    node.run(9000 if faults else 7000)
    assert all((peer.base - first & MASK) > 3000 for peer in node.peers)


def one_by_one(node, steps):
    """Run ``steps``, a bench, on a ready node, and take LINK packets at once."""
    dut, heard = node.dut, []

    async def bench(ctx):
        ctx.set(dut.ack_delay, node.delay)
        ctx.set(dut.links.ready, 1)
        await ctx.tick().until(dut.ready)
        await steps(ctx)

    async def clock(ctx):
        time = 0
        async for _, _, valid, item in ctx.tick().sample(dut.links.valid, dut.links.payload):
            time += 1
            ctx.set(dut.time, time)
            if valid:
                heard.append((time, item.node, item.first, item.bits))

    simulate(dut, bench, background=[clock])
    return heard


async def packet(ctx, dut, source, sequence, **fields):
    """Send a packet; return its verdict."""
    ctx.set(dut.look, {"source": source, "sequence": sequence})
    await ctx.tick().repeat(3)
    ctx.set(dut.packet, {"valid": 1, "link": 0, "room": 1, "acknowledge": 0, "data": 0,
                         "number": {"source": source, "sequence": sequence}} | fields)
    verdict, = (name for name in VERDICTS if ctx.get(getattr(dut, name)))
    await ctx.tick()
    ctx.set(dut.packet.valid, 0)
    return verdict


async def header(ctx, dut, node):
    """Let a header to ``node`` leave; return its acknowledgement."""
    ctx.set(dut.ack_node, node)
    value = ctx.get(dut.ack_value)
    ctx.set(dut.told, {"valid": 1, "node": node})
    await ctx.tick()
    ctx.set(dut.told.valid, 0)
    return value


def test_headers_spare_link_packets():
    """In order, and told by a header in time: no LINK packet; a header that was made before the
    base moved does not do."""
    node = Node(3, delay=40)
    dut = node.dut

    async def steps(ctx):
        for sequence in range(5):
            assert await packet(ctx, dut, 1, sequence) == "fresh"
        await ctx.tick().repeat(20)
        assert await header(ctx, dut, 1) == 5
        await ctx.tick().repeat(100)
        assert ctx.get(dut.idle) and not ctx.get(dut.waits)
        for lead in range(16):
            ctx.set(dut.look, {"source": 1, "sequence": 5 + lead})
            await ctx.tick().repeat(3)
            ctx.set(dut.packet.number.sequence, 5 + lead)
            ctx.set(dut.packet.valid, 1)
            await ctx.tick()
            ctx.set(dut.packet.valid, 0)
            for _ in range(lead):
                await ctx.tick()
            value = await header(ctx, dut, 1)
            told.append(value == 6 + lead)
            before = ctx.get(dut.link_counters.acknowledgements)
            await ctx.tick().repeat(100)
            # A LINK packet reports the arrival that the header did not acknowledge.
            made = ctx.get(dut.link_counters.acknowledgements) - before
            assert made == 1 - told[-1]
            links.append(made)

    told, links = [], []
    heard = one_by_one(node, steps)
    assert len(heard) == sum(links) and sum(told) >= 6 and not told[0]


def test_what_is_told_of():
    """A hole, or a duplicate, makes a LINK packet though headers have told of the base."""
    node = Node(3, delay=40)
    dut, verdicts = node.dut, []

    async def steps(ctx):
        for sequence in (0, 2, 1200, 0, 2048, 1):
            verdicts.append(await packet(ctx, dut, 2, sequence))
            await ctx.tick().repeat(20)
            await header(ctx, dut, 2)
            await ctx.tick().repeat(100)
        assert ctx.get(dut.idle) and not ctx.get(dut.waits)

    heard = [(first, bits) for _, node, first, bits in one_by_one(node, steps) if node == 2]
    assert verdicts == ["fresh"] * 3 + ["duplicate", "fresh", "fresh"]
    # 0: acknowledged. Then a hole at 1, twice; the duplicate; the first of the next lap; and 1 is
    # acknowledged, with all before 3.
    assert heard == [(0, 0b101), (1024, 1 << 176), (0, 0b101), (2048, 1)]


def test_one_link_packet_for_many():
    """Packets of a block that come within the delay are told of at once, each block once."""
    node = Node(2, delay=200)
    dut = node.dut

    async def steps(ctx):
        for sequence in (*range(500, 530), 3):
            await packet(ctx, dut, 1, sequence)
        await ctx.tick().repeat(400)

    heard = one_by_one(node, steps)
    assert [item[1:] for item in heard] == [
        (1, 0, (0xFFF << 500) | 8), (1, 512, (1 << 18) - 1)]


def test_window_follows_the_base():
    node = Node(2, delay=10)
    dut = node.dut

    async def steps(ctx):
        assert await packet(ctx, dut, 1, 2048) == "outside"
        assert await packet(ctx, dut, 1, 2047) == "fresh"
        assert await packet(ctx, dut, 1, 0, room=0) == "fresh"
        assert await packet(ctx, dut, 1, 0) == "fresh"
        await ctx.tick().repeat(60)
        assert await packet(ctx, dut, 1, 2048) == "fresh"
        assert await packet(ctx, dut, 1, 2049) == "outside"
        assert await packet(ctx, dut, 1, MASK) == "duplicate"
        assert await packet(ctx, dut, 1, 1 << 22) == "outside"

    one_by_one(node, steps)


def test_arrivals_that_find_no_room():
    """They are counted, and what they say of the acknowledge is told all the same."""
    node = Node(2)
    dut, events = node.dut, []

    async def steps(ctx):
        for k in range(24):
            await packet(ctx, dut, 1, 512 * k, link=1, data=k, acknowledge=k)
            events.append(ctx.get(dut.acknowledged.acknowledge))
        dropped = ctx.get(dut.link_counters.arrivals_dropped)
        assert 4 <= dropped < 24 - LinkReceiver.ARRIVED + 2
        ctx.set(dut.arrived.ready, 1)
        for k in range(24 - dropped):
            *_, item = await ctx.tick().sample(dut.arrived.payload).until(dut.arrived.valid)
            assert (item.node, item.first, item.bits) == (1, 512 * k, k)
        await ctx.tick().repeat(3)
        assert ctx.get(dut.idle) and not ctx.get(dut.arrived.valid)

    one_by_one(node, steps)
    assert events == list(range(24))


def test_nothing_before_it_is_ready():
    dut = Node(4).dut

    async def bench(ctx):
        assert not ctx.get(dut.idle)
        assert await packet(ctx, dut, 1, 0) == "outside"
        await ctx.tick().until(dut.ready)
        assert await packet(ctx, dut, 1, 0) == "fresh"

    simulate(dut, bench)


def test_latency():
    node = Node(2, delay=25)
    dut, latency = node.dut, LinkReceiver.LATENCY
    times = {}

    async def steps(ctx):
        await packet(ctx, dut, 1, 0)
        ctx.set(dut.ack_node, 1)
        cycles = 1
        while not ctx.get(dut.ack_value):
            await ctx.tick()
            cycles += 1
        times["base"] = cycles
        while not ctx.get(dut.links.valid):
            await ctx.tick()
            cycles += 1
        times["link"] = cycles

    one_by_one(node, steps)
    assert times == {
        "base": latency["admitted packet", "ack_value, nothing else moving"],
        "link": 25 + latency["admitted packet", "its LINK packet, after the delay"]}
