"""Gradient sender: destination of each beat, counts, and the announced end of a step."""

import random

import pytest

from rtl.config import preset
from rtl.formats import StepKind
from rtl.gradient import GradientSender
from tests.rtl.descriptors import COLUMN, REPLICATED, ROW, TABLE, Table, descriptor_writer, split
from tests.rtl.network.dirty import simulate
from tests.support import counts_of, made, receiver, sender

CONFIG = preset("tiny").with_fields(nodes=4, tables=8)
TABLES = {0: Table(TABLE, owner=1), 1: Table(ROW, owner=0, owners=3, rows=5000),
          2: Table(REPLICATED), 3: Table(TABLE, owner=2, rows=(1 << 36) - 1), 4: Table(COLUMN),
          5: Table(TABLE, owner=3), 6: Table(ROW, owner=1, owners=2, rows=1 << 20)}
BAD = {2, 4, 5, 7}
"""Of 3 nodes there is no number 3."""
OUTPUTS = "own", "remote", "spilled", "own_end", "steps", "reports"


def make_beat(rng, step, bad=0.1):
    table = rng.choice(sorted(BAD)) if rng.random() < bad else rng.choice([0, 1, 1, 3, 6])
    rows = TABLES[table].rows if table in TABLES else 100
    return {"key": {"table": table, "row": rng.randrange(rows)}, "beat": rng.getrandbits(4),
            "step": step, "data": rng.getrandbits(512)}


def make_passes(rng, steps, most, rounded):
    """Return [(terms, passed, whether the step is over)]. With ``rounded``, another pass follows a
    pass that passes beats on."""
    passes = []
    for number in range(steps):
        step = (0xFFFE + number) & 0xFFFF
        for left in reversed(range(rng.randrange(1, 4) if rounded else 1)):
            spilled = rng.randrange(1, most) if left or not rounded else 0
            passes.append(([make_beat(rng, step) for _ in range(rng.randrange(most))],
                           [make_beat(rng, step) for _ in range(spilled)], step, not left))
    return passes


def _data(beat):
    return beat["data"]


def outgoing(beat, destination):
    return {"destination": destination, "step": beat["step"], "data": beat["data"],
            "record": {**beat["key"], "beat": beat["beat"], "level": 0, "reserved": 0}}


def expected(passes, node, nodes, rounded):
    """Return the expected output of each port, and the number of beats without an owner."""
    out, counts, bad = {name: [] for name in OUTPUTS}, [0] * nodes, 0
    for terms, passed, step, over in passes:
        out["spilled"] += [outgoing(beat, 0) for beat in passed if rounded]
        for beat in terms + ([] if rounded else passed):
            owner, status = split(TABLES, beat["key"]["table"], beat["key"]["row"], node, nodes,
                                  False)
            if status:
                bad += 1
                continue
            counts[owner] += 1
            out["own" if owner == node else "remote"].append(
                beat if owner == node else outgoing(beat, owner))
        spilled = len(passed) if rounded else 0
        out["reports"].append({"destination": 0, "step": step,
                               "record": StepKind.PASSED << 32 | spilled})
        if over:
            out["own_end"].append({"step": step, "count": counts[node]})
            out["steps"] += [{"destination": k, "step": step,
                              "record": StepKind.END << 32 | counts[k]}
                             for k in range(nodes) if k != node]
            counts = [0] * nodes
    return out, bad


def run(passes, node, nodes, rounded, *, gap=0.0, stall=0.0, background=(), config=CONFIG,
        tables=TABLES):
    """Model the local reduction; return (output of each port, counters)."""
    dut = made(GradientSender, config)
    want, _ = expected(passes, node, nodes, rounded)
    taken = {name: [] for name in OUTPUTS}
    turn, done, counters = [-1], [0], {}

    def feed(port, which, seed):
        async def bench(ctx):
            for number, one in enumerate(passes):
                while turn[0] != number:
                    await ctx.tick()
                await sender(port, one[which], stall=gap, seed=seed + number)(ctx)
                done[0] += 1
        return bench

    async def flush(ctx):
        ctx.set(dut.rounded, rounded)
        for number, (terms, passed, step, _) in enumerate(passes):
            done[0], turn[0] = 0, number
            while done[0] < 2:
                await ctx.tick()
            await sender(dut.flushed, [{"step": step, "keys": len(terms),
                                        "passed": len(passed)}])(ctx)
            # All beats of the pass have left before.
            upto, _ = expected(passes[:number + 1], node, nodes, rounded)
            assert ctx.get(dut.counters.own) == len(upto["own"])
            assert ctx.get(dut.counters.remote) == len(upto["remote"])
            assert ctx.get(dut.counters.spilled) == len(upto["spilled"])

    async def rest(ctx):
        while any(len(taken[name]) < len(want[name]) for name in OUTPUTS):
            await ctx.tick()
        await ctx.tick().repeat(20)
        assert ctx.get(dut.idle)
        counters.update(counts_of(ctx, dut.counters))

    # The flush is last, to see in the same cycle that all beats were taken.
    simulate(
        dut, feed(dut.terms, 0, 100), feed(dut.passed, 1, 500),
        descriptor_writer(dut, tables, node, nodes, flush), rest, background=[
            receiver(getattr(dut, name), taken[name], 1 << 30, stall=stall, seed=k)
            for k, name in enumerate(OUTPUTS)] + [make(dut) for make in background])
    return taken, counters


@pytest.mark.few(2)
@pytest.mark.parametrize("node,nodes,rounded,gap,stall", [
    (1, 3, 0, 0.0, 0.0), (1, 3, 0, 0.3, 0.5), (2, 3, 1, 0.2, 0.4), (0, 3, 1, 0.0, 0.0)])
def test_each_beat_to_its_owner(node, nodes, rounded, gap, stall):
    rng = random.Random(node)
    passes = make_passes(rng, 6, 40, rounded)
    taken, counters = run(passes, node, nodes, rounded, gap=gap, stall=stall)
    want, bad = expected(passes, node, nodes, rounded)
    for name in ("own", "remote"):  # sums and passed-on beats leave in any order
        assert sorted(taken[name], key=_data) == sorted(want[name], key=_data)
    for name in ("spilled", "own_end", "steps", "reports"):
        assert taken[name] == want[name]
    assert {name: counters[name] for name in ("own", "remote", "spilled", "bad")} == {
        **{name: len(want[name]) for name in ("own", "remote", "spilled")}, "bad": bad}
    assert counters["passes"] == len(passes) and counters["ends"] == 6
    assert bool(counters["stall_own"] + counters["stall_remote"]) == bool(stall)


def test_order_of_one_stream_is_kept():
    rng = random.Random(5)
    passes = [([make_beat(rng, 7) for _ in range(80)], [], 7, True)]
    taken, _ = run(passes, 1, 3, 0, gap=0.1, stall=0.4)
    assert taken == expected(passes, 1, 3, 0)[0]


@pytest.mark.parametrize("rounded", [0, 1])
def test_flush_right_behind_a_beat(rounded):
    """A beat that has only just been taken is waited for."""
    rng = random.Random(9)
    passes = []
    for step in range(6):
        beats = [make_beat(rng, step, bad=0)]
        passes.append(([], beats, step, False) if step % 2 and rounded else
                      (beats, [], step, True) if step % 2 else ([], [], step, True))
        if not passes[-1][3]:
            passes.append(([], [], step, True))
        elif not rounded:
            passes.append(([], beats, step, True))
    taken, _ = run(passes, 1, 3, rounded)
    assert taken == expected(passes, 1, 3, rounded)[0]


def test_counts_are_clear_before_the_first_beat():
    """More nodes than descriptors: the sweep of the counts is the longer one."""
    beats = [beat for beat in (make_beat(random.Random(k), 1) for k in range(60))
             if beat["key"]["table"] == 0]
    passes = [(beats, [], 1, True)]
    taken, _ = run(passes, 1, 16, 0, config=CONFIG.with_fields(tables=1, nodes=16, lookup_beats=64),
                   tables={0: TABLES[0]})
    assert taken == expected(passes, 1, 16, 0)[0]


@pytest.mark.parametrize("which", [0, 1])
def test_rate_and_latency(which):
    """A beat a cycle, 7 cycles behind, or 6; the report 2 cycles after the flush, the ENDs from 3
    on."""
    rng = random.Random(which)
    beats = [make_beat(rng, 3, bad=0) for _ in range(150)]
    at = {}

    def watch(dut):
        async def bench(ctx):
            cycle, before = 0, {}
            async for *_, come, gone, flushed, report, end in ctx.tick().sample(
                    (dut.terms if which == 0 else dut.passed).valid,
                    dut.own.valid | dut.remote.valid,
                    dut.flushed.valid, dut.reports.valid, dut.steps.valid):
                cycle += 1
                for name, here in (("come", come), ("gone", gone), ("flushed", flushed),
                                   ("report", report), ("end", end)):
                    if here:
                        at.setdefault(name, cycle)
                        at["last_" + name] = cycle
                        if not before.get(name):
                            at["again_" + name] = cycle
                    before[name] = here
        return bench

    passes = [(beats, [], 3, True) if which == 0 else ([], beats, 3, True),
              ([], [], 4, True)]
    run(passes, 2, 3, 0, background=[watch])
    assert at["last_come"] - at["come"] == 149 == at["last_gone"] - at["gone"]
    assert at["gone"] - at["come"] == (7, 6)[which]
    # The pipeline of the first step is still full when its flush arrives; the block waits for it.
    assert at["flushed"] <= at["last_gone"] < at["report"]
    assert at["end"] == at["report"] + 1
    # The second step is empty.
    assert at["again_report"] == at["again_flushed"] + 2
    assert at["again_end"] == at["again_flushed"] + 3


def test_rate_and_latency_of_what_is_spilled():
    """A beat a cycle, a cycle behind."""
    rng, come, gone = random.Random(2), [], []
    beats = [make_beat(rng, 3) for _ in range(100)]

    def watch(dut):
        async def bench(ctx):
            cycle = 0
            async for *_, here, there in ctx.tick().sample(dut.passed.valid, dut.spilled.valid):
                cycle += 1
                come.extend([cycle] * here)
                gone.extend([cycle] * there)
        return bench

    run([([], beats, 3, False)], 1, 3, 1, background=[watch])
    assert gone == [cycle + 1 for cycle in come] == list(range(come[0] + 1, come[0] + 101))


def test_config_is_checked():
    with pytest.raises(TypeError, match="config must be a NicConfig, not 'tiny'"):
        GradientSender("tiny")
