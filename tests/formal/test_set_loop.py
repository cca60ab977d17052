"""Proof of the set loop, without bound: its outputs are the set after all earlier decisions.

There are two sets of two ways and two key bits; decisions are free. Labels, and bits of ways and of
a set, have one bit.
"""

import pytest
from amaranth.hdl import C, Cat, Mux, Signal
from amaranth.lib import data

from rtl.keys.set_loop import SetLoop
from tests.formal.bench import Bench
from tests.formal.prove import prove
from tests.mutants import variant

KEY_BITS, WAYS = 2, 2
WINDOW = 4


def looped(sets: int, *edits: tuple[str, str]) -> Bench:
    """Return a bench with a model of the sets beside the loop, changed by ``after``."""
    bench = Bench()
    m = bench.m
    m.submodules.dut = dut = variant(SetLoop, *edits)(
        KEY_BITS, data.StructLayout({"writes": 1, "looks": 1}), sets=2, ways=WAYS,
        # The lowest bit of a key is its set.
        hash_key=lambda key: Cat(C(0, 31), key[0] if sets == 2 else C(0, 1)), way=1, state_bits=1,
        label_bits=1, style="lutram")
    sweep = Signal(2)
    m.d.sync += sweep.eq(Mux(sweep == 3, 3, sweep + 1))
    looks, writes = bench.free(name="looks"), bench.free(name="writes")
    m.d.comb += [
        dut.limit.eq(2), dut.clear.eq(sweep < 2), dut.clear_address.eq(sweep),
        dut.i.valid.eq(bench.free(name="valid") & (sweep == 3)), dut.i.key.eq(bench.free(2, "key")),
        dut.i.looks.eq(looks), dut.i.writes.eq(writes), dut.i.context.looks.eq(looks),
        dut.i.context.writes.eq(writes), dut.label.eq(bench.free(name="label")),
        dut.after.placed.eq(bench.free(WAYS, "placed")), Cat(dut.after.bits).eq(
            bench.free(WAYS, "bits")), dut.after.state.eq(bench.free(name="state"))]

    # Key and set of the current lookup; ages of ways, in lookups of their set.
    queue = [Signal(KEY_BITS, name=f"key{k}") for k in range(5)]
    m.d.sync += [queue[0].eq(dut.i.key), *(new.eq(old) for new, old in zip(queue[1:], queue))]
    key, now, after = queue[4], dut.now, dut.after
    number = key[0] if sets == 2 else C(0, 1)
    way = data.StructLayout({"held": 1, "key": KEY_BITS, "bit": 1, "age": range(WINDOW + 1)})
    rows = [[Signal(way, name=f"row{s}{w}") for w in range(WAYS)] for s in range(2)]
    labels = [[Signal(name=f"label{s}{w}") for w in range(WAYS)] for s in range(2)]
    states = [Signal(name=f"state{s}") for s in range(2)]
    shown, may = [], []
    changes = now.valid & now.context.writes
    for s in range(2):
        of = number == s
        for w, row in enumerate(rows[s]):
            match = now.context.looks & row.held & (row.key == key)
            shown.append(~(now.valid & of) | (
                (now.held[w] == row.held) & (now.match[w] == match) & (now.bits[w] == row.bit)))
            may.append(~(changes & of & after.placed[w]) | (row.age == 0))
            with m.If(now.valid & of & (row.age != 0)):
                m.d.sync += row.age.eq(row.age - 1)
            with m.If(changes & of):
                m.d.sync += row.bit.eq(after.bits[w])
                with m.If(after.placed[w]):
                    m.d.sync += [row.held.eq(1), row.key.eq(key), row.age.eq(WINDOW)]
        shown.append(~(now.valid & of) | (now.state == states[s]))
        with m.If(changes & of):
            m.d.sync += states[s].eq(after.state)
    # At most one way has a key, and is placed: the way with the key, or any way if none has it.
    bench.assume(*may, ~changes | (after.placed == 0) | (after.placed == 1) | (after.placed == 2),
                 ~changes | (after.placed == 0) | Mux(Bench.any_of(
                     (number == s) & row.held & (row.key == key) for s in range(2)
                     for row in rows[s]), Bench.any_of(
                         (number == s) & row.held & (row.key == key) & after.placed[w]
                         for s in range(2) for w, row in enumerate(rows[s])), 1))
    bench.always("shown", Cat(shown).all())

    # One cycle later: labels, which are assigned then.
    was, of_way = Signal(2), Signal(len(dut.o.match))
    m.d.sync += [was.eq(number), of_way.eq(now.match)]
    kept = Bench.any_of((was == s) & of_way[w] & labels[s][w]
                        for s in range(2) for w in range(WAYS))
    bench.always("label", ~dut.o.valid | (dut.o.match == 0) | (dut.o.label == kept))
    for s in range(2):
        for w in range(WAYS):
            with m.If(dut.o.valid & (was == s) & dut.o.placed[w]):
                m.d.sync += labels[s][w].eq(dut.label)
    bench.always("idle", ~dut.idle | ~(now.valid | dut.o.valid))
    return bench


@pytest.mark.thorough
@pytest.mark.parametrize("sets", [1, 2])
def test_set_loop(sets):
    verdict = prove(looped(sets))
    assert verdict.holds, verdict


@pytest.mark.few(3)
@pytest.mark.parametrize("sets, wrong, old, new", [
    (1, "shown", "looks[4] & same_key[1],\n", "looks[4],\n"),
    (1, "shown", "looks[4] & same_key[1],\n", "0,\n"),
    (1, "shown", "line.eq(Mux(same_set[1], decided, upcoming))", "line.eq(upcoming)"),
    (1, "shown", "for k in reversed(behind[1:]):", "for k in behind[1:]:"),
    (1, "shown", "for k in reversed(behind[1:]):", "for k in reversed(behind[1:3]):"),
    (1, "shown", "over = [same_set[k] & placed[4 + k][w] for k in behind[1:]]", "over = []"),
    (2, "shown", "(set_[3] == set_[3 + k]) & writes[3 + k]", "writes[3 + k]"),
    (1, "shown", "(set_[3] == set_[3 + k]) & writes[3 + k]", "set_[3] == set_[3 + k]"),
    (1, "shown", "WINDOW = 4", "WINDOW = 3"),
    (1, "label", "kept.eq(Mux(any_of(newer), 0, match[5]))", "kept.eq(match[5])"),
    (1, "label", "passed[k].eq(newer[k - 1])", "passed[k].eq(0)"),
], ids=["any-key", "not-the-last-key", "old-set", "oldest-first", "not-the-fourth", "key-before",
        "of-any-set", "though-it-writes-not", "window", "label-before", "no-label"])
def test_broken_set_loop(sets, wrong, old, new):
    verdict = prove(looped(sets, (old, new)))
    assert wrong in verdict.broken, verdict
