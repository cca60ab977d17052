"""Makefile: its commands run again, with the files of an earlier run in place."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

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
