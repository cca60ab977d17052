"""Column slices: models, samples and rows against those of the whole tables."""

from dataclasses import replace

import numpy as np
import pytest

from host.data.generator import generate
from host.dlrm.dlrm import Dlrm
from host.dlrm.formats import in_lanes
from host.dlrm.rows import row_values
from host.model import (
    Model,
    are_slices,
    columns_of,
    columns_text,
    sliced,
    table_label,
    with_columns,
    without_columns,
)
from host.samples import Samples

WHOLE = Model((900, 50, 700), 96, 3, (8, 96), (5, 1), "whole", ((0, 3), (1, 9), (0, 2)),
              interaction="cat", dimensions=(96, 10, 64), poolings=("sum", "sum", "mean"),
              request_tables=(1, 2), requests=(4,))
SLICES = with_columns(WHOLE, {0: 32, 2: 16}, 16)


@pytest.fixture(scope="module")
def samples() -> Samples:
    return next(generate(WHOLE, 40, 1))


def test_slices_replace_their_table():
    assert SLICES.slices == (
        (0, 0), (0, 32), (0, 64), (1, 0), (2, 0), (2, 16), (2, 32), (2, 48))
    assert SLICES.originals == (0, 0, 0, 1, 2, 2, 2, 2) and WHOLE.originals == (0, 1, 2)
    assert SLICES.dimensions == (32, 32, 32, 10, 16, 16, 16, 16) and SLICES.width == 32
    assert SLICES.rows == (900,) * 3 + (50,) + (700,) * 4
    assert SLICES.bags[3:5] == ((1, 9), (0, 2)) and SLICES.poolings[3:5] == ("sum", "mean")
    assert SLICES.request_tables == (3, 4, 5, 6, 7)
    assert SLICES.interaction_width == WHOLE.interaction_width
    assert SLICES.mlp_parameters == WHOLE.mlp_parameters
    assert are_slices(SLICES).tolist() == [True] * 3 + [False] + [True] * 4
    assert not are_slices(WHOLE).any()
    assert [columns_of(SLICES, table) for table in (1, 3)] == [(32, 63), None]
    assert columns_text(SLICES) == "0:32,2:16" and columns_text(WHOLE) is None
    assert [table_label(SLICES, table) for table in (3, 5)] == ["1", "2, columns 16 to 31"]
    assert without_columns(SLICES) == WHOLE == without_columns(WHOLE)
    part = SLICES.with_tables([1, 3, 7], "part")
    assert part.slices == ((0, 32), (1, 0), (2, 48)) and part.dimensions == (32, 10, 16)


def test_a_slice_of_all_columns_is_the_table():
    whole = with_columns(WHOLE, {0: 96}, 16)
    assert whole.dimensions == WHOLE.dimensions and not are_slices(whole).any()


def test_dots_are_of_the_joined_slices():
    dots = replace(WHOLE, dimensions=(), interaction="dot")
    parts = with_columns(dots, {1: 48}, 16)
    assert parts.interaction_width == dots.interaction_width == 96 + 4 * 3 // 2
    assert parts.dot_vectors == 4 and without_columns(parts) == dots
    assert in_lanes(parts, "float16").dimensions == (48, 24, 24, 48)


def test_each_slice_has_the_bags_of_its_table(samples):
    cut = sliced(samples, SLICES)
    at = 0
    for number, lengths in enumerate(samples.bag_lengths.tolist()):
        first = samples.bag_offsets[3 * number:]
        for table, original in enumerate(SLICES.originals):
            length = lengths[original]
            assert cut.bag_lengths[number, table] == length
            assert (cut.tables[at:at + length] == table).all()
            assert cut.rows[at:at + length].tolist() == samples.rows[
                first[original]:first[original] + length].tolist()
            at += length
    assert at == len(cut.rows) > len(samples.rows)
    assert sliced(samples, WHOLE) is samples
    weighted = replace(samples, weights=np.arange(len(samples.rows), dtype=np.float32))
    assert (samples.rows[sliced(weighted, SLICES).weights.astype(int)] == cut.rows).all()


def test_rows_are_columns_of_the_rows_of_the_table():
    rows = np.arange(50)
    for table, (original, first) in enumerate(SLICES.slices):
        whole = row_values(WHOLE, 7, np.full(50, original), rows)
        length = SLICES.dimensions[table]
        expected = np.zeros((50, 32), np.float32)
        expected[:, :length] = whole[:, first:first + length]
        got = row_values(SLICES, 7, np.full(50, table), rows)
        assert got.tobytes() == expected.tobytes()


@pytest.mark.parametrize("model", [
    WHOLE, replace(WHOLE, dimensions=(), interaction="dot")], ids=["cat", "dot"])
def test_predictions_are_those_of_whole_tables(model, samples):
    parts = with_columns(model, {0: 32, 2: 16}, 16)
    assert Dlrm(parts, 3).forward(sliced(samples, parts)).tobytes() == Dlrm(
        model, 3).forward(samples).tobytes()
