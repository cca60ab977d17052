"""Uncertain constants: the frozen list, and their kinds."""

from dataclasses import dataclass, field, replace
from math import isclose

import pytest

from host.systems.devices import profiles_of
from host.timing.cluster import cluster_names, load_cluster
from host.toml.profile import load_profile, profile_names
from host.toml.provenance import uncertain as is_uncertain
from sim.evaluation.cluster import Cluster, cluster_fields
from sim.experiments.checks.every import comparisons
from sim.experiments.sensitivity import constants
from sim.experiments.sensitivity.constants import frozen, uncertain
from sim.experiments.sensitivity.kinds import KINDS, Kind, in_words, kind_of, width_of


def test_the_frozen_list_has_every_uncertain_constant():
    """New uncertain constants must be added, under the day of their addition."""
    kinds = {name: kind for gpu in profile_names("gpu_") for software in ("eager", "tuned")
             for name, kind in profiles_of(software, gpu).items()}
    now = {f"{name}.{constant.name}" for name, kind in kinds.items()
           for constant in is_uncertain(load_profile(name, kind))}
    assert now <= set(frozen())


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
    monkeypatch.setattr(constants, "profiles_of", lambda *names: {"p": Profile, "cpu_x": Profile})
    monkeypatch.setattr(constants, "load_profile", lambda name, kind: Profile())
    assert list(uncertain(Cluster())) == ["p.read_us", "p.uncertain_us", "p.newer_us"]


def _clusters() -> list[Cluster]:
    return [Cluster(**cluster_fields(load_cluster(name))) for name in cluster_names()] + [
        Cluster(software=software, gpu=gpu) for gpu in profile_names("gpu_")
        for software in ("eager", "tuned")]


def test_every_uncertain_constant_has_a_kind_with_checks():
    names = {name for cluster in _clusters() for name in uncertain(cluster)}
    assert len(names) > 50 and not [name for name in names if kind_of(name) is None]
    for kind in KINDS:
        assert kind.found() and kind.width > 1, kind.name
    measured = uncertain(Cluster(**cluster_fields(load_cluster("h100"))))
    assert "gpu_h100.kernel_us" not in measured and "nccl_network.put_us" in measured


def test_a_range_is_the_largest_error_of_its_checks():
    """Recomputed from the comparisons alone."""
    checks = {(of.name, check.name): check for of in comparisons() for check in of.checks}
    calls = [check.ours / check.theirs for (of, name), check in checks.items()
             if of == "TorchRec README" or "operator by operator" in name]
    assert len(calls) == 6
    assert isclose(width_of("software_eager.operator_us"),
                   max(max(each, 1 / each) for each in calls))
    copies = [check.ours / check.theirs for (_, name), check in checks.items()
              if name.startswith("copy ")]
    assert isclose(width_of("pcie_h100.read_tags"), max(max(each, 1 / each) for each in copies))
    assert width_of("nccl_network.local_hop_ll_us") < width_of("nccl_network.hop_ll_us")
    # Ranges differ by kind.
    assert len({round(kind.width, 3) for kind in KINDS}) == len(KINDS)


def test_a_constant_without_a_check_has_the_widest_range():
    assert width_of("disk_x.rate") == max(kind.width for kind in KINDS)
    assert [each["kind"] for each in in_words(["disk_x.rate", "mpi_ethernet.message_us"])] == [
        "unchecked", "collectives over a network"]
    with pytest.raises(ValueError, match="checks must name a comparison and a check, not"):
        Kind("x", (), (("V100 kernels", "nothing*"),)).found()


def test_kinds_follow_the_checks(monkeypatch):
    """A model with a larger error widens the range of its kind."""
    kind = kind_of("software_tuned_h100.graph_us")
    before, found = kind.width, kind.found()
    monkeypatch.setattr(Kind, "found", lambda self: [
        replace(found[0], ours=100 * found[0].theirs), *found[1:]])
    assert kind.width == pytest.approx(100) and before < 5
