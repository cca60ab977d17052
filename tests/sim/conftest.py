"""Shared inputs and settings of system tests."""

import os
from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path

import pytest

from sim.run.backend import choose
from tests.sim.callbacks import raised_in_callbacks


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """Raise assertions of functions that C++ calls."""
    with raised_in_callbacks():
        return (yield)


@pytest.fixture(scope="session")
def ratings() -> Path:
    """Return MovieLens ``ratings.csv`` (ml-latest-small) from the folder ``EMBERNIC_DATA``."""
    folder = os.environ.get("EMBERNIC_DATA")
    path = Path(folder or "") / "movielens-ratings.csv"
    if folder is None or not path.is_file():
        pytest.skip("EMBERNIC_DATA names no folder with movielens-ratings.csv")
    return path


@pytest.fixture
def backend(monkeypatch) -> Callable[..., None]:
    """Return a function that replaces parts of the backend of every run set up later."""
    def replaced(**parts: object) -> None:
        monkeypatch.setattr("sim.run.run.choose",
                            lambda options: replace(choose(options), **parts))

    return replaced


@pytest.fixture
def python_hosts(backend) -> None:
    """Use Python hosts also with compiled NICs, to let a test change their behaviour."""
    backend(compiled_hosts=False)
