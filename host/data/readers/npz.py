"""Reader of DLRM's preprocessed data sets: ``*_processed.npz`` of facebookresearch/dlrm."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from host.data.readers.arrays import ArrayFile, array_error, open_npz
from host.data.readers.shapes import MOST_ROWS, check_model
from host.errors import InputError
from host.model import Model
from host.reading import refuse_pipe
from host.samples import Samples
from rtl.formats import TABLE_BITS

__all__ = ["ARRAYS", "CHUNK_ROWS", "counts_file", "is_beside", "model_shape", "read"]

ARRAYS = ("X_int", "X_cat", "y", "counts")

CHUNK_ROWS = 1 << 13
"""Samples per chunk; fewer for many tables or features."""

_CHUNK_VALUES = 1 << 20


def read(path: str | Path, model: Model | None) -> Iterator[Samples]:
    """Yield the samples of a DLRM data set, in file order, at most `CHUNK_ROWS` per chunk.

    The arrays hold whole numbers of any integer or float type, stored or compressed, in either
    element order (DLRM's own X_cat is float64 in Fortran order):

    ``X_int`` ``[n, dense features]``: the dense feature is log(1 + max(x, 0)), computed in float64
    and rounded once; NaN and infinity are errors. ``X_cat`` ``[n, tables]``: the rows. ``y``
    ``[n]``: labels, 0 or 1. ``counts`` ``[tables]``: rows of each table. Files of single days have
    their counts in the `counts_file` beside them; ``model`` replaces a missing file.

    (`data_utils.py` of facebookresearch/dlrm, `processCriteoAdData`, `concatCriteoAdData` and
    `getCriteoAdData`.)

    Raises
    ------
    InputError
        The archive is incomplete, an array is missing or has a wrong type or shape, or an element
        is invalid, negative, or beyond ``counts`` or the model's rows. Names the array, the index,
        and the file of the counts.
    ValueError
        The model has a different number of dense features or tables.
    """
    with _opened(Path(path)) as (arrays, counts):
        dense, keys, label = arrays["X_int"], arrays["X_cat"], arrays["y"]
        beside = "" if "counts" in arrays else f" in {counts_file(path)}"
        check_model("this data set", model, dense.shape[1], keys.shape[1])
        limits = np.full(keys.shape[1], MOST_ROWS, np.int64) if counts is None else counts
        owner = np.full(keys.shape[1], "counts", object)
        if model is not None:
            rows = np.array(model.rows, np.int64)
            owner = np.where(rows < limits, "rows of the model", owner)
            limits = np.minimum(rows, limits)
        widest = max(dense.shape[1], keys.shape[1])
        size, first = max(1, min(CHUNK_ROWS, _CHUNK_VALUES // widest)), 0
        for x, rows, y in zip(dense.chunks(size), keys.chunks(size), label.chunks(size),
                              strict=True):
            _require(dense, x, np.isfinite(x), first, lambda value, at: f"not a number: {value}")
            _whole(keys, rows, first)
            _require(keys, rows, rows >= 0, first, lambda value, at: f"{value} is negative")
            _require(keys, rows, rows < limits, first, lambda value, at:
                     f"{value} is beyond the {limits[at[1]]} {owner[at[1]]} of table {at[1]}"
                     + beside * (owner[at[1]] == "counts"))
            _require(label, y, (y == 0) | (y == 1), first,
                     lambda value, at: f"must be 0 or 1, not {value}")
            values = np.log1p(np.maximum(x, 0).astype(np.float64)).astype(np.float32)
            yield Samples.one_hot(values, y, rows.astype(np.int64))
            first += len(y)


def model_shape(path: str | Path) -> tuple[int, tuple[int, ...]]:
    """Return the number of dense features, and ``counts``. Raises `InputError`."""
    with _opened(Path(path)) as (arrays, counts):
        if counts is None:
            beside = counts_file(path)
            raise array_error(path, "counts", "the array is missing" + (
                f", and so is {beside}" if beside else "") + "; name a model")
        return arrays["X_int"].shape[1], tuple(counts.tolist())


def counts_file(path: str | Path) -> Path | None:
    """Return the file with the ``counts`` of a single day's file; None for another file.

    `getCriteoAdData` writes the days of ``train.txt`` as ``train_day_0_processed.npz`` and
    ``train_day_0_reordered.npz``, ... and their counts as ``train_fea_count.npz``; those of
    Terabyte's ``day_0``, ... as ``day_0_processed.npz``, ... and ``day_fea_count.npz``.
    """
    name = re.fullmatch(r"(.*?)_[0-9]+_(?:processed|reordered)\.npz", Path(path).name)
    if name is None:
        return None
    return Path(path).with_name(name[1].removesuffix("_day") + "_fea_count.npz")


def is_beside(path: str | Path) -> bool:
    """Return whether a file is an auxiliary file of `data_utils.py`.

    These are ``*_fea_count.npz``, ``*_fea_dict_0.npz``, ..., ``*_day_count.npz``.
    """
    return re.fullmatch(r".*_(fea_count|fea_dict_[0-9]+|day_count)\.npz",
                        Path(path).name) is not None


@contextmanager
def _opened(path: Path) -> Iterator[tuple[dict[str, ArrayFile], np.ndarray | None]]:
    """Yield the arrays of the file, whose shapes are consistent, and its counts."""
    try:
        refuse_pipe(path)
        with path.open("rb") as file:
            arrays = open_npz(path, file, ARRAYS)
            yield arrays, _check(path, arrays)
    except OSError as error:
        raise InputError(path, 0, 0, error.strerror or str(error)) from None


def _check(path: Path, arrays: dict[str, ArrayFile]) -> np.ndarray | None:
    """Check that the shapes are consistent; return the checked counts."""
    for name in ARRAYS[:3]:
        if name not in arrays:
            raise array_error(path, name, f"the array is missing; the file must have "
                                          f"{', '.join(ARRAYS[:3])}, and counts or a model")
        axes = 1 if name == "y" else 2
        if len(arrays[name].shape) != axes:
            raise arrays[name].error(f"must have {axes} ax{'i' if axes == 1 else 'e'}s, not shape "
                                     f"{arrays[name].shape}")
    samples = arrays["y"].shape[0]
    if samples == 0:
        raise arrays["y"].error("there are no samples")
    for name in ARRAYS[:2]:
        if arrays[name].shape[0] != samples:
            raise arrays[name].error(f"must have {samples} rows, as y has, not shape "
                                     f"{arrays[name].shape}")
        most = 1 << (TABLE_BITS if name == "X_cat" else 16)
        if not 1 <= arrays[name].shape[1] <= most:
            raise arrays[name].error(f"must have 1 to {most} columns, not shape "
                                     f"{arrays[name].shape}")
    tables = arrays["X_cat"].shape[1]
    if "counts" in arrays:
        return _counts(arrays["counts"], tables)
    beside = counts_file(path)
    if beside is None or not beside.exists():
        return None
    refuse_pipe(beside)
    with beside.open("rb") as file:
        found = open_npz(beside, file, ("counts",))
        if not found:
            raise array_error(beside, "counts", "the array is missing")
        return _counts(found["counts"], tables)


def _counts(counts: ArrayFile, tables: int) -> np.ndarray:
    """Return the checked counts of ``tables`` tables."""
    if counts.shape != (tables,):
        raise counts.error(f"must have shape ({tables},), one for each column of X_cat, not "
                           f"{counts.shape}")
    values = counts.whole()
    _whole(counts, values, 0)
    _require(counts, values, (values >= 1) & (values <= MOST_ROWS), 0,
             lambda value, at: f"must be between 1 and {MOST_ROWS}, not {value}")
    return values.astype(np.int64)


def _whole(array: ArrayFile, values: np.ndarray, first: int) -> None:
    if values.dtype.kind == "f":
        _require(array, values, values == np.floor(values), first,
                 lambda value, at: f"must be a whole number, not {value}")


def _require(array: ArrayFile, values: np.ndarray, good: np.ndarray, first: int, message) -> None:
    """Raise at the first element, in sample order, that is not ``good``."""
    if good.all():
        return
    at = tuple(int(i) for i in np.unravel_index(int((~good).argmax()), good.shape))
    raise array.error(message(values[at], at), (first + at[0], *at[1:]))
