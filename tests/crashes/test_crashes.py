"""``kill -9`` and a full disk: files are complete or absent, and the command can resume.

Commands are killed at every file operation, and at some moments between operations.
"""

import csv
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gen.documents.generate import generate
from rtl.config import preset
from sim.cli.main import main
from sim.evaluation.setting import DEMO
from sim.experiments.reproduce import reproduce
from tests.crashes.crashing import Ended, ended
from tests.gen.designs import Unit
from tests.sim import inputs
from tests.sim.experiments.measured import told

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks and limits of Linux")

SETTING = replace(DEMO, mini_batches=(("kaggle", 16),), shares=(0.0, 0.1))


@pytest.fixture(scope="module")
def bags(tmp_path_factory) -> Path:
    return inputs.multi_hot_trace(tmp_path_factory.mktemp("data") / "bags.txt", 64, longest=6)


@pytest.fixture
def often(monkeypatch):
    """Write results and checkpoints after every step."""
    monkeypatch.setattr("sim.files.outputs.LIVE_SECONDS", 0.0)
    monkeypatch.setattr("sim.training.checkpoints.Checkpoints.due", True)


def _moments(work, folder: Path):
    """Yield each outcome of ``work`` killed before its first, second, ... file operation, and at
    last the outcome of the completed run. ``folder`` is as each outcome left it."""
    for event in range(1, 400):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        outcome = ended(work, folder, event=event)
        yield outcome
        if outcome.status is not None:
            assert outcome.status == 0, outcome
            return
    raise AssertionError("more file operations than expected")


def _visible(folder: Path) -> dict[str, bytes]:
    """Return the contents of the files that a user sees."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*"))
            if path.is_file() and not path.name.startswith(".")}


def _train(bags: Path, folder: Path, **more):
    options = {"data": bags, "format": "trace", "config": "tiny",
               "mini-batch": 16, "checkpoint": folder / "c.npz", "json": folder / "t.json"} | more
    return lambda: main(["train", "--reference",
                          *(f"--{name}={value}" for name, value in options.items())])


def _without_times(text: bytes) -> dict:
    """Return the JSON of a training without members that depend on the machine or on the start."""
    found = json.loads(text)
    return {name: found[name] for name in ("weights_sha256", "rows_written", "complete")}


@pytest.mark.thorough
def test_train(bags, tmp_path, often):
    folder = tmp_path / "out"
    kept = []
    for outcome in _moments(_train(bags, folder), folder):
        held = _visible(folder)
        if outcome.status == 0:
            whole = held
            break
        assert set(held) <= {"c.npz", "t.json"}
        assert not held.get("t.json") or json.loads(held["t.json"])["schema"]
        kept.append(held)
    assert len(kept) > 12 and len({files.get("c.npz") for files in kept}) >= 4
    # Each state once.
    for files in {files.get("c.npz"): files for files in kept}.values():
        shutil.rmtree(folder)
        folder.mkdir()
        for name, content in files.items():
            (folder / name).write_bytes(content)
        outcome = ended(_train(bags, folder), folder)
        if outcome.status:  # the command had finished
            assert "epochs must be more than 1 to continue from" in outcome.said
            assert files["c.npz"] == whole["c.npz"]
        else:
            now = _visible(folder)
            assert now["c.npz"] == whole["c.npz"]
            assert _without_times(now["t.json"]) == _without_times(whole["t.json"])


def _reproduced(folder: Path):
    return lambda: reproduce(["fig22"], SETTING, folder, jobs=1, how=told)


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("whole")
    assert ended(_reproduced(folder), folder).status == 0
    return _visible(folder)


@pytest.mark.thorough
@pytest.mark.few(4)
@pytest.mark.parametrize("event", [*range(1, 80, 6), 400])
def test_reproduce(tmp_path, reproduced, event):
    """Kill the command, and kill the resumed command: the page and its figures have the same
    bytes."""
    folder = tmp_path / "out"
    folder.mkdir()
    for kill in (event, event // 2 + 1):
        ended(_reproduced(folder), folder, event=kill)
        for name, content in _visible(folder).items():
            assert name.endswith(".lock") or content == reproduced[name], name
    assert ended(_reproduced(folder), folder).status == 0
    assert _visible(folder) == reproduced


@pytest.mark.thorough
def test_gen(tmp_path):
    folder = tmp_path / "out"

    def work():
        generate(preset("tiny"), folder, build=lambda _config: Unit())

    states = []
    for _ in _moments(work, folder):
        states.append(_visible(folder))
    whole = states[-1]
    assert len(whole) == 3 and len(states) > 6
    for state in states:
        assert state.items() <= whole.items()
    assert ended(work, folder).status == 0 and _visible(folder) == whole


def _run(bags: Path, folder: Path, *more: str):
    return lambda: main(["run", "--data", str(bags), "--format", "trace", "--config", "tiny",
                         "--mini-batch", "8", "--nodes", "2", "--threads", "1",
                         "--json", str(folder / "r.json"), *more])


def _predictions(path: Path) -> tuple[int, bytes]:
    """Return how many samples a file of predictions contains in whole lines, and the whole
    lines."""
    text = path.read_bytes()
    text = text[:text.rfind(b"\n") + 1]
    rows = list(csv.DictReader(text.decode().splitlines()))
    assert [int(row["sample"]) for row in rows] == list(range(len(rows)))
    return len(rows), text


@pytest.fixture(scope="module")
def predicted(bags, tmp_path_factory) -> bytes:
    folder = tmp_path_factory.mktemp("whole")
    more = ("--predictions", str(folder / "p.csv"))
    assert ended(_run(bags, folder, *more), folder).status == 0
    return (folder / "p.csv").read_bytes()


@pytest.mark.few(4)
@pytest.mark.parametrize("moment", [1, 3, 5, 7, 9, 11, 13, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0])
def test_run(bags, tmp_path, often, predicted, moment):
    """Check predictions and results of NICs in RTL; the run resumes behind the last whole
    mini-batch."""
    folder = tmp_path / "out"
    folder.mkdir()
    csv_file, more = folder / "p.csv", ("--predictions", str(folder / "p.csv"))
    found = (ended(_run(bags, folder, *more), folder, event=moment) if isinstance(moment, int)
             else ended(_run(bags, folder, *more), folder, seconds=moment))
    assert found.status in (None, 0)
    if (folder / "r.json").exists():
        assert json.loads((folder / "r.json").read_text())["schema"]
    count, text = _predictions(csv_file) if csv_file.exists() else (0, b"")
    assert predicted.startswith(text)
    first = count // 8 * 8
    if first < 64:
        (folder / "r.json").unlink(missing_ok=True)
        found = ended(_run(bags, folder, *more, f"--first-sample={first}"), folder)
        assert found.status == 0, found
    assert csv_file.read_bytes() == predicted


@pytest.fixture(scope="module")
def compiled(bags, tmp_path_factory):
    """Fill the cache with the compiled models: only the commands' own files meet a full disk."""
    folder = tmp_path_factory.mktemp("before")
    for work in (_train(bags, folder), _run(bags, folder, "--fidelity", "fast")):
        assert ended(work, folder).status == 0


def _full(outcome: Ended, folder: Path) -> None:
    """Check that a command reports in one line that a file of ``folder`` has no room."""
    assert outcome.status == 2, outcome
    assert outcome.said.count("\n") == 1 and "Traceback" not in outcome.said, outcome
    assert str(folder) in outcome.said
    assert "File too large" in outcome.said or "No space left" in outcome.said, outcome


@pytest.mark.thorough
@pytest.mark.parametrize("largest", [0, 10, 1000, 5000])
def test_a_full_disk(bags, tmp_path, often, compiled, largest):
    folder = tmp_path / "out"
    folder.mkdir()
    _full(ended(_train(bags, folder), folder, largest=largest), folder)
    assert set(_visible(folder)) <= {"t.json"}
    _full(ended(_run(bags, folder, "--fidelity", "fast", "--picture", str(folder / "p.png")),
                folder, largest=largest), folder)
    assert set(_visible(folder)) <= {"r.json"}


@pytest.mark.thorough
def test_a_full_disk_leaves_the_checkpoint_before(bags, tmp_path, often, compiled):
    folder = tmp_path / "out"
    folder.mkdir()
    assert ended(_train(bags, folder, samples=16), folder).status == 0
    before = (folder / "c.npz").read_bytes()
    _full(ended(_train(bags, folder, samples=16, epochs=2), folder,
                largest=len(before) - 1000), folder)
    assert (folder / "c.npz").read_bytes() == before
    assert ended(_train(bags, folder, samples=16, epochs=2), folder).status == 0


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 16 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.getuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "none",
                                      str(folder)], capture_output=True, check=False).returncode:
        pytest.skip("a disk of its own needs the right to mount one")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_that_is_full(bags, small_disk, tmp_path, often, compiled):
    _full(ended(_train(bags, small_disk), small_disk), small_disk)
    for path in small_disk.iterdir():
        path.unlink()
    _full(ended(lambda: main(["run", "--config", "tiny", "--fidelity", "fast", "--samples", "64",
                              "--mini-batch", "8", "--picture", str(small_disk / "p.svg")]),
                small_disk), small_disk)
    assert not np.any([path.suffix == ".svg" for path in small_disk.iterdir()])
