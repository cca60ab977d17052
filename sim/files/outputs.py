"""Output files of a command: checked before the work begins, and replaced atomically."""

import json
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryFile
from types import MappingProxyType

from gen.base.distinct import check_distinct
from gen.base.files import write_whole
from host.data.datasets import Paths, input_files, is_sample_file
from host.model import model_names
from host.reading import read_regular
from host.timing.cluster import cluster_files

__all__ = [
    "MOST_RESULTS", "LiveJson", "check_apart", "check_earlier_results", "check_folder",
    "check_outputs", "check_picture", "check_predictions", "check_writable", "write_json",
]

MOST_RESULTS = 1 << 30
"""Most bytes of a file of earlier results that is read."""

_NOTHING: Mapping[str, Paths | None] = MappingProxyType({})


def check_outputs(outputs: Mapping[str, str | None],
                  inputs: Mapping[str, Paths | None] = _NOTHING) -> None:
    """Raise ``ValueError`` unless each output can be written and `check_apart` accepts it.

    Call it with all files of a command, before opening any of them.
    """
    check_apart(outputs, inputs)
    for field, path in outputs.items():
        check_writable(path, field)


def check_apart(outputs: Mapping[str, str | None],
                inputs: Mapping[str, Paths | None] = _NOTHING) -> None:
    """Raise ``ValueError`` if an output is an input or another output.

    Parameters
    ----------
    outputs: files by the options that name them; ``-`` is standard output.
    inputs: values of the options that name inputs. ``data`` and ``files`` are files and folders of
        samples: an output must not be, or become, a file of these folders. A ``cluster`` is every
        file that it reads. A ``script`` is a file, whatever its name. For other options, a name
        that ships with EmberNIC is not a file.
    """
    check_distinct(outputs, {field: list(_files_of(field, given))
                             for field, given in inputs.items() if given is not None})
    for field, given in inputs.items():
        if field in _SAMPLES and given is not None:
            _check_outside(outputs, field, given)


_SAMPLES = ("data", "files")
"""Options that name samples, where a folder stands for its files."""


def _files_of(field: str, given: Paths) -> Iterable[str | Path]:
    """Return the files that an option names."""
    if field in _SAMPLES:
        return input_files(given)
    name = str(given)
    if field == "cluster":
        return cluster_files(name)
    if field == "model":
        return () if name in model_names() else (name,)
    return (name,) if field == "script" or name.endswith((".toml", ".json")) else ()


def _check_outside(outputs: Mapping[str, str | None], field: str, given: Paths) -> None:
    """Raise ``ValueError`` for an output that would become a sample file of a folder."""
    for folder in _folders(given):
        for output, path in outputs.items():
            if path in (None, "-") or not is_sample_file(Path(path)):
                continue
            if os.path.realpath(Path(path).parent) == os.path.realpath(folder):
                raise ValueError(f"{output} must be outside the folder {str(folder)!r}, which is "
                                 f"given as {field}")


def _folders(given: Paths) -> Iterator[Path]:
    for path in [given] if isinstance(given, str | Path) else given:
        if Path(path).is_dir():
            yield Path(path)


def check_writable(path: str | None, field: str) -> None:
    """Raise ``ValueError`` unless a file can be written at ``path`` (``-`` is standard output)."""
    if path in (None, "-"):
        return
    if os.path.isdir(path or "."):
        raise ValueError(f"{field} must be a file, not the folder {path!r}")
    why = f"{field} cannot be written: {path}"
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        os.stat(path)
    except FileNotFoundError:
        # The target of a link must also be in an existing folder.
        _check_room(Path(os.path.realpath(path)).parent, why)
    except OSError as error:
        raise ValueError(f"{why}: {error.strerror}") from None
    else:
        if not os.access(path, os.W_OK):
            raise ValueError(f"{why}: permission denied")


def check_folder(path: str, field: str) -> None:
    """Create the folder at ``path``; raise ``ValueError`` if that fails."""
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{field} must be a folder, not the file {path!r}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"{field} cannot be created: {path}: {error.strerror}") from None
    _check_room(folder, f"{field} cannot be written to: {path}")


def _check_room(folder: Path, why: str) -> None:
    """Raise ``ValueError`` if no file can be created in a folder, regardless of its permissions."""
    try:
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ValueError(f"{why}: {error.strerror}") from None


def check_picture(path: str | None) -> None:
    """Raise ``ValueError`` for a file name without the suffix of a supported picture format."""
    if path and Path(path).suffix not in (".png", ".svg", ".pdf"):
        raise ValueError(f"picture must end in .png, .svg or .pdf, not {path!r}")


def check_predictions(path: str | None) -> None:
    """Raise ``ValueError`` for a file name that does not end in .csv, or standard output."""
    if path is not None and not path.endswith(".csv"):
        raise ValueError(f"predictions must end in .csv, not {path!r}")


def write_json(result: dict, path: str | None) -> None:
    """Write ``result`` to a file, to standard output for ``-``, or nowhere for None.

    The file is replaced atomically: it is never incomplete.
    """
    if not path:
        return
    text = json.dumps(result, indent=1) + "\n"
    if path == "-":
        sys.stdout.write(text)
    else:
        write_whole(path, text)


def check_earlier_results(path: str | None, first_sample: int) -> None:
    """Raise ``ValueError`` if a run that resumes at ``first_sample`` would replace the results of
    the stopped run."""
    if path in (None, "-") or not first_sample or not Path(path).is_file():
        return
    text = read_regular(path, MOST_RESULTS)
    try:
        found = json.loads(text)
        is_part = found["complete"] is False and found["options"]["first_sample"] < first_sample
    except (ValueError, TypeError, KeyError, RecursionError):
        return
    if is_part:
        raise ValueError(f"json must be another file than {path!r}, which contains the results of "
                         f"samples before {first_sample}")


LIVE_SECONDS = 5.0
"""Seconds between two writes of incomplete results."""


class LiveJson:
    """Periodic writer of a running command's results: a killed command loses only seconds of
    results.

    Parameters
    ----------
    path: the file. Results are not written to None, ``-``, pipes and devices, whose reader gets the
        results once.
    seconds: seconds between two writes, and before the first; by default ``LIVE_SECONDS``.

    Members: ``written``, whether a file was written.
    """

    def __init__(self, path: str | None, seconds: float | None = None):
        shared = path == "-" or (path and os.path.exists(path) and not os.path.isfile(path))
        self._path = None if shared else path
        self._seconds = LIVE_SECONDS if seconds is None else seconds
        self._next = time.monotonic() + self._seconds
        self.written = False

    def due(self) -> bool:
        """Return whether it is time to write."""
        return self._path is not None and time.monotonic() >= self._next

    def write(self, result: dict) -> None:
        """Write ``result``, which itself states that it is not complete."""
        write_json(result, self._path)
        self.written = True
        # Counted from the end of the write: even if writing is slow, most time remains for the
        # work.
        self._next = time.monotonic() + self._seconds
