"""Better constants of the profiles make no interval of a real system longer."""

from collections.abc import Iterator
from itertools import pairwise

import pytest

from host.model import Model
from host.systems import (
    Devices,
    EnTuning,
    NicTimes,
    Step,
    StepOptions,
    Tuning,
    bl_paper,
    bl_tuned,
    en,
    smartnic,
)
from host.systems.devices import profiles_of
from host.toml.profile import load_profile
from host.toml.provenance import constants
from sim.evaluation.built import interval_us
from sim.evaluation.fields import devices_of
from sim.evaluation.least import deliveries
from sim.evaluation.point import Point
from sim.evaluation.site import Site
from sim.evaluation.system import System

PROFILES = ("tuned_h100", "gpu_h100", "pcie_h100")
FLIGHTS = ((1, 1), (2, 1), (4, 1), (8, 2), (16, 1), (16, 8))
NIC = NicTimes({"input_all_to_all": 4.1, "embedding_lookup": 12.3, "embedding_all_to_all": 1.4,
                "overhead": 1.7}, interval_us=3.9, gathers=3.0, gathered=400.0, launches=3.0,
               sent_bytes=9000.0, delivered_bytes=60_000.0, update_us=21.0, update_launches=4.0,
               updated=300.0, missed=100.0, interaction_us=2.2)


def improvable(point: Point) -> Iterator[tuple[str, bool]]:
    """Yield each time and rate of a point's profiles, and whether it is a rate."""
    own = point.cluster
    for profile, kind in profiles_of(own.software, own.gpu, own.link, own.network,
                                     own.inside).items():
        for each in constants(load_profile(profile, kind)):
            rate = each.name.endswith(("_gb_s", "_gbit_s", "_tflops"))
            if each.value and (rate or each.name.endswith("_us")):
                yield f"{profile}.{each.name}", rate


def better(point: Point) -> Iterator[tuple[str, float]]:
    """Yield the times and rates of a point, with the factors that improve them by 10 and 50 %."""
    for name, rate in improvable(point):
        for factor in (0.9, 0.5):
            yield name, 1 / factor if rate else factor


@pytest.fixture(scope="module", params=["inference", "training"])
def site(request) -> Site:
    return Site.of(Point.named("en", software=PROFILES[0], gpu=PROFILES[1], link=PROFILES[2],
                               workload=request.param, warmup=2, measured=2))


def systems(site: Site, d: Devices) -> dict[str, list[Step]]:
    """Return the steps of systems on ``d``."""
    options, work = StepOptions(site.training), site.work.plain
    own = deliveries(site.point, site.trace, 0)
    found = {f"bl-tuned, {name}": [bl_tuned(w, d, options, tuning) for w in work]
             for name, tuning in (
                 ("nccl", Tuning(copied_rows=0)),
                 ("plain", Tuning(False, "nccl", False, False, copied_rows=0)),
                 ("mpi", Tuning(exchange="mpi", copied_rows=0)))}
    found["bl-paper"] = [bl_paper(w, d, options) for w in work]
    for computation in (False, True):
        found[f"fs, {computation}"] = [smartnic(w, d, options, NIC, computation, True)
                                       for w in work]
    for ring in (False, True):
        tuning = EnTuning(ring=ring)
        found[f"en, ring {ring}"] = [en(w, d, options, NIC, each, tuning)
                                     for w, each in zip(work, own)]
    return found


def intervals(site: Site, d: Devices) -> dict[tuple, float]:
    """Return the interval of each system and flight."""
    return {(name, *flight): interval_us(steps, *flight) for name, steps in systems(
        site, d).items() for flight in FLIGHTS[:1 if site.training else None]
        if name != "bl-paper" or flight[1] == 1}


@pytest.mark.thorough
def test_no_better_constant_makes_an_interval_longer(site):
    base, moved = intervals(site, site.devices), set()
    for change in better(site.point):
        found = intervals(site, devices_of(site.point.changed(scaled=(change,)).cluster))
        longer = {key: us / base[key] for key, us in found.items() if us > 1.005 * base[key]}
        assert not longer, change
        moved |= {key for key, us in found.items() if us < 0.99 * base[key]}
    assert moved == base.keys()


@pytest.mark.thorough
def test_a_driver_with_faster_calls_does_not_disturb_other_kernels_more():
    point = Point.named("fs", batching="file", mini_batch=128, local_cache=None, remote_cache=None,
                        in_flight=16, per_graph=8, rdma=True, software="tuned_h100",
                        gpu="gpu_h100", link="pcie_h100")
    found = []
    for factor in (1, 0.9, 0.5, 0.25):
        of = point.changed(scaled=(("software_tuned_h100.launch_call_us", factor),))
        built, nic = of.kind.at(Site.of(of))
        assert nic is not None
        found.append((built.interval_us, nic.times[0].launches))
    assert all(faster <= 1.005 * us for (us, _), (faster, _) in pairwise(found)), found
    # A driver that launches at once has more gathers, which delay other kernels.
    greedy, _ = System.at(of.kind, Site.of(of))
    assert greedy.interval_us > 1.01 * found[-1][0]


def test_a_faster_start_of_collectives_does_not_move_bytes_twice():
    """With a fast start, an exchange alone is faster if its bytes first move inside each node. The
    link is then the bottleneck, with more bytes."""
    point = Point.named(
        "bl-tuned", dataset=Model((1000,) * 16, 128, 4, (16, 128), (16, 1)), mini_batch=16_384,
        warmup=0, measured=2, in_flight=16, nodes=4, gpus=8, nics=8, inside="topology_dgx_a100",
        software="tuned_h100", gpu="gpu_h100", link="pcie_h100", network="ethernet_200g_switch",
        fixed=("exchange=nccl", "copied_rows=0"))
    found = {}
    for fixed in ((), ("direct=false",)):
        of = point.changed(fixed=(*point.system.fixed, *fixed))
        found[fixed] = [of.kind.at(Site.of(of.changed(scaled=(
            ("nccl_network.base_simple_us", factor),))))[0].interval_us for factor in (3, 1)]
    slow, fast = found[()]
    assert fast <= slow * 1.005
    slow, fast = found["direct=false",]
    assert fast > slow * 1.1


@pytest.mark.thorough
def test_a_driver_of_en_with_faster_calls_waits_between_launches():
    point = Point.named("en", mini_batch=128, local_cache=None, remote_cache=None, in_flight=16,
                        per_graph=8, rdma=True, warmup=8, measured=8, software="tuned_h100",
                        gpu="gpu_h100", link="pcie_h100",
                        fixed=("ring=false", "reads=false", "copied_rows=0",
                               "own_at_gpu=false"))

    def found(*fixed: str) -> list[float]:
        of = point.changed(fixed=(*point.system.fixed, *fixed))
        return [of.kind.at(Site.of(of.changed(scaled=(
            ("software_tuned_h100.launch_call_us", factor),))))[0].interval_us
            for factor in (1, 0.7, 0.25)]

    searched, greedy = found(), found("pace_us=0")
    assert all(faster <= 1.005 * us for us, faster in pairwise(searched)), searched
    assert any(faster > 1.02 * us for us, faster in pairwise(greedy)), greedy
