"""Inputs that several system tests share."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sim.run.backend import choose


@pytest.fixture(scope="session")
def ratings() -> Path:
    """MovieLens ``ratings.csv`` (ml-latest-small) from the folder ``EMBERNIC_DATA``."""
    folder = os.environ.get("EMBERNIC_DATA")
    path = Path(folder or "") / "movielens-ratings.csv"
    if folder is None or not path.is_file():
        pytest.skip("EMBERNIC_DATA names no folder with movielens-ratings.csv")
    return path


@pytest.fixture
def backend(monkeypatch) -> Callable[..., None]:
    """Return a function that replaces parts of the backend of every run set up from now on."""
    def replaced(**parts: object) -> None:
        monkeypatch.setattr("sim.run.run.choose",
                            lambda options: replace(choose(options), **parts))

    return replaced


@pytest.fixture
def python_hosts(backend) -> None:
    """Hosts in Python beside compiled NICs too, so that a test can change what they do."""
    backend(compiled_hosts=False)
