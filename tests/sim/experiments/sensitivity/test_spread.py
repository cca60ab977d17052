"""Draws of constants, and the ratios of systems over them."""

from dataclasses import replace

import numpy as np
import pytest

from host.placement.deal import PLACEMENTS
from host.systems import EnTuning
from sim.evaluation.compared import formed_best
from sim.evaluation.measure import measure
from sim.evaluation.point import Point, effort, in_words
from sim.evaluation.site import Site
from sim.evaluation.store import Store
from sim.experiments.results.cases import Measured
from sim.experiments.sensitivity.draws import drawn
from sim.experiments.sensitivity.spread import Drawn, Spread, nic_constants, scaled_by

WIDTHS = (("software_tuned_h100.graph_us", 2.0), ("software_tuned_h100.doorbell_us", 4.0),
          ("mpi_ethernet.message_us", 1.5))

COMMON = {"nodes": 2, "mini_batch": 32, "warmup": 2, "measured": 2, "in_flight": 16,
          "per_graph": 1, "software": "tuned_h100", "gpu": "gpu_h100", "rdma": True}
BASE, FULL, EN = (Point.named(system, COMMON) for system in ("bl-tuned", "fs", "en"))


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Store:
    return Store(tmp_path_factory.mktemp("runs"), "v")


@pytest.fixture(scope="module")
def found(runs) -> dict:
    return Spread(BASE, (("fs", FULL), ("en", EN)), WIDTHS[:2], 3, 1).measured(runs)


# Draws.

def test_draws_are_log_uniform_over_their_ranges_and_independent():
    factors = drawn(WIDTHS, 4000, 1)
    found = np.log(factors) / np.log([width for _, width in WIDTHS])
    assert found.shape == (4000, 3) and -1 <= found.min() < -0.99 < 0.99 < found.max() <= 1
    assert np.allclose(np.percentile(found, (25, 50, 75), axis=0).T, (-0.5, 0, 0.5), atol=0.01)
    assert np.abs(np.corrcoef(found.T) - np.eye(3)).max() < 0.05


def test_each_slice_of_a_range_has_one_draw():
    places = (np.log(drawn(WIDTHS, 20, 1)) / np.log([width for _, width in WIDTHS]) + 1) / 2
    assert [sorted(np.floor(axis * 20).astype(int)) for axis in places.T] == [list(range(20))] * 3


def test_a_draw_of_a_constant_depends_on_nothing_but_name_width_count_and_seed():
    assert np.array_equal(drawn(WIDTHS, 10, 1)[:, 1], drawn(WIDTHS[1:], 10, 1)[:, 0])
    assert not np.array_equal(drawn(WIDTHS, 10, 1), drawn(WIDTHS, 10, 2))
    assert drawn((), 4, 1).shape == (4, 0)


# Ratios.

@pytest.mark.thorough
def test_the_nominal_ratio_is_that_of_the_measured_systems(found, runs):
    full = formed_best("fs", FULL, runs=runs).point
    us = {point.kind.name: measure(point, runs)["interval_us"] for point in (BASE, full, EN)}
    assert found["nominal"] == {"fs": us["bl-tuned"] / us["lc+rc+sc"],
                                "en": us["bl-tuned"] / us["en"]}


@pytest.mark.thorough
def test_a_draw_is_the_ratio_with_its_constants_of_the_best_baseline(found, runs):
    """EN may also choose other NICs, which hardly helps."""
    names = [name for name, _ in WIDTHS[:2]]
    factors = [list(zip(names, row)) for row in drawn(WIDTHS[:2], 3, 1).tolist()]
    for name, point in (("fs", FULL), ("en", EN)):
        assert len(set(found["draws"][name])) == 3
        for value, each in zip(found["draws"][name], factors):
            base, own = (scaled_by(of, each).kind.at(Site.of(scaled_by(of, each), runs))[0]
                         .interval_us for of in (BASE, point))
            assert value == pytest.approx(base / own, rel=0.01)


def test_ends_are_the_ratios_at_the_ends_of_each_range(found, runs):
    systems = [Drawn.of(point, runs) for point in (BASE, EN)]
    for name, width in WIDTHS[:1]:
        for value, factor in zip(found["ends"]["en"][name], (1 / width, width)):
            base, own = (each.interval_us([(name, factor)]) for each in systems)
            assert value == base / own
    least, most = found["ends"]["en"]["software_tuned_h100.graph_us"]
    assert len({least, found["nominal"]["en"], most}) == 3


def test_en_keeps_the_options_of_its_nics_and_searches_those_of_the_host(runs):
    drawn_en = Drawn.of(EN, runs)
    kept = {text.partition("=")[0] for text in drawn_en.point.system.fixed}
    assert kept == set(vars(EnTuning())) - {"threads", "communicators", "key_bytes"}
    assert drawn_en.point.flights == EN.flights
    fixed = Drawn.of(EN.changed(fixed=("threads=1",)), runs).point.system.fixed
    assert fixed.count("threads=1") == 1


def test_a_change_may_keep_the_options_of_nics(runs):
    name, factor = "software_tuned_h100.graph_us", 3.0
    kept = Measured("en", scaled_by(EN, [(name, factor)]), 1 << 40, like=EN)
    assert kept.measured(runs)["interval_us"] == pytest.approx(
        Drawn.of(EN, runs).interval_us([(name, factor)]))


def test_the_placement_of_nominal_constants_stays(runs):
    found = Drawn.of(FULL.changed(placement=None), runs)
    assert found.point.cluster.placement in PLACEMENTS and found.nic is not None
    assert Drawn.of(FULL.changed(placement=None), runs, memory=1) is None


def test_constants_that_change_the_nics_own_times_are_named(found, runs):
    assert found["held"] == {"fs": [], "en": []}
    slow = Drawn.of(FULL.changed(gpu="gpu_rtx8000", software="tuned"), runs)
    assert slow.held((("gpu_rtx8000.launch_us", 2.0), ("mpi_ethernet.message_us", 2.0))) == [
        "gpu_rtx8000.launch_us"]
    ring = nic_constants(EN.changed(fixed=("ring=true", "reads=false")))
    resident = EN.changed(fixed=("ring=true", "reads=false"),
                          scaled=(("gpu_h100.resident_multiprocessors", 4.0),))
    assert nic_constants(resident) != ring
    faster = scaled_by(FULL, [("ethernet_100g_switch.bandwidth_gbit_s", 0.1)])
    assert nic_constants(faster)["network.bandwidth_gbit_s"] == pytest.approx(10.0)


def test_a_system_that_cannot_be_built_has_no_ratio(runs):
    unbuilt = EN.changed(gpu="gpu_rtx8000", software="tuned", fixed=("reads=true", "ring=false"))
    assert Drawn.of(unbuilt, runs) is None
    none = Spread(unbuilt, (("en", EN),), WIDTHS[:1], 2, 1).measured(runs)
    assert none["nominal"] == none["draws"] == none["ends"] == {}


def test_a_spread_is_stored_and_described_like_a_point(tmp_path):
    spread = Spread(BASE, (("en", EN),), WIDTHS)
    assert in_words(spread).startswith("40 draws of constants, ") and effort(spread) > 0
    store = Store(tmp_path, "v")
    store.put(spread, {"draws": {}})
    assert store.get(spread) == {"draws": {}} and store.get(replace(spread, seed=2)) is None
    assert store.get(replace(spread, widths=WIDTHS[1:])) is None
