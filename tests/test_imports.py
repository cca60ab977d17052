"""Imports run one way: the contracts in pyproject.toml hold, and detect violations."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_LINT = (sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()")


def _lint(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([*_LINT, "--no-cache", *arguments], cwd=folder, capture_output=True,
                          text=True, timeout=300)


def test_the_contracts_hold():
    done = _lint(ROOT)
    assert done.returncode == 0, done.stdout
    assert " 0 broken" in done.stdout


@pytest.mark.parametrize(("module", "line"), [
    ("rtl/config.py", "import sim.job.settings"),
    ("host/errors.py", "from host.model import Model"),
    ("host/errors.py", "from gen.verilog.names import Names"),
    ("gen/base/files.py", "from gen.netlist.fit import oversize_warnings"),
    ("gen/base/files.py", "from host.errors import shown"),
    ("sim/files/stop.py", "from sim.run.run import Run"),
    ("sim/run/measurements.py", "from sim.run.run import Run"),
    ("sim/nic_cpp/layout.py", "from sim.bench.rows import Row"),
    ("sim/evaluation/store.py", "from sim.experiments.figures.row import Row"),
    ("sim/evaluation/nic.py", "from sim.evaluation.systems import EN"),
    ("rtl/shared.py", "import numpy"),
    ("embernic_names/__init__.py", "import sim.files.stop"),
    ("sim/torch/script.py", "import embernic_torch"),
    ("gen/shells/timing_xdc.py", "from gen.timing.nets import CASES"),
])
def test_an_import_the_wrong_way_is_found(tmp_path, module, line):
    """Add an import to a copy of the tree."""
    for package in ("rtl", "gen", "host", "sim", "embernic_names", "embernic_torch"):
        for source in (ROOT / package).rglob("*.py"):
            target = tmp_path / source.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    (tmp_path / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    path = tmp_path / module
    path.write_text(f"{path.read_text()}\n{line}\n")
    done = _lint(tmp_path)
    assert done.returncode == 1, done.stdout
    assert line.split()[1].split(".")[0] in done.stdout and "BROKEN" in done.stdout
