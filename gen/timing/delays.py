"""The table of delays, ``delays.toml``: each number and where it is from."""

import tomllib
from pathlib import Path
from typing import Any

__all__ = ["DELAYS"]

DELAYS: dict[str, Any] = tomllib.loads(
    (Path(__file__).parent / "delays.toml").read_text(encoding="utf-8"))
"""Delays in picoseconds, by section of ``delays.toml``."""
