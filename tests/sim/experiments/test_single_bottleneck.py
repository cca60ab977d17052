"""Intervals of two systems, each on two workloads, that one resource determines: within 2 %."""

import numpy as np
import pytest

from host.systems import EnTuning, NicTimes, StepOptions, Tuning, bl_tuned, en
from sim.evaluation.built import interval_us
from sim.evaluation.least import deliveries
from sim.evaluation.point import Point
from sim.evaluation.site import Site

CLUSTER = {"software": "tuned_h100", "gpu": "gpu_h100", "link": "pcie_h100", "warmup": 0,
           "measured": 2}


@pytest.mark.parametrize("dataset", ["terabyte", "multi_hot"])
def test_bl_tuned_with_many_samples_is_bound_by_bytes(dataset):
    """The communicator serves two calls; each has a base, a hop, and the bytes of the busiest node
    at the rate of the network. Keys and bag offsets are integers of 8 bytes."""
    site = Site.of(Point.named("bl-tuned", dataset=dataset, mini_batch=16_384, **CLUSTER))
    d, work = site.devices, site.work.plain
    steps = [bl_tuned(w, d, StepOptions(), Tuning(dedupe=False, copied_rows=0)) for w in work]
    rate = d.nccl.topology.profile.levels[-1].bandwidth_gb_s * 1e3
    assert rate == pytest.approx(12_500, rel=0.1)

    def moved(counts: np.ndarray) -> float:
        foreign = counts * ~np.eye(len(counts), dtype=bool)
        return max(foreign.sum(axis=0).max(), foreign.sum(axis=1).max())

    by_hand = 2 * (8.4 + 14.0) + np.mean([
        8 * moved(w.lookups + w.bags) + 4 * w.model.dimension * moved(w.bags)
        for w in work]) / rate
    assert interval_us(steps, 16) == pytest.approx(by_hand, rel=0.02)


@pytest.mark.parametrize("dataset", ["kaggle", "multi_hot"])
def test_en_with_few_samples_is_bound_by_the_calls_of_its_thread(dataset):
    """The thread stores a doorbell, launches a graph and waits once."""
    point = Point.named("en", dataset=dataset, mini_batch=128, **CLUSTER)
    site = Site.of(point)
    own = deliveries(point, site.trace, 0)
    nic = NicTimes({"embedding_lookup": 12.0}, interval_us=3.0)
    steps = [en(w, site.devices, StepOptions(), nic, each, EnTuning())
             for w, each in zip(site.work.plain, own)]
    software = site.devices.software
    by_hand = software.doorbell_us + software.graph_us + software.synchronize_us
    # With 16 in flight, kernels of other mini-batches delay a mini-batch.
    assert interval_us(steps, 64) == pytest.approx(by_hand, rel=0.02)
    # A slower NIC is the bottleneck.
    nic = NicTimes({"embedding_lookup": 90.0}, interval_us=40.0)
    slow = [en(w, site.devices, StepOptions(), nic, each, EnTuning())
            for w, each in zip(site.work.plain, own)]
    assert interval_us(slow, 16) == pytest.approx(40.0, rel=0.02)
