"""What is compiled beside the NICs against numpy's, bit for bit."""

from dataclasses import replace

import numpy as np
import pytest

from host.data.generator import generate
from host.dlrm.dlrm import Dlrm, pooled_reference
from host.dlrm.interaction import dot_interaction
from host.model import MODELS, Model
from host.placement.shard import Placement, ShardPlan, foreign_keys
from host.samples import Samples
from host.wire.packets import query_records
from host.wire.rows import row_answers
from rtl.formats import DescriptorKind, LookupRecord, QueryRecord
from sim.native.interaction import dot_interaction_compiled
from sim.native.keys import foreign_keys_compiled, query_records_compiled
from sim.native.numerics import COMPILED, NUMPY
from sim.native.rows import pooled_compiled, row_answers_compiled

DIMENSIONS = (4, 8, 16, 32, 48, 64, 128, 240, 256)
SIZES = (7, 1 << 36, 33_762_577)  # the largest table has all rows that a key can name


def _model(dimension: int, pooling: str = "sum") -> Model:
    return Model((*SIZES[:1], SIZES[1] - 1, SIZES[2]), dimension, 2, (dimension,), (1,),
                 pooling=pooling)


def _samples(count: int, longest: int, seed: int = 1) -> Samples:
    """Samples with bags of up to ``longest`` keys, one of them in ten empty."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, longest + 1, (count, 3)) * (rng.random((count, 3)) < 0.9)
    tables = np.repeat(np.tile(np.arange(3), count), lengths.reshape(-1)).astype(np.int32)
    rows = rng.integers(0, np.array(_model(4).rows)[tables])
    return Samples(np.zeros((count, 2), np.float32), np.zeros(count, np.float32),
                   lengths.astype(np.int32), tables, rows)


def _same(got: np.ndarray, expected: np.ndarray) -> None:
    assert got.dtype == expected.dtype and got.shape == expected.shape
    assert got.tobytes() == expected.tobytes()


@pytest.mark.parametrize("pooling", ["sum", "mean"])
@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_pooled_vectors(dimension, pooling):
    model = _model(dimension, pooling)
    for count, longest in ((0, 1), (1, 0), (40, 1), (30, 100)):
        samples = _samples(count, longest)
        _same(pooled_compiled(samples, model, 9), pooled_reference(samples, model, 9))
    assert (samples.bag_lengths == 0).any() and samples.bag_lengths.max() > 90


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_packets_of_rows(dimension):
    model, rng = _model(dimension), np.random.default_rng(dimension)
    plain, compiled = (make(model, 3, 2, 36) for make in (row_answers, row_answers_compiled))
    for count in (0, 1, 2, 31, 32, 33, 36, 255, 600):
        tables = rng.integers(0, 3, count).astype(np.uint64)
        rows = rng.integers(0, np.array(model.rows)[tables.astype(int)]).astype(np.uint64)
        shifts = {name: np.uint64(LookupRecord[name].offset) for name in ("table", "landing")}
        landing = rng.integers(0, 1 << 16, count).astype(np.uint64)
        records = rows | tables << shifts["table"] | landing << shifts["landing"]
        expected, got = plain(records, 65_535), compiled(records, 65_535)
        assert [len(packet) for packet in got] == [len(packet) for packet in expected]
        for mine, theirs in zip(got, expected):
            _same(mine, theirs)
    outside = np.array([7], np.uint64)
    for answer in (plain, compiled):
        with pytest.raises(ValueError, match="rows of table 0 must be below 7, not 7"):
            answer(outside, 0)


@pytest.mark.parametrize("itself", [False, True])
@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_dots(dimension, itself):
    rng = np.random.default_rng(dimension)
    for count, tables in ((0, 3), (1, 1), (15, 0), (17, 2), (33, 9)):
        dense = rng.standard_normal((count, dimension), np.float32)
        pooled = rng.standard_normal((count, tables, dimension), np.float32)
        _same(dot_interaction_compiled(dense, pooled, itself=itself),
              dot_interaction(dense, pooled, itself=itself))


@pytest.mark.parametrize("dimension", [4, 16, 32])
def test_dots_of_special_values(dimension):
    rng = np.random.default_rng(dimension)
    special = np.array([0.0, -0.0, 1e-45, -1e-40, 1.2e-38, 3e38, -3e19, np.inf, np.nan, 1.0, 2.0],
                       np.float32)
    # Few of a kind at once, or nearly all would be no number.
    chances = np.array([.2, .2, .1, .1, .1, .02, .06, .005, .005, .11, .1])
    dense, pooled = (rng.choice(special, (300, *shape), p=chances)
                     for shape in ((dimension,), (4, dimension)))
    dense[:99] = rng.choice(special[:4], (99, dimension))
    with np.errstate(all="ignore"):
        expected = dot_interaction(dense, pooled, itself=True)
    got, number = dot_interaction_compiled(dense, pooled, itself=True), ~np.isnan(expected)
    assert number.sum() > 300 and (~number).sum() > 100 and np.isinf(expected).any()
    dots = expected[:, dimension:]
    assert ((np.abs(dots) < 1.1e-38) & (dots != 0)).any() and (dots == 0).any()
    assert np.array_equal(np.isnan(got), ~number)
    assert np.array_equal(got.view(np.uint32)[number], expected.view(np.uint32)[number])


def test_dots_of_views_and_wrong_shapes():
    rng = np.random.default_rng(4)
    values = rng.standard_normal((16, 5, 20), np.float32).T
    _same(dot_interaction_compiled(values[:, 0], values[:, 1:]),
          dot_interaction(values[:, 0], values[:, 1:]))
    with pytest.raises(ValueError, match=r"pooled must be \[20, tables, 16\], not shape"):
        dot_interaction_compiled(values[:, 0], values[:, 1:, :8])


@pytest.mark.parametrize("first", [0, (1 << 32) - 2, (1 << 40) + 5])
def test_query_records(first):
    for count, longest in ((0, 1), (1, 0), (5, 1), (30, 100)):
        samples = _samples(count, longest)
        _same(query_records_compiled(samples, first), query_records(samples, first))


def test_query_records_that_do_not_fit():
    samples = _samples(2, 3)
    row, table = (QueryRecord.members[name] for name in ("row", "table"))
    for wrong in (replace(samples, rows=samples.rows + (1 << row)),
                  replace(samples, tables=samples.tables + (1 << table)),
                  replace(samples, bag_lengths=np.array([[1 << 16, 0, 0]] * 2, np.int32),
                          tables=np.zeros(1 << 17, np.int32), rows=np.zeros(1 << 17, int))):
        messages = []
        for records in (query_records, query_records_compiled):
            with pytest.raises(ValueError) as error:
                records(wrong, 0)
            messages.append(str(error.value))
        assert messages[0] == messages[1]


@pytest.mark.parametrize("kinds", ["TTT", "RRR", "TRC", "CCC"])
def test_foreign_keys(kinds):
    samples = _samples(60, 20, 5)
    # Some rows come again and again, in one share and in others.
    samples = replace(samples, rows=np.where(samples.rows % 3, samples.rows % 50,
                                             samples.rows))
    placed = {"T": lambda rows: Placement(DescriptorKind.TABLE, rows, 2),
              "R": lambda rows: Placement(DescriptorKind.ROW, rows, 1, 3),
              "C": lambda rows: Placement(DescriptorKind.REPLICATED, rows)}
    plan = ShardPlan(4, tuple(placed[kind](rows) for kind, rows in zip(kinds, _model(4).rows)))
    shares = [0, 15, 15, 40, 60]
    expected = foreign_keys(plan, samples, shares)
    assert (expected > 100) == (kinds != "CCC")
    assert foreign_keys_compiled(plan, samples, shares) == expected
    with pytest.raises(IndexError):
        foreign_keys_compiled(plan, replace(samples, tables=samples.tables + 1), shares)


@pytest.mark.parametrize("interaction", ["dot", "cat"])
def test_predictions_of_a_model(interaction):
    model = replace(MODELS["kaggle"], interaction=interaction)
    samples = next(iter(generate(model, 40, 2)))
    plain, compiled = (Dlrm(model, 5, "fixed", with_.linear, with_.interaction).forward(samples)
                       for with_ in (NUMPY, COMPILED))
    _same(compiled, plain)
