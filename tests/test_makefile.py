"""Makefile: its commands run again, with the files of an earlier run in place."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sim.cli.main import main

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("target", ["test", "test-all", "slow"])
def test_tests_can_be_collected_with_the_costs_of_an_earlier_run(target, tmp_path):
    """An existing path as a separate argument would keep pytest from loading ``tests/conftest.py``.
    """
    recipe = re.search(rf"^{target}:.*\n\t(.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe
    costs = tmp_path / "costs.csv"
    costs.touch()
    options = re.findall(r'--costs\S*(?: (?!-)\S+)?', recipe[1].replace(
        re.search(r"\$\(OUT\)\S+", recipe[1])[0], str(costs)))  # type: ignore[index]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "--ignore-glob=*/test_[a-z]*",
         *options[0].split()], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert "unrecognized arguments" not in done.stderr, done.stderr


def test_the_demo_ends_with_comparisons_and_prints_the_paths_of_their_pages(tmp_path):
    """With two nodes and a baseline, which takes seconds."""
    recipes = re.findall(r"^demo\S*:.*\n((?:\t.+\n)+)", (ROOT / "Makefile").read_text(),
                         re.MULTILINE)
    text = re.sub(r"\$\(abspath \$\(OUT\)\)|\$\(OUT\)", str(tmp_path),
                  "".join(recipes).replace("\\\n", ""))
    commands = [shlex.split(line) for line in text.splitlines() if " sim compare " in line]
    models = [command[command.index("--model") + 1] for command in commands]
    assert models == ["kaggle", "multi_hot"]
    for command in commands:
        with pytest.raises(SystemExit, match="0"):
            main([*command[command.index("sim") + 1:], "--nodes=2", "--mini-batch=16",
                  "--measured=2", "--system=bl-paper"])
    printed = re.findall(r"\S+/index\.html", text)
    assert len(printed) == 2 and all(Path(path).is_file() for path in printed)


@pytest.mark.every
@pytest.mark.skipif(not shutil.which("make"), reason="needs make")
@pytest.mark.parametrize("step", ["gen", "sim run", "--model kaggle", "--model multi_hot"])
def test_the_demo_fails_with_a_step_and_shows_whole_steps(step, tmp_path):
    """With a Python that prints its arguments in two halves, and fails in one step."""
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\necho "first: $*"\nsleep 0.2\necho "second: $*"\n'
                      f'case "$*" in *"{step}"*) exit 2;; esac\n')
    python.chmod(0o755)
    (tmp_path / ".installed").touch()
    done = subprocess.run(["make", "demo", f"BIN={python.parent}", f"VENV={tmp_path}"], cwd=ROOT,
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "Verilog:" not in done.stdout, done.stdout
    lines = done.stdout.splitlines()
    begun = [at for at, line in enumerate(lines) if line.startswith("first:")]
    assert begun and all(lines[at + 1] == lines[at].replace("first", "second") for at in begun)
    assert any(step in lines[at] for at in begun)
