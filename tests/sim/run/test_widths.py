"""Owner-pooled tables of different dimensions: vectors cross the network and PCIe without padding.
"""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from host.model import Model
from host.placement.shard import ShardPlan
from host.samples import Samples, share_sizes
from sim.job.options import RunOptions
from sim.run.run import Run
from tests.host.dlrm.mixed import batches, toml_of
from tests.sim.nic_cpp.comparing import compared
from tests.sim.run.results import faultless

pytestmark = pytest.mark.thorough
"""The tests compile a NIC with owner pooling, which takes a minute."""

MODEL = Model((1000, 5000, 70, 400, 900), 10, 3, (8, 10), (5, 1), "widths",
              ((0, 3), (1, 5), (1, 1), (5, 12), (0, 2)), interaction="cat",
              dimensions=(16, 64, 10, 40, 64), poolings=("sum", "sum", "mean", "sum", "mean"))
"""Vectors of 1, 4, 1, 3 and 4 beats."""
BEATS = np.array([1, 4, 1, 3, 4])
STEPS, MINI_BATCH = 3, 24


def _options(tmp_path: Path, **changes) -> RunOptions:
    path = tmp_path / "widths.toml"
    path.write_text(toml_of(MODEL))
    given = {"config": "tiny", "nodes": 2, "pool": "owner", "threads": 1,
             "settings": ("owner_bags=64",)} | changes
    if isinstance(given["pool"], list):
        (tmp_path / "pool.toml").write_text(f"owner = {given['pool']}\n")
        given["pool"] = str(tmp_path / "pool.toml")
    return RunOptions.of(**given, model=str(path), samples=STEPS * MINI_BATCH,
                         mini_batch=MINI_BATCH)


def _foreign_beats(plan: ShardPlan, parts: list[Samples]) -> int:
    """Return the beats of the vectors of foreign bags that pool at their owner."""
    owners = np.array([table.owner for table in plan.tables])
    counted = np.where(plan.owner_pooled > 0, BEATS, 0)
    total = 0
    for part in parts:
        node = np.repeat(np.arange(plan.nodes), share_sizes(len(part), plan.nodes))
        total += int((((part.bag_lengths > 0) & (owners != node[:, None])) * counted).sum())
    return total


@pytest.mark.parametrize("changes", [
    {}, {"nodes": 3, "pool": [1, 2, 3]},
    {"settings": ("owner_bags=64", "deliver=unique", "completions=true")},
    pytest.param({"nodes": 3, "settings": (
        "owner_bags=16", "vector_timeout=0")}, marks=pytest.mark.slow),
    pytest.param({"settings": ("owner_bags=64", "link=true"), "faults": "drop=0.01,corrupt=0.005"},
                 marks=pytest.mark.slow),
    pytest.param({"repeats": "nic"}, marks=pytest.mark.slow)],
    ids=["all", "some", "unique", "small", "link", "repeats"])
def test_vectors_are_not_padded(tmp_path, changes):
    job = Run(_options(tmp_path, **changes))
    assert (job.plan.beats == BEATS).all()
    result = faultless(job.execute())
    sums = Counter()
    for node in result["counters"]:
        sums.update(node)
    sent = _foreign_beats(job.plan, batches(MODEL, STEPS, MINI_BATCH))
    assert sums["bag_vectors.beats"] == sent if "repeats" not in changes else (
        0 < sums["bag_vectors.beats"] <= sent)
    assert sums["bag_vectors.size_changes"] > 0 or "pool" in changes
    assert not any(sums[name] for name in (
        "bag_landing.bad_vectors", "owner_places.bad_vectors", "hold_buffer.bad_landings")
        if "faults" not in changes)


@pytest.mark.parametrize("changes", [{}, {"nodes": 3, "pool": [1, 2, 3]}], ids=["all", "some"])
def test_the_model_has_the_cycles_of_rtl(tmp_path, changes):
    assert compared(_options(tmp_path, **changes)) == 0
