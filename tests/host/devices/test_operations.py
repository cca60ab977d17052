"""Bytes and arithmetic of operations, counted by hand."""

from dataclasses import replace

import pytest

from host.devices import dense_work as dense
from host.devices import embedding_work as tables
from host.devices.operation import Operation
from host.model import MODELS, Model

MODEL = Model((10, 20, 30), 16, 13, (32, 16), (8, 1))


def test_gather_reads_rows_and_indices_and_writes_bags():
    work = tables.gather(100, 40, 16, tables=3)
    assert (work.rows, work.row_bytes, work.operators, work.kernels) == (100, 64, 3, 3)
    assert work.streamed_bytes == 8 * 100 + 8 * 40 + 64 * 40
    assert work.flops == 60 * 16
    fused = tables.gather(100, 40, 16, tables=3, fused=True)
    assert (fused.operators, fused.kernels, fused.fused_embedding) == (1, 1, True)
    assert fused.streamed_bytes == work.streamed_bytes


def test_rows_move_whole_accesses():
    assert tables.gather(10, 10, 16).row_traffic(64) == 640
    assert tables.gather(10, 10, 4).row_traffic(64) == 640
    assert tables.gather(10, 10, 32).row_traffic(64) == 1280
    assert Operation("x", rows=10, row_bytes=65).row_traffic(64) == 1280


def test_a_kernel_for_tables_of_several_dimensions():
    narrow, wide = tables.gather(10, 5, 4, fused=True), tables.gather(20, 4, 32, fused=True)
    both = narrow.with_work(wide).with_work(narrow)
    assert both.row_traffic(64) == 640 + 20 * 128 + 640
    assert both.streamed_bytes == 2 * narrow.streamed_bytes + wide.streamed_bytes
    assert both.flops == 2 * narrow.flops + wide.flops
    assert (both.operators, both.kernels, both.fused_embedding) == (1, 1, True)


def test_what_training_does_with_rows():
    # 8 passes of 8 bits over 8 bytes of key and 8 of index, read and written.
    assert tables.unique(1000).streamed_bytes == 1000 * (8 * 2 * 16 + 8 + 48)
    assert tables.unique(1000, 4).kernels == 8
    # For 2^16 values 16 bits are sorted, for one more 17, for one value 1.
    assert [tables.unique(1000, values=values).kernels
            for values in (1, 2**16, 2**16 + 1, 2**62)] == [5, 6, 7, 12]
    assert tables.unique(1000, values=2**16).streamed_bytes == 1000 * (2 * 2 * 16 + 8 + 48)
    assert tables.expand(100, 40, 16).streamed_bytes == 140 * 64 + 140 * 8
    summed = tables.segment_sum(100, 40, 16)
    assert (summed.rows, summed.row_bytes, summed.flops) == (100, 64, 60 * 16)
    assert summed.streamed_bytes == 40 * 64 + 100 * 8
    update = tables.scatter_update(40, 16)
    assert (update.rows, update.row_bytes) == (80, 64)
    assert update.streamed_bytes == 40 * 72 and update.flops == 2 * 40 * 16
    assert (tables.row_state(40, 16).rows, tables.row_state(40, 16).row_bytes) == (80, 4)
    assert tables.layout(100).streamed_bytes == 1600


def test_layers_of_an_mlp():
    first = dense.linear(32, 13, 512)
    assert first.flops == 2 * 32 * 13 * 512 + 32 * 512 and first.matrix
    assert first.streamed_bytes == 4 * (32 * 13 + 13 * 512 + 512 + 32 * 512)
    forward = dense.mlp(32, MODEL.bottom_layers)
    assert [work.name for work in forward] == ["linear", "activation"] * 2
    assert sum(work.flops for work in forward if work.matrix) == sum(
        (2 * i + 1) * o * 32 for i, o in MODEL.bottom_layers)


def test_backward_of_an_mlp_needs_no_gradient_of_features():
    backward = dense.mlp_backward(32, MODEL.bottom_layers, input_gradient=False)
    names = [work.name for work in backward]
    assert names.count("weight_gradient") == 2 and names.count("input_gradient") == 1
    layers = MODEL.bottom_layers
    assert sum(work.flops for work in backward if work.matrix) == 2 * 32 * (
        2 * sum(i * o for i, o in layers) - layers[0][0] * layers[0][1])
    top = dense.mlp_backward(32, MODEL.top_layers)
    assert [work.name for work in top].count("input_gradient") == 2
    # The last layer comes first.
    assert top[1].flops == 2 * 32 * MODEL.top_layers[-1][0] * MODEL.top_layers[-1][1]


def test_interaction():
    join, pairs, flatten, last = dense.interaction(10, MODEL)
    assert join.streamed_bytes == 2 * 4 * 10 * 4 * 16
    assert pairs.flops == 10 * 2 * 4 * 4 * 16
    assert pairs.streamed_bytes == 4 * 10 * (4 * 16 + 16 * 4 + 4 * 4)
    assert flatten.streamed_bytes == 10 * 6 * 8 + 6 * 16
    assert last.streamed_bytes == 2 * 4 * 10 * (16 + 6)
    backward = dense.interaction_backward(10, MODEL)
    assert sum(work.flops for work in backward if work.matrix) == 2 * pairs.flops
    joined = replace(MODEL, interaction="cat")
    assert dense.interaction(10, joined) == (join,)
    assert dense.interaction_backward(10, joined) == ()


@pytest.mark.parametrize("level, bottom, backward, interact, unfold, update", [
    (0, 4, 7, 4, 6, 6), (1, 2, 3, 4, 6, 6), (2, 2, 3, 1, 1, 1), (3, 1, 1, 1, 1, 1)])
def test_kernels_of_a_level(level, bottom, backward, interact, unfold, update):
    layers = MODEL.bottom_layers
    assert len(dense.mlp(32, layers, level)) == bottom
    assert len(dense.mlp_backward(32, layers, False, level)) == backward
    assert len(dense.interaction(32, MODEL, level)) == interact
    assert len(dense.interaction_backward(32, MODEL, level)) == unfold
    assert dense.dense_update(1000, 6, level).operators == update
    # The arithmetic of the products stays, except for pairs that a matrix product computes twice.
    for make in (lambda at: dense.mlp(32, layers, at),
                 lambda at: dense.mlp_backward(32, layers, False, at)):
        assert sum(work.flops for work in make(level) if work.matrix) == sum(
            work.flops for work in make(0) if work.matrix)
    fused = sum(work.flops for work in dense.interaction(32, MODEL, level) if work.matrix)
    assert fused == 32 * 2 * 16 * (6 if level >= 2 else 16)


def test_the_rest_of_the_dense_part():
    assert dense.elementwise(100, 2).streamed_bytes == 1200
    assert dense.concat(100).streamed_bytes == 800
    assert sum(work.streamed_bytes for work in dense.loss(100)) == 1200 + 400 + 1600
    update = dense.dense_update(1000, 6)
    assert (update.streamed_bytes, update.operators, update.kernels) == (12_000, 6, 6)


@pytest.mark.parametrize("make", [
    lambda n: tables.gather(n, n, 16), lambda n: tables.unique(n), lambda n: tables.layout(n),
    lambda n: tables.expand(n, n, 16), lambda n: tables.segment_sum(n, n // 2, 16),
    lambda n: tables.scatter_update(n, 16), lambda n: dense.linear(n, 13, 512),
    lambda n: dense.interaction(n, MODELS["kaggle"])[1], lambda n: dense.elementwise(n),
])
def test_twice_as_much_is_more_work(make):
    assert make(2000).streamed_bytes > make(1000).streamed_bytes
    assert make(2000).flops >= make(1000).flops and make(2000).rows >= make(1000).rows


@pytest.mark.parametrize("field, values", [
    ("rows", {"rows": -1}), ("flops", {"flops": -1.0}), ("operators", {"operators": 0}),
    ("tiles", {"tiles": -1}),
    ("kernels", {"operators": 3, "kernels": 2}), ("streamed_bytes", {"streamed_bytes": -1}),
])
def test_impossible_operations_are_refused(field, values):
    with pytest.raises(ValueError, match=rf"^{field} must be at least"):
        Operation("x", **values)
