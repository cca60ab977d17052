"""Sensitivity: drawn constants, their distribution, and the NIC runs of a few draws."""

from dataclasses import dataclass, field, replace
from statistics import median

import numpy as np
import pytest

from host.systems import Devices, EnTuning
from host.systems.devices import profiles_of
from host.timing.gpu import GpuProfile
from host.toml.profile import load_profile, profile_names
from host.toml.provenance import uncertain as is_uncertain
from sim.evaluation.fields import Options, devices_of
from sim.evaluation.measure import measure
from sim.evaluation.nic import as_nics_see
from sim.evaluation.nic_run import run_nics as run_of
from sim.evaluation.point import Point, effort, in_turn, in_words
from sim.evaluation.setting import DEMO
from sim.evaluation.store import Store
from sim.evaluation.trace import trace_of
from sim.experiments.sensitivity import constants
from sim.experiments.sensitivity.cases import cases_of, names_of, sets_by_workload
from sim.experiments.sensitivity.compose import (
    GATHER,
    interval_of,
    nic_constants,
    run_nics,
    settled,
)
from sim.experiments.sensitivity.constants import frozen, frozen_on, uncertain
from sim.experiments.sensitivity.design import design, reaching, scaled_by
from sim.experiments.sensitivity.draws import WIDEST, drawn, latin_hypercube
from sim.experiments.sensitivity.nics import Interpolated, sets_of
from sim.experiments.sensitivity.smooth import Smooth
from sim.experiments.sensitivity.tasks import Draws, LeftOut
from tests.sim.experiments.test_nic_runs import options

FULL = Point.named("fs", nodes=2, mini_batch=16, warmup=2, measured=4, window=32)
TUNED = FULL.changed(software="tuned")
BASES = tuple(Point.named(system, nodes=2, mini_batch=16, warmup=2, measured=4)
              for system in ("bl-paper", "bl-tuned"))
NAMES = ("gpu_rtx8000.launch_us", "gpu_rtx8000.gemm_fraction", "mpi_ethernet.message_us")


# The constants.

def test_the_frozen_list_has_every_uncertain_constant():
    """New uncertain constants must be added, under the day of their addition."""
    kinds = {name: kind for gpu in profile_names("gpu_") for software in ("eager", "tuned")
             for name, kind in profiles_of(software, gpu).items()}
    now = {f"{name}.{constant.name}" for name, kind in kinds.items()
           for constant in is_uncertain(load_profile(name, kind))}
    assert now <= set(frozen())
    assert frozen_on() == "2026-11-23"


@dataclass(frozen=True)
class Profile:
    measured_us: float = 1.0
    read_us: float = 2.0
    uncertain_us: float = 3.0
    newer_us: float = 4.0
    sure_us: float = 5.0
    source: dict = field(default_factory=lambda: {
        "measured_us": "[M] here", "read_us": "[S] a paper", "uncertain_us": "[U] nobody knows",
        "newer_us": "[S2] a blog", "sure_us": "[S] a data sheet"})


def test_only_a_measurement_takes_a_constant_off_the_list(monkeypatch):
    monkeypatch.setattr(constants, "frozen", lambda: dict.fromkeys(
        ("p.measured_us", "p.read_us", "p.uncertain_us"), "2026-01-01"))
    monkeypatch.setattr(constants, "profiles_of", lambda software, gpu: {"p": Profile,
                                                                         "cpu_x": Profile})
    monkeypatch.setattr(constants, "load_profile", lambda name, kind: Profile())
    assert list(uncertain(["eager"], "gpu_a", ("cpu_",))) == [
        "p.read_us", "p.uncertain_us", "p.newer_us"]


def test_constants_of_systems_that_are_not_compared_are_left_out():
    names = names_of(DEMO, "eager")
    assert {"gpu_rtx8000.launch_us", "software_eager.operator_us", "mpi_ethernet.message_us",
            "nccl_network.hop_simple_us"} <= set(names)
    assert not any(name.startswith(("cpu_", "software_tuned")) for name in names)


# Draws and designs.

def test_draws_are_log_uniform_from_half_to_double_and_independent():
    found = np.log2(drawn(NAMES, 4000, 1))
    assert found.shape == (4000, 3) and -1 <= found.min() < -0.99 < 0.99 < found.max() <= 1
    assert np.allclose(np.percentile(found, (25, 50, 75), axis=0).T, (-0.5, 0, 0.5), atol=0.06)
    assert np.abs(np.corrcoef(found.T) - np.eye(3)).max() < 0.05


def test_a_draw_of_a_constant_depends_on_nothing_but_name_seed_and_number():
    assert np.array_equal(drawn(NAMES, 10, 1)[:, 1], drawn(NAMES[1:], 30, 1)[:10, 0])
    assert not np.array_equal(drawn(NAMES, 10, 1), drawn(NAMES, 10, 2))
    assert drawn((), 4, 1).shape == (4, 0)


def test_a_latin_hypercube_has_a_point_in_each_slice_of_every_axis():
    points = latin_hypercube(20, 3, 1)
    assert [sorted(np.floor(axis * 20).astype(int)) for axis in points.T] == [list(range(20))] * 3


def test_constants_that_do_not_reach_nics_need_no_runs():
    found = reaching(FULL, names_of(DEMO, "eager"))
    assert "gpu_rtx8000.launch_us" in found and "gpu_rtx8000.gemm_fraction" in found
    assert not {"gpu_rtx8000.stream_fraction", "mpi_ethernet.message_us",
                "software_eager.copy_us"} & set(found)


def test_a_design_has_as_many_sets_as_it_may_and_fills_every_axis():
    names = [names_of(DEMO, software) for software in ("eager", "tuned")]
    points = design([FULL, TUNED], names, 14, 1)
    assert len(points) == len(set(points)) == 14 >= sets_of(points) >= 12
    assert points[0] == FULL and {point.cluster.software for point in points} == {"eager", "tuned"}
    launch = [dict(scaled)["gpu_rtx8000.launch_us"] for scaled in (
        point.cluster.scaled for point in points) if scaled]
    assert min(launch) < WIDEST ** -0.7 and max(launch) > WIDEST ** 0.7
    with pytest.raises(ValueError, match="nic_sets must be at least 4 for each workload, not 3"):
        design([FULL, TUNED], names, 3, 1)


def test_the_sets_of_both_workloads_are_not_more_than_the_setting_allows():
    assert sum(sets_by_workload(DEMO).values()) == DEMO.nic_sets == 64
    cases = list(cases_of(replace(DEMO, nic_sets=12, draws=120)))
    assert sets_of(dict.fromkeys(
        point for case in cases if not case.workload.training and case.full.kind.name != "en"
        for point in case.sets)) <= 8
    assert [(each.first, each.count) for each in cases[0].draws] == [(0, 50), (50, 50), (100, 20)]
    assert len({case.left_out for case in cases if case.full.kind.name != "en"}) == 2
    assert [(case.workload.workload, case.full.cluster.software) for case in cases] == [
        ("inference", "eager"), ("inference", "tuned"), ("training", "eager"),
        ("training", "tuned"), ("inference", "tuned")]
    # EN has further sets, which are not measured as points.
    assert cases[-1].full.kind.name == "en" and not set(cases[-1].sets[1:]) & set(cases[-1].points)
    assert 2 < sets_of(cases[-1].sets) <= 5


# Constants that NICs see.

def test_gpus_that_serve_nics_alike_share_runs():
    as_is = replace(load_profile("gpu_rtx8000", GpuProfile), memory_bandwidth_gb_s=672.0,
                    access_bytes=64, gather_fraction=1.0, float32_tflops=16.3, gemm_fraction=1.0)
    seen = as_nics_see(as_is, 64)
    for fields in ({"stream_fraction": 0.5}, {"access_bytes": 32}, {"poll_us": 1.0},
                   {"multiprocessors": 7}, {"block_bytes": 512},
                   {"gather_fraction": 0.5, "memory_bandwidth_gb_s": 1344.0},
                   {"gather_fraction": 0.5, "memory_bandwidth_gb_s": 2688.0, "access_bytes": 128},
                   {"gemm_fraction": 0.5, "float32_tflops": 32.6}):
        assert as_nics_see(replace(as_is, **fields), 64) == seen
    for fields in ({"launch_us": 2.0}, {"kernel_us": 1.0}, {"access_bytes": 128},
                   {"gather_fraction": 0.5}, {"gemm_fraction": 0.5}, {"call_us": 3.0}):
        assert as_nics_see(replace(as_is, **fields), 64) != seen


def test_a_run_takes_as_long_with_what_nics_see_of_a_gpu_as_with_its_profile():
    plain = options()
    gpu = replace(plain.workload.gpu, access_bytes=128, gather_fraction=0.3, gemm_fraction=0.1,
                  stream_fraction=0.2, multiprocessors=5, block_bytes=77, poll_us=9.0)
    trace = trace_of(Point.named("lc+rc", nodes=2, mini_batch=16, warmup=2, measured=4,
                                 window=32).workload)
    runs = [run_of(replace(plain, workload=replace(plain.workload, gpu=each)), trace.batches)
            for each in (gpu, as_nics_see(gpu, 64))]
    assert runs[0] == runs[1]


# The interpolator.

def nic_like(at: np.ndarray) -> np.ndarray:
    """Times that depend nonlinearly on the launch time and have a floor."""
    launch, rate = np.exp(at.T)
    return np.array([20 + 3 * np.maximum(launch, 4.0) + 8 / rate, launch ** 1.5 + 2]).T


def test_it_finds_what_lies_between_its_points():
    at = np.log(WIDEST) * (2 * latin_hypercube(30, 2, 1) - 1) + (1.0, 0.0)
    other = np.log(WIDEST) * (2 * latin_hypercube(50, 2, 2) - 1) + (1.0, 0.0)
    smooth = Smooth(at, nic_like(at))
    errors = np.abs(smooth.at(other) / nic_like(other) - 1)
    assert np.median(errors) < 0.002 and errors.max() < 0.03
    # It is nearly exact at its points; the leave-one-out error is close to the error elsewhere.
    assert np.allclose(smooth.at(at), nic_like(at), rtol=2e-3)
    left_out = np.abs(smooth.left_out() / nic_like(at) - 1)
    assert np.median(errors) / 4 < np.median(left_out) < 4 * np.median(errors)


def test_leaving_a_point_out_is_fitting_without_it():
    at = latin_hypercube(8, 1, 1)
    values = np.exp(at)
    smooth = Smooth(at, values)
    for number in range(8):
        rest = np.delete(np.arange(8), number)
        fewer = Smooth(at[rest], values[rest])
        # With the same covariance, centre and scale, without a new fit.
        fewer._centre, fewer._scale = smooth._centre, smooth._scale
        fewer._mean, fewer._height = smooth._mean, smooth._height
        fewer._at = smooth._at[rest]
        fewer._logs = smooth._logs[rest]
        fewer._covariance = smooth._covariance
        fewer._inverse = fewer._covariance.inverse(fewer._at)
        assert fewer.at(at[[number]])[0] == pytest.approx(smooth.left_out()[number], rel=1e-6)


def test_the_error_tells_where_it_cannot_interpolate():
    """Noise, or a jump at each point, is not a smooth function of the constants."""
    at = latin_hypercube(30, 2, 1)
    rough = 20 * np.exp(np.random.default_rng(3).normal(0, 0.2, (30, 1)))
    errors = np.abs(Smooth(at, rough).left_out() / rough - 1)
    assert np.median(errors) > 0.03


def test_values_that_are_nothing_stay_nothing():
    at = latin_hypercube(6, 2, 1)
    assert np.allclose(Smooth(at, np.zeros((6, 2))).at(at), 0)
    assert np.allclose(Smooth(at[:, :0], np.full((6, 1), 5.0)).at(at[:, :0]), 5)
    with pytest.raises(ValueError, match="points must be at least 3, not 2"):
        Smooth(at[:2], at[:2])


# EN.

EN = Point.named("en", dataset="avazu", software="tuned", nodes=2, mini_batch=16, warmup=2,
                 measured=4, per_graph=None)


def test_constants_of_what_en_adds_are_drawn():
    names = names_of(DEMO, "tuned")
    assert {"gpu_rtx8000.poll_us", "gpu_rtx8000.resident_multiprocessors", "pcie_gen3x16.write_us",
            "software_tuned.doorbell_us", "software_tuned.graph_us",
            "software_tuned.synchronize_us"} <= set(names)
    # EN's NICs see the resident kernel's constants; FS's NICs do not.
    own = set(reaching(EN, names)) - set(reaching(TUNED, names))
    assert own == {"gpu_rtx8000.poll_us", "gpu_rtx8000.resident_multiprocessors",
                   "pcie_gen3x16.write_us"}


def test_sets_of_en_differ_in_what_its_nics_see_whichever_way_they_get_rows():
    """The way is chosen later: a launched gather depends on other constants than a ring."""
    names = names_of(DEMO, "tuned")
    sets = design([EN], [names], 12, 1)
    for ring in ("true", "false"):
        found = [nic_constants(each.changed(fixed=(f"ring={ring}",)))[GATHER] for each in sets]
        assert len(set(found)) == 12, ring


@pytest.mark.thorough
def test_en_keeps_its_options_while_constants_are_drawn(runs):
    settled_one = settled(EN, runs)
    assert len(settled_one.system.fixed) == len(vars(EnTuning()))
    assert settled_one.system.in_flight and settled_one.system.per_graph
    nic = run_nics(settled_one, runs)
    as_is = measure(EN, runs)["interval_us"]
    assert interval_of(settled_one, nic) == measure(settled_one, runs)["interval_us"] == as_is
    # A draw equals a run of its NICs.
    names = ("gpu_rtx8000.poll_us", "software_tuned.graph_us")
    sets = tuple(design([EN], [names], 6, 1))
    base = replace(EN, system=Options("bl-tuned", per_graph=None))
    draws = Draws(EN, sets, (base,), names, 0, 3, 1)
    found = draws.measured(runs)["speedups"]["bl-tuned"]
    factors = drawn(names, 3, 1)
    for value, each in zip(found, factors):
        own, other = (measure(scaled_by(point, names, each), runs)["interval_us"]
                      for point in (settled_one, base))
        assert value == pytest.approx(other / own, rel=0.03)
    assert LeftOut(EN, sets).measured(runs)["most"] < 0.1
    assert in_words(draws) == "draws 0 to 2, avazu, inference, EN, tuned"


# Points and tasks.

@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Store:
    return Store(tmp_path_factory.mktemp("runs"), "v")


@pytest.fixture(scope="module")
def sets() -> tuple[Point, ...]:
    return tuple(design([FULL, TUNED], [NAMES[:2]] * 2, 12, 1))


@pytest.mark.thorough
def test_a_step_is_put_together_as_a_point_is_measured(runs):
    for workload in ("inference", "training"):
        for point in (Point.named("fs", workload=workload, nodes=2, mini_batch=16, warmup=2,
                                  measured=4, window=32), BASES[1].changed(workload=workload)):
            nic = run_nics(point, runs)
            assert interval_of(point, nic) == measure(point, runs)["interval_us"]


def test_times_between_the_sets_are_near_those_of_runs(sets, runs):
    nics = Interpolated(sets, runs)
    assert nics.axes == [GATHER, "gpu.float32_tflops"]
    point = scaled_by(FULL, NAMES[:2], (1.3, 0.8))
    found, true = nics.times(point), run_nics(point, runs).times
    assert len(found) == len(true) == 4
    for own, other in zip(found, true):
        assert own.service_us == pytest.approx(other.service_us, rel=0.1)
        assert list(own.phases) == list(other.phases)
    assert found[0].interval_us == pytest.approx(true[0].interval_us, rel=0.1)
    assert set(nics.errors()) >= {"service_us", "interval_us", "launches"}


def test_launches_fit_between_two_mini_batches(sets, runs):
    """The driver's thread makes one call at a time, in runs and in the interpolation."""
    nics = Interpolated(sets, runs)
    runs_of = [(point, part.times) for point, part in zip(nics.points, nics.parts)]
    slow = scaled_by(FULL, ("software_eager.launch_call_us",), (16.0,))  # far beyond all sets
    for point, times in [*runs_of, *zip(nics.points, nics.left_out()), (slow, nics.times(slow))]:
        call_us = nic_constants(point)["gpu.call_us"]
        for each in times:
            assert 0 < each.launches * call_us <= each.interval_us * (1 + 1e-12)


@pytest.mark.thorough
def test_draws_change_with_their_constants_and_chunks_do_not_matter(sets, runs):
    whole = Draws(FULL, sets, BASES, NAMES, 0, 6, 1)
    found = whole.measured(runs)["speedups"]
    assert set(found) == {"bl-paper", "bl-tuned"} and len(set(found["bl-paper"])) == 6
    assert replace(whole, first=4, count=2).measured(runs)["speedups"] == {
        base: values[4:] for base, values in found.items()}
    # Equal to the same draw with its NICs run.
    full, base = (scaled_by(point, NAMES, drawn(NAMES, 6, 1)[5]) for point in (FULL, BASES[0]))
    own, other = (measure(point, runs)["interval_us"] for point in (full, base))
    assert found["bl-paper"][5] == pytest.approx(other / own, rel=0.03)


def test_the_error_of_a_speedup_is_that_of_sets_left_out(sets, runs):
    found = LeftOut(FULL, sets).measured(runs)
    assert found["sets"] == 12 and 0 <= found["median"] <= found["most"] < 0.2
    nics = Interpolated(sets, runs)
    errors = [abs(interval_of(point, part, times) / interval_of(point, part) - 1)
              for point, part, times in zip(nics.points, nics.parts, nics.left_out())]
    assert found["median"] == median(errors) and found["most"] == max(errors)


def test_tasks_are_measured_after_points_and_kept_like_them(sets, tmp_path):
    draws = Draws(FULL, sets, BASES, NAMES, 50, 50, 1)
    left_out = LeftOut(FULL, sets)
    assert in_turn([draws, FULL, left_out, TUNED])[2:] == [draws, left_out]
    assert effort(draws) > 0 < effort(left_out)
    assert in_words(draws) == "draws 50 to 99, kaggle, inference, eager"
    assert in_words(left_out) == "leave-one-out, kaggle, inference"
    store = Store(tmp_path, "v")
    store.put(draws, {"speedups": {}})
    assert store.get(draws) == {"speedups": {}} and store.get(replace(draws, seed=2)) is None
    assert Store(tmp_path, "v") == store != Store(tmp_path, "w")
    assert hash(Store(tmp_path, "v")) == hash(store)


def test_points_that_differ_for_nics_never_share_an_axis_value_in_all():
    """Launch plus kernel is one axis, and kernel another."""
    points = [scaled_by(FULL, ["gpu_rtx8000.launch_us", "gpu_rtx8000.kernel_us"], factors)
              for factors in ((1, 1), (1, 2), (2, 1), (0.5, 2), (2, 0.5))]
    assert sets_of(points) == len(points) and sets_of([*points, points[0]]) == len(points)
    seen = nic_constants(points[2])
    gpu = Devices.load(2).gpu.gpu
    assert seen[GATHER] == pytest.approx(2 * gpu.launch_us + gpu.kernel_us)
    assert "gpu.launch_us" not in seen and seen["gpu.kernel_us"] == gpu.kernel_us


def test_the_scaled_network_reaches_the_runs_of_nics():
    slow = scaled_by(FULL, ["ethernet_100g_switch.bandwidth_gbit_s"], [0.1])
    assert nic_constants(slow)["network.bandwidth_gbit_s"] == pytest.approx(10.0)
    assert devices_of(slow.cluster).network.bandwidth_gbit_s == pytest.approx(10.0)
