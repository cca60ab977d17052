"""Makefile: its commands run again, with the files of an earlier run in place."""

import re
import shlex
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
    makefile = (ROOT / "Makefile").read_text()
    steps = re.findall(r"^demo.*:.*\n((?:\t.+\n)+)", makefile, re.MULTILINE)
    text = re.sub(r"\$\(abspath \$\(OUT\)\)|\$\(OUT\)", str(tmp_path),
                  "".join(steps).replace("\\\n", ""))
    commands = [shlex.split(line) for line in text.splitlines() if " sim compare " in line]
    models = [command[command.index("--model") + 1] for command in commands]
    assert models == ["kaggle", "multi_hot"]
    for command in commands:
        with pytest.raises(SystemExit, match="0"):
            main([*command[command.index("sim") + 1:], "--nodes=2", "--mini-batch=16",
                  "--measured=2", "--system=bl-paper"])
    printed = re.findall(r"\S+/index\.html", text)
    assert len(printed) == 2 and all(Path(path).is_file() for path in printed)
