"""Processes that a program starts are caught too; `import torch` alone imports nothing of EmberNIC.
"""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.optional import absent

pytest.importorskip("torch", reason=absent("torch"))

import embernic_torch
from tests.sim.shown import messages
from tests.sim.torch.sharded import ROWS, SAMPLES

ROOT = Path(__file__).parents[3]
SPAWNED = Path(__file__).with_name("spawned.py")


@pytest.fixture
def installed(tmp_path) -> dict[str, str]:
    """Return an environment in which EmberNIC is installed, with entry points."""
    entry = tmp_path / "site" / "embernic_of_a_test-0.dist-info"
    entry.mkdir(parents=True)
    (entry / "METADATA").write_text("Metadata-Version: 2.1\nName: embernic_of_a_test\nVersion: 0\n")
    (entry / "entry_points.txt").write_text("[torch.backends]\nembernic_of_a_test = "
                                            "embernic_torch:begin\n")
    return os.environ | {"PYTHONPATH": f"{ROOT}:{entry.parent}"}


def run(installed, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, *arguments], env=installed, cwd=ROOT,
                          capture_output=True, text=True, timeout=240)


def test_pytorch_alone_imports_only_the_hook(installed):
    code = ("import sys, os; sys.modules.pop('embernic_torch', None); import torch; "
            "print([name for name in sys.modules if name.partition('.')[0] in "
            "('sim', 'host', 'gen', 'rtl', 'amaranth', 'embernic_torch', 'embernic_names')])")
    assert run(installed, "-c", code).stdout == "['embernic_names', 'embernic_torch']\n"
    code = ("import sys, os; before = set(sys.modules); import embernic_torch; "
            "embernic_torch.begin(); print(sorted({name.partition('.')[0] for name in "
            "sys.modules if name not in before} - sys.stdlib_module_names))")
    assert run(installed, "-c", code).stdout == "['embernic_names', 'embernic_torch']\n"


def test_it_is_installed_with_its_entry_point():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    entry = project["project"]["entry-points"]["torch.backends"]["embernic"]
    assert entry == "embernic_torch:begin" and callable(embernic_torch.begin)
    assert {"embernic_names", "embernic_torch"} < {
        *project["tool"]["setuptools"]["packages"]["find"]["include"]}


@pytest.mark.thorough
@pytest.mark.parametrize(("how", "backend"), [
    ("spawn", "embernic"), ("torchrun", "embernic"), ("spawn", "gloo"), ("fork", "embernic")])
@pytest.mark.few(2)
def test_processes_that_a_program_begins_are_nodes(installed, tmp_path, how, backend):
    out = tmp_path / "out.json"
    done = run(installed, "-m", "sim", "torch", "--json", str(out), str(SPAWNED), how, backend,
               "train")
    assert done.returncode == 0, done.stderr[-3000:]
    result = json.loads(out.read_text())
    assert result["mini_batches"]["training"]["lookups"] == 4 * SAMPLES * len(ROWS)
    assert result["options"]["nodes"] == 2 and len(result["processes"]) == 2
    assert result["not_caught"] == []
    assert [table["node"] for table in result["tables"]] == [0, 0, 0, 1, 1]


@pytest.mark.thorough
@pytest.mark.parametrize(("options", "what", "said", "status"), [
    (["--nodes", "3"], "look", "nodes must be 2, the processes of the program, not 3", 2)])
@pytest.mark.few(1)
def test_a_process_that_fails_ends_the_program(installed, tmp_path, options, what, said, status):
    done = run(installed, "-m", "sim", "torch", *options, "--json", str(tmp_path / "out.json"),
               str(SPAWNED), "spawn", "embernic", what)
    complaints = messages(done.stderr)
    assert len(complaints) == 1 and complaints[0].endswith(said)
    assert done.returncode == status and not (tmp_path / "out.json").exists()


@pytest.mark.thorough
@pytest.mark.parametrize("what", ["1:killed", "1:raises"])
@pytest.mark.few(1)
def test_a_process_that_fails_leaves_a_report(installed, tmp_path, what):
    out = tmp_path / "out.json"
    done = run(installed, "-m", "sim", "torch", "--json", str(out), str(SPAWNED), "spawn",
               "embernic", what)
    complaints = messages(done.stderr)
    assert len(complaints) == 1 and done.returncode == 1
    if what == "1:killed" and not out.exists():
        return  # multiprocessing may have ended the other process before its report
    result = json.loads(out.read_text())
    # multiprocessing may end either process first.
    assert result["ended"] and result["ended"].split("\n")[0] in complaints[0] and result["steps"]
