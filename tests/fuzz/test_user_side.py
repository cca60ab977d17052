"""Thousands of user inputs: each is executed, or rejected in one line with a reason.

``EMBERNIC_FUZZ`` sets the number of tries of the long tests (20,000), ``EMBERNIC_FUZZ_FROM`` their
first seed. A name and a seed reproduce a try; :func:`test_seeds_that_found_something` repeats tries
that found a defect.
"""

import os
import random
import shutil
import sys
import warnings
from collections import Counter
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

from tests.fuzz.attacks import ATTACKS
from tests.fuzz.programs import converted
from tests.fuzz.trying import Defect, bounded

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")

_PARTS = 4
"""Tests that share the tries of the long test, to use several processors."""

FOUND = (("options", 5), ("options", 1238), ("options", 1280), ("options", 1311), ("options", 3615))
"""Attacks and seeds that found a defect."""


def _try(name: str, seed: int, folder: Path) -> str:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ATTACKS[name][0](random.Random(f"{name} {seed}"), folder)


def _all(tries: int, first: int, folder: Path) -> tuple[Table, list[str]]:
    """Make ``tries`` tries; return the table of their ends, and the defects."""
    table = Table(title=f"hostile input, seeds from {first}")
    for column in ("attack", "tries", "refused in a line", "done", "defects"):
        table.add_column(column, justify="left" if column == "attack" else "right")
    defects = []
    converted()
    with bounded():
        for name, (_, share) in ATTACKS.items():
            ends: Counter[str] = Counter()
            for seed in range(first, first + max(1, tries * share // 100)):
                try:
                    ends[_try(name, seed, folder)] += 1
                except Defect as defect:
                    ends["defect"] += 1
                    defects.append(f"{name} {seed}: {defect}")
            table.add_row(name, f"{ends.total():,}", f"{ends['refused']:,}",
                          f"{ends['done'] + ends['long']:,}", f"{ends['defect']:,}")
    return table, defects


def _conclude(table: Table, defects: list[str]) -> None:
    Console(width=100).print(table)
    assert not defects, "\n".join(defect[:400] for defect in defects[:20])


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch):
    """Write files without a folder to a folder of the test."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


@pytest.mark.thorough
def test_some(tmp_path):
    _conclude(*_all(200, 0, tmp_path / "try"))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(_PARTS))
def test_many(part, tmp_path):
    tries = int(os.environ.get("EMBERNIC_FUZZ", "20000")) // _PARTS
    first = int(os.environ.get("EMBERNIC_FUZZ_FROM", "1000")) + part * tries
    _conclude(*_all(tries, first, tmp_path / "try"))


@pytest.mark.parametrize(("name", "seed"), FOUND)
def test_seeds_that_found_something(name, seed, tmp_path):
    converted()
    with bounded():
        _try(name, seed, tmp_path / "try")
