"""Profiles adopt measured values, also in fields that the list does not know."""

from dataclasses import dataclass, fields

import pytest

from host.calibrate.gpu import profiles
from host.calibrate.gpu.profiles import derive_profiles
from host.calibrate.reading import Book, number
from host.devices.software import SoftwareProfile
from host.measurements.readings import h100_rows, h100_us
from host.timing.gpu import GpuProfile
from host.toml.profile import load_profile


def _book(**values):
    book = Book()
    for name, value in values.items():
        book.add(number(name.replace("__", "."), value, "counted"))
    return book


def test_without_readings_a_profile_is_the_one_that_ships():
    found = derive_profiles("gpu_x", Book())
    shipped = load_profile("gpu_rtx8000", GpuProfile)
    assert found.gpu.launch_us == shipped.launch_us
    assert found.gpu.source["launch_us"] == f"{shipped.source['launch_us']}; not measured"
    assert found.gpu.source["streams"] == shipped.source["streams"]  # a choice
    assert found.tuned.operator_us == load_profile("software_tuned", SoftwareProfile).operator_us


def test_the_better_reading_of_a_field_wins():
    rough = _book(rates__launch_us=7.0, rates__call_us=9.0)
    assert derive_profiles("gpu_x", rough).gpu.launch_us == 7.0
    assert derive_profiles("gpu_x", rough).eager.operator_us == 9.0
    fine = _book(rates__launch_us=7.0, rates__call_us=9.0, launch__first_idle_us=9.0,
                 launch__single_us=2.5, resident__1__round_trip_us=3.0,
                 operators__addmm__python_us=6.0, operators__relu__python_us=4.0,
                 operators__embedding_bag__python_us=15.0, operators__bmm__python_us=5.0)
    found = derive_profiles("gpu_x", fine)
    assert found.gpu.launch_us == 9.0 - 2.5 - 1.5
    assert found.gpu.source["launch_us"].startswith("[M] launch.first_idle_us, launch.single_us")
    assert found.eager.operator_us == found.tuned.operator_us == 5.5


def test_fields_of_kernels_that_stay_and_of_launches_are_filled():
    found = derive_profiles("gpu_x", _book(
        device__multiprocessors=132, launch__call_us=2.1, resident__1__round_trip_us=2.5,
        resident__4__round_trip_us=3.25, resident__1__1_rows_us=3.75))
    assert found.gpu.multiprocessors == 132 and isinstance(found.gpu.multiprocessors, int)
    assert found.gpu.poll_us == pytest.approx(0.75 + 1.25)
    assert found.tuned.launch_call_us == found.eager.launch_call_us == 2.1
    shipped = load_profile("software_tuned", SoftwareProfile)
    for name in ("doorbell_us", "kernels", "packed_inputs", "collective"):
        assert getattr(found.tuned, name) == getattr(shipped, name)


def test_graphs_cost_only_software_that_has_them():
    found = derive_profiles("gpu_x", _book(graph__14__python_us=7.5, graph__14__call_us=3.0))
    assert (found.eager.graph_us, found.tuned.graph_us) == (0.0, 3.0)


def test_a_graph_costs_its_launch_with_the_whole_work_of_a_mini_batch():
    """Graphs of empty kernels launch in a quarter of the time."""
    calls = {f"en__{case}__{half}__1__call_us": us for case, half, us in (
        ("kaggle__32", "en", 4.0), ("kaggle__32", "tuned", 5.0),
        ("kaggle__32__tf32", "en", 3.0), ("kaggle__32__tf32", "tuned", 9.0))}
    found = derive_profiles("gpu_x", _book(graph__14__call_us=1.1, **calls))
    assert (found.eager.graph_us, found.tuned.graph_us) == (0.0, 4.5)
    assert found.tuned.source["graph_us"].startswith("[M] en.kaggle.32.en.1.call_us, ")


def test_a_further_mini_batch_in_a_graph_costs_a_launch():
    """Launching Kaggle's graphs of 2 to 8 mini-batches: no reading is further than a quarter from
    as many launches, and their mean is within 2 %.
    """
    each = load_profile("software_tuned_h100", SoftwareProfile).graph_us
    ratios = [count * each / h100_us()[f"en.kaggle.32.{case}{half}.{count}.call_us"]
              for case in ("", "tf32.") for half in ("en", "tuned") for count in (2, 4, 8)]
    assert all(0.75 < ratio < 1.25 for ratio in ratios)
    assert sum(ratios) / len(ratios) == pytest.approx(0.96, abs=0.02)


@dataclass(frozen=True)
class _Later(GpuProfile):
    """A profile with an additional field."""

    resident_round_trip_us: float = 5.0
    another_us: float = 0.3
    another_count: int = 3


def test_a_new_field_is_filled_by_the_reading_of_its_name(monkeypatch):
    monkeypatch.setattr(profiles, "load_profile", lambda name, kind: (
        load_profile(name, _Later if kind is GpuProfile else kind)))
    monkeypatch.setitem(profiles._SOURCES, _Later, profiles._SOURCES[GpuProfile])
    gpu = derive_profiles("gpu_x", _book(device__multiprocessors=132.0, another__count=5.0,
                                         resident__round_trip_us=2.25)).gpu
    assert isinstance(gpu, _Later) and gpu.multiprocessors == 132
    assert gpu.another_count == 5 and isinstance(gpu.another_count, int)
    assert gpu.resident_round_trip_us == pytest.approx(2.25)
    assert gpu.source["resident_round_trip_us"].startswith("[M] resident.round_trip_us, median")
    assert gpu.another_us == 0.3
    assert gpu.source["another_us"] == "[U] the profile does not say; not measured"


def test_rows_count_from_the_projects_own_gather():
    # Rows of 64 B take 5 us, without the kernel and sequential bytes, and rows of 256 B 9.5 us.
    found = derive_profiles("gpu_x", _book(
        rates__stream_gb_s=2000.0, rates__gather_gb_s=100.0, rates__node_us=1.0,
        gather__65536x64B__kernel__cold_us=1.0 + 65536 * 72 / 2e6 + 5.0,
        gather__65536x256B__kernel__cold_us=1.0 + 65536 * 264 / 2e6 + 9.5,
        gather__64x64B__kernel__cold_us=2.5))
    assert found.gpu.gather_fraction == pytest.approx(65536 * 256 / 9.5 / 2e6)
    assert found.gpu.access_bytes == 128  # next to 256 * 5 / 9.5
    assert found.gpu.read_us == 0.75
    assert derive_profiles("gpu_x", _book(
        rates__stream_gb_s=2000.0, rates__gather_gb_s=100.0)).gpu.gather_fraction == 0.05


def test_words_and_flushes_are_those_of_the_gpu():
    found = derive_profiles("gpu_x", _book(
        device__capability=9.0, held__1__in_order__first_us=6.5, release__poll_us=3.5,
        resident__1__round_trip_us=2.5, resident__4__round_trip_us=3.25,
        resident__1__1_rows_us=3.75)).gpu
    assert found.word_us == pytest.approx(3.0 + found.poll_us)
    assert found.flush_reads == 0
    assert derive_profiles("gpu_x", _book(device__capability=8.0)).gpu.flush_reads == 1


def test_the_profiles_that_ship_are_those_of_the_readings_that_ship():
    book = Book()
    for row in h100_rows():
        book.add(number(row["name"], float(row["value"]), row["about"], row["unit"]))
    found = derive_profiles("gpu_h100", book)
    for profile in found.all:
        ships = load_profile(profile.name, type(profile))
        for name in (field.name for field in fields(profile)):
            value = getattr(profile, name)
            if name != "source":
                assert getattr(ships, name) == (
                    pytest.approx(value, rel=1e-5) if isinstance(value, float) else value)
