"""Time of the gradient path, compared with training runs in RTL."""

from dataclasses import replace

import numpy as np
import pytest

from host.placement.reduction import Reduction
from host.systems import Devices, Workload
from host.timing.gpu import GpuProfile
from host.timing.pcie import PcieProfile
from rtl.config import preset
from sim.evaluation.fields import devices_of
from sim.evaluation.nic_options import options_of
from sim.evaluation.point import Point
from sim.evaluation.trace import Trace, plan_of, trace_of
from sim.evaluation.workloads import reductions, updates, workloads
from sim.offline.gradient_path import GradientPath, RowWrites
from sim.training.options import TrainOptions
from sim.training.train import train

IN_RTL = (
    ("kaggle", 8, 128, 192, 4.0, 56.23, 1886.125), ("kaggle", 8, 128, 976, 4.0, 56.47, 1886.125),
    ("kaggle", 8, 32, 336, 4.0, 47.31, 580.625), ("kaggle", 8, 4, 64, 4.0, 26.37, 78.0),
    ("kaggle", 8, 512, 568, 4.0, 97.66, 5994.875), ("kaggle", 8, 128, 192, 0.0, 54.21, 1886.125),
    ("kaggle", 8, 128, 976, 0.0, 46.56, 1886.125), ("kaggle", 8, 4, 64, 0.0, 25.34, 78.0),
    ("terabyte", 3, 2048, 896, 4.0, 978.94, 28510.0),
    ("terabyte", 3, 2048, 896, 0.0, 952.88, 28510.0),
    ("terabyte", 4, 256, 1032, 4.0, 122.94, 3704.25), ("avazu", 8, 128, 48, 4.0, 52.22, 847.0),
    ("avazu", 8, 1024, 1216, 4.0, 90.38, 3132.75))
"""Data set, steps, samples of a mini-batch, rows of the local cache, time of a host call; and RTL's
update time in us and vectors between nodes, measured by ``in_rtl`` below."""


class Setting:
    """A training run in which each step counts."""

    def __init__(self, dataset: str, steps: int, mini_batch: int, rows: int, call_us: float):
        self.point = Point.named("lc+sc", dataset=dataset, workload="training", warmup=0,
                                 measured=steps, mini_batch=mini_batch)
        self.trace: Trace = trace_of(self.point.workload)
        self.plan = plan_of(self.point, self.trace)
        self.devices: Devices = devices_of(self.point.cluster)
        self.gpu: GpuProfile = replace(self.devices.gpu.gpu, call_us=call_us)
        self.config, self.rows = preset(dataset), rows
        self.work: list[Workload] = workloads(self.trace, self.plan).plain
        self.sums: tuple[Reduction, ...] = reductions(self.trace, self.plan, self.config)

    @property
    def us(self) -> float:
        missed = updates(self.trace.batches, range(len(self.work)), self.plan, self.rows,
                         self.config.local_cache_ways).misses
        path = GradientPath(self.config, self.devices, self.gpu)
        return float(np.mean([path.us(*of) for of in zip(self.work, self.sums, missed)]))

    @property
    def sent(self) -> float:
        return float(np.mean([sums.partials.sum() - np.trace(sums.partials)
                              for sums in self.sums]))

    def in_rtl(self) -> dict:
        run = options_of(self.point, self.point.kind.nics(self.point), self.trace, self.devices,
                         self.gpu, {"local_cache": self.rows, "remote_cache": 0}, False, 1)
        return train(TrainOptions.of(**{name: getattr(run.workload, name) for name in (
            "config", "settings", "nodes", "placement", "lookups", "mini_batch", "network",
            "pcie", "gpu", "seed")}, mlp="blas", threads=1, compare=False,
            samples=len(self.work) * self.trace.mini_batch))


@pytest.mark.parametrize("recorded", IN_RTL)
def test_it_takes_what_it_took_in_rtl(recorded):
    *setting, took, sent = recorded
    setting = Setting(*setting)
    assert setting.sent == pytest.approx(sent, rel=1e-3)
    assert setting.us == pytest.approx(took, rel=0.105)


def test_the_mean_error_is_small():
    errors = [Setting(*setting).us / took - 1 for *setting, took, _ in IN_RTL]
    assert abs(float(np.mean(errors))) < 0.06


@pytest.mark.slow
@pytest.mark.parametrize("recorded", IN_RTL[:4])
def test_rtl_takes_what_is_recorded(recorded):
    *setting, took, sent = recorded
    setting = Setting(*setting)
    ran = setting.in_rtl()
    nodes = sum(node["partials"] for node in ran["backward"])
    assert ran["phases_us"]["update"] == pytest.approx(took, rel=0.01)
    assert nodes / ran["steps"] / setting.config.vector_beats == sent


def test_more_of_anything_takes_longer():
    setting = Setting("kaggle", 2, 128, 976, 4.0)
    path, w, sums = GradientPath(setting.config, setting.devices, setting.gpu), *(
        of[0] for of in (setting.work, setting.sums))
    none, all_ = (path.us(w, sums, missed) for missed in ([0] * 4, w.unique))
    assert none < all_
    far = replace(setting.devices, network=replace(setting.devices.network, one_way_us=11.3795))
    # Partials and the final notifications cross the network.
    assert GradientPath(setting.config, far, setting.gpu).us(w, sums, [0] * 4) == pytest.approx(
        none + 20, abs=0.02)
    slow = replace(setting.gpu, kernel_us=15.0)
    assert GradientPath(setting.config, setting.devices, slow).us(
        w, sums, [0] * 4) == pytest.approx(none + 10)
    small = replace(setting.config, global_gradient_keys=256)
    more = reductions(setting.trace, setting.plan, small)[0]
    assert max(map(len, more.passes)) > max(map(len, sums.passes)) == 1
    assert GradientPath(small, setting.devices, setting.gpu).us(w, more, [0] * 4) > none


def test_rows_occupy_the_link_of_the_nic_in_both_directions():
    gpu = replace(Setting("kaggle", 2, 8, 64, 0.0).gpu, call_us=0.0)

    def end(gb_s: float, missed: int) -> float:
        writes = RowWrites(gpu, 4, 0, 1 << 20, 64, PcieProfile("pcie", 0.5, gb_s))
        writes.add(0.0, 1.0, 100, missed)
        return writes.end()

    # 264 bytes of a row in 4 ns are a cycle: written, and read before if they miss.
    each = 100 * 264 * (1 / 6.6 - 1 / 66) / 4
    assert end(6.6, 0) - end(66, 0) == pytest.approx(each)
    asked = 100 * 8 * (1 / 6.6 - 1 / 66) / 4
    assert end(6.6, 100) - end(66, 100) == pytest.approx(2 * each + asked)
