"""What the name of a result depends on, and what a damaged file does."""

from dataclasses import dataclass

import grimp
import pytest

from sim.experiments.points.nic_runs import COMPOSITION, store_of_runs
from sim.files.journal import sources_hash
from sim.files.store import Store, plain
from tests.sim.experiments.fakes import Spot


@dataclass(frozen=True)
class Files:
    gpu: str
    data: tuple[str, ...] = ()


def test_a_point_is_found_by_its_value(tmp_path):
    store = Store(tmp_path, "v")
    store.put(Spot("a", 0.1), {"x": 0.1 + 0.2})
    assert Store(tmp_path, "v").get(Spot("a", 0.1)) == {"x": 0.1 + 0.2}
    assert store.get(Spot("a", 0.2)) is None
    assert Store(tmp_path, "w").get(Spot("a", 0.1)) is None


def test_a_profile_counts_with_its_contents_and_data_with_size_and_time(tmp_path):
    profile, data = tmp_path / "gpu.toml", tmp_path / "train.csv"
    profile.write_text("launch_us = 4\n")
    data.write_text("1\n")
    store, point = Store(tmp_path, "v"), Files(str(profile), (str(data),))
    keys = [store.key(point)]
    profile.write_text("launch_us = 5\n")
    keys.append(store.key(point))
    data.write_text("1\n0\n")
    keys.append(store.key(point))
    assert len(set(keys)) == 3


@pytest.mark.parametrize("text", ["", "{", "[]", '{"point": {"name": "b"}, "metrics": {}}'])
def test_a_damaged_file_counts_as_none(tmp_path, text):
    store, spot = Store(tmp_path, "v"), Spot("a")
    store.put(spot, {})
    next(tmp_path.rglob("*.json")).write_text(text)
    assert store.get(spot) is None


def test_a_changed_digit_counts_as_none(tmp_path):
    store, spot = Store(tmp_path, "v"), Spot("a", 0.5)
    store.put(spot, {"latency_us": 12.25, "runs": [1, 2]})
    path = next(tmp_path.rglob("*.json"))
    text = path.read_text()
    assert store.get(spot) == {"latency_us": 12.25, "runs": [1, 2]}
    for before, after in (("12.25", "12.26"), ("2\n", "3\n"), ("latency_us", "latency")):
        assert before in text
        path.write_text(text.replace(before, after))
        assert store.get(spot) is None
    assert store.once(spot, lambda: {"latency_us": 12.25, "runs": [1, 2]}) is not None
    assert path.read_text() == text


def test_pictures_and_pages_are_no_part_of_the_version():
    assert Store("unused").version != sources_hash()
    assert Store("unused").version == Store("unused").version


def test_runs_of_nics_outlive_the_systems_around_them(tmp_path):
    """What a run loads is part of its version, but for points and what checks their options, whose
    values are in its own."""
    assert store_of_runs(tmp_path).version not in (Store(tmp_path).version, sources_hash())
    graph = grimp.build_graph("rtl", "gen", "host", "sim")
    loaded = graph.find_upstream_modules("sim.experiments.points.nic_runs")
    files = {name.replace(".", "/") + ".py" for name in loaded}
    assert "sim/run/run.py" in files
    assert {name for name in files if name.startswith(COMPOSITION)} == {
        *(f"sim/experiments/points/{name}.py" for name in ("point", "systems")),
        *(f"host/systems/{name}.py" for name in ("en_tuning", "options")),
        "host/devices/software.py"}


def test_plain_values():
    assert plain({"a": (1, 2.5)}) == {"a": [1, 2.5]}
    with pytest.raises(ValueError):
        plain(float("inf"))
