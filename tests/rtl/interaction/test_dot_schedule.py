"""DotSchedule: when each pair is multiplied, and the use of its dots."""

import random

import pytest

from rtl.config import preset
from rtl.interaction.dot_schedule import REUSE, DotSchedule
from rtl.interaction.pairs import pair, pair_count
from rtl.interaction.slices import ring_depth
from tests.rtl.power_up import powered_up
from tests.support import made, sender, simulate

MOST, UNITS = 32, 3


def slices_of(sizes, itself):
    """Return the loader's announcements for samples of ``sizes``, pairs of vectors and slices."""
    return [{"vectors": vectors, "pairs": pair_count(vectors, itself=itself),
             "first": int(k == 0), "final": int(k == slices - 1)}
            for vectors, slices in sizes for k in range(slices)]


def run(sizes, *, itself=0, room=4, stall=0.0, leave=1.0, seed=0):
    """Return the groups, each with its cycle and places, the released numbers, and the cycles."""
    config = preset("tiny").with_fields(
        interaction_vectors=MOST, dot_units=UNITS, max_dimension=48)
    dut = made(DotSchedule, config, room)
    announced = slices_of(sizes, itself)
    groups, released, rng = [], [], random.Random(seed)

    async def watch(ctx):
        ctx.set(dut.itself, itself)
        waiting, quiet, cycle, places = 0, 0, 0, None
        while quiet < 40:
            left = int(waiting > 0 and rng.random() < leave)
            ctx.set(dut.left, left)
            waiting -= left
            if ctx.get(dut.valid):
                group = {name: ctx.get(dut.group[name]) for name in dut.group.shape().members}
                groups.append((cycle, group, places))
                waiting += group["emit"]
                # The room made by a beat of this cycle is available from the next one on.
                assert waiting + left <= room
            if number := ctx.get(dut.released):
                released.append(number)
            places = [(ctx.get(dut.rows[k]), ctx.get(dut.columns[k])) for k in range(UNITS)]
            quiet = quiet + 1 if ctx.get(dut.idle) else 0
            await ctx.tick()
            cycle += 1
        assert len(released) == len(announced)

    simulate(powered_up(dut, seed), sender(dut.slices, announced, stall=stall, seed=seed), watch)
    return config, groups, released


def expected(pairs, first, final):
    """Return the groups of a slice; a bare number is a wait of that many cycles."""
    groups, done, lane = [], 0, 0
    while done < pairs or not groups:
        some = min(UNITS, pairs - done)
        done += some
        group = {"number": len(groups), "first": first, "keep": int(some > 0 and not final),
                 "count": some if final else 0, "fill": lane, "emit": 0, "last": 0}
        if final:
            lane += some
            group["emit"] = int(lane >= 16 or (done == pairs and lane > 0))
            group["last"] = int(done == pairs and lane <= 16)
            over, lane = lane > 16, lane % 16
        groups.append(group)
    if final and over:
        # The rest of the dots ends a separate beat.
        groups.append({"number": len(groups), "first": first, "keep": 0, "count": 0, "fill": lane,
                       "emit": 1, "last": 1})
    return groups


CASES = [
    ([(2, 1), (13, 1), (1, 1), (32, 1), (12, 1), (1, 1), (3, 1)], 0),
    ([(11, 1), (2, 1), (1, 1), (6, 1), (13, 1)], 1),
    ([(3, 3), (1, 2), (13, 2), (2, 1), (7, 3), (2, 2)], 0),
    ([(4, 2), (1, 3), (9, 2)], 1)]
FLOWS = [(4, 0.0, 1.0), (1, 0.3, 0.2), (2, 0.0, 0.1)]


@pytest.mark.few(4)
@pytest.mark.parametrize("room, stall, leave", FLOWS)
@pytest.mark.parametrize("sizes, itself", CASES)
def test_pairs_and_beats(sizes, itself, room, stall, leave):
    config, groups, released = run(sizes, itself=itself, room=room, stall=stall, leave=leave)
    assert released == [vectors for vectors, slices in sizes for _ in range(slices)]
    # The first group of a slice is number 0.
    starts = [k for k, (_, group, _) in enumerate(groups) if not group["number"]]
    found = [groups[k:end] for k, end in zip(starts, [*starts[1:], None], strict=True)]
    depth, base = ring_depth(config), 0
    for item, taken in zip(slices_of(sizes, itself), found, strict=True):
        right = expected(item["pairs"], item["first"], item["final"])
        # A slice whose sums another slice adds to takes long enough to store them.
        assert len(taken) == (len(right) if item["final"] else max(len(right), REUSE))
        if item["first"]:
            cycles = {}
        for (cycle, group, places), wanted in zip(taken, right, strict=False):
            assert group | ({} if item["final"] else {"last": 0}) == wanted
            number = group["number"]
            some = min(UNITS, max(0, item["pairs"] - UNITS * number))
            for unit in range(some):
                row, column = pair(UNITS * number + unit)
                assert places[unit] == ((base + row - itself) % depth, (base + column) % depth)
            if some:
                assert cycle - cycles.get(number, -REUSE) >= REUSE
                cycles[number] = cycle
        assert not any(group["keep"] or group["emit"] for _, group, _ in taken[len(right):])
        base += item["vectors"]


def test_a_group_a_cycle_without_a_gap():
    sizes = [(13, 1), (12, 1), (6, 2), (13, 1)]
    _, groups, _ = run(sizes, room=64)
    assert groups[-1][0] - groups[0][0] == len(groups) - 1
