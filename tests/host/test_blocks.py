"""Row blocks: models, samples, rows and sums against loops over the whole tables."""

from dataclasses import replace

import numpy as np
import pytest

from host.data.generator import generate
from host.dlrm.dlrm import Dlrm, divided, pooled_reference
from host.dlrm.interaction import added_blocks
from host.dlrm.rows import row_values
from host.model import (
    Model,
    are_slices,
    blocks_text,
    columns_of,
    columns_text,
    rows_of_block,
    sliced,
    table_label,
    with_blocks,
    with_columns,
    without_blocks,
)
from host.samples import Samples

WHOLE = Model((10, 50, 700), 32, 3, (8, 32), (5, 1), "whole", ((0, 3), (1, 9), (0, 20)),
              interaction="cat", dimensions=(32, 10, 16), weighted_tables=(1,))
BLOCKS = with_blocks(WHOLE, {0: 4, 2: 3})


@pytest.fixture(scope="module")
def samples() -> Samples:
    return next(generate(WHOLE, 40, 1))


def test_blocks_replace_their_table():
    """10 rows over 4 are 3, 3, 3 and 1, as in TorchRec."""
    assert BLOCKS.originals == (0, 0, 0, 0, 1, 2, 2, 2)
    assert BLOCKS.rows == (3, 3, 3, 1, 50, 234, 234, 232)
    assert BLOCKS.first_rows == (0, 3, 6, 9, 0, 0, 234, 468)
    assert BLOCKS.dimensions == (32,) * 4 + (10,) + (16,) * 3
    assert BLOCKS.weighted_tables == (4,)
    assert BLOCKS.interaction_width == WHOLE.interaction_width == 32 + 58
    assert BLOCKS.mlp_parameters == WHOLE.mlp_parameters
    assert are_slices(BLOCKS).tolist() == [True] * 4 + [False] + [True] * 3
    assert [rows_of_block(BLOCKS, table) for table in (3, 4, 6)] == [(9, 9), None, (234, 467)]
    assert [table_label(BLOCKS, table) for table in (4, 6)] == ["1", "2, rows 234 to 467"]
    assert blocks_text(BLOCKS) == "0:4,2:3" and columns_text(BLOCKS) is None
    assert columns_of(BLOCKS, 0) is None and blocks_text(WHOLE) is None
    assert blocks_text(with_columns(WHOLE, {0: 16}, 16)) is None
    assert without_blocks(BLOCKS) == WHOLE == without_blocks(WHOLE)
    assert with_blocks(replace(WHOLE, rows=(5, 50, 700)), {0: 4}).rows[:4] == (2, 2, 1, 50)
    part = BLOCKS.with_tables([1, 4, 7], "part")
    assert part.first_rows == (3, 0, 468) and part.rows == (3, 50, 232)


def test_each_block_has_the_keys_of_its_rows(samples):
    parts, at = sliced(samples, BLOCKS), 0
    assert samples.weights is not None and parts.weights is not None
    for number, lengths in enumerate(samples.bag_lengths.tolist()):
        starts = samples.bag_offsets[3 * number:]
        for table, original in enumerate(BLOCKS.originals):
            first, count = BLOCKS.first_rows[table], BLOCKS.rows[table]
            keys = range(starts[original], starts[original] + lengths[original])
            mine = [key for key in keys if first <= samples.rows[key] < first + count]
            assert parts.bag_lengths[number, table] == len(mine)
            here = slice(at, at + len(mine))
            assert (parts.tables[here] == table).all()
            assert parts.rows[here].tolist() == [samples.rows[key] - first for key in mine]
            assert parts.weights[here].tolist() == [samples.weights[key] for key in mine]
            at += len(mine)
    assert at == len(parts.rows) == len(samples.rows)


def test_rows_are_rows_of_the_table():
    for table, (original, first) in enumerate(zip(BLOCKS.originals, BLOCKS.first_rows)):
        rows = np.arange(BLOCKS.rows[table])
        whole = row_values(WHOLE, 7, np.full(len(rows), original), rows + first)
        assert row_values(BLOCKS, 7, np.full(len(rows), table), rows).tobytes() == whole.tobytes()


def test_the_vector_of_a_bag_is_the_sum_of_its_blocks_in_order(samples):
    parts = sliced(samples, BLOCKS)
    vectors = added_blocks(BLOCKS, pooled_reference(parts, BLOCKS, 3))
    different = 0
    whole = pooled_reference(samples, WHOLE, 3)
    for number, lengths in enumerate(samples.bag_lengths.tolist()):
        starts = samples.bag_offsets[3 * number:]
        for table in (0, 2):
            total = None
            for block, original in enumerate(BLOCKS.originals):
                if original != table:
                    continue
                first, partial = BLOCKS.first_rows[block], np.zeros(32, np.float32)
                for key in range(starts[table], starts[table] + lengths[table]):
                    row = int(samples.rows[key])
                    if first <= row < first + BLOCKS.rows[block]:
                        partial = partial + row_values(WHOLE, 3, np.array([table]),
                                                       np.array([row]))[0]
                total = partial if total is None else total + partial
            assert (vectors[number, table] == total).all()
            different += int((total != whole[number, table]).any())
        assert (vectors[number, 1] == whole[number, 1]).all()
    assert different > 5  # the order of additions is another
    assert np.allclose(vectors, whole, rtol=0, atol=1e-6)


@pytest.mark.parametrize("means", [{"pooling": "mean"}, {"poolings": ("sum", "sum", "mean")}])
def test_the_mean_of_a_bag_is_the_sum_of_its_parts(samples, means):
    whole = replace(WHOLE, weighted_tables=(), **means)
    samples, parts = replace(samples, weights=None), with_blocks(whole, {2: 3})
    assert without_blocks(parts) == whole and parts.nic_pooling == "sum"
    split = sliced(samples, parts)
    sums = pooled_reference(split, parts, 3)
    found = added_blocks(parts, divided(parts, sums, split.bag_lengths))
    for number, lengths in enumerate(samples.bag_lengths.tolist()):
        count = np.float32(max(1, lengths[2]))
        first, second, third = (sums[number, table] / count for table in (2, 3, 4))
        assert (found[number, 2] == first + second + third).all()
    assert np.allclose(Dlrm(parts, 3).forward(split), Dlrm(whole, 3).forward(samples),
                       rtol=0, atol=1e-5)


@pytest.mark.parametrize("interaction", ["cat", "dot"])
def test_predictions_are_near_those_of_whole_tables(samples, interaction):
    model = replace(WHOLE, interaction=interaction, dimensions=() if interaction == "dot" else
                    WHOLE.dimensions)
    parts = with_blocks(model, {0: 4, 2: 3})
    found = Dlrm(parts, 3).forward(sliced(samples, parts))
    assert np.allclose(found, Dlrm(model, 3).forward(samples), rtol=0, atol=1e-5)


@pytest.mark.parametrize(("model", "counts", "message"), [
    (WHOLE, {3: 2}, "blocks must name tables 0 to 2, not 3"),
    (WHOLE, {0: 11}, "blocks of table 0 must be between 1 and 10, its rows, not 11"),
    (WHOLE, {0: 0}, "blocks of table 0 must be between 1 and 10, its rows, not 0")])
def test_blocks_that_cannot_be(model, counts, message):
    with pytest.raises(ValueError, match=message):
        with_blocks(model, counts)
