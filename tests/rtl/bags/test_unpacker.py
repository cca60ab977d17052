"""BagUnpacker: items in order; a packet of which a beat was lost ends there, with one gap."""

import random

import pytest
from amaranth.hdl import Cat, Value

from rtl.bags.unpacker import BagUnpacker
from tests.rtl.bags.words import bag, beats_of_packet, record, segments_of
from tests.rtl.query.gaps import reported_twice
from tests.support import decoder, made, send_at_once, simulate

MOST, DEPTH = 128, 8


def packet(rng: random.Random, most: int = 60) -> list[int]:
    """Return the words of a packet of records and bags."""
    words: list[int] = []
    while len(words) < rng.randrange(1, most):
        words += record(rng) if rng.random() < 0.4 else bag(
            rng, rng.choice([1, 2, 5, 9, 40]), weighted=rng.random() < 0.3)
    return words


class Run:
    """Sends packets to an unpacker, and compares its items with those of the kept beats."""

    def __init__(self, packets: list[list[int]], pause, chance, seed: int = 0):
        """pause: function of the beats sent and a generator: cycles before the next beat. chance:
        function of the beats sent: probability that an item is taken."""
        self._rng, self._packets, self._pause = random.Random(seed), packets, pause
        self._chance, self.taken, self.kept = chance, [], [0] * len(packets)
        self._dut = made(BagUnpacker, DEPTH, MOST)
        self.dropped = self._sent = 0
        simulate(self._dut, self._feed, background=[self._take])

    async def _feed(self, ctx):
        dut = self._dut
        for step, words in enumerate(self._packets):
            torn = False
            for beat in beats_of_packet(words, 0):
                for _ in range(self._pause(self._sent, self._rng)):
                    await ctx.tick()
                item = {"data": beat["data"], "records": beat["records"], "source": 0,
                        "step": step, "last": beat["last"]}
                ctx.set(dut.i.payload, item)
                ctx.set(dut.i.valid, 1)
                dropped = ctx.get(dut.dropped)
                assert dropped >= torn, "the rest of the packet is dropped"
                torn = dropped
                await send_at_once(ctx, dut.i, item)
                self.dropped += dropped
                self._sent += 1
                self.kept[step] += not dropped
        await ctx.tick().until(dut.idle)
        await ctx.tick()
        assert ctx.get(dut.idle) and ctx.get(dut.consumed) == sum(self.kept)

    async def _take(self, ctx):
        port = self._dut.o
        bits, decode = Value.cast(port.payload), decoder(port.payload.shape())
        while True:
            take = self._rng.random() < self._chance(self._sent)
            ctx.set(port.ready, take)
            _, _, both, payload = await ctx.tick().sample(Cat(port.valid, port.ready), bits)
            if both == 3:
                self.taken.append(decode(payload))

    def compare(self) -> list[int]:
        """Compare items. Return the steps of the items and markers that report a gap."""
        expected = []
        for step, (words, kept) in enumerate(zip(self._packets, self.kept)):
            user = {"step": step, "gap": 0, "marker": 0}
            expected += segments_of(words[:8 * kept], user, MOST, whole=8 * kept >= len(words))
        items = [item for item in self.taken if not item["user"]["marker"]]
        assert [item | {"user": item["user"] | {"gap": 0}} for item in items] == expected
        return [item["user"]["step"] for item in self.taken if item["user"]["gap"]]

    def torn(self) -> list[int]:
        """Return the steps of packets of which beats were dropped."""
        return [step for step, (words, kept) in enumerate(zip(self._packets, self.kept))
                if 8 * kept < len(words)]


@pytest.mark.parametrize("pause, chance", [(6, 1.0), (9, 0.7)])
def test_items_leave_in_order(pause, chance):
    rng = random.Random(pause)
    run = Run([packet(rng) for _ in range(40)], lambda *_: pause, lambda _: chance)
    assert not run.dropped and run.compare() == []


@pytest.mark.parametrize("seed", range(3))
def test_a_torn_packet_ends_at_its_gap(seed):
    """The first item behind dropped beats reports the gap; its packet begins there."""
    rng = random.Random(seed)
    packets = [packet(rng) for _ in range(60)]
    run = Run(packets, lambda _, r: r.choice([0, 0, 0, 1, 20]), lambda _: 0.4, seed)
    reported, torn = run.compare(), run.torn()
    assert len(torn) > 3 and run.dropped > len(torn)
    # One report for each run of torn packets: by the next kept beat, or by a marker.
    runs = [step for step in torn if step - 1 not in torn or run.kept[step]]
    assert len(reported) == len(runs)


@pytest.mark.parametrize("later", [0, 1])
def test_a_gap_without_an_item_behind_it_is_a_marker(later):
    """A bag that is open before the marker does not continue in the next packet."""
    rng = random.Random(3)
    torn = [*record(rng), *bag(rng, 250), *bag(rng, 200)]
    beats = -(-len(torn) // 8)
    run = Run([torn, *[packet(rng)] * later], lambda sent, _: 200 if sent == beats else 0,
              lambda sent: sent >= beats)
    assert run.compare() == [0] and run.torn() == [0]
    marker, = (k for k, item in enumerate(run.taken) if item["user"]["marker"])
    assert (marker == len(run.taken) - 1) == (not later)


@pytest.mark.parametrize("taken, first", [(8, None), (10, 0), (11, 0)])
def test_a_marker_has_the_step_of_its_own_gap(taken, first):
    """A second packet is dropped while the marker of the first one waits."""
    assert reported_twice(made(BagUnpacker, DEPTH, MOST), taken) == [first, 1]


def test_latency_and_rate():
    rng, dut, cycles = random.Random(7), made(BagUnpacker, 32, MOST), []
    words = [each for _ in range(20) for each in record(rng)]

    async def watch(ctx):
        ctx.set(dut.o.ready, 1)
        cycle = 0
        async for _, _, valid, come in ctx.tick().sample(dut.o.valid, dut.i.valid):
            if valid:
                cycles.append(cycle)
            cycle += bool(come or cycle)

    async def feed(ctx):
        for beat in beats_of_packet(words, 0):
            await send_at_once(ctx, dut.i, {
                "data": beat["data"], "records": beat["records"], "source": 0, "step": 1,
                "last": beat["last"]})
        await ctx.tick().until(dut.idle)

    simulate(dut, feed, background=[watch])
    first = BagUnpacker.LATENCY["beat", "its first item"]
    assert cycles == list(range(first, first + 20))
