"""``python -m sim reproduce``: its output, from made-up measurements, and rejected options."""

import csv
import json
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from sim.cli.main import main
from sim.evaluation.point import in_turn
from sim.evaluation.setting import DEMO, Setting
from sim.evaluation.store import Results, Store
from sim.evaluation.sweep import sweep
from sim.evaluation.trace import trace_key
from sim.experiments.figures.beyond import EXTRAS
from sim.experiments.figures.plots.plot import Plot
from sim.experiments.figures.registry import HEAVY, NAMES, chosen, exhibit
from sim.experiments.reproduce import points_of, reproduce
from sim.experiments.request import seeds_of, setting_of
from tests.browser import looked, needs_chromium
from tests.sim.experiments.measured import failing, told, wavering

SMALL = replace(DEMO, mini_batches=(("kaggle", 16),), shares=(0.0, 0.1))
COLUMNS = ["workload", "cluster", "mini_batch", "profile", "fidelity", "system", "metric", "value",
           "low", "high", "unit"]


def _written(folder) -> dict:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_files_claims_and_page(tmp_path):
    found = reproduce(["fig25", "fig22"], SMALL, tmp_path, jobs=1, how=told)
    assert found["figures"] == ["fig22", "fig25"] and not found["failed"]
    assert set(_written(tmp_path)) == {"fig22.csv", "fig22.png", "fig25.csv", "fig25.png",
                                       "claims.json", "index.html"}
    assert json.loads((tmp_path / "claims.json").read_text()) == found
    assert found["schema"] and found["version"] and found["numpy"] and found["blas"]
    assert all(len(digest) == 64 for digest in found["profiles"].values())
    assert found["sources"] == {"kaggle": "generator"}
    with open(tmp_path / "fig25.csv", newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == COLUMNS
    fs = [row for row in rows if row[5:7] == ["FS", "throughput_speedup_vs_bl-paper"]]
    assert [row[:5] for row in fs] == [["kaggle", "4 nodes", "16", software, "model"]
                                       for software in ("eager", "tuned")]
    # Without the remote cache, which training does not have.
    assert float(fs[0][7]) == pytest.approx(2000 / 1600 / 0.98 / 0.99 / 0.8)
    headline = next(row for row in found["headlines"] if row["workload"] == "training")
    assert headline["mean"] == pytest.approx(float(fs[0][7]))
    page = (tmp_path / "index.html").read_text().partition("<body>")[2]
    HTMLParser().feed(page)
    assert page.count('class="plot"') == 2 + 2 * 2  # the headlines, and a panel per profile
    assert "src=" not in page and "made up" in page and "2.30x" in page
    order = [page.index(each) for each in (
        'class="answer"', 'id="headlines"', "Claims of the paper", 'id="fig22"', 'id="fig25"',
        "Notes on the points", "<h2>Setting</h2>", "made with")]
    assert order == sorted(order)
    claims = json.loads((tmp_path / "claims.json").read_text())["claims"]
    agree = sum(row["agrees"] is True for row in claims)
    assert f"Of {len(claims)} claims of the paper, {agree} agree" in page


@needs_chromium
@pytest.mark.thorough
def test_the_page_in_a_browser(tmp_path):
    """With charts of every kind."""
    names = ["fig06", "fig08", "fig14", "fig16", "fig22", "fig27", "levels", "checks"]
    reproduce(names, replace(SMALL, seeds=(1, 2)), tmp_path, jobs=1, how=wavering)
    for look in looked(tmp_path / "index.html", tmp_path):
        assert (look.wrong, look.overflow, look.wide) == ([], 0, [])
        assert look.plots == look.drawn >= 2 + 6
        assert all(look.hovers)
        assert look.columns[0] == sorted(look.columns[0])  # the claims


@pytest.mark.thorough
def test_several_seeds_give_headlines_and_their_figures_means(tmp_path):
    setting = replace(SMALL, seeds=(4, 5, 6))
    found = reproduce(["fig18", "fig22"], setting, tmp_path, jobs=1, how=wavering)
    assert found["setting"]["seeds"] == [4, 5, 6] and found["seeded"] == ["fig22"]
    seeds = {name: [point.workload.seed for point in exhibit(name).points(setting)]
             for name in (*(name for name in NAMES if name.startswith("fig")), "paper_like")}
    several = [name for name in NAMES if exhibit(name).over_seeds(setting)]
    assert several == ["fig22", "fig25", "paper_like"]
    for name, each in seeds.items():
        assert set(each) <= ({4, 5, 6} if name in several else {4}), name
    assert seeds["fig22"].count(4) == seeds["fig22"].count(6)
    assert set(points_of(["fig22"], SMALL)) == {
        point.changed(seed=1) for point in points_of(["fig22"], setting)}

    def rows(name: str) -> list[dict]:
        with open(tmp_path / f"{name}.csv", newline="") as file:
            return list(csv.DictReader(file))

    fs = next(row for row in rows("fig22") if row["system"] == "FS"
              and row["metric"] == "interval_speedup_vs_bl-paper")
    each = [2.3007 * (1 + 0.01 * n) / (1 + 0.02 * n) for n in (3, 4, 5)]
    assert float(fs["value"]) == pytest.approx(sum(each) / 3, abs=1e-3)
    headline = found["headlines"][0]
    assert headline["mean"] == pytest.approx(float(fs["value"]))
    said = f"{float(fs['value']):.2f}x"
    page = (tmp_path / "index.html").read_text()
    assert page.count(said) > 3  # the headline, its data set, the claim and its text
    assert "4, 5, 6 for the headlines and fig22, shown as means; 4 for the other figures" in page
    assert said in next(row for row in found["claims"] if row["claim"] == "C8")["ours"]


def test_no_value_has_an_interval_over_seeds(tmp_path):
    for seeds in ((1,), (1, 2)):
        found = reproduce(["fig22"], replace(SMALL, seeds=seeds), tmp_path, jobs=1, how=wavering)
        assert not {"low", "high", "intervals"} & set(found["headlines"][0])
        assert "x [" not in (tmp_path / "index.html").read_text()


def test_seeds():
    assert seeds_of(1, 1) == (1,) and seeds_of(3, 5) == (3, 4, 5, 6, 7)
    assert seeds_of(3, [9, 2]) == (9, 2)
    for seeds in (0, [], [1, 1], [-1, 2]):
        with pytest.raises(ValueError, match="seeds must be "):
            seeds_of(1, seeds)


def test_a_resumed_evaluation_in_two_processes_gives_the_bytes_of_one(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    reproduce(["fig18"], SMALL, one, jobs=1, how=told)
    points = points_of(["fig18"], SMALL)
    sweep(points[::2], told, Store(two / "points"), jobs=1)
    reproduce(["fig18"], SMALL, two, jobs=2, how=told)
    assert _written(one) == _written(two)


def test_points_that_fail_are_on_the_page_with_their_reason(tmp_path):
    found = reproduce(["fig17", "fig22"], SMALL, tmp_path, jobs=1, how=failing)
    assert len(found["failed"]) == 2
    assert found["failed"][0]["error"] == "RuntimeError: the full system is <away>"
    page = (tmp_path / "index.html").read_text()
    assert "the full system is &lt;away&gt;" in page and "<away>" not in page
    claims = {row["claim"]: row for row in found["claims"]}
    assert claims["C8"]["agrees"] is None and "away" in claims["C8"]["why"]
    assert claims["C6"]["agrees"] is True


@pytest.mark.thorough
def test_points_of_a_trace_are_begun_one_after_the_other_and_long_ones_first():
    everything = points_of(chosen(["all"]), Setting(markers=True))
    points = in_turn(everything)
    assert sorted(map(repr, points)) == sorted(map(repr, everything))
    # A point for each NIC to compile: with the interaction, with training, with neither.
    assert {(point.workload.workload, "sc" in point.kind.parts) for point in points[:3]} == {
        ("inference", True), ("training", True), ("inference", False)}
    assert all(point.system.fidelity == "rtl" for point in points[:4])
    points = points[3:]
    traces = [(point.system.fidelity, trace_key(point.workload)) for point in points]
    changes = [traces[0], *(after for before, after in pairwise(traces) if before != after)]
    assert len(changes) == len(set(changes)) > 20
    assert changes[0][0] == "rtl" and traces[-1][0] == "model"
    lengths = [of.samples * (of.warmup + of.measured) for of in (
        point.workload for point in points if point.system.fidelity == "model")]
    assert lengths == sorted(lengths, reverse=True)


def test_sweeps_of_the_largest_mini_batches_are_thinner():
    setting = Setting()
    assert setting.sizes("terabyte") == (0.0, 0.02, 0.1, 0.5)
    assert setting.numbers_of_nodes("terabyte") == (2, 4, 16)
    assert setting.numbers_of_nodes("kaggle") == setting.scale_nodes == (2, 4, 8, 16)
    points = points_of(["fig14"], setting)
    for dataset, nodes in (("terabyte", {2, 4, 16}), ("avazu", {2, 4, 8, 16})):
        assert {point.cluster.nodes for point in points
                if point.workload.dataset == dataset} == nodes


def test_names():
    light = tuple(name for name in NAMES if name not in HEAVY)
    assert chosen([]) == chosen(["all"]) == chosen(["fig22", "all"]) == light
    assert chosen(["fig22", "fig06", "fig22"]) == ("fig06", "fig22")
    with pytest.raises(ValueError, match=r"figure must be one of fig06, .*, not 'fig7'"):
        chosen(["fig7"])
    assert {f"fig{number:02}" for number in (6, 8, *range(14, 28))} < set(NAMES)


def test_figures_of_samples():
    nothing = Results({})
    rows = exhibit("fig06").rows(SMALL, nothing)
    named = {row.metric: row.value for row in rows}
    assert named["accesses"] == 8192 * 26 and 0.5 < (named["top_1_percent_share"] or 0) < 0.7
    ranked = [row.value for row in rows if row.metric.startswith("accesses_of_rank_")]
    assert ranked == sorted(ranked, reverse=True) and ranked[-1] == 1
    formed = exhibit("fig08").rows(SMALL, nothing)
    fresh = [row for row in formed if row.metric.startswith("similarity_after_refresh")
             and row.system == "graph"]
    assert [row.metric.rpartition("_")[2] for row in fresh] == ["0", "16", "32"]
    saved = {row.system: row.value for row in formed if row.metric == "saved"}
    assert saved["file"] == 0 < saved["graph"]


def test_extras_differ_from_what_they_are_compared_with():
    beyond = exhibit("beyond")
    modelled = [extra for extra in EXTRAS if not extra.rtl]
    here = [extra for extra in modelled if set(SMALL.datasets) & set(
        extra.datasets or SMALL.datasets)]
    assert 0 < len(here) < len(modelled)  # one figure is for a missing data set
    assert len(beyond.points(SMALL)) == 2 * len(here) * len(SMALL.softwares)
    points = beyond.points(replace(SMALL, markers=True))
    assert len(points) == len(beyond.points(SMALL)) + 2 * (len(EXTRAS) - len(modelled))
    assert [point.system.fidelity for point in points[-2:]] == ["rtl", "rtl"]
    assert all(own != other and own.label.endswith("FS") | (own.workload.batching == "greedy")
               for own, other in zip(points[::2], points[1::2]))


@pytest.mark.parametrize(("arguments", "said"), [
    ("fig99", "figure must be one of fig06"),
    ("fig22 --fidelity cycle", "fidelity must be one of rtl, fast, not 'cycle'"),
    ("fig22 --gpu gpu_abacus", "gpu must be one of"),
    ("fig22 --backend slurm", "backend must be one of loky, dask, not 'slurm'"),
    ("fig22 --seeds 0", "seeds must be at least 1, not 0"),
    ("fig22 --seeds 2147483647", "seeds must be at most 1,000, not 2147483647"),
    ("fig22 --seeds 2,2", "seeds must be distinct non-negative integers, not '2,2'"),
    ("fig22 --seeds few", "seeds must be integers with commas between, not 'few'"),
    ("fig22 --jobs 0", "jobs must be at least 1, not 0"),
    ("fig22 --model netflix", "model must be one of kaggle, terabyte, avazu, movielens"),
    ("fig22 --format avazu", "format must go with data"),
    ("fig22 --data {here}/bad.csv --format avazu", "bad.csv"),
    ("fig22 --data {here}/few.txt --format criteo",
     "data must have at least 256 samples of kaggle, two mini-batches, not 9"),
    ("fig22 --data {here}/none.txt", "No such file"),
])
def test_mistakes_are_one_line(arguments, said, tmp_path, capsys):
    (tmp_path / "bad.csv").write_text("id,click\n1,2\n")
    line = "\t".join(["1", *["3"] * 13, *["a"] * 26]) + "\n"
    (tmp_path / "few.txt").write_text(9 * line)
    with pytest.raises(SystemExit) as caught:
        main(["reproduce", *arguments.format(here=tmp_path).split(), "--output",
              str(tmp_path / "out")])
    error = capsys.readouterr().err
    assert caught.value.code == 2 and error.count("\n") == 1 and said in error
    assert not (tmp_path / "out" / "index.html").exists()


def test_the_output_is_a_folder(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemExit) as caught:
        main(["reproduce", "fig06", "--output", str(tmp_path / "file")])
    assert caught.value.code == 2
    assert "output must be a folder, not the file" in capsys.readouterr().err


def test_files_are_of_their_data_set(tmp_path):
    line = "\t".join(["1", *["3"] * 13, *["a"] * 26]) + "\n"
    path = tmp_path / "train.txt"
    path.write_text(3200 * line)
    setting = setting_of(data=str(path), format="criteo")
    assert setting.mini_batch("kaggle") == setting.mini_batch("avazu") == 128
    assert setting.point("kaggle", "fs").workload.data == (str(path),)
    assert str(setting.source("kaggle")) == f"{path} (criteo)"
    assert setting.point("avazu", "fs").workload.data == ()
    path.write_text(4096 * line)
    assert setting_of("terabyte", str(path), "criteo", demo=True).datasets == ("terabyte",)
    assert setting_of("avazu") == replace(Setting(), datasets=("avazu",))


def test_two_points_of_a_figure_and_those_of_en_are_run_in_rtl_besides(tmp_path):
    setting = replace(SMALL, markers=True)
    for name in NAMES:
        if not isinstance(figure := exhibit(name), Plot):
            continue
        marked = figure.marked(setting)
        own = [entry for entry in marked if entry.point.kind.name == "en"]
        # EN, if the figure includes it, with each software profile.
        assert len(own) == (2 if name in ("fig22", "fig25") else 0), name
        others = len(marked) - len(own)
        assert others == (0 if name in ("fig26", "fig21") and not marked else 2), name
        assert all(entry.point.system.fidelity == "rtl" for entry in marked)
        assert {entry.point for entry in marked} <= set(figure.points(setting))
        assert figure.marked(SMALL) == figure.marked(replace(setting, fidelity="rtl")) == []
    assert {entry.point.label for entry in exhibit("fig22").marked(setting)} == {
        "FS", "LC", "EN"}
