"""Cache of built files: each entry is a folder that is written atomically.

Entries are loaded as machine code. So the cache and what is in it must be writable by the user
alone (:mod:`gen.base.cache_owner`), and an entry is compared with its manifest before a process
first uses it (:mod:`gen.base.cache_manifest`).
"""

import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

import platformdirs
from filelock import FileLock

from gen.base.cache_manifest import is_whole, write_manifest
from gen.base.cache_owner import check_entry, check_root, close_entry

__all__ = ["cache_dir", "cached", "digest", "tool_folders"]

_TOOLS = {"ZIG_GLOBAL_CACHE_DIR": "zig", "ZIG_LOCAL_CACHE_DIR": "zig",
          "YOWASP_CACHE_DIR": "yowasp", "MPLCONFIGDIR": "matplotlib"}
"""Variables that name the folders of the tools, and the folders' names in the cache."""


def cache_dir() -> Path:
    """Return the folder that ``EMBERNIC_CACHE`` names, else the user's cache folder.

    Where the user's cache folder is not writable, the cache is a folder of the user in the
    system's folder of temporary files. One line on standard error warns of it, and
    ``EMBERNIC_CACHE`` names that folder to the processes that this process starts.

    ``ValueError`` if another user may write the folder, if ``EMBERNIC_CACHE`` names a folder that
    cannot be made or the home of an unknown user, or if no folder is writable.
    """
    named = os.environ.get("EMBERNIC_CACHE")
    try:
        path = Path(named).expanduser() if named else _users_folder()
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except RuntimeError:
        raise ValueError(f"EMBERNIC_CACHE must be a folder, not {named!r}, which begins with the "
                         f"home of an unknown user") from None
    except OSError as error:
        raise ValueError(f"EMBERNIC_CACHE must name a writable folder, not {named!r}: "
                         f"{error.strerror}") from None
    check_root(path)
    return path


def tool_folders() -> dict[str, str]:
    """Return variables of the environment that keep the caches of zig, YoWASP's Yosys and
    Matplotlib in the cache. A variable that the environment has keeps its value."""
    root = cache_dir()
    return {variable: os.environ.get(variable) or str(root / name)
            for variable, name in _TOOLS.items()}


def _users_folder() -> Path:
    """Return the user's cache folder, or where it is not writable a temporary one."""
    path = platformdirs.user_cache_path("embernic")
    try:
        # Without a home, the path is relative.
        if path.is_absolute():
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            if os.access(path, os.W_OK | os.X_OK):
                return path
    except OSError:
        pass
    instead = Path(tempfile.gettempdir()) / f"embernic-{os.getuid() if os.name == 'posix' else ''}"
    try:
        instead.mkdir(mode=0o700, exist_ok=True)
        usable = os.access(instead, os.W_OK | os.X_OK) and not instead.is_symlink()
    except OSError:
        usable = False
    if not usable:
        raise ValueError(f"neither {path} nor {instead} is a writable folder: name a folder for "
                         f"the cache in EMBERNIC_CACHE")
    print(f"warning: {path} is not writable, the cache is {instead}: name another folder in "
          f"EMBERNIC_CACHE", file=sys.stderr)
    os.environ["EMBERNIC_CACHE"] = str(instead)
    return instead


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
    if not os.access(root, os.W_OK | os.X_OK):
        raise ValueError(f"the cache {root} must be writable, because {key} is not in it: name "
                         f"another folder in EMBERNIC_CACHE")
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
