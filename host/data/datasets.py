"""Data sets by format: opens a file of any format as a stream of samples.

A file may be a pipe, such as ``/dev/stdin`` or a shell's ``<(zcat day_0.gz)``, if a single pass
suffices: text of Criteo or Avazu with a given format, and text of a trace with a given format and
model. Other pipes raise `InputError`.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

from host.data.readers import avazu, criteo, movielens, npz, trace
from host.data.readers.arrays import first_member, storage
from host.data.readers.lines import head
from host.data.readers.table import header_names
from host.errors import InputError
from host.model import MODELS, Model
from host.reading import is_pipe, refuse_pipe
from host.samples import Samples, first_samples

__all__ = [
    "DATA_HELP", "EXACT", "FORMATS", "FORMAT_HELP", "Format", "Paths", "check_files",
    "default_model", "guess_format", "input_files", "is_sample_file",
    "known_format", "one_or_several", "open_samples",
]

Paths = str | Path | Sequence[str | Path]
"""A file, a folder of files, or several of these."""


@dataclass(frozen=True)
class Format:
    """A format of data sets.

    Members
    -------
    read: the reader; without a model it accepts any row.
    begin: returns a reader with state across files; None if ``read`` needs no state.
    model: returns the default model for files of this format.
    tables: names of the tables, if the format defines them.
    about: short description.
    """

    read: Callable[[str | Path, Model | None], Iterator[Samples]]
    model: Callable[[list[Path]], Model]
    about: str
    tables: tuple[str, ...] = ()
    begin: Callable[[], Callable[[str | Path, Model | None], Iterator[Samples]]] | None = None


def _trace_model(files: list[Path]) -> Model:
    return MODELS["trace"].with_rows(_largest(map(trace.scan_rows, files)))


def _npz_model(files: list[Path]) -> Model:
    shapes = [npz.model_shape(file) for file in files]
    return replace(MODELS["kaggle"], name="dlrm-npz", dense=shapes[0][0],
                   rows=_largest(rows for _, rows in shapes))


def _largest(rows) -> tuple[int, ...]:
    return tuple(max(column) for column in zip_longest(*rows, fillvalue=1))


EXACT = "-exact"
"""Suffix of formats that number categories instead of hashing them."""

_CRITEO = Format(criteo.read, lambda files: MODELS["kaggle"], "Criteo train.txt, day_N",
                 tuple(f"C{number + 1}" for number in range(criteo.CATEGORIES)))

FORMATS: dict[str, Format] = {
    "criteo": _CRITEO,
    "avazu": Format(avazu.read, lambda files: MODELS["avazu"], "Avazu train.csv", avazu.COLUMNS),
    "movielens": Format(movielens.read, lambda files: MODELS["movielens"], "MovieLens ratings.csv",
                        ("userId", "movieId")),
    "dlrm-npz": Format(npz.read, _npz_model, "facebookresearch/dlrm *_processed.npz"),
    "trace": Format(trace.read, _trace_model, "table:row pairs, .npy of samples x tables, or "
                                              ".npz with an array for each table"),
    "criteo" + EXACT: replace(_CRITEO, begin=criteo.exactly, about="Criteo, with --index exact"),
}
"""The formats by name."""

FORMAT_HELP = f"{', '.join(FORMATS)}; default: guessed from the first file."
DATA_HELP = ("File of samples, or folder of sample files; may be repeated. Read in given order. "
             "Default: generated samples.")
"""Help texts of the options ``--format`` and ``--data``."""


def _known(name: str) -> Format:
    if name not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, not {name!r}")
    return FORMATS[name]


def one_or_several(paths: Sequence[str] | None) -> str | tuple[str, ...] | None:
    """Return the paths of a repeatable option: a single path, several, or None."""
    return None if not paths else paths[0] if len(paths) == 1 else tuple(paths)


def input_files(paths: Paths) -> list[Path]:
    """Return the files that ``paths`` name, in order.

    A folder means its sample files (`is_sample_file`), sorted by name with numbers by value:
    ``day_2`` precedes ``day_10``.

    Raises
    ------
    InputError
        A folder is unreadable, contains no file, or contains the samples of a day twice.
    ValueError
        ``paths`` is empty.
    """
    files: list[Path] = []
    for path in [paths] if isinstance(paths, str | Path) else paths:
        if str(path) == "":
            raise ValueError(f"data must name a file or a folder, not {path!r}")
        path = Path(path)
        if not path.is_dir():
            files.append(path)
            continue
        try:
            found = [file for file in path.iterdir() if is_sample_file(file)]
        except OSError as error:
            raise InputError(path, 0, 0, error.strerror or str(error)) from None
        if not found:
            raise InputError(path, 0, 0, "the folder contains no file")
        for file in found:
            again = file.with_name(file.name.removesuffix("_processed.npz") + "_reordered.npz")
            if again in found and again != file:
                raise InputError(path, 0, 0, f"{file.name} and {again.name} have the same samples; "
                                             f"name the files instead of their folder")
        files += sorted(found, key=_by_number)
    if not files:
        raise ValueError("data must name at least one file")
    return files


def is_sample_file(path: Path) -> bool:
    """Return whether a folder given as data includes this file.

    Names that begin with ``.`` or ``_`` are omitted, and so are DLRM's auxiliary files
    (:func:`host.data.readers.npz.is_beside`).
    """
    return path.name[:1] not in (".", "_") and not npz.is_beside(path) and not path.is_dir()


def _by_number(path: Path) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isascii() and part.isdecimal() else (-1, part)
            for part in re.split(r"([0-9]+)", path.name)]


def guess_format(paths: Paths) -> str | None:
    """Guess the format of the first file from its content; None if no format matches.

    Arrays and archives are recognised by their first bytes; text, plain or gzip, by its first
    non-empty line. The format of a pipe is not guessed, because its first bytes would be lost.
    """
    path = input_files(paths)[0]
    if is_pipe(path):
        return None
    kind = storage(path)
    if kind is not None:
        return "trace" if kind == "npy" or first_member(path).isdecimal() else "dlrm-npz"
    text = head(path)
    line = text.lstrip(b"\r\n").split(b"\n", 1)[0].rstrip(b"\r")
    found = set(header_names(line))
    for name, names in (("movielens", movielens.NAMES), ("avazu", avazu.NAMES)):
        if 2 * len(found.intersection(names)) > len(names):
            return name
    if criteo.INTEGERS + criteo.CATEGORIES - line.count(b"\t") in (0, 1):  # without labels, too
        return "criteo"
    if re.match(rb"\s*\d+:\d+(\s|$)", text):
        return "trace"
    return None


def known_format(paths: Paths, format: str | None = None) -> str:
    """Return ``format``; if it is None, the result of `guess_format`.

    Raises
    ------
    InputError
        The first file is unreadable, or its format is unknown.
    ValueError
        ``format`` does not exist.
    """
    if format is not None:
        _known(format)
        return format
    kind = guess_format(paths)
    if kind is None:
        path = input_files(paths)[0]
        refuse_pipe(path, ", or name the format with --format")
        try:
            path.open("rb").close()
        except OSError as error:
            raise InputError(path, 0, 0, error.strerror or str(error)) from None
        raise InputError(path, 1, 1, "the format is unknown; name it with --format")
    return kind


def default_model(paths: Paths, format: str) -> Model:
    """Return the model for files if the user names none.

    ``kaggle`` for Criteo, ``avazu`` for Avazu and ``movielens`` for MovieLens. For a trace:
    ``trace`` with the tables and rows in the files, which takes a pass over them. For DLRM's
    archives: ``kaggle`` with the tables and rows of their ``counts`` and their dense features. With
    several files, each table has the maximum rows of all files.
    """
    files = input_files(paths)
    model = _known(format).model
    return _explain_format(format, lambda: model(files))


def open_samples(paths: Paths, format: str, model: Model | None,
                 limit: int | None = None) -> Iterator[Samples]:
    """Yield chunks of the samples of the files, in order, at most ``limit`` samples.

    Without a model, readers accept any row.

    Raises
    ------
    InputError
        A file cannot be read as ``format``; the message states if it looks like another format.
    ValueError
        The format is unknown, the model does not fit it, or ``limit`` is below 1.
    """
    known = _known(format)
    reader = known.begin() if known.begin else known.read
    if limit is not None and limit < 1:
        raise ValueError(f"limit must be at least 1, not {limit!r}")

    def chunks() -> Iterator[Samples]:
        for path in input_files(paths):
            read = reader(path, model)
            while (chunk := _explain_format(format, lambda: next(read, None))) is not None:
                yield chunk

    yield from chunks() if limit is None else first_samples(chunks(), limit)


def check_files(paths: Paths, why: str) -> None:
    """Raise `InputError` if a path is a pipe; ``why`` is the reason for a second pass."""
    for path in input_files(paths):
        refuse_pipe(path, f" {why}")


def _explain_format(format: str, action: Callable):
    """Run ``action``; if the file looks like another format, add this to its `InputError`."""
    try:
        return action()
    except InputError as error:
        likely = guess_format(error.path)
        if likely in (None, format.removesuffix(EXACT)):
            raise
        raise InputError(error.path, error.line, error.column,
                         f"{error.message}; the file looks like format {likely}") from None
