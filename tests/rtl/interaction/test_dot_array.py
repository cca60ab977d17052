"""DotArray: dots of any pairs of the ring, the sums over slices, and their accompanying data."""

import numpy as np
import pytest
from amaranth.hdl import Value

from host.dlrm.interaction import dot_interaction
from rtl.config import preset
from rtl.interaction.dot_array import DotArray
from rtl.interaction.dot_schedule import REUSE, group_count
from rtl.interaction.slices import ring_depth
from tests.rtl.float.cases import canonical, random_vectors
from tests.rtl.float.test_dot import recoded_slices
from tests.rtl.power_up import powered_up
from tests.support import made, simulate

UNITS, VECTORS, LANES = 3, 5, 16


def dot(a: np.ndarray, b: np.ndarray) -> int:
    """Return the dot product of two vectors of uint32, by the host's model."""
    with np.errstate(all="ignore"):
        whole = dot_interaction(a.view(np.float32)[None], b.view(np.float32)[None, None])
    return int(canonical(np.ascontiguousarray(whole[:, len(a)]))[0])


def run(groups: list, vectors: np.ndarray, config, seed: int) -> list:
    """Write the slices of ``vectors`` to the ring, send ``groups``, and return the output and the
    cycles in which each was sent.

    A group is a cycle, its fields, and the places of its pairs.
    """
    dut = made(DotArray, config)
    words = recoded_slices(vectors)
    came, latency = [], DotArray.latency(config)

    async def bench(ctx):
        # Data follow one cycle after their address.
        for place, word in enumerate([0, *words]):
            ctx.set(dut.write_en, place < len(words))
            ctx.set(dut.write_addr, place % ring_depth(config))
            ctx.set(dut.write_data, word)
            await ctx.tick()
        for _ in range(3):
            await ctx.tick()
        due = {cycle: (group, pairs) for cycle, group, pairs in groups}
        for cycle in range(max(due) + latency + 2):
            # The places precede their group by one cycle.
            _, pairs = due.get(cycle + 1, (None, [(0, 0)] * UNITS))
            for unit, (row, column) in enumerate(pairs):
                ctx.set(dut.rows[unit], row)
                ctx.set(dut.columns[unit], column)
            ctx.set(dut.valid, cycle in due)
            if cycle in due:
                ctx.set(dut.group, due[cycle][0])
            if ctx.get(dut.o_valid):
                dots = ctx.get(dut.dots)
                came.append((cycle - latency, ctx.get(Value.cast(dut.o_group)),
                             [dots >> 32 * unit & 0xFFFFFFFF for unit in range(UNITS)]))
                assert not ctx.get(dut.idle)
            await ctx.tick()
        assert ctx.get(dut.idle)

    simulate(powered_up(dut, seed), bench)
    return came


@pytest.mark.thorough
@pytest.mark.parametrize("dimension", [16, 32])
def test_dots_of_groups(dimension):
    """Groups in any order of pairs, with gaps and without; with two slices, the first of a pair's
    sums is at least REUSE cycles before the second."""
    config = preset("tiny").with_fields(
        interaction_vectors=VECTORS, max_dimension=dimension, dot_units=UNITS)
    slices, rng = dimension // LANES, np.random.default_rng(dimension)
    vectors = np.concatenate(random_vectors(VECTORS, dimension, dimension))[:VECTORS]
    groups, right, cycle = [], [], 1
    numbers = min(group_count(config), REUSE)
    for turn in range(8):
        pairs = rng.integers(0, VECTORS, (numbers, UNITS, 2))
        for part in range(slices):
            for number in range(numbers):
                group = {"number": number, "first": int(part == 0),
                         "keep": int(part < slices - 1), "count": int(rng.integers(17)),
                         "fill": int(rng.integers(16)), "emit": int(rng.integers(2)),
                         "last": int(rng.integers(2))}
                groups.append((cycle, group, [
                    (slices * row + part, slices * column + part)
                    for row, column in pairs[number].tolist()]))
                end = LANES * (part + 1)
                right.append((cycle, group, [dot(vectors[row][:end], vectors[column][:end])
                                             for row, column in pairs[number]]))
                cycle += 1 if turn % 2 else int(rng.integers(1, 4))
            cycle += REUSE - numbers
    came = run(groups, vectors, config, dimension)
    layout = made(DotArray, config).group.shape()
    assert came == [(at, layout.const(group).as_value().value, dots)
                    for at, group, dots in right]
