"""Table of delays, ``delays.toml``, with the source of each number."""

import tomllib
from pathlib import Path
from typing import Any

__all__ = ["DELAYS"]

DELAYS: dict[str, Any] = tomllib.loads(
    (Path(__file__).parent / "delays.toml").read_text(encoding="utf-8"))
"""Delays in picoseconds, by section of ``delays.toml``."""
