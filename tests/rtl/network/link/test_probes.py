"""Probes: one to each silent peer at the end of each period in which the NIC waits."""

import random

import pytest

from rtl.formats import Opcode
from rtl.network.link.probes import Probes
from tests.rtl.network.dirty import simulate
from tests.support import made

NODES, WRAP = 5, (1 << 32) - 700


class Run:
    """Waiting, packets and losses at random; the probes are compared with a model of periods."""

    def __init__(self, seed: int, *, after: int, node: int, nodes: int, stall: float, start: int,
                 jumps: bool):
        self.dut, self.rng = made(Probes, NODES), random.Random(seed)
        self.after, self.node, self.nodes = after, node, nodes
        self.stall, self.time, self.jumps = stall, start, jumps
        self.sent: list[int] = []
        self.wanted: list[int] = []
        self.beats = self.jumped = 0

    async def drive(self, ctx):
        dut, rng = self.dut, self.rng
        for name in ("after", "node", "nodes"):
            ctx.set(getattr(dut, name), getattr(self, name))
        waiting, lost, heard = False, 0, set()
        until = None  # the end of the period
        change = 0
        for cycle in range(3000):
            if cycle == change:
                waiting = not waiting
                change = cycle + rng.choice((60, 400, 700))
                lost = rng.getrandbits(NODES) if rng.random() < 0.5 else 0
            came, source = rng.random() < 0.01, rng.randrange(NODES)
            ctx.set(dut.waiting, waiting)
            ctx.set(dut.lost, lost)
            ctx.set(dut.came, {"valid": int(came), "node": source})
            ctx.set(dut.time, self.time & 0xFFFFFFFF)
            idle, waits, deadline = await self._tick(ctx, self.stall)
            if not waiting:
                until, heard = None, set()
            elif until is None:
                until = self.time + self.after
            else:
                if self.time > until:
                    self.wanted += [k for k in range(self.nodes) if k != self.node
                                    and not lost >> k & 1 and k not in heard]
                    until, heard = self.time + self.after, set()
                if came:
                    heard.add(source)
            if self.jumps and idle and waits and waiting:
                assert until is not None and deadline == until & 0xFFFFFFFF
                self.jumped += until - self.time > 1
                self.time = max(self.time + 1, until)
            else:
                self.time += 1
        ctx.set(dut.waiting, 0)
        for _ in range(40):
            idle, waits, _deadline = await self._tick(ctx, 0.0)
        assert idle and not waits
        assert ctx.get(dut.counters.sent) == len(self.sent) == self.beats

    async def _tick(self, ctx, stall):
        """Run a cycle and record a probe; return the time outputs of the block."""
        dut = self.dut
        header, payload = (self.rng.random() >= stall for _ in range(2))
        ctx.set(dut.headers.ready, header)
        ctx.set(dut.payload.ready, payload)
        *_, head, info, beats, beat, idle, waits, deadline = await ctx.tick().sample(
            dut.headers.valid, dut.headers.payload, dut.payload.valid, dut.payload.payload,
            dut.idle, dut.waits, dut.deadline)
        assert not (idle and (head or beats))
        if head and header:
            assert (info.opcode, info.count, info.empty) == (Opcode.PROBE, 8, 0)
            self.sent.append(info.destination)
        if beats and payload:
            assert (beat.data, beat.last) == (0, 1)
            self.beats += 1
        return idle, waits, deadline


@pytest.mark.parametrize("stall", [0.0, 0.5])
@pytest.mark.parametrize("jumps", [False, True])
@pytest.mark.parametrize("node, nodes", [(0, NODES), (3, 4), (1, 2)])
def test_silent_peers_are_probed(node, nodes, jumps, stall):
    run = Run(node, after=150 if stall else 37, node=node, nodes=nodes, stall=stall, start=WRAP,
              jumps=jumps)
    simulate(run.dut, run.drive)
    assert run.sent == run.wanted and len(run.sent) > 2
    assert bool(run.jumped) == jumps


def test_without_silence_or_waiting_there_is_no_probe():
    dut = made(Probes, NODES)

    async def bench(ctx):
        ctx.set(dut.after, 20)
        ctx.set(dut.nodes, 3)
        ctx.set(dut.node, 1)
        for waiting in (1, 0):
            ctx.set(dut.waiting, waiting)
            for time in range(200):
                ctx.set(dut.time, time)
                ctx.set(dut.came, {"valid": int(waiting and time % 10 < 2),
                                   "node": 2 * (time % 10)})
                assert not ctx.get(dut.headers.valid)
                await ctx.tick()
        assert ctx.get(dut.idle) and not ctx.get(dut.waits)

    simulate(dut, bench)


def test_latency():
    """From the end of a period to the header for each node."""
    dut, seen = made(Probes, NODES), {}

    async def bench(ctx):
        ctx.set(dut.after, 20)
        ctx.set(dut.nodes, NODES)
        ctx.set(dut.node, 2)
        ctx.set(dut.waiting, 1)
        ctx.set(dut.headers.ready, 1)
        ctx.set(dut.payload.ready, 1)
        for time in range(40):
            ctx.set(dut.time, time)
            *_, valid, info = await ctx.tick().sample(dut.headers.valid, dut.headers.payload)
            if valid:
                seen[info.destination] = time - 20

    simulate(dut, bench)
    wanted, = Probes.LATENCY.values()
    assert seen == {k: eval(wanted, {"k": k}) for k in (0, 1, 3, 4)}
