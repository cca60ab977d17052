"""The phase map and the setting nearest to the paper, from made-up measurements."""

import csv
from dataclasses import replace

import pytest

import sim.experiments.reproduce as reproducing
from sim.cli.main import main
from sim.evaluation.fields import devices_of
from sim.evaluation.setting import DEMO, PAPER_LIKE, SETTINGS, Setting, like
from sim.evaluation.store import Store
from sim.evaluation.sweep import sweep
from sim.experiments.maps import cells as cells_module
from sim.experiments.maps.cells import (
    INFERENCE,
    LARGE,
    LINKS,
    MINI_BATCHES,
    OPERATORS,
    Cell,
    cells_of,
    points_of,
    setting_of,
)
from sim.experiments.maps.phase_map import best
from sim.experiments.maps.verdicts import JUDGED, RATIOS, agreeing, ratio, verdicts
from sim.experiments.reproduce import reproduce
from sim.experiments.request import command_of
from sim.experiments.request import setting_of as asked
from tests.sim.experiments.measured import failing, told

SETTING = Setting(datasets=("kaggle",))
CELL = Cell("kaggle", 10, 512, 5)
_LINK = "ethernet_100g_switch.bandwidth_gbit_s"
RESIDENT = Setting(mini_batches=(("kaggle", 2048),), every=(
    ("scaled", ((_LINK, 0.1),)), ("settings", ("requester_merge=true",)),
    ("persistent_gather", True)))


def test_the_cells_are_those_of_the_evaluation_with_fewer_large_ones():
    cells = list(cells_of("kaggle"))
    assert {cell.link for cell in cells} == {10, 25, 50, 100} == set(LINKS)
    assert {cell.operator for cell in cells} == {20, 5} == set(OPERATORS)
    assert {cell.mini_batch for cell in cells} == {128, 512, 2048, 8192} == set(MINI_BATCHES)
    assert len([cell for cell in cells if cell.mini_batch < LARGE]) == 4 * 3 * 2
    assert [(cell.link, cell.operator) for cell in cells if cell.mini_batch == LARGE] == [
        (10, 20), (100, 20)]
    assert len(INFERENCE) == 9


@pytest.mark.parametrize("software", ["eager", "tuned"])
def test_the_values_of_a_cell_reach_the_devices_whatever_the_profiles_say(software):
    point = setting_of(SETTING, CELL).point("kaggle", "fs", software=software)
    devices = devices_of(point.cluster)
    assert devices.network.bandwidth_gbit_s == pytest.approx(10)
    assert devices.software.operator_us == pytest.approx(5)
    of = point.workload
    assert of.samples == 512 and (of.warmup, of.measured) == (16, 16)


@pytest.mark.parametrize("link", LINKS)
def test_the_link_of_a_cell_takes_the_place_of_the_settings(link):
    own = setting_of(RESIDENT, Cell("kaggle", link, 512, 5))
    point = own.point("kaggle", "fs")
    devices = devices_of(point.cluster)
    assert devices.network.bandwidth_gbit_s == pytest.approx(link)
    assert point.system.persistent_gather and point.system.settings == ("requester_merge=true",)


def test_the_largest_mini_batches_are_fewer_in_whole_windows():
    for mini_batch, batches in ((2048, 16), (LARGE, 8)):
        own = setting_of(SETTING, Cell("kaggle", 10, mini_batch, 20))
        point = own.point("kaggle", "fs")
        of = point.workload
        assert (of.warmup, of.measured) == (batches, batches)
        assert of.window == (None if batches == 16 else batches * mini_batch)
        systems = {point.kind.name
                   for point in points_of(SETTING, Cell("kaggle", 10, mini_batch, 20))}
        assert ("lc+rc" in systems) == (batches == 16)


def test_a_cell_at_the_reference_is_made_of_points_without_factors():
    own = setting_of(SETTING, Cell("kaggle", 100, 128, 20))
    assert own.point("kaggle", "fs").cluster.scaled == ()


def test_every_judged_claim_is_measured_in_a_cell(tmp_path):
    results = sweep(points_of(SETTING, CELL), told, Store(tmp_path, "v"), jobs=1)
    found = verdicts(SETTING, results, CELL)
    assert list(found) == list(JUDGED) and None not in found.values()
    agree, judged = agreeing(found)
    assert 0 < agree < judged == len(JUDGED)
    assert all(ratio(SETTING, results, CELL, of) for of in RATIOS)
    # Other cells are not measured.
    other = replace(CELL, link=25)
    assert agreeing(verdicts(SETTING, results, other)) == (0, 0)
    assert ratio(SETTING, results, other, RATIOS[0]) is None


def test_points_that_fail_leave_claims_out(tmp_path):
    results = sweep(points_of(SETTING, CELL), failing, Store(tmp_path, "v"), jobs=1)
    found = verdicts(SETTING, results, CELL)
    assert found["C8"] is None and found["C6"] is not None
    assert agreeing(found)[1] < len(JUDGED)


def test_the_best_setting_is_that_of_most_claims_over_all_data_sets():
    found = {Cell(dataset, link, 128, 20): {"C1": link == 10, "C2": link == 10 or first,
                                            "C3": None}
             for first, dataset in ((True, "kaggle"), (False, "avazu")) for link in (10, 25)}
    assert best(found) == [("10 Gb/s, mini-batch 128, operator 20 us", 4, 4),
                           ("25 Gb/s, mini-batch 128, operator 20 us", 1, 4)]


@pytest.fixture
def unjudged(monkeypatch):
    """No claims on the page, because claims that describe the data sets take a while."""
    monkeypatch.setattr(reproducing, "judge", lambda setting, results: [])


@pytest.mark.thorough
def test_the_map_has_a_picture_for_each_data_set(tmp_path, monkeypatch, unjudged):
    monkeypatch.setattr(cells_module, "MINI_BATCHES", (128,))
    setting = Setting(datasets=("kaggle", "avazu"))
    found = reproduce(["phase_map"], setting, tmp_path, jobs=1, how=told)
    assert not found["failed"] and found["points"] == len(
        {point for dataset in setting.datasets for cell in cells_of(dataset)
         for point in points_of(setting, cell)})
    assert {path.name for path in tmp_path.iterdir() if path.is_file()} == {
        "phase_map.csv", "phase_map_kaggle.png", "phase_map_kaggle_claims.png",
        "phase_map_avazu.png", "phase_map_avazu_claims.png", "claims.json", "index.html"}
    with open(tmp_path / "phase_map.csv", newline="") as file:
        rows = {(row["workload"], row["mini_batch"], row["metric"]): row["value"]
                for row in csv.DictReader(file)}
    at = "[10 Gb/s, operator 5 us]"
    assert rows["avazu", "128", f"claims_judged {at}"] == str(len(JUDGED))
    assert float(rows["kaggle", "128", f"inference_speedup_vs_bl-tuned {at}"]) > 1
    assert rows["kaggle", "128", f"C6_agrees {at}"] == "1.0"
    page = (tmp_path / "index.html").read_text()
    assert page.count('<figure id="phase_map_') == 4 and "9/14" in page
    assert "8 of 8 cells" in page and "where most claims agree" in page


# The setting nearest to the paper.

def test_the_fields_of_a_setting_are_those_of_its_points():
    fs, base = (RESIDENT.point("kaggle", system, software="tuned")
                for system in ("fs", "bl-paper"))
    assert fs.system.persistent_gather and fs.system.settings == ("requester_merge=true",)
    assert fs.workload.samples == 2048 and base.cluster == fs.cluster
    assert not base.system.persistent_gather and base.system.settings == ()
    assert fs.cluster.placement == "even" and fs.cluster.scaled == ((_LINK, 0.1),)
    # Scaled constants of the point and the setting are joined.
    more = RESIDENT.point("kaggle", "fs", settings=("requester_merge=true", "interaction=true"),
                          scaled=(("gpu_rtx8000.launch_us", 2.0),))
    assert more.system.settings == ("requester_merge=true", "interaction=true")
    assert more.cluster.scaled == (*fs.cluster.scaled, ("gpu_rtx8000.launch_us", 2.0))
    copied = replace(RESIDENT, every=(("copied_rows", 100),))
    assert [copied.point("kaggle", *of).system.copied_rows for of in (
        ("fs",), ("fs", "training"), ("bl-tuned",))] == [100, 0, 0]
    operators = replace(RESIDENT, every=(("scaled", (("software_eager.operator_us", 0.5),
                                                     ("software_tuned.operator_us", 0.25))),))
    assert operators.point("kaggle", "fs", software="tuned").cluster.scaled == (
        ("software_tuned.operator_us", 0.25),)


def test_a_named_setting_is_on_the_cluster_and_the_data_of_another():
    small = replace(DEMO, nodes=2, seeds=(5, 6), mini_batches=(("kaggle", 16),))
    found = like(small, "paper-like")
    assert (found.nodes, found.seeds, found.warmup, found.datasets) == (2, (5, 6), 16, ("kaggle",))
    assert found.mini_batch("kaggle") == 2048 and found.every == PAPER_LIKE.every
    assert like(small, "reference") == small and like(found, "paper-like") == found
    assert asked(name="paper-like") == PAPER_LIKE and asked() == SETTINGS["reference"]
    assert "--setting paper-like" in command_of(None, (), None, "model", "gpu_rtx8000", (1,), True,
                                                False, "paper-like")


def test_both_headlines_are_on_the_page(tmp_path, unjudged):
    small = replace(DEMO, mini_batches=(("kaggle", 16),))

    def how(point) -> dict:
        metrics = told(point)
        if point.kind.name == "lc+rc+sc" and any(name == _LINK for name, _ in point.cluster.scaled):
            metrics["interval_us"] /= 3
        return metrics

    found = reproduce(["paper_like"], small, tmp_path, jobs=1, how=how)
    assert not found["failed"] and found["points"] == 2 * 2 * 2 * 3
    with open(tmp_path / "paper_like.csv", newline="") as file:
        values = {row["metric"]: float(row["value"]) for row in csv.DictReader(file)
                  if row["profile"] == "eager"}
    name = "inference_speedup_vs_bl-paper"
    assert values[f"{name} [paper-like]"] == pytest.approx(3 * values[f"{name} [reference]"])
    page = (tmp_path / "index.html").read_text()
    assert f"{values[f'{name} [paper-like]']:.2f}x" in page
    assert "mini-batches of 2,048" in page and "bandwidth_gbit_s x0.5" in page
    assert "software_eager.operator_us x0.25" in page


def test_the_page_of_a_setting_says_its_network_and_merge(tmp_path, unjudged):
    found = replace(DEMO, every=RESIDENT.every)
    reproduce(["fig22"], found, tmp_path, jobs=1, how=told)
    page = (tmp_path / "index.html").read_text()
    assert "10 Gb/s through one switch" in page and "merge on" in page
    reproduce(["fig22"], DEMO, tmp_path, jobs=1, how=told)
    page = (tmp_path / "index.html").read_text()
    assert "100 Gb/s through one switch" in page and "merge off" in page


def test_an_unknown_setting_is_a_mistake_of_one_line(tmp_path, capsys):
    with pytest.raises(SystemExit) as caught:
        main(["reproduce", "fig22", "--setting", "best", "--output", str(tmp_path / "out")])
    error = capsys.readouterr().err
    assert caught.value.code == 2 and error.count("\n") == 1
    assert "setting must be one of reference, paper-like, not 'best'" in error
