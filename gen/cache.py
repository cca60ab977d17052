"""Cache of built files: each entry is a folder that is written atomically."""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import platformdirs
from filelock import FileLock

__all__ = ["cache_dir", "cached", "digest"]


def cache_dir() -> Path:
    """Return the folder that ``EMBERNIC_CACHE`` names, else the user's cache folder."""
    named = os.environ.get("EMBERNIC_CACHE")
    path = Path(named).expanduser() if named else platformdirs.user_cache_path("embernic")
    path.mkdir(parents=True, exist_ok=True)
    return path


def digest(parts: Iterable[str]) -> str:
    """Return a hash of ``parts``, in order, as 32 hexadecimal digits."""
    total = hashlib.sha256()
    for part in parts:
        raw = part.encode()
        total.update(len(raw).to_bytes(8, "little") + raw)
    return total.hexdigest()[:32]


def cached(key: str, build: Callable[[Path], None]) -> Path:
    """Return the folder of entry ``key``; ``build(folder)`` fills it if it does not exist.

    Processes that need an entry that is being built wait for it. A failed or interrupted build
    leaves no entry.
    """
    root = cache_dir()
    entry = root / key
    if entry.is_dir():
        return entry
    with FileLock(root / f"{key}.lock"):
        if entry.is_dir():
            return entry
        unfinished = root / f"{key}.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir()
        try:
            build(unfinished)
            unfinished.rename(entry)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    return entry
