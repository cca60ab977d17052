"""The path from an AXI4 master to a port of the HBM, with a memory behind it and two clocks."""

import random
from collections import deque
from itertools import pairwise

import pytest
from amaranth.hdl import ClockDomain, Module
from amaranth.sim import Simulator

from gen.shells.hbm_port import HBM_WIDTH, HbmPort
from tests.support import receiver, sender

HALF = HBM_WIDTH // 8
SLVERR = 2
BROKEN = 31
"""ID with error answers; in a read, only for the upper half of the last beat."""


class Memory:
    """The memory behind the port: bytes by address, late answers in any order of the IDs."""

    def __init__(self, port, stall: float):
        self.port, self.stall, self.rng = port, stall, random.Random(3)
        self.bytes: dict[int, int] = {}
        self.writes, self.beats = deque(), deque()
        self.done, self.reads = deque(), {}
        self.taken = 0
        """Beats of 256 bits written or read."""
        self.cycle = 0
        """Of the NIC's clock."""

    def take(self, name: str, into):
        async def bench(ctx):
            channel = getattr(self.port, name)
            while True:
                while self.rng.random() < self.stall:
                    await ctx.tick("hbm")
                ctx.set(channel.ready, 1)
                payload, = await ctx.tick("hbm").sample(channel.payload).until(channel.valid)
                ctx.set(channel.ready, 0)
                into(payload)
        return bench

    def write_beat(self, beat):
        self.beats.append((int(beat.data), int(beat.strobe), int(beat.last)))
        self.commit()

    def write_burst(self, burst):
        self.writes.append((int(burst.address), int(burst.more) + 1, int(burst.id)))
        self.commit()

    def commit(self):
        while self.writes and len(self.beats) >= self.writes[0][1]:
            address, count, number = self.writes.popleft()
            for beat in range(count):
                data, strobe, last = self.beats.popleft()
                assert last == (beat == count - 1)
                self.taken += 1
                for byte in range(HALF):
                    if strobe >> byte & 1:
                        self.bytes[address + HALF * beat + byte] = data >> 8 * byte & 0xFF
            self.done.append({"id": number, "resp": SLVERR * (number == BROKEN)})

    def read_burst(self, burst):
        address, count, number = int(burst.address), int(burst.more) + 1, int(burst.id)
        assert address % HALF == 0 and address % 4096 + HALF * count <= 4096
        beats = self.reads.setdefault(number, deque())
        for beat in range(count):
            data = sum(self.bytes.get(address + HALF * beat + byte, 0) << 8 * byte
                       for byte in range(HALF))
            last = beat == count - 1
            beats.append({"data": data, "id": number, "last": last,
                          "resp": SLVERR * (last and number == BROKEN)})
            self.taken += 1

    def give(self, name: str, choose):
        async def bench(ctx):
            channel = getattr(self.port, name)
            while True:
                item = None if self.rng.random() < self.stall else choose()
                if item is None:
                    await ctx.tick("hbm")
                    continue
                while item is not None:
                    ctx.set(channel.payload, item)
                    ctx.set(channel.valid, 1)
                    await ctx.tick("hbm").until(channel.ready)
                    item = None if self.rng.random() < self.stall else choose()
                ctx.set(channel.valid, 0)
        return bench

    def next_done(self):
        return self.done.popleft() if self.done else None

    def next_read(self):
        waiting = [number for number, beats in self.reads.items() if beats]
        return self.reads[self.rng.choice(waiting)].popleft() if waiting else None

    def benches(self):
        return [self.take("aw", self.write_burst), self.take("w", self.write_beat),
                self.take("ar", self.read_burst), self.give("b", self.next_done),
                self.give("r", self.next_read)]


def run(width, bench, *, hbm_ns, stall=0.0, wake_ns=0.0):
    """Run the testbenches that ``bench`` makes from the port and the memory; return the memory."""
    top = Module()
    top.domains.sync, top.domains.hbm = ClockDomain("sync"), ClockDomain("hbm")
    top.submodules.port = port = HbmPort(width)
    sim = Simulator(top)
    sim.add_clock(4e-9, domain="sync")
    sim.add_clock(hbm_ns * 1e-9, phase=0.3e-9 + wake_ns * 1e-9, domain="hbm")
    memory = Memory(port.o, stall)
    left = []
    over = False

    async def watch(ctx):
        for _ in range(0 if over else 3000):
            await ctx.tick()
            memory.cycle += 1
            if len(left) == len(benches):
                return

    def told(each):
        async def counted(ctx):
            if not over:
                await each(ctx)
                left.append(each)
        return counted

    benches = bench(port.i, memory)
    for each in (*memory.benches(), *benches):
        sim.add_testbench(told(each), background=True)
    sim.add_testbench(watch)
    sim.run()
    # Benches without an end are removed here, see tests/support.py.
    over = True
    sim.reset()
    sim.run()
    assert len(left) == len(benches), "no end after 3,000 cycles"
    return memory


def bursts(rng, count, beat):
    """Return bursts that stay in their 4 KiB page: (address, beats, ID)."""
    made = []
    for _ in range(count):
        beats = rng.randint(1, 8)
        page = rng.randrange(1 << 16) << 12
        made.append((page + beat * rng.randrange(4096 // beat - beats + 1), beats,
                     rng.choice((0, 5, 5, BROKEN, 63))))
    return made


def address(burst):
    return {"address": burst[0], "more": burst[1] - 1, "id": burst[2]}


@pytest.mark.few(2)
@pytest.mark.parametrize("width, hbm_ns, stall, wake_ns", [
    (512, 2.222, 0.0, 0.0), (512, 2.222, 0.4, 300.0), (512, 9.1, 0.3, 0.0),
    (256, 2.222, 0.3, 0.0)])
def test_what_is_written_is_read(width, hbm_ns, stall, wake_ns):
    rng, beat = random.Random(7), width // 8
    todo = bursts(rng, 16, beat)
    written: dict[int, int] = {}
    beats = []
    for start, count, _ in todo:
        for k in range(count):
            data, strobe = rng.getrandbits(width), rng.getrandbits(beat) | rng.getrandbits(beat)
            beats.append({"data": data, "strobe": strobe, "last": k == count - 1})
            for byte in range(beat):
                if strobe >> byte & 1:
                    written[start + beat * k + byte] = data >> 8 * byte & 0xFF
    done, read = [], []
    wanted = sum(count for _, count, _ in todo)

    def bench(port, _memory):
        writing = receiver(port.b, done, len(todo), stall=stall)

        async def reads(ctx):
            await writing(ctx)
            await sender(port.ar, map(address, todo), stall=stall, seed=4)(ctx)
        return [sender(port.aw, map(address, todo), stall=stall, seed=2),
                sender(port.w, beats, stall=stall, seed=3), reads,
                receiver(port.r, read, wanted, stall=stall, seed=5)]

    memory = run(width, bench, hbm_ns=hbm_ns, stall=stall, wake_ns=wake_ns)
    assert memory.bytes == written
    assert sorted((answer["id"], answer["resp"]) for answer in done) == sorted(
        (number, SLVERR * (number == BROKEN)) for _, _, number in todo)
    assert len(read) == wanted and memory.taken == 2 * wanted * (width // HBM_WIDTH)
    for number in {number for _, _, number in todo}:
        # Beats of one ID arrive in the order of requests.
        expected = [
            (sum(written.get(start + beat * k + byte, 0) << 8 * byte for byte in range(beat)),
             k == count - 1, SLVERR * (number == BROKEN and k == count - 1))
            for start, count, own in todo if own == number for k in range(count)]
        assert [(got["data"], got["last"], got["resp"]) for got in read
                if got["id"] == number] == expected


def test_latency_and_throughput():
    """Read once, then as often as there is room: 512 bits take two cycles of the memory."""
    times, count = [], 100

    def bench(port, memory):
        async def asks(ctx):
            await ctx.tick().repeat(8)
            times.append(memory.cycle)
            await sender(port.ar, [address((0, 1, 1))])(ctx)
            await ctx.tick().until(port.r.valid)
            times.append(memory.cycle)
            await sender(port.ar, [address((64 * k, 1, k % 64)) for k in range(count)])(ctx)

        async def takes(ctx):
            await receiver(port.r, [], count + 1)(ctx)
            times.append(memory.cycle)
        return [asks, takes]

    run(512, bench, hbm_ns=2.222)
    latency, rest = (after - before for before, after in pairwise(times))
    assert latency <= 12 + 12 * 2.222 / 4
    # 2 x 2.222 ns are more than a cycle of 4.
    assert rest <= 1.02 * count * 2 * 2.222 / 4 + 20


@pytest.mark.parametrize("width", [0, 128, 1024])
def test_bad_width(width):
    with pytest.raises(ValueError, match=f"width must be 256 or 512, not {width}"):
        HbmPort(width)
