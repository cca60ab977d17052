"""Inputs that several system tests share."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

import sim.run.run
from sim.native.numerics import COMPILED


@pytest.fixture(scope="session")
def ratings() -> Path:
    """MovieLens ``ratings.csv`` (ml-latest-small) from the folder ``EMBERNIC_DATA``."""
    folder = os.environ.get("EMBERNIC_DATA")
    path = Path(folder or "") / "movielens-ratings.csv"
    if folder is None or not path.is_file():
        pytest.skip("EMBERNIC_DATA names no folder with movielens-ratings.csv")
    return path


@pytest.fixture
def python_hosts(monkeypatch) -> None:
    """Hosts in Python beside compiled NICs too, so that a test can change what they do."""
    def rows(*given):
        return COMPILED.row_answers(*given)

    monkeypatch.setattr(sim.run.run, "COMPILED", replace(COMPILED, row_answers=rows))
