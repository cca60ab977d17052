"""The page of ``compare``: its files, order and values, and its look in a browser."""

import csv
import io
import json
import re
from dataclasses import fields

import pytest
from rich.console import Console

from host.systems.en_tuning import EnTuning
from host.systems.tuning import Tuning
from sim import api
from sim.cli.main import main
from sim.compare.options import SYSTEMS, CompareOptions
from sim.compare.page import FILES, write_page
from sim.compare.request import command_of
from sim.compare.table import compare_table
from sim.compare.words import ABOUT, OPTIONS, used
from tests.browser import looked, needs_chromium


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """Return the result, the folder and the console output of a comparison."""
    folder = tmp_path_factory.mktemp("page")
    result = api.compare(cluster="h100", nodes=2, mini_batch=32, measured=2, output=folder,
                         placement="even")
    return result, folder


def test_the_files_have_the_result(compared):
    result, folder = compared
    assert {path.name for path in folder.iterdir()} == set(FILES)
    assert json.loads((folder / "compare.json").read_text()) == json.loads(json.dumps(result))
    rows = list(csv.DictReader(io.StringIO((folder / "systems.csv").read_text())))
    assert list(rows[0]) == ["workload", "cluster", "mini_batch", "profile", "fidelity", "system",
                             "metric", "value", "low", "high", "unit"]
    found = {(row["system"], row["metric"]): float(row["value"]) for row in rows}
    for row in result["systems"]:
        for metric in ("interval_us", "bottleneck_us", "network_bytes_per_sample",
                       "gpu_memory_bytes"):
            assert found[row["system"], metric] == row[metric]


def test_the_page_begins_with_the_answer_and_ends_with_the_setting(compared):
    result, folder = compared
    page = (folder / "index.html").read_text().partition("<body>")[2]
    text = re.sub(r"<script.*?</script>|<[^>]*>", "", page, flags=re.DOTALL)
    order = [result["reason"], "Bars: us, microseconds", "bl-tuned: GPUs alone",
             "--cluster h100 --nodes 2 --mini-batch 32 --placement even --measured 2 --output DIR",
             "Bottlenecks:",
             "Chosen options", "in flight", "Setting", "gpu_h100"]
    at = [text.index(part) for part in order]
    assert at == sorted(at)
    for row in result["systems"]:
        assert f">{row['interval_us']:,.1f}<" in page
        assert "; ".join(row["options"]) in text


def test_a_system_that_cannot_be_built_has_its_reason_on_the_page(compared, tmp_path):
    result, _ = compared
    rows = [row | ({"why": "tables are <too> large"} | dict.fromkeys(
        ("interval_us", "bottleneck", "bottleneck_us", "gpu_memory_bytes"))
        if row["system"] == "fs" else {}) for row in result["systems"]]
    write_page(result | {"systems": rows, "notes": ["a <note>"]}, str(tmp_path))
    page = (tmp_path / "index.html").read_text()
    assert "fs: tables are &lt;too&gt; large" in page and "a &lt;note&gt;" in page
    assert "fs,interval_us,,,,us" in (tmp_path / "systems.csv").read_text()


def test_headers_fit_eighty_columns(compared):
    result, _ = compared
    large = [row | {"interval_us": 12_345.6, "service_us": 12_345.6, "bottleneck": "pcie_out",
                    "bottleneck_us": 12_345.6, "network_bytes_per_sample": 123_456.0,
                    "gpu_memory_bytes": 78_120_000_000} for row in result["systems"]]
    console = Console(width=80, file=io.StringIO())
    console.print(compare_table(result | {"systems": large}))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "…" not in shown and max(map(len, shown.splitlines())) <= 80
    for text in ("us alone", "bottleneck", "net B", "GPU GB", "12,345.6", "123,456", "78.12"):
        assert text in shown


def test_words_are_explained():
    assert set(SYSTEMS) <= set(ABOUT)
    options = {field.name for kind in (Tuning, EnTuning) for field in fields(kind)
               if field.type in (bool, "bool")}
    assert options <= set(OPTIONS)
    assert [name for name, _ in used(OPTIONS, ["2 per graph; fused, ring-like, deliver unique"])
            ] == ["per graph", "fused", "deliver"]


def test_the_command_of_the_page():
    options = CompareOptions(model="a b.toml", data=["x", "y"], format="trace", training=True,
                             system=["en", "fs"], json="out.json")
    assert command_of(options) == (
        "python -m sim compare --model 'a b.toml' --data x --data y --format trace --training "
        "--system en,fs --output DIR")
    assert command_of(CompareOptions()) == "python -m sim compare --output DIR"


def test_outputs_are_checked_first(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="output must be a folder, not the file"):
        api.compare(output=tmp_path / "file")
    with pytest.raises(ValueError, match="json"):
        api.compare(json=tmp_path / "compare.json", output=tmp_path)


def test_the_console_names_the_page(tmp_path, capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["compare", "--cluster=h100", "--nodes=2", "--mini-batch=16", "--measured=2",
              "--system=bl-paper", f"--output={tmp_path}"])
    assert f"page: {tmp_path}/index.html" in capsys.readouterr().out


@needs_chromium
@pytest.mark.thorough
def test_the_page_in_a_browser(compared, tmp_path):
    result, folder = compared
    for look in looked(folder / "index.html", tmp_path):
        assert (look.wrong, look.overflow, look.wide) == ([], 0, [])
        assert look.plots == look.drawn == 3
        assert f"{result['systems'][0]['interval_us']:.4g} us" in look.hovers[0]
        names, times = look.columns[:2]
        assert names == sorted(names) and [float(each) for each in times] == sorted(
            map(float, times))
