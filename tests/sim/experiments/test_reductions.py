"""Entries of gradient tables, compared with a list per set; and rows on their way to GPU memory."""

from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pytest

from host.placement.reduction import TERMS, Pass, reduction
from host.placement.sets import set_of
from host.placement.shard import ShardPlan, key_hash
from host.timing.gpu import GpuProfile
from host.timing.pcie import PcieProfile
from rtl.config import preset
from sim.evaluation.fields import Workload
from sim.evaluation.trace import trace_of
from sim.offline.gradient_path import RowWrites


def table(arriving, keys, ways):
    """Enter keys in order; return the keys that find an entry, and the keys that are passed on."""
    lines, held, passed = defaultdict(list), [], []
    for key, hashed in arriving:
        line = lines[int(set_of(hashed, keys // ways))]
        if key not in line and len(line) < ways:
            line.append(key)
        (held if key in line else passed).append((key, hashed))
    return lines, held, passed


def by_hand(samples, plan, config):
    """Partials between all pairs of nodes, held keys, and the passes of each owner."""
    count, nodes, ways = len(samples), plan.nodes, config.gradient_ways
    ends = np.cumsum([count // nodes + (node < count % nodes) for node in range(nodes)])
    hashes = key_hash(samples.tables, samples.rows).astype(np.int64)
    partials, held, sent = np.zeros((nodes, nodes), int), [], []
    for node in range(nodes):
        first, last = (samples.key_offsets[end] for end in (ends[node - 1] if node else 0,
                                                            ends[node]))
        mine = list(zip(samples.keys[first:last].tolist(), hashes[first:last].tolist()))
        lines, summed, alone = table(mine, config.local_gradient_keys, ways)
        many, where = Counter(mine), dict(mine)
        sums = [key for _, line in sorted(lines.items()) for key in line
                for _ in range(TERMS if many[key, where[key]] > 1 else 1)]
        held.append(len(sums))
        sent.append([(place, *item) for place, item in enumerate(mine) if item in set(alone)]
                    + [(len(mine) + place, key, where[key]) for place, key in enumerate(sums)])
    owner_of = dict(zip(samples.keys.tolist(), plan.owner_of(
        samples.tables, samples.rows).tolist()))
    for node, items in enumerate(sent):
        for _, key, _ in items:
            partials[node, owner_of[key]] += 1
    passes = []
    for owner in range(nodes):
        came = [(place, node, key, hashed) for node, items in enumerate(sent)
                for place, key, hashed in items if owner_of[key] == owner]
        left, done = [item[2:] for item in sorted(came)], []
        while left:
            _, summed, passed = table(left, config.global_gradient_keys, ways)
            done.append(Pass(len(set(summed)), len(left)))
            left = passed
        passes.append(tuple(done))
    return partials, held, tuple(passes)


@pytest.mark.parametrize("nodes", [1, 3])
@pytest.mark.parametrize("keys", [(32, 64), (8, 32), (1024, 2048)])
def test_tables_hold_the_keys_that_come_first(nodes, keys):
    trace = trace_of(Workload(mini_batch=24, warmup=0, measured=2))
    plan = ShardPlan.deal(trace.model, nodes, "row")
    config = replace(preset("tiny"), local_gradient_keys=keys[0], global_gradient_keys=keys[1])
    for batch in trace.measured:
        found = reduction(batch.samples, plan, config)
        partials, held, passes = by_hand(batch.samples, plan, config)
        assert found.partials.tolist() == partials.tolist() and found.sums.tolist() == held
        assert found.passes == passes
        assert found.foreign.sum() == partials.sum() - np.trace(partials)
        assert max(map(len, passes)) > 1 or keys[1] > 64
        assert sum(each.rows for of in found.passes for each in of) == len(
            set(batch.samples.keys.tolist()))


GPU = GpuProfile("g", 4.0, 64.0, 64, 2, kernel_us=5.0, gather_fraction=1.0)
"""A launch takes 2,250 cycles, 250 cycles per microsecond; a row of 64 bytes adds a quarter of a
cycle."""


PCIE = PcieProfile("p", one_way_us=0.04, bandwidth_gb_s=1e6)
"""A way takes 10 cycles; the link is never busy."""


def written(rows, missed=0, ring=1024, gpu=GPU, cycles=64.0, start=100.0):
    writes = RowWrites(gpu, 1, 2, ring, 64, PCIE)
    writes.add(start, cycles, rows, missed)
    return writes.end()


def test_rows_that_caches_hold_are_written_by_a_launch():
    # The rows in the optimizer, the packet's timeout, and PCIe; then launch and kernel.
    assert written(8) == pytest.approx(100 + 16 + 64 + 10 + 2250)


def test_rows_that_no_cache_holds_are_fetched_first():
    assert written(8, 1) == pytest.approx(written(8) + 64 + 10 + 2250 + 10)


def test_packets_share_launches_where_streams_are_busy():
    # Four groups of 64 cycles, two streams: the last two packets wait for the first to be written.
    assert written(32, cycles=256.0) == pytest.approx(written(8) + 2250)
    assert written(32, cycles=256.0, gpu=replace(GPU, streams=4)) == pytest.approx(
        written(8) + 3 * 64)


def test_a_call_of_the_thread_delays_and_gathers_packets():
    called = replace(GPU, call_us=4.0)
    # The second launch is called when the first call is over, for all three packets that wait.
    assert written(32, cycles=256.0, gpu=called) == pytest.approx(written(8) + 2 * 1000)


def test_a_full_ring_holds_rows_up():
    assert written(32, 32, ring=8, cycles=256.0) > 3 * 2250 + written(8, 8)
    assert written(32, 32, cycles=256.0) < written(32, 32, ring=8, cycles=256.0)


def test_nothing_is_written_of_nothing():
    assert written(0) == 0
