"""Check of the files of a command: its outputs must differ from its inputs and from each other."""

import os
import stat
from collections.abc import Iterable, Mapping

__all__ = ["check_distinct", "same_file"]

_Path = str | os.PathLike[str]


def same_file(first: _Path, second: _Path) -> bool:
    """Return whether writing to ``first`` changes the content of ``second``.

    The function resolves hard and symbolic links of files and folders, and names such as
    ``/proc/self/fd/3``. It compares missing files by their names with resolved links. Only regular
    files can be the same: a device, a pipe or a folder has no content.
    """
    one, other = _status(first), _status(second)
    if any(found is not None and not stat.S_ISREG(found.st_mode) for found in (one, other)):
        return False
    if one is not None and other is not None:
        return os.path.samestat(one, other)
    # A name such as ``new/../old`` passes a missing folder. Once the folder exists, it names an
    # existing file.
    return os.path.realpath(first) == os.path.realpath(second)


def check_distinct(outputs: Mapping[str, _Path | None],
                   inputs: Mapping[str, Iterable[_Path]]) -> None:
    """Raise ``ValueError`` if an output is also an input, or if two outputs are the same file.

    No file is opened.

    Parameters
    ----------
    outputs: paths by their names for the user. ``-`` is standard output, which may be a file; None
        is no output.
    inputs: paths by their names for the user.
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
