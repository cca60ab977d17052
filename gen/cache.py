"""Cache of built files: each entry is a folder that is written atomically.

Entries are loaded as machine code. So the cache and what is in it must be writable by the user
alone (:mod:`gen.cache_owner`), and an entry is compared with its manifest before a process first
uses it (:mod:`gen.cache_manifest`).
"""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import platformdirs
from filelock import FileLock

from gen.cache_manifest import is_whole, write_manifest
from gen.cache_owner import check_entry, check_root, close_entry

__all__ = ["cache_dir", "cached", "digest"]


def cache_dir() -> Path:
    """Return the folder that ``EMBERNIC_CACHE`` names, else the user's cache folder.

    ``ValueError`` if another user may write it, or the variable names the home of no user.
    """
    named = os.environ.get("EMBERNIC_CACHE")
    try:
        path = Path(named).expanduser() if named else platformdirs.user_cache_path("embernic")
    except RuntimeError:
        raise ValueError(f"EMBERNIC_CACHE must be a folder, not {named!r}, which begins with the "
                         f"home of an unknown user") from None
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    check_root(path)
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
    leaves no entry. An entry that is damaged, or has no manifest, is built again;
    ``ValueError`` for one that another user may have written.
    """
    root = cache_dir()
    entry = root / key
    if _usable(entry):
        return entry
    with FileLock(root / f"{key}.lock"):
        if _usable(entry):
            return entry
        unfinished, replaced = root / f"{key}.unfinished", root / f"{key}.replaced"
        _remove(unfinished, replaced)
        unfinished.mkdir(mode=0o700)
        try:
            build(unfinished)
            write_manifest(unfinished, key)
            close_entry(unfinished)
            if entry.exists():
                # Renamed, not written: other processes may have its libraries mapped.
                entry.rename(replaced)
            unfinished.rename(entry)
        finally:
            _remove(unfinished, replaced)
        _verified[entry] = _identity(entry)
    return entry


_verified: dict[Path, tuple[int, ...]] = {}
"""Entries that this process has built or found whole, and which folders those were."""


def _usable(entry: Path) -> bool:
    """Return whether ``entry`` is there and whole; its files are read once a process."""
    try:
        identity = _identity(entry)
        if _verified.get(entry) == identity:
            return True
        check_entry(entry)
    except FileNotFoundError:  # not there, or another process is replacing it
        return False
    if not is_whole(entry, entry.name):
        return False
    _verified[entry] = identity
    return True


def _identity(entry: Path) -> tuple[int, ...]:
    state = entry.lstat()
    return state.st_dev, state.st_ino, state.st_mtime_ns, state.st_ctime_ns


def _remove(*folders: Path) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
