"""Report queue: one report per block, when it is due, and no report is lost."""

import random

import pytest

from rtl.network.link.report_queue import ReportQueue
from tests.rtl.network.dirty import simulate
from tests.support import made

BLOCKS = 8


class Run:
    """Events at random, and reports that are taken at random; time may jump."""

    def __init__(self, nodes, seed, *, delay, events, stall, jumps):
        self.dut, self.rng = made(ReportQueue, nodes), random.Random(seed)
        self.nodes, self.delay, self.events, self.stall = nodes, delay, events, stall
        self.jumps, self.jumped = jumps, 0
        self.waiting, self.forced, self.reports, self.offered = {}, set(), 0, None

    async def drive(self, ctx):
        dut, rng, time, quiet = self.dut, self.rng, 0, 0
        ctx.set(dut.delay, self.delay)
        for clearing in range(self.nodes * BLOCKS):
            ctx.set(dut.clearing, clearing)
            await ctx.tick()
        ctx.set(dut.ready, 1)
        left = self.events
        while left or not ctx.get(dut.idle) or ctx.get(dut.waits):
            came = quiet > 0 and left and rng.random() < 0.3
            event = {"valid": int(came), "node": rng.randrange(self.nodes),
                     "block": rng.randrange(rng.choice((2, BLOCKS))),
                     "duplicate": int(rng.random() < 0.2)}
            quiet = 0 if came else quiet + 1
            ready = rng.random() >= self.stall
            ctx.set(dut.came, event)
            ctx.set(dut.reports.ready, ready)
            ctx.set(dut.time, time)
            *_, valid, report, idle = await ctx.tick().sample(
                dut.reports.valid, dut.reports.payload, dut.idle)
            assert not (idle and (came or valid))
            if valid and self.offered is None:
                self.offered = time
            if valid and ready:
                self.reports += 1
                key = report.node, report.block
                assert time >= self.waiting[key][0] + self.delay, "too early"
                late = time - self.waiting[key][0] - self.delay
                assert self.stall or late <= 2 * self.nodes * BLOCKS + 6
                self.waiting[key] = [each for each in self.waiting[key] if each >= self.offered]
                self.offered = None
                if not self.waiting[key]:
                    del self.waiting[key]
                if report.forced:
                    self.forced.discard(report.node)
            if came:
                left -= 1
                key = event["node"], event["block"]
                self.waiting.setdefault(key, []).append(time)
                if event["duplicate"]:
                    self.forced.add(event["node"])
            time += 1
            ctx.set(dut.time, time)
            ctx.set(dut.came.valid, 0)
            if self.jumps and ctx.get(dut.idle) and ctx.get(dut.waits):
                passed = rng.randrange(ctx.get(dut.deadline) - time + 1)
                time += passed
                quiet = 0
                self.jumped += passed


@pytest.mark.parametrize("nodes, delay, stall, jumps", [
    (2, 30, 0.0, False), (3, 0, 0.5, False), (5, 200, 0.2, True), (1, 500, 0.9, True)])
def test_each_block_is_reported(nodes, delay, stall, jumps):
    run = Run(nodes, delay, delay=delay, events=300, stall=stall, jumps=jumps)
    simulate(run.dut, run.drive)
    # A report of its block follows every event, and a forced one every duplicate.
    assert not run.forced and not run.waiting and run.reports <= 300
    assert run.jumped > 100 or not jumps


def test_one_report_of_many_events():
    dut, reports = made(ReportQueue, 2), []

    async def bench(ctx):
        for clearing in range(16):
            ctx.set(dut.clearing, clearing)
            await ctx.tick()
        ctx.set(dut.ready, 1)
        ctx.set(dut.delay, 50)
        ctx.set(dut.reports.ready, 1)
        for time in range(200):
            ctx.set(dut.time, time)
            ctx.set(dut.came, {"valid": int(time < 40 and time % 2 == 1), "node": 1, "block": 3,
                               "duplicate": int(time == 9)})
            *_, valid, report = await ctx.tick().sample(dut.reports.valid, dut.reports.payload)
            if valid:
                reports.append((time, report.node, report.block, report.forced))

    simulate(dut, bench)
    latency = ReportQueue.LATENCY["event", "its report, beside a delay of 3 or more"]
    assert reports == [(51 + latency, 1, 3, 1)]
