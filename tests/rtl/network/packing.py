"""Common parts of the packager tests: run one with a clock and credits, pair headers with payload.
"""

from tests.rtl.network.dirty import simulate
from tests.support import counts_of, receiver, sender


def credit_of(node: int) -> int:
    """Return the test's credit in headers to ``node``."""
    return (node * 4711 + 99) & 0xFFFF


def follow_time(dut, start=0, now=None, leap=None):
    """Drive ``time`` from ``start``, one more each cycle; ``now[0]`` is its value.

    It jumps by ``leap[0]``, once.
    """
    async def bench(ctx):
        value = start
        ctx.set(dut.time, value)
        async for _ in ctx.tick():
            value += 1
            if leap:
                value += leap.pop()
            ctx.set(dut.time, value & 0xFFFFFFFF)
            if now is not None:
                now[0] = value
    return bench


def answer_credit(dut):
    """Drive ``credit`` from ``credit_node``, as a combinational neighbour does."""
    async def bench(ctx):
        async for (node,) in ctx.changed(dut.credit_node):
            ctx.set(dut.credit, credit_of(node))
    return bench


class Taken(list):
    """A list that reports each appended item."""

    def __init__(self, tell=None):
        super().__init__()
        self._tell = tell

    def append(self, item):
        super().append(item)
        if self._tell:
            self._tell(item)


def expected_closings(items, limit, content):
    """Return packets in the order in which input alone closes them, and those that stay open."""
    packets, opened = [], {}
    for item in items:
        key, step = item["destination"], item["step"]
        if key in opened and opened[key][0] != step:
            packets.append((key, *opened.pop(key)))
        opened.setdefault(key, (step, []))[1].append(content(item))
        if len(opened[key][1]) == limit:
            packets.append((key, *opened.pop(key)))
    return packets, opened


def run_packager(dut, items, registers, *, packets=None, gap=0.0, stall=0.0, background=(),
                 on_header=None, start=0, now=None, hurry=False):
    """Send ``items`` until all have left; return (packets, cycles, counters).

    ``hurry``: once all are sent, time jumps to the timeout of the rest. A packet is (header, list
    of payload beats). Without a number of ``packets`` the run ends when the packager is idle.
    """
    result, counters, headers, cycles = [], {}, Taken(on_header), [0]
    leap: list[int] = []

    async def feed(ctx):
        for name, value in registers.items():
            ctx.set(getattr(dut, name), value)
        await ctx.tick().repeat(3)
        await sender(dut.i, items, stall=gap, seed=3)(ctx)
        for _ in range(3):
            await ctx.tick()
        if hurry:
            leap.append(registers["timeout"])
        while not ctx.get(dut.idle):
            await ctx.tick()
        await ctx.tick().repeat(4)
        assert ctx.get(dut.idle)
        counters.update(counts_of(ctx, dut.counters))

    beats = []

    def take_beat(beat):
        beats.append(beat["data"])
        if beat["last"]:
            # A header leaves no later than its payload; two may wait in its output buffer.
            assert len(headers) + 2 > len(result)
            result.append(list(beats))
            beats.clear()

    endless = 1 << 30
    cycles[0] = simulate(dut, feed, background=[
        receiver(dut.headers, headers, endless, stall=stall, seed=4),
        receiver(dut.payload, Taken(take_beat), endless, stall=stall, seed=5),
        follow_time(dut, start, now, leap), answer_credit(dut), *background])
    assert len(headers) == len(result)
    assert packets is None or len(headers) == packets
    return list(zip(headers, result)), cycles[0], counters
