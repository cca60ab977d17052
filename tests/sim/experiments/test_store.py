"""Dependencies of a result's name, and damaged files."""

import os
import pickle
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import grimp
import pytest
from filelock import FileLock

import host.data.contents
from host.data.contents import contents
from host.errors import InputError
from sim.evaluation.measure import measure
from sim.evaluation.nic_run import RunOf, run_nics
from sim.evaluation.point import Point
from sim.evaluation.store import Store, plain
from sim.evaluation.sweep import sweep
from sim.experiments.sensitivity.tasks import LeftOut
from sim.faults.measure import measure as faulty
from sim.files import identity
from sim.job.options import RunOptions
from sim.serving.measured import measured
from tests.host.test_reading import LEFT
from tests.sim.experiments.fakes import Spot, third

LEFT_OUT = LeftOut(Point.named("bl-paper"), ())


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


def test_profiles_and_data_count_with_their_contents(tmp_path):
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
    os.utime(data, ns=(0, 0))
    assert store.key(point) == keys[-1]
    # Also the data of a point's and a task's workload.
    asked = Point.named("bl-paper", data=(str(data),), format="criteo")
    wanted = (asked, LeftOut(asked, ()), RunOf(RunOptions.of(), asked.workload))
    before = [store.key(each) for each in wanted]
    data.write_text("1\n0\n1\n")
    assert not set(before) & {store.key(each) for each in wanted}


def test_data_changed_in_place_with_size_and_time_as_before_are_other_data(tmp_path):
    data = tmp_path / "train.csv"
    data.write_text("1\n0\n")
    store, point = Store(tmp_path, "v"), Files("none", (str(data),))
    _aged(data)
    store.put(point, {"x": 1})
    assert store.get(point) == {"x": 1}
    _in_place(data, "0\n1\n")
    assert store.get(point) is None
    copy = tmp_path / "copy.csv"
    copy.write_text("1\n0\n")
    copy.replace(data)
    assert store.get(point) == {"x": 1}


def test_counts_beside_a_day_of_dlrm_are_data_too(tmp_path):
    day, counts = tmp_path / "day_0_processed.npz", tmp_path / "day_fea_count.npz"
    day.write_bytes(b"day")
    counts.write_bytes(b"one")
    before = contents(str(day))
    counts.write_bytes(b"two")
    assert contents(str(day))[0] == before[0] and contents(str(day)) != before
    counts.unlink()
    assert contents(str(day)) == before[:1]


def test_a_store_takes_its_checksums_to_other_processes(tmp_path, monkeypatch):
    data = tmp_path / "train.csv"
    data.write_text("1\n")
    _aged(data)
    store, point = Store(tmp_path, "v"), Files("none", (str(data),))
    key, packed = store.key(point), pickle.dumps(store)
    monkeypatch.setattr(host.data.contents, "_known", {})
    monkeypatch.setattr(host.data.contents.google_crc32c, "Checksum", None)
    with pytest.raises(TypeError):
        store.key(point)
    assert pickle.loads(packed).key(point) == key


def test_what_was_made_of_data_that_change_meanwhile_is_not_kept(tmp_path):
    data = tmp_path / "train.csv"
    data.write_text("1\n0\n")
    _aged(data)
    point = Files("none", (str(data),))

    def changing(point: Files) -> dict:
        _in_place(data, "0\n1\n")
        return {"x": data.read_text()}

    store = Store(tmp_path / "points", "v")
    with pytest.raises(InputError, match="was changed while the command read it"):
        sweep([point], changing, store, jobs=1)
    assert store.get(point) is None
    data.write_text("1\n0\n")
    with pytest.raises(InputError, match="was changed while the command read it"):
        store.once(point, lambda: changing(point))
    assert not list(tmp_path.rglob("*.json"))


def _in_place(path: Path, text: str) -> None:
    """Overwrite a file like ``cp`` followed by ``touch -r``: size and time do not change."""
    before = path.stat()
    path.write_text(text)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns)


def _aged(path: Path) -> None:
    """Wait until the checksum of a file is cached."""
    while not contents(str(path)) or os.path.abspath(path) not in host.data.contents._known:
        time.sleep(0.05)


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
    for before, after in (
            ("12.25", "12.26"), ("12.25", "NaN"), ("2\n", "3\n"), ("latency_us", "latency")):
        assert before in text
        path.write_text(text.replace(before, after))
        assert store.get(spot) is None
    assert store.once(spot, lambda: {"latency_us": 12.25, "runs": [1, 2]}) is not None
    assert path.read_text() == text


@pytest.mark.parametrize("made_by", [measure, run_nics, measured, faulty, LeftOut])
def test_a_version_covers_what_a_module_imports_and_nothing_above_it(made_by):
    graph = grimp.build_graph("rtl", "gen", "host", "sim")
    module = made_by.__module__
    loaded = {module, *graph.find_upstream_modules(module)}
    loaded |= {name.rpartition(".")[0] for name in loaded} - {""}
    found = identity._imported(frozenset([module]))
    assert {name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            for name in found} >= loaded
    assert "sim/run/run.py" in found and not any(
        name.startswith(("sim/cli/", "sim/api", "sim/experiments/figures/")) for name in found)


def _forget_sources() -> None:
    for name in ("_sources", "sources_hash", "sources_of"):
        getattr(identity, name).cache_clear()


def test_what_measures_a_point_and_its_class_are_part_of_its_name(tmp_path, monkeypatch, request):
    def keys() -> list[str]:
        _forget_sources()
        return [Store(tmp_path, identity.sources_of(run_nics)).key(Spot("a")),
                Store(tmp_path, identity.sources_of(measure)).key(Spot("a")),
                Store(tmp_path, identity.sources_of(measure)).key(LEFT_OUT)]

    def changed(name: str) -> list[bool]:
        monkeypatch.setattr(identity, "_paths", lambda: paths | {name: tmp_path / "other.py"})
        return [before != after for before, after in zip(own, keys())]

    # Restore the cached sources for later tests, even if this test fails.
    request.addfinalizer(_forget_sources)

    paths, own = identity._paths(), keys()
    (tmp_path / "other.py").write_text("")
    assert changed("sim/run/run.py") == [True, True, True]
    assert changed("host/profiles/gpu_h100.toml") == [True, True, True]
    assert changed("sim/evaluation/measure.py") == [False, True, True]
    assert changed("sim/experiments/sensitivity/tasks.py") == [False, False, True]
    assert changed("sim/page/page.html") == [False, False, False]
    assert changed("sim/experiments/figures/row.py") == [False, False, False]
    monkeypatch.undo()
    assert keys() == own


def test_plain_values():
    assert plain({"a": (1, 2.5)}) == {"a": [1, 2.5]}
    with pytest.raises(ValueError):
        plain(float("inf"))


@pytest.mark.parametrize("kind", LEFT)
def test_what_is_no_file_of_a_point_is_named(tmp_path, kind):
    """A sweep must not wait for it, read it whole, or write to it."""
    store, spot = Store(tmp_path, "v"), Spot("a")
    store.put(spot, {"x": 1})
    path = next(tmp_path.rglob("*.json"))
    path.unlink()
    LEFT[kind](path)
    for reads in (lambda: store.get(spot), lambda: store.once(spot, lambda: {"x": 1}),
                  lambda: sweep([spot], third, store, jobs=1)):
        with pytest.raises(InputError, match=f"^{path}: "):
            reads()


def test_the_profile_of_a_point_is_bounded(tmp_path):
    profile = tmp_path / "gpu.toml"
    profile.symlink_to("/dev/zero")
    with pytest.raises(InputError, match=f"^{profile}: must have at most "):
        Store(tmp_path, "v").key(Files(str(profile)))


def test_each_file_of_a_folder_counts(tmp_path):
    """Files count by position and contents."""
    folder = tmp_path / "days"
    folder.mkdir()
    days = [folder / f"day_{number}.txt" for number in range(3)]
    for number, day in enumerate(days):
        day.write_text(f"{number}\n")
    store, point = Store(tmp_path / "points", "v"), Files("none", (str(folder),))
    keys = [store.key(point)]
    assert store.key(Files("none", tuple(map(str, days)))) != keys[0]  # another name
    for day in days:
        text = day.read_text()
        _in_place(day, "x\n")
        keys.append(store.key(point))
        day.write_text(text)
    assert store.key(point) == keys[0]
    for first, second in ((days[0], days[1]), (days[1], days[2])):
        texts = first.read_text(), second.read_text()
        first.write_text(texts[1])
        second.write_text(texts[0])
        keys.append(store.key(point))
        first.write_text(texts[0])
        second.write_text(texts[1])
    days[2].unlink()
    keys.append(store.key(point))
    assert len(set(keys)) == 7


@dataclass(frozen=True)
class Machines:
    cpu: str
    gpu: str
    note: str = "cpu.txt"
    number: int = 1


def test_each_profile_and_each_field_counts(tmp_path):
    cpu, gpu = tmp_path / "cpu.toml", tmp_path / "gpu.toml"
    cpu.write_text("a = 1\n")
    gpu.write_text("a = 2\n")
    store, point = Store(tmp_path / "points", "v"), Machines(str(cpu), str(gpu))
    keys = [store.key(point), Store(tmp_path / "points", "w").key(point),
            store.key(Machines(str(cpu), str(gpu), number=2)),
            store.key(Machines(str(cpu), str(gpu), "")), store.key(Machines("", str(gpu))),
            store.key(Machines(str(gpu), str(cpu)))]
    for path in (cpu, gpu):
        before = path.read_text()
        path.write_text("a = 3\n")
        keys.append(store.key(point))
        path.write_text(before)
    cpu.write_text("a = 2\n")
    gpu.write_text("a = 1\n")
    keys.append(store.key(point))
    assert len(set(keys)) == 9
    # A name without a profile is not a file.
    assert store.key(Machines("a100", "h100", "nowhere/data.txt"))


def test_stores_are_equal_by_folder_and_version(tmp_path):
    store = Store(tmp_path, "v")
    assert store == Store(str(tmp_path), "v") and hash(store) == hash(Store(tmp_path, "v"))
    assert store not in (Store(tmp_path, "w"), Store(tmp_path / "other", "v"), "v")


def test_a_file_of_another_point_or_schema_counts_as_none(tmp_path):
    """Even with a valid checksum of its metrics, such as after a copy to another name."""
    store, spot = Store(tmp_path, "v"), Spot("a")
    store.put(Spot("b"), {"x": 1})
    other = next(tmp_path.rglob("*.json"))
    store.put(spot, {"x": 2})
    path = next(found for found in tmp_path.rglob("*.json") if found != other)
    path.write_bytes(other.read_bytes())
    assert store.get(spot) is None


def test_a_point_is_made_once(tmp_path):
    made = []

    def make() -> dict:
        made.append(1)
        return {"x": (1, 2)}

    store, spot = Store(tmp_path / "deep" / "points", "v"), Spot("a")
    assert store.once(spot, make) == store.once(spot, make) == {"x": [1, 2]} == store.get(spot)
    assert len(made) == 1


def test_a_point_that_another_process_makes_is_waited_for_or_left(tmp_path):
    store, spot = Store(tmp_path, "v"), Spot("a")
    store.put(spot, {"x": 1})
    path = next(tmp_path.rglob("*.json"))
    text = path.read_text()
    path.unlink()
    held, asked = threading.Event(), threading.Event()

    def hold() -> None:
        with FileLock(path.with_suffix(".lock")):
            held.set()
            asked.wait(10)
            time.sleep(0.2)
            path.write_text(text)

    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(10)
    assert store.once(spot, dict, wait=False) is None
    asked.set()
    assert store.once(spot, lambda: {"x": 2}) == {"x": 1}
    holder.join()


def test_where_no_folder_can_be_made_nothing_is_stored(tmp_path):
    (tmp_path / "file").write_text("")
    store = Store(tmp_path / "file" / "points", "v")
    assert store.once(Spot("a"), lambda: {"x": (1,)}) == {"x": [1]}
