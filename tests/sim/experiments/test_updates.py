"""Rows that a step updates and that its caches have lost, against a list for each set."""

import numpy as np
import pytest

from host.placement.sets import set_of
from host.placement.shard import ShardPlan, key_hash
from host.systems import workload_of
from sim.evaluation.fields import Workload
from sim.evaluation.trace import trace_of
from sim.evaluation.workloads import updates


def by_hand(trace, plan, rows, ways):
    """Rows and misses of each mini-batch."""
    lines, found = {}, []
    for batch in trace.batches:
        samples, at = batch.samples, {}
        for table, row, key in zip(samples.tables, samples.rows, samples.keys.tolist()):
            if key in at:
                continue
            one = np.array([table]), np.array([row])
            index = int(set_of(key_hash(*one).astype(np.int64), rows // ways)[0])
            line = lines.setdefault((int(plan.owner_of(*one)[0]), index), [])
            if key in line:
                line.remove(key)
            line.append(key)
            del line[:-ways]
            at[key] = line
        found.append((len(at), sum(key not in line for key, line in at.items())))
    return np.array(found)


@pytest.mark.parametrize("nodes", [1, 3])
def test_rows_that_are_put_out_before_their_gradients_come(nodes):
    trace = trace_of(Workload(mini_batch=16, warmup=2, measured=3))
    plan = ShardPlan.deal(trace.model, nodes)
    for rows, least in ((8, 0.5), (64, 0.0), (4096, None)):
        expected = by_hand(trace, plan, rows, 4)[2:].mean(axis=0)
        found = updates(trace.batches, range(2, 5), plan, rows, 4).to_json()
        assert [found["rows"], found["misses"]] == pytest.approx(expected)
        if least is None:
            assert found["misses"] == 0
        else:
            assert found["misses"] > least * found["rows"]


def test_without_a_cache_all_rows_are_missed():
    trace = trace_of(Workload(mini_batch=16, warmup=2, measured=3))
    plan = ShardPlan.deal(trace.model, 3)
    found = updates(trace.batches, range(2, 5), plan, 0, 4)
    assert found.rows.shape == (3, 3) and (found.rows == found.misses).all()
    assert found.rows.tolist() == [
        workload_of(batch.samples, trace.model, plan).unique.tolist()
        for batch in trace.batches[2:]]
