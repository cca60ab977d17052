"""Figures and tables: each is a module and a line of the registry."""

import csv
import importlib
import runpy
import sys
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path

import pytest

from sim.cli.main import main
from sim.evaluation.setting import DEMO
from sim.experiments import figures, options
from sim.experiments.figures import registry
from sim.experiments.figures.exhibit import Exhibit
from sim.experiments.figures.registry import chosen, demo_names, exhibit, in_words
from sim.experiments.reproduce import points_of, reproduce
from tests.sim.experiments.measured import told

SMALL = replace(DEMO, mini_batches=(("kaggle", 16),))

FIGURE = '''
from sim.experiments.figures.plots.bars import Bars
from sim.experiments.figures.plots.metric import speedups
from sim.experiments.figures.plots.plot import Plot
from sim.experiments.figures.plots.series import side_by_side

EXHIBIT = Plot("fig99", "A made-up title", side_by_side((("RC", "rc"),), "inference"),
               speedups("inference"), Bars("speedup"), about="A made-up figure.", demo=True)
'''

TABLE = '''
from sim.experiments.figures.exhibit import Table
from sim.page.rows import Row


class _Counts(Table):
    def rows(self, setting, results):
        return [Row(name, "1 node", 2, "none", "none", "tables", "made_up_count", 26, "tables")
                for name in setting.datasets]


EXHIBIT = _Counts("counts", "A made-up table")
'''


@pytest.fixture
def made_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Add a figure and a table, with a module and a line each."""
    folder = tmp_path / "added"
    folder.mkdir()
    (folder / "fig99.py").write_text(FIGURE)
    (folder / "counts.py").write_text(TABLE)
    monkeypatch.setattr(figures, "__path__", [*figures.__path__, str(folder)])
    monkeypatch.setattr(registry, "NAMES", (*registry.NAMES, "fig99", "counts"))
    importlib.invalidate_caches()
    yield
    monkeypatch.undo()
    for name in ("fig99", "counts"):
        sys.modules.pop(f"sim.experiments.figures.{name}", None)
        vars(figures).pop(name, None)


def test_a_made_up_figure_and_table_are_measured_written_and_on_the_page(made_up, tmp_path):
    found = reproduce(["counts", "fig99"], SMALL, tmp_path / "out", jobs=1, how=told)
    assert found["figures"] == ["fig99", "counts"] and not found["failed"]
    assert found["points"] == len(points_of(["fig99"], SMALL)) == 6
    assert {path.name for path in (tmp_path / "out").iterdir() if path.is_file()} == {
        "fig99.csv", "fig99.png", "counts.csv", "claims.json", "index.html"}
    with open(tmp_path / "out" / "fig99.csv", newline="") as file:
        speedup = next(float(row["value"]) for row in csv.DictReader(file)
                       if row["metric"] == "interval_speedup_vs_bl-paper")
    assert speedup == pytest.approx(2000 / 1600 / 0.7)
    assert (tmp_path / "out" / "counts.csv").read_text().splitlines()[1:] == [
        "kaggle,1 node,2,none,none,tables,made_up_count,26,,,tables"]
    page = (tmp_path / "out" / "index.html").read_text()
    assert page.count('<figure id="fig99">') == 1
    for said in ("fig99: A made-up title", "A made-up figure.", "<h2>A made-up table</h2>",
                 "made_up_count", "python -m sim reproduce fig99 --output DIR"):
        assert page.count(said) == 1, said
    assert page.index("<h2>Figures</h2>") < page.index("fig99:") < page.index(
        "<h2>A made-up table</h2>")


def test_the_command_line_knows_a_made_up_table(made_up, tmp_path):
    with pytest.raises(SystemExit) as ended:
        main(["reproduce", "counts", "--demo", "--jobs", "1", "--output", str(tmp_path / "out")])
    assert ended.value.code == 0
    assert (tmp_path / "out" / "counts.csv").exists()
    assert "fig99" in demo_names() and "counts" not in demo_names()
    with pytest.raises(ValueError, match=r"phase_map, fig99, counts or all, not 'fig7'"):
        chosen(["fig7"])


def test_the_help_of_the_command_line_names_a_made_up_figure(made_up):
    # The help is built at import.
    kind = runpy.run_path(options.__file__)["ReproduceOptions"]
    said = fields(kind)[0].metadata["option"].help
    assert f"{in_words()}. Default: all but {', '.join(registry.HEAVY[:-1])}" in said
    assert "fig99, counts" in said


def test_every_name_is_that_of_its_exhibit():
    for name in registry.NAMES:
        found = exhibit(name)
        assert found.name == name and found.title and isinstance(found, Exhibit)
    assert in_words().startswith("fig06, fig08, fig14 to fig27, ")


def test_every_exhibit_is_registered():
    figures_folder = Path(registry.__file__).parent
    names = {path.stem for folder in (figures_folder, figures_folder.parent / "maps")
             for path in folder.glob("*.py") if "\nEXHIBIT = " in path.read_text()}
    assert names == set(registry.NAMES)
