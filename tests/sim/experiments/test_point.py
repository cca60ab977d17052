"""Points and the names of systems."""

from dataclasses import fields, replace

import pytest

from sim.evaluation import systems
from sim.evaluation.fields import Options
from sim.evaluation.measure import measure
from sim.evaluation.point import Point
from sim.evaluation.setting import DEMO
from sim.evaluation.system import PARTS
from sim.evaluation.systems import SYSTEMS, SmartNic, canonical
from sim.serving.setting import Setting as Serving
from sim.serving.setting import points_of


@pytest.mark.parametrize("name, workload, found", [
    ("fs", "inference", ("lc+rc+sc", True)),
    ("fs", "training", ("lc+sc", True)),
    ("sc+lc", "inference", ("lc+sc", False)),
    ("ga", "inference", ("bl-paper", True)),
    ("rc+ga", "inference", ("rc", True)),
    ("bl-tuned+ga", "training", ("bl-tuned", True)),
    ("nic", "inference", ("nic", False)),
    ("EN", "inference", ("en", False)),
    ("BL-tuned+GA", "inference", ("bl-tuned", True)),
])
def test_names_of_systems(name, workload, found):
    assert canonical(name, workload) == found


@pytest.mark.parametrize("name", ["", "gpu", "lc+nic", "bl-paper+lc", "lc-rc"])
def test_a_name_that_is_none_is_refused_in_one_line(name):
    with pytest.raises(ValueError) as error:
        canonical(name)
    assert f"not {name!r}" in str(error.value) and "\n" not in str(error.value)


def test_no_remote_cache_in_training():
    with pytest.raises(ValueError, match="system must be without rc in training"):
        Point.named("rc", workload="training")


def test_every_canonical_name_is_its_own():
    assert [canonical(name)[0] for name in SYSTEMS] == list(SYSTEMS)


def test_a_point_has_three_parts_and_only_options_of_its_system():
    given = {"dataset": "avazu", "data": ["a", "b"], "format": "avazu", "nodes": 8,
             "scaled": [["gpu_rtx8000.launch_us", 0.5]], "per_graph": None}
    point = Point.named("fs", **given | {"data": ("a", "b"),
                                         "scaled": (("gpu_rtx8000.launch_us", 0.5),)})
    assert [part.name for part in fields(point)] == ["workload", "cluster", "system"]
    values = point.to_json()
    assert given.items() <= values.items() and values["system"] == "lc+rc+sc"
    assert point.label == "FS" and point.workload.batching == "graph"
    assert point.changed(nodes=4, seed=2).changed(nodes=8, seed=1) == point
    assert hash(point.changed(nodes=8)) == hash(point)
    own = {name: set(Point.named(name, per_graph=1).to_json()) for name in SYSTEMS}
    assert "copied_rows" in own["all-on-nic"] - own["en"] and not own["en"] - own["nic"]
    assert own["nic"] - own["all-on-nic"] == {
        "persistent_gather", "pace_us", "owner_tables", "update", "own_bags", "repeats"}
    assert own["en"] - own["bl-tuned"] == {
        "fidelity", "local_cache", "remote_cache", "settings", "sampled"}
    with pytest.raises(ValueError, match="system must be SmartNicOptions of"):
        replace(point, system=Options("lc"))


def test_common_fields_are_taken_as_far_as_a_system_has_them():
    common = {"nodes": 2, "fidelity": "rtl", "local_cache": 0.5, "remote_cache": 0.5,
              "fixed": ("ring=false",)}
    assert Point.named("bl-tuned", common) == Point.named("bl-tuned", nodes=2)
    assert Point.named("lc", common) == Point.named("lc", nodes=2, fidelity="rtl", local_cache=0.5)
    assert Point.named("fs", common, workload="training").system.remote_cache == 0
    assert Point.named("en", common).system.fixed == ("ring=false",)


@pytest.mark.parametrize("given, said", [
    ({"dataset": "x"}, "model must be one of kaggle, .* or a TOML file, not 'x'"),
    ({"gpu": "tpu"}, "gpu must be one of"),
    ({"batching": "random"}, "batching must be one of"),
    ({"window": 127}, "window must be at least 128, not 127"),
    ({"system": "lc", "local_cache": 1.5}, "local_cache must be between 0 and 1, not 1.5"),
    ({"in_flight": 2, "workload": "training"}, "in_flight must be 1 in training, not 2"),
    ({"scaled": (("a.b", 0.0),)}, "scaled must be above 0, not 0.0 for a.b"),
    ({"measured": 1}, "measured must be at least 2, not 1"),
    ({"kernels": 4}, "kernels must be one of 0, 1, 2, 3, not 4"),
    ({"system": "nic", "copied_rows": -1}, "copied_rows must be at least 0, not -1"),
    ({"copied_rows": 9}, "copied_rows must go with a system that has it, not with 'bl-paper'"),
    ({"system": "en", "copied_rows": 9}, "copied_rows must go with a system that has it"),
    ({"system": "nic", "workload": "training", "copied_rows": 9},
     "copied_rows must be 0 in training, not 9"),
    ({"fixed": ("ring=false",)}, "fixed must be empty for bl-paper, which has no options"),
    ({"system": "en", "fixed": ("rings=false",)}, "fixed must name one of threads, communicators"),
    ({"system": "en", "fixed": ("ring=false", "relaunch=true")}, "consistent options"),
    ({"system": "en", "persistent_gather": True},
     "persistent_gather must go with a system that has it, not with 'en'"),
    ({"format": "criteo"}, "format must go with data"),
])
def test_bad_fields(given, said):
    with pytest.raises(ValueError, match=said.replace("(", r"\(")):
        Point.named(**{"system": "bl-paper"} | given)
    point = Point.named("lc+sc")
    with pytest.raises(ValueError, match="system must be SmartNicOptions of the canonical lc"):
        point.changed(system="sc+lc")


def test_labels():
    assert [Point.named(name).label for name in ("bl-paper", "ga", "ga+rc", "nic")] == [
        "BL", "GA+BL", "GA+RC", "NIC alone"]
    assert Point.named("lc", batching="greedy").label == "greedy+LC"


@pytest.mark.parametrize("workload", ["inference", "training"])
def test_a_full_system_with_another_setting_is_a_line_of_the_registry(monkeypatch, workload):
    own = SmartNic("fs-merge", "FS-merge", frozenset(PARTS), True, ("requester_merge=true",))
    monkeypatch.setitem(systems._BY_NAME, own.name, own)
    monkeypatch.setattr(systems, "SYSTEMS", (*SYSTEMS, own.name))
    few = {"workload": workload, "nodes": 2, "mini_batch": 16, "warmup": 2, "measured": 4,
           "window": 32}
    point = Point.named("fs-merge", **few)
    assert point.workload.batching == "graph" and point.label == "FS-merge"
    found, full, merged = map(measure, (
        point, Point.named("fs", **few), Point.named("fs", settings=own.settings, **few)))
    for metrics in (found, full, merged):
        del metrics["point"], metrics["label"]
    assert found == merged != full
    assert DEMO.point("kaggle", "fs-merge", workload).kind is own
    served = points_of(Serving(sizes=(8,)), "fs-merge")
    assert [each.kind for each in served] == [own] * 2
