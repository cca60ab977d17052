"""Data sets by format: one call that opens any of them as a stream of samples."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from .errors import InputError
from .model import MODELS, Model
from .readers import criteo, movielens, trace
from .readers.lines import first_line
from .samples import Samples

__all__ = ["FORMATS", "default_model", "guess_format", "open_samples"]

FORMATS: dict[str, Callable[[str | Path, Model], Iterator[Samples]]] = {
    "criteo": criteo.read, "movielens": movielens.read, "trace": trace.read}
"""The readers by the name of their format."""


def _reader(name: str) -> Callable[[str | Path, Model], Iterator[Samples]]:
    if name not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, not {name!r}")
    return FORMATS[name]


def guess_format(path: str | Path) -> str | None:
    """Return the format that the first line of a file looks like, or None."""
    line = first_line(path)
    if line == movielens.HEADER:
        return "movielens"
    if line.count(b"\t") == criteo.INTEGERS + criteo.CATEGORIES:
        return "criteo"
    if re.match(rb"[ \t]*\d+:\d+([ \t]|$)", line):
        return "trace"
    return None


def default_model(path: str | Path, format: str) -> Model:
    """Return the model for a file when none is named.

    That is ``kaggle`` for Criteo and ``movielens`` for MovieLens; for a trace it is ``trace`` with
    as many tables and rows as the file names, which is read through for it.
    """
    _reader(format)
    if format == "trace":
        return MODELS["trace"].with_rows(_explained(path, format, lambda: trace.scan_rows(path)))
    return MODELS["kaggle" if format == "criteo" else format]


def open_samples(path: str | Path, format: str, model: Model,
                 limit: int | None = None) -> Iterator[Samples]:
    """Yield the samples of a file in its order, in chunks, at most ``limit`` samples.

    Raises
    ------
    InputError
        The file cannot be read as ``format``; says so where it looks like another.
    ValueError
        There is no such format, the model does not fit it, or ``limit`` is below 1.
    """
    reader = _reader(format)
    if limit is not None and limit < 1:
        raise ValueError(f"limit must be at least 1, not {limit!r}")
    chunks = reader(path, model)
    left = limit
    while True:
        chunk = _explained(path, format, lambda: next(chunks, None))
        if chunk is None:
            return
        if left is not None and len(chunk) >= left:
            yield chunk.slice(0, left)
            return
        yield chunk
        left = left and left - len(chunk)


def _explained(path: str | Path, format: str, action: Callable):
    """Run ``action``; add to its `InputError` what the file looks like, if another format."""
    try:
        return action()
    except InputError as error:
        likely = guess_format(path) if error.line else None
        if likely in (None, format):
            raise
        raise InputError(error.path, error.line, error.column,
                         f"{error.message}; the file looks like format {likely}") from None
