"""What the name of a result depends on, and what a damaged file does."""

from dataclasses import dataclass

import pytest

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


def test_pictures_and_pages_are_no_part_of_the_version():
    assert Store("unused").version != sources_hash()
    assert Store("unused").version == Store("unused").version


def test_plain_values():
    assert plain({"a": (1, 2.5)}) == {"a": [1, 2.5]}
    with pytest.raises(ValueError):
        plain(float("inf"))
