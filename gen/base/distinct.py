"""Files that a command reads and writes: an output is never an input, nor another output."""

import os
import stat
from collections.abc import Iterable, Mapping

__all__ = ["check_distinct", "same_file"]

_Path = str | os.PathLike[str]


def same_file(first: _Path, second: _Path) -> bool:
    """Return whether writing to one of the paths changes what the other holds.

    Links, hard or symbolic, of the file or of a folder, and names such as ``/proc/self/fd/3`` are
    seen through. Files that are not there yet are compared by their names with links resolved.
    Only regular files hold anything: a device, a pipe or a folder is never the same.
    """
    one, other = _status(first), _status(second)
    if any(found is not None and not stat.S_ISREG(found.st_mode) for found in (one, other)):
        return False
    if one is not None and other is not None:
        return os.path.samestat(one, other)
    # A name may lead out of a folder that is not there yet, as ``new/../old`` does: once the
    # folder is made it names a file that is there.
    return os.path.realpath(first) == os.path.realpath(second)


def check_distinct(outputs: Mapping[str, _Path | None],
                   inputs: Mapping[str, Iterable[_Path]]) -> None:
    """Raise ``ValueError`` where an output is a file that is read, or two outputs are one file.

    Both are named by what the user calls them. ``-`` as an output is standard output, which may be
    a file as well; None is no output. Nothing is opened.
    """
    taken = [(path, field) for field, paths in inputs.items() for path in paths]
    for field, path in outputs.items():
        if path is None:
            continue
        target = "/dev/stdout" if path == "-" else path
        for other, given in taken:
            if same_file(target, other):
                raise ValueError(f"{field} must be another file than {os.fspath(other)!r}, which "
                                 f"is given as {given}")
        taken.append((target, field))


def _status(path: _Path) -> os.stat_result | None:
    try:
        return os.stat(path)
    except OSError:
        return None
