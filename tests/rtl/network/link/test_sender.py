"""Link sender: every packet arrives despite losses, and all leave the pool."""

import random
from itertools import product

import pytest
from amaranth.hdl import Cat

from rtl.config import NicConfig, preset
from rtl.formats import Opcode
from rtl.network.link.sender import LinkSender
from tests.rtl.network.dirty import simulate
from tests.rtl.network.link.peers import Network, Packet, Settings
from tests.support import counts_of, made, sender

NODES = 5
CONFIG = preset("tiny").with_fields(nodes=NODES, net_payload_beats=6)
OPCODES = (Opcode.LOOKUPS, Opcode.VECTORS, Opcode.PARTIALS, Opcode.STEPS)
LEAST, FIRST, MOST = 300, 600, 5000
WRAPS = (1 << 24) - 300


def packets(count: int, seed: int = 0, *, to: range | None = None,
            longest: int = 6, opcodes: tuple[Opcode, ...] = OPCODES) -> list[Packet]:
    rng = random.Random(seed)
    return [Packet(
        rng.choice(opcodes), rng.choice(to or range(NODES)), rng.getrandbits(16),
        rng.getrandbits(16), tuple(rng.getrandbits(512) for _ in range(rng.randrange(longest + 1))))
        for _ in range(count)]


def run(items: list[Packet], settings: Settings, *, seed: int = 1, gap: float = 0.0,
        first: int = 0, beats: int = 64, tries: int = 100, links=(), patience: int = 60_000,
        before=None, config: NicConfig = CONFIG):
    """Send ``items``; return the network and the counters once the block is idle.

    ``before``: a testbench that runs first.
    """
    dut = made(LinkSender, config, first_sequence=first, beats=beats)
    network = Network(dut, NODES, settings, first, seed, LEAST)
    counters = {}

    async def offer(ctx):
        for name, value in (("timeout_first", FIRST), ("timeout_least", LEAST),
                            ("timeout_most", MOST), ("tries", tries)):
            ctx.set(getattr(dut, name), value)
        if before:
            await before(ctx, network)
        await sender(dut.headers, [item.header for item in items], stall=gap, seed=seed)(ctx)

    async def end(ctx):
        while not (sum(map(len, network.sent)) + ctx.get(dut.counters.swallowed) == len(items)
                   and len(network.links) == len(links)
                   and ctx.get(dut.idle) and not ctx.get(dut.waits) and not network.events):
            await ctx.tick()
            assert network.now < patience, "no end"
        await ctx.tick().repeat(3)
        assert ctx.get(dut.idle) and not ctx.get(dut.waits)
        counters.update(counts_of(ctx, dut.counters))

    payload = [{"data": beat, "last": int(k == len(item.beats) - 1)}
               for item in items for k, beat in enumerate(item.beats)]
    simulate(dut, offer, end, sender(dut.payload, payload, stall=gap, seed=seed + 1),
             sender(dut.links, [{"node": n, "first": f, "bits": b} for n, f, b in links],
                    stall=0.9, seed=seed + 2),
             background=[network.run, network.fresh], limit=patience + 1000)
    return network, counters


def check(items: list[Packet], network: Network, counters: dict[str, int]) -> None:
    """Check that all packets arrived in the order of their numbers, each as often as it was sent.
    """
    for node, peer in enumerate(network.peers):
        assert network.sent[node] == [item for item in items if item.destination == node]
        assert peer.base == len(network.sent[node])
    assert counters["packets"] == len(items)
    assert counters["repeated"] == network.repeated
    assert counters["bad_acknowledgements"] == counters["failures"] == 0
    assert network.failed == []


def test_packets_of_bags_carry_the_credit_of_bags():
    """Also when they are sent again, beside lookups and packets of training."""
    items = packets(60, opcodes=(*OPCODES, Opcode.BAGS, Opcode.BAG_VECTORS))
    network, counters = run(items, Settings(loss=0.1),
                            config=CONFIG.with_fields(owner_bags=16))
    check(items, network, counters)
    assert network.repeated > 0


@pytest.mark.thorough
@pytest.mark.parametrize("gap,stall", [*product([0.0, 0.5], [0.0, 0.4])])
def test_without_loss_nothing_is_sent_again(gap, stall):
    items = packets(300)
    network, counters = run(items, Settings(stall=stall), gap=gap)
    check(items, network, counters)
    assert counters["repeated"] == counters["timeouts"] == 0


@pytest.mark.thorough
@pytest.mark.few(1)
@pytest.mark.parametrize("loss,first,jump", [
    (0.05, 0, False), (0.1, WRAPS, False), (0.1, 0, True), (0.3, WRAPS, True), (0.3, 0, False)])
def test_what_is_lost_is_sent_again(loss, first, jump):
    items = packets(250, 3)
    settings = Settings(loss=loss, repeat=0.2, reorder=40, stall=0.1, jump=jump)
    network, counters = run(items, settings, first=first, gap=0.1)
    check(items, network, counters)
    assert counters["repeated"] > 0 and network.most <= 32
    assert (network.jumps > 0) == jump


@pytest.mark.thorough
def test_numbers_wrap():
    """Those of the packets to one peer, with one beat each, past 2^24."""
    items = packets(150, 4, to=range(1, 2), longest=1)
    network, counters = run(items, Settings(loss=0.05), first=(1 << 24) - 70)
    check(items, network, counters)


@pytest.mark.slow
def test_a_silent_peer_is_given_up_and_the_others_go_on():
    items = packets(200, 5)
    silent = 3
    network, counters = run(items, Settings(silent=frozenset([silent]), jump=True), tries=3)
    assert len(network.failed) == counters["failures"] == 1
    node, step = network.failed[0]
    gone = network.sent[silent]
    assert node == silent and step in {item.step for item in gone}
    assert max(len(network.times[silent, k]) for k in range(len(gone))) == 3
    assert counters["swallowed"] == sum(item.destination == silent for item in items) - len(gone)
    assert counters["swallowed"] > 0
    for node in set(range(NODES)) - {silent}:
        assert network.sent[node] == [item for item in items if item.destination == node]
        assert network.peers[node].base == len(network.sent[node])


@pytest.mark.parametrize("tries", [0, 1])
def test_the_first_time_out_is_the_last_with_one_try(tries):
    items = packets(3, 6, to=range(1))
    _, counters = run(items, Settings(silent=frozenset([0]), jump=True), tries=tries)
    assert counters["repeated"] == 0 and counters["failures"] == 1


@pytest.mark.thorough
def test_link_packets_leave_between_the_others():
    items, rng = packets(60, 7), random.Random(7)
    links = [(rng.randrange(NODES), rng.getrandbits(15) << 9, rng.getrandbits(512))
             for _ in range(30)]
    network, counters = run(items, Settings(stall=0.2), links=links)
    check(items, network, counters)
    assert network.links == links and counters["links"] == 30


@pytest.mark.thorough
def test_what_was_never_sent_cannot_be_acknowledged():
    """Numbers beyond the last packet, in headers and LINK packets, change nothing but a counter."""
    items = packets(40, 8, to=range(2))
    wrong = [(node, (WRAPS + far) % (1 << 24)) for node in range(2) for far in (45, 3000, 1 << 22)]

    async def lie(ctx, network):
        dut = network.dut
        for node, number in wrong:
            await ctx.tick().until(dut.idle)
            network.lies.append((node, number))
            for block in (-1, 0, 1, 7):
                first = ((WRAPS >> 9) + block << 9) % (1 << 24)
                ctx.set(dut.arrived.payload, {"node": node, "first": first, "bits": (1 << 512) - 1})
                ctx.set(dut.arrived.valid, 1)
                await ctx.tick().until(dut.arrived.ready)
                ctx.set(dut.arrived.valid, 0)

    network, counters = run(items, Settings(), first=WRAPS, before=lie)
    assert counters.pop("bad_acknowledgements") == len(wrong)
    check(items, network, counters | {"bad_acknowledgements": 0})


def measure(sizes: list[int]):
    """Return the cycles in which headers and beats of packets of ``sizes`` entered and left."""
    dut = made(LinkSender, CONFIG, first_sequence=0, beats=1024)
    times = {name: [] for name in ("header_in", "beat_in", "header_out", "beat_out")}
    items = [Packet(Opcode.LOOKUPS, k % NODES, 0, 0, tuple(range(size)))
             for k, size in enumerate(sizes)]

    async def watch(ctx):
        ports = dut.headers, dut.payload, dut.header_out, dut.payload_out
        moves = Cat(port.valid & port.ready for port in ports)
        sent, cycle = [0] * NODES, 0
        for name in ("timeout_first", "timeout_least", "timeout_most"):
            ctx.set(getattr(dut, name), 60_000)
        while True:
            _, _, moved, offered, node = await ctx.tick().sample(
                moves, dut.headers.valid, dut.header_out.payload.destination)
            cycle += 1
            # A header that waits for its check counts from its arrival.
            if offered and len(times["header_in"]) == len(times["header_in_done"]):
                times["header_in"].append(cycle)
            for bit, name in enumerate(("header_in_done", "beat_in", "header_out", "beat_out")):
                if moved >> bit & 1:
                    times[name].append(cycle)
            if moved >> 2 & 1:
                sent[node] += 1
                ctx.set(dut.acknowledged, {"valid": 1, "node": node, "acknowledge": sent[node]})
            else:
                ctx.set(dut.acknowledged.valid, 0)

    times["header_in_done"] = []

    async def start(ctx):
        await ctx.tick().until(dut.idle)
        ctx.set(dut.header_out.ready, 1)
        ctx.set(dut.payload_out.ready, 1)

    def later(bench):
        async def run(ctx):
            await start(ctx)
            await bench(ctx)
        return run

    payload = [{"data": beat, "last": int(k == len(item.beats) - 1)}
               for item in items for k, beat in enumerate(item.beats)]

    async def end(ctx):
        while len(times["header_out"]) < len(items) or len(times["beat_out"]) < len(payload):
            await ctx.tick()

    simulate(dut, end, later(sender(dut.headers, [item.header for item in items])),
             later(sender(dut.payload, payload)), background=[watch])
    return times


def test_latency():
    times = measure([3])
    assert times["header_out"][0] - times["header_in"][0] == LinkSender.LATENCY[
        "header", "the same header"]
    # The beats wait until the header has passed, and then leave one after the other.
    assert times["beat_out"][0] - times["beat_in"][0] == LinkSender.LATENCY[
        "payload beat of that header", "the same beat"]
    assert times["beat_out"] == [times["beat_out"][0] + k for k in range(3)]


@pytest.mark.few(2)
@pytest.mark.parametrize("size", [0, 1, 2, 6])
def test_packets_leave_back_to_back(size):
    times = measure([size] * 60)["header_out"]
    assert times[-1] - times[9] <= 50 * max(size, 2) + 2
