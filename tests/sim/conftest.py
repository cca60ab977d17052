"""Inputs that several system tests share."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def ratings() -> Path:
    """MovieLens ``ratings.csv`` (ml-latest-small) from the folder ``EMBERNIC_DATA``."""
    folder = os.environ.get("EMBERNIC_DATA")
    path = Path(folder or "") / "movielens-ratings.csv"
    if folder is None or not path.is_file():
        pytest.skip("EMBERNIC_DATA names no folder with movielens-ratings.csv")
    return path
