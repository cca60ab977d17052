"""Each function of the API gives the result of its command, and raises the same messages."""

import doctest
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from sim import api
from sim.api import evaluation as compared
from sim.api import nics, offline, program
from sim.bench import bench as bench_module
from sim.bench.rows import Job, Row
from sim.cli.main import main
from sim.evaluation.setting import Setting
from sim.experiments import reproduce as evaluation
from sim.job.options import RunOptions
from sim.job.workload import Workload
from tests.optional import absent
from tests.sim import inputs

CLUSTER = {"config": "tiny", "nodes": 2, "mini_batch": 16}
SMALL = CLUSTER | {"fidelity": "fast"}
REFERENCE = CLUSTER | {"reference": True}
_TIMES = ("wall_seconds", "cpu_seconds", "node_cycles_per_second", "us_per_mini_batch")


def _arguments(options: dict) -> list[str]:
    """Return options of the API in the form of the command line."""
    said = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if name in ("set", "data"):
            said += [part for one in value for part in (flag, str(one))]
        elif isinstance(value, bool):
            said.append(flag if value else f"--no-{flag[2:]}")
        else:
            text = value if not isinstance(value, list) else ",".join(map(str, value))
            said += [flag, str(text)]
    return said


def _timeless(value):
    """Return a result as read from JSON, without its times."""
    value = json.loads(json.dumps(value))

    def without(part):
        if isinstance(part, dict):
            return {name: without(each) for name, each in part.items() if name not in _TIMES}
        return [without(each) for each in part] if isinstance(part, list) else part

    return without(value)


def _ended(arguments: list[str]) -> int | str | None:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    return end.value.code


@pytest.fixture
def bags(tmp_path) -> Path:
    return inputs.multi_hot_trace(tmp_path / "bags.txt", 64, longest=6)


@pytest.mark.parametrize(("function", "command", "options"), [
    (api.run, "run", SMALL | {"samples": 64, "set": ["dedupe=false"], "skip": False}),
    (api.train, "train", REFERENCE | {"samples": 64, "model": "avazu", "epochs": 2, "interval": 3}),
    (api.hitrate, "hitrate", {"sizes": [0, 64], "samples": 64, "nodes": 2, "ways": 8}),
    (api.batching, "batching", {"model": "avazu", "samples": 64, "mini_batch": 16, "window": 32,
                                "hyperedges": [3]}),
    (api.plan, "plan", {"samples": 64, "mini_batch": 16, "hit_rate": 0.5,
                        "set": ["dedupe=false"]}),
])
@pytest.mark.parametrize("file", ["results.json", "-"])
def test_the_dictionary_is_what_the_command_writes(tmp_path, capsys, function, command, options,
                                                   file):
    result = function(**options)
    assert capsys.readouterr().out == ""
    path = file if file == "-" else str(tmp_path / file)
    assert not _ended([command, *_arguments(options), "--json", path])
    shown = capsys.readouterr().out
    written = json.loads(shown if file == "-" else Path(path).read_text())
    assert _timeless(written) == _timeless(result)
    assert list(written) == list(result)


def test_describe(bags, capsys, tmp_path):
    written = tmp_path / "d.json"
    result = api.describe(bags, most_keys=4096, json=written)
    assert capsys.readouterr().out == ""
    assert json.loads(written.read_text()) == result
    assert not _ended(["datasets", "describe", str(bags), "--most-keys", "4096", "--json", "-"])
    assert json.loads(capsys.readouterr().out) == result
    assert api.describe([bags, bags])["samples"] == 2 * result["samples"]


def test_bench(monkeypatch, capsys, tmp_path):
    row = Row("of a test", 2.0, "a cycle", 1.0)
    monkeypatch.setattr(bench_module, "_jobs", lambda only: [
        Job("lookups", f"made up for {list(only)}", lambda progress: [row])])
    seen: list[dict] = []
    result = api.bench(only=["lookups"], json=tmp_path / "b.json", finished=seen.append)
    assert capsys.readouterr().out == "" and seen == result["rows"]
    assert json.loads((tmp_path / "b.json").read_text()) == result
    assert not _ended(["bench", "--only", "lookups", "--json", "-"])
    assert json.loads(capsys.readouterr().out) == result
    assert api.frame(result)["value"].tolist() == [2.0]


def test_defaults_of_an_evaluation_are_those_of_a_run():
    run = RunOptions()
    assert (Setting.gpu, Setting.seeds) == (run.workload.gpu, (run.workload.seed,))
    assert Setting.fidelity == "model"


def test_reproduce(monkeypatch, capsys, tmp_path):
    asked = []

    def made_up(*arguments, **options):
        asked.append((arguments[:5], options["command"]))
        return {"schema": evaluation.SCHEMA, "headlines": [], "failed": [], "figures": ["fig22"],
                "claims": [{"claim": "C1", "agrees": True, "ours": "2x"}]}

    monkeypatch.setattr(evaluation, "reproduce", made_up)
    options = {"demo": True, "gpu": "gpu_a100", "seed": 3}
    result = api.reproduce(["fig22"], output=tmp_path / "out", **options)
    assert capsys.readouterr().out == "" and (tmp_path / "out").is_dir()
    assert asked[0][1] == " --gpu gpu_a100 --seed 3 --demo"
    assert not _ended(["reproduce", "fig22", "--output", str(tmp_path / "out"),
                       *(part for part in _arguments(options) if part != "True")])
    assert asked[0] == asked[1]
    for given, listed in (({"seed": 3, "seeds": 2}, (3, 4)), ({"seeds": [7, 2]}, (7, 2))):
        asked.clear()
        api.reproduce(["fig22"], output=tmp_path / "out", **given)
        assert asked[0][0][1].seeds == listed and asked[0][0][1].seed == listed[0]
        assert asked[0][1] == f" --seeds {listed[0]},{listed[1]}"
        seeds = given["seeds"]
        assert not _ended(["reproduce", "fig22", "--output", str(tmp_path / "out"), "--seeds",
                           str(seeds) if isinstance(seeds, int) else "7,2",
                           *(("--seed", "3") if "seed" in given else ())])
        assert asked[0] == asked[1]
    assert api.frame(result)["claim"].tolist() == ["C1"]


@pytest.mark.thorough
@pytest.mark.parametrize(("function", "command", "options"), [
    (api.run, "run", {"pcap": "-"}),
    (api.run, "run", {"pcap": "x.pcap", "fidelity": "fast"}),
    (api.run, "run", {"predictions": "x.csv", "fidelity": "fast"}),
    (api.run, "run", {"predictions": "-"}),
    (api.run, "run", {"waves": "x.fst", "fidelity": "fast"}),
    (api.run, "run", {"waves_node": 1}),
    (api.run, "run", {"picture": "x.txt"}),
    (api.run, "run", {"json": "."}),
    (api.run, "run", {"json": "/proc/none/x.json"}),
    (api.run, "run", {"fidelity": "exact"}),
    (api.run, "run", {"threads": 0}),
    (api.run, "run", {"set": ["colour=red"]}),
    (api.run, "run", {"data": ["no/such/file"]}),
    (api.train, "train", {"pcap": "-"}),
    (api.train, "train", {"checkpoint": "-"}),
    (api.train, "train", {"pcap": "x.pcap", "reference": True}),
    (api.train, "train", {"faults": "silent-gpu=1us:", "reference": True}),
    (api.train, "train", {"fidelity": "exact"}),
    (api.train, "train", {"optimizer": "adam"}),
    (api.bench, "bench", {"only": ["nothing"]}),
    (api.bench, "bench", {"json": "."}),
    (api.hitrate, "hitrate", {"policy": ["lru", "lru"]}),
    (api.hitrate, "hitrate", {"picture": "x.gif"}),
    (api.batching, "batching", {"mini_batch": 0}),
    (api.plan, "plan", {"optimizer": "adam"}),
    (api.plan, "plan", {"picture": "."}),
    (api.reproduce, "reproduce", {"output": "out", "backend": "slurm"}),
    (api.reproduce, "reproduce", {"output": __file__}),
])
def test_mistakes_have_the_words_of_the_command(capsys, monkeypatch, tmp_path, function, command,
                                                options):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError) as error:
        function(**options)
    assert _ended([command, *_arguments(options)]) == 2
    shown = capsys.readouterr()
    assert shown.err == f"sim: {error.value}\n" and shown.out == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("function", "options", "said"), [
    (api.run, {"json": "-"}, "json must be a file, not '-'"),
    (api.plan, {"json": "-"}, "json must be a file, not '-'"),
    (api.train, {"picture": "x.png"}, "picture must be left out in training, not 'x.png'"),
    (api.train, {"warmup": 1}, "warmup must be 0 in training, not 1"),
])
def test_what_only_a_caller_can_get_wrong(function, options, said):
    with pytest.raises(ValueError, match=f"^{said}$"):
        function(**options)


@pytest.mark.parametrize("function", [api.run, api.train])
def test_names_that_are_no_option(function):
    with pytest.raises(TypeError, match=r"^options have no member 'colour'$"):
        function(colour="red")


def test_progress_and_an_early_end(tmp_path, bags):
    seen = []
    result = api.run(**SMALL, data=bags, json=tmp_path / "r.json", picture=tmp_path / "r.png",
                     progress=lambda *news: seen.append(news))
    assert seen[0] == (0, None, 0) and seen[-1][0] == result["samples"] == 64
    assert (tmp_path / "r.png").read_bytes()[:4] == b"\x89PNG"
    ended = api.run(**SMALL, data=bags, picture=tmp_path / "e.png", stop=lambda: "SIGINT")
    assert ended["interrupted"] == "SIGINT" and not (tmp_path / "e.png").exists()


def test_options_of_a_report_are_plain_and_flat():
    assert list(RunOptions().as_dict()) == [
        "model", "nodes", "samples", "first_sample", "mini_batch", "in_flight", "warmup",
        "batching", "window", "data", "format", "placement", "copied_rows", "pool", "own_bags",
        "repeats", "wire", "columns", "blocks", "engine", "fidelity", "threads", "skip", "network",
        "pcie", "gpu", "mlp", "seed", "cluster", "waves", "waves_node", "waves_window", "faults",
        "patience"]


def test_frames_of_mini_batches_and_steps():
    result = api.run(**SMALL, samples=64, warmup=1)
    rows = api.frame(result)
    assert rows["latency_us"].isna().tolist() == [True, False, False, False]
    assert rows["latency_us"].dropna().tolist() == result["latencies_us"]
    assert rows["unique_keys"].tolist() == result["batching"]["each"]["unique_keys"]
    result = api.train(**REFERENCE, samples=64, model="avazu")
    rows = api.frame(json.loads(json.dumps(result)))
    assert rows["loss"].tolist() == result["loss"] and rows.index.tolist() == [0, 1, 2, 3]
    assert "latency_us" not in rows


def test_frames_of_rows(bags):
    result = api.hitrate(sizes=[0, 64], samples=64)
    assert api.frame(result)["size"].tolist() == [0, 64]
    tables = api.frame(api.describe(bags))
    assert len(tables) == 4 and tables["bags.max"].max() == 6
    planned = api.plan(samples=64, mini_batch=16)
    assert planned["binds"] in api.frame(planned)["name"].tolist()
    compared = api.batching(model="avazu", samples=64, mini_batch=16, window=32)
    assert api.frame(compared)["algorithm"][0] == "file"
    with pytest.raises(ValueError, match=r"^schema must be one of .*, not None$"):
        api.frame({})


def test_a_frame_without_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"^sim\.api\.frame requires pandas: install "
                                          r"the extra in the repository with "
                                          r"pip install --editable '\.\[pandas\]'$"):
        api.frame({"schema": "embernic/run/1"})


@pytest.mark.thorough
def test_examples(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    found = [doctest.testmod(part, optionflags=doctest.ELLIPSIS)
             for part in (compared, nics, offline)]
    assert sum(each.attempted for each in found) > 12 and not any(each.failed for each in found)


@pytest.mark.thorough
def test_the_example_of_a_pytorch_script(monkeypatch, tmp_path):
    pytest.importorskip("torch", reason=absent("torch"))
    monkeypatch.chdir(tmp_path)
    example, = (each for each in doctest.DocTestFinder().find(program)
                if each.name.endswith(".torch"))
    found = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example)
    assert found.attempted > 3 and found.failed == 0


_WRONG = {
    "an integer": [1.5, True, np.bool_(True), "8", b"8", [8], {8: 1}, np.arange(2)],
    "a number": ["0.5", True, [0.5], 1j, np.arange(2)],
    "True or False": ["false", 0, None.__class__, [], np.arange(2)],
    "a text": [1, 0.5, b"lru", ["lru"], Path("x"), np.arange(2)],
    "a path": [1, -1, 10**40, b"x", ["x"], 0.5, "x\0"],
    "a name or a path": [1, b"x", ["x"], Workload],
    "a path or a sequence of paths": [1, b"x", [1], [b"x"], [None], {"x": 1}, {"x"}],
    "a sequence of integers": [1, b"1", [1.5], ["1"], {1: 1}, {1}, [[1]], np.ones((2, 2), int)],
    "a sequence of field=value": ["a=1", [1], [None], [b"a=1"], Path("a=1")],
    "a sequence of texts": ["lru", b"lru", [b"lru"], [1], {"lru"}],
    "a function": [1, "x", [print]],
}


@pytest.mark.parametrize(("function", "field", "kind"), [
    *((api.run, name, kind) for name, kind in (
        ("nodes", "an integer"), ("seed", "an integer"), ("patience", "an integer"),
        ("copied_rows", "an integer"), ("skip", "True or False"), ("clock_gating", "True or False"),
        ("engine", "a text"), ("placement", "a text"), ("model", "a name or a path"),
        ("json", "a path"), ("data", "a path or a sequence of paths"), ("tell", "a function"),
        ("set", "a sequence of field=value"))),
    (api.train, "learning_rate", "a number"), (api.train, "compare", "True or False"),
    (api.hitrate, "sizes", "a sequence of integers"), (api.hitrate, "mini_batch", "an integer"),
    (api.hitrate, "policy", "a sequence of texts"), (api.batching, "window", "an integer"),
    (api.plan, "in_flight", "an integer"), (api.plan, "set", "a sequence of field=value"),
    (api.describe, "files", "a path or a sequence of paths"), (api.describe, "json", "a path"),
    (api.serve, "burst_rate", "a number"), (api.serve, "slo", "a sequence of texts"),
])
def test_other_types_are_refused_with_option_and_value(function, field, kind):
    given = {} if function is not api.describe or field == "files" else {"files": "x"}
    for value in _WRONG[kind]:
        with pytest.raises(TypeError) as caught:
            function(**given, **{field: value})
        text = repr(value)[:40] if "\n" not in repr(value) else "array("
        assert str(caught.value).startswith(f"{field} must be {kind}, not ")
        assert text in str(caught.value) and "\n" not in str(caught.value)


def test_numbers_of_numpy_and_generators_are_what_python_has_for_them(bags):
    plain = {"nodes": 2, "samples": 64, "mini_batch": 16, "seed": 3, "sizes": (0, 64)}
    expected = api.hitrate(**plain, data=str(bags))
    named = {name: np.int64(value) for name, value in plain.items() if name != "sizes"}
    found = api.hitrate(**named, sizes=np.array([0, 64]), data=(path for path in [bags]))
    assert found == expected and json.dumps(found)
    assert found["rows"] != api.hitrate(**plain)["rows"]


def test_no_files_are_not_the_generator():
    with pytest.raises(ValueError, match="data must name at least one file"):
        api.hitrate(data=[])


def test_arguments_by_place_are_not_more_than_there_are():
    with pytest.raises(TypeError, match="too many positional"):
        api.reproduce(["fig06"], ["fig08"], output="out")
