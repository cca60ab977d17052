"""Cache of built files: each entry is a folder that is written atomically.

Entries are loaded as machine code. The cache therefore rejects files that another user, except
root, can write.
"""

import hashlib
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable
from itertools import chain
from pathlib import Path

import platformdirs
from filelock import FileLock

__all__ = ["cache_dir", "cached", "digest", "tool_folders"]

_TOOLS = {"ZIG_GLOBAL_CACHE_DIR": "zig", "ZIG_LOCAL_CACHE_DIR": "zig",
          "YOWASP_CACHE_DIR": "yowasp", "MPLCONFIGDIR": "matplotlib"}
"""Environment variables for the tools' cache folders, and the folders' names in the cache."""

_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def cache_dir() -> Path:
    """Return the folder in ``EMBERNIC_CACHE``, or else the user's cache folder.

    If the user's cache folder is not writable, the cache is a folder of the user in the system's
    folder of temporary files. A line on standard error warns about it, and ``EMBERNIC_CACHE``
    passes the folder to child processes.

    Raises ``ValueError`` if another user can write the folder, if ``EMBERNIC_CACHE`` is a folder
    that cannot be created or the home of an unknown user, or if no folder is writable.
    """
    named = os.environ.get("EMBERNIC_CACHE")
    try:
        path = Path(named).expanduser() if named else _users_folder()
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except RuntimeError:
        raise ValueError(f"EMBERNIC_CACHE must be a folder, not {named!r}: the user of this "
                         f"home folder is unknown") from None
    except OSError as error:
        raise ValueError(f"EMBERNIC_CACHE must be a writable folder, not {named!r}: "
                         f"{error.strerror}") from None
    _check_root(path)
    return path


def tool_folders() -> dict[str, str]:
    """Return environment variables that place the caches of zig, YoWASP's Yosys and Matplotlib in
    the cache. A variable that is already set keeps its value."""
    root = cache_dir()
    return {variable: os.environ.get(variable) or str(root / name)
            for variable, name in _TOOLS.items()}


def _users_folder() -> Path:
    """Return the user's cache folder, or a temporary folder if it is not writable."""
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
        raise ValueError(f"neither {path} nor {instead} is a writable folder: set EMBERNIC_CACHE "
                         f"to a writable folder")
    print(f"warning: {path} is not writable, the cache is {instead}: set EMBERNIC_CACHE to "
          f"another folder", file=sys.stderr)
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

    Processes that need an unfinished entry wait for it. A failed or interrupted build leaves no
    entry. Raises ``ValueError`` for an entry that another user may have written.
    """
    root = cache_dir()
    entry = root / key
    if _exists(entry):
        return entry
    if not os.access(root, os.W_OK | os.X_OK):
        raise ValueError(f"the cache {root} must be writable, because {key} is not in it: name "
                         f"another folder in EMBERNIC_CACHE")
    with FileLock(root / f"{key}.lock"):
        if _exists(entry):
            return entry
        unfinished = root / f"{key}.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700)
        try:
            build(unfinished)
            _finish(unfinished)
            unfinished.rename(entry)
        except OSError as error:
            # An error of a full disk contains no file name.
            error.filename = error.filename or str(unfinished)
            raise
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    return entry


def _finish(folder: Path) -> None:
    """Restrict write access to the files of a new entry to the user, and force them to disk. An
    entry is complete even after a power failure."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(stat.S_IMODE(path.lstat().st_mode) & ~_OTHERS)
        if path.is_file():
            with path.open("r+b") as file:
                os.fsync(file.fileno())


def _exists(entry: Path) -> bool:
    """Return whether ``entry`` exists. Raises ``ValueError`` unless it is a folder of files and
    folders that only the user and root can write."""
    if not os.path.lexists(entry):
        return False
    for path in chain([entry], entry.rglob("*")):
        state = path.lstat()
        if not (stat.S_ISDIR(state.st_mode) or stat.S_ISREG(state.st_mode)):
            raise ValueError(f"{path} must be a file or a folder, not a link or a device: remove "
                             f"{entry}")
        _check_owner(path, state, entry.parent)
    return True


def _check_root(root: Path) -> None:
    """Raise ``ValueError`` if another user can write or replace the cache folder ``root``."""
    _check_owner(root, root.stat(), root)
    around = root.resolve().parent
    mode = around.stat().st_mode
    # In a sticky folder, such as /tmp, only the owner can rename the cache.
    if hasattr(os, "getuid") and mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        raise ValueError(f"{around} must not be writable by others, who could replace the cache, "
                         f"not {stat.S_IMODE(mode):04o}: run chmod o-w {around}, or name "
                         f"another folder in EMBERNIC_CACHE")


def _check_owner(path: Path, state: os.stat_result, root: Path) -> None:
    if not hasattr(os, "getuid"):
        return  # a platform without owners and modes
    user = os.getuid()
    # Files of root are as safe as the system itself.
    if state.st_uid not in (user, 0):
        raise ValueError(f"{path} must belong to user {user} or root, not to user {state.st_uid}: "
                         f"remove it, or name another folder in EMBERNIC_CACHE")
    if state.st_mode & _OTHERS:
        raise ValueError(f"{path} must not be writable by group or others, "
                         f"not {stat.S_IMODE(state.st_mode):04o}: run chmod -R go-w {root}, or "
                         f"name another folder in EMBERNIC_CACHE")
