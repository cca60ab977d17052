"""Reader of the fields of text tables, with or without a header."""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from host.data.readers.fields import Fields, split
from host.data.readers.lines import Chunk, place, read_chunks
from host.errors import InputError

__all__ = ["header_names", "read_columns", "read_lines"]


def read_lines(path: str | Path, separator: bytes, columns: int, layout: str,
               short: str = "") -> Iterator[Fields]:
    """Yield the fields of a table without a header, ``[lines, columns]``; see
    :func:`host.data.readers.fields.split`."""
    any_line = False
    for chunk in read_chunks(path):
        fields = split(chunk, separator, columns, layout, short)
        if len(fields.starts):
            any_line = True
            yield fields
    if not any_line:
        raise InputError(path, 1, 1, "the file has only blank lines")


def read_columns(path: str | Path, names: Sequence[str], layout: str, content: str, *,
                 label: str | None = None) -> Iterator[Fields]:
    """Yield the fields of the columns ``names`` of a CSV file, ``[lines, names]``.

    The header may name the columns in any order, and further columns, which are ignored.

    Parameters
    ----------
    layout: usual header, for messages.
    content: the samples, in words.
    label: the column that files without labels lack.

    Raises `InputError` for a header without one of ``names``, and if no line follows.
    """
    header: list[str] = []
    places: list[int] = []
    end, any_line = (1, 1), False
    for chunk in read_chunks(path):
        if not places:
            data = chunk.data.lstrip(b"\n")
            if not data:
                continue
            chunk = Chunk(chunk.path, data,
                          chunk.first_line + len(chunk.data) - len(data))
            line, _, rest = data.partition(b"\n")
            header = header_names(line)
            places = _places(chunk, header, names, layout, label)
            end = chunk.first_line, len(line) + 1
            chunk = Chunk(chunk.path, rest, chunk.first_line + 1)
        if not chunk.data:
            continue
        fields = split(chunk, b",", len(header), ",".join(header))
        if len(fields.starts):
            any_line = True
            yield fields[:, places]
    if not any_line:
        raise InputError(path, *end, f"no {content} follow")


def header_names(line: bytes) -> list[str]:
    """Return the names in the first line of a CSV file; empty if the line is not a header."""
    try:
        return next(csv.reader([line.decode("ascii", "replace")], strict=True), [])
    except csv.Error:
        return []


def _places(chunk: Chunk, header: Sequence[str], names: Sequence[str], layout: str,
            label: str | None) -> list[int]:
    """Return the index of each of ``names`` in the header, which is the chunk's first line."""
    missing = [name for name in names if name not in header]
    if missing:
        line = chunk.data.partition(b"\n")[0][:60].decode("ascii", "replace")
        wrong = (f"not {line!r}" if len(missing) == len(names)
                 else f"but {', '.join(missing)} is missing")
        remedy = (f"; for samples without labels, add a column {label} of 0"
                  if missing == [label] else "")
        raise place(chunk, 0, f"the header must be {layout}, in any order, {wrong}{remedy}")
    for name in names:
        if header.count(name) > 1:
            raise place(chunk, 0, f"the header must name the column {name} once, not "
                                  f"{header.count(name)} times")
    return [header.index(name) for name in names]
