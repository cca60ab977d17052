"""Who may write a cache: what another user could have put there is refused, since it is loaded."""

import os
import stat
from pathlib import Path

__all__ = ["check_entry", "check_root", "close_entry"]

_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def check_root(root: Path) -> None:
    """Raise ``ValueError`` if another user may write the cache folder ``root``, or replace it."""
    _check(root, root.stat(), root)
    around = root.resolve().parent
    mode = around.stat().st_mode
    # In a sticky folder, such as /tmp, only its owner moves ours away.
    if hasattr(os, "getuid") and mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        raise ValueError(f"{around} must not be writable by others, who could replace the cache in "
                         f"it, not {stat.S_IMODE(mode):04o}: run chmod o-w {around}, or name "
                         f"another folder in EMBERNIC_CACHE")


def check_entry(entry: Path) -> None:
    """Raise ``ValueError`` if another user may write ``entry`` of a cache, or it is no folder of
    files and folders."""
    state = entry.lstat()
    if not stat.S_ISDIR(state.st_mode):
        raise ValueError(f"{entry} must be a folder, not a "
                         f"{'link' if entry.is_symlink() else 'file'}: remove it")
    _check(entry, state, entry.parent)
    for path in entry.rglob("*"):
        state = path.lstat()
        if not (stat.S_ISDIR(state.st_mode) or stat.S_ISREG(state.st_mode)):
            raise ValueError(f"{path} must be a file or a folder, not a "
                             f"{'link' if path.is_symlink() else 'device'}: remove {entry}")
        _check(path, state, entry.parent)


def close_entry(entry: Path) -> None:
    """Make ``entry``, which was built with the umask of the user, writable by nobody else."""
    for path in (entry, *entry.rglob("*")):
        path.chmod(stat.S_IMODE(path.lstat().st_mode) & ~_OTHERS)


def _check(path: Path, state: os.stat_result, root: Path) -> None:
    if not hasattr(os, "getuid"):
        return  # a platform without owners and modes of this kind
    user = os.getuid()
    # What root put there is no less safe than the system itself.
    if state.st_uid not in (user, 0):
        raise ValueError(f"{path} must belong to user {user} or root, not to user {state.st_uid}: "
                         f"remove it, or name another folder in EMBERNIC_CACHE")
    if state.st_mode & _OTHERS:
        raise ValueError(f"{path} must not be writable by group or others, "
                         f"not {stat.S_IMODE(state.st_mode):04o}: run chmod -R go-w {root}, or "
                         f"name another folder in EMBERNIC_CACHE")
