"""The published step, as data: its counts and sums are the trace's."""

import pytest

from host.measurements.published import Run, flattening, flattening_v3_1, inference
from host.measurements.step import step_collectives, step_kernels


def test_kernels_of_each_rank_and_how_long_they_ran():
    found = [each for each in step_kernels() if each.computes]
    counts = [sum(each.calls[rank] for each in found) for rank in range(8)]
    sums = [sum(each.us[rank] for each in found) for rank in range(8)]
    assert counts == [237, 238, 238, 243, 243, 237, 238, 238]
    assert sums == [1034, 1043, 1068, 1064, 1126, 1041, 1051, 1059]
    assert sum(sum(each.calls) for each in step_kernels() if "Memcpy" in each.name) == 8 * 16


def test_collectives_and_their_last_to_arrive():
    found = step_collectives()
    assert [each.last_us for each in found] == [10, 8, 7, 7, 86, 10, 20, 69]
    assert [each.kind for each in found].count("all_to_all") == 5
    assert [sum(each.sent) for each in found if each.kind == "all_reduce"] == [
        1576964, 448, 907840]
    # Keys go to the rank with their table, equally many from each rank: the keys that it looks up.
    keys = next(each.sent for each in found if len(set(each.sent)) > 1)
    looked_up = sorted(each.rows for each in step_kernels()
                       if "adagrad_function" in each.operator)
    assert sorted(8 * sent // 4 for sent in keys) == looked_up


def test_tables_of_the_scaling_runs_are_all_dealt():
    found = flattening()
    for run in (*found.runs, *flattening_v3_1().runs):
        dealt = {table for shard in run.shards for table in shard}
        assert dealt | set(run.replicated) == set(range(26)) and not dealt & set(run.replicated)
        assert run.mini_batch % run.gpus == 0
    assert found.runs[0].rate == pytest.approx(14.51e6, rel=1e-3)
    with pytest.raises(ValueError, match="shards must have an entry"):
        Run(16, 32, 1.0, 1.0, 2, ((0,),))


def test_latency_times_rate_is_the_batch():
    """One request is in flight, whatever the batch."""
    found = inference()
    for batch, ms, rate in zip(found.batch, found.float32_ms, found.float32_rate):
        assert ms * rate / 1e3 == pytest.approx(batch, rel=0.2)
