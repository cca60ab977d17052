"""Reader of Avazu's click log ``train.csv``: 21 categories and the hour, plain or gzip."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from host.data.readers.fields import Fields, decimals, labels
from host.data.readers.shapes import check_model, table_sizes
from host.data.readers.table import read_columns
from host.hashing import GOLDEN, mix64
from host.model import Model
from host.samples import Samples

__all__ = ["COLUMNS", "HEADER", "NAMES", "read", "text_hashes"]

COLUMNS = ("C1", "banner_pos", "site_id", "site_domain", "site_category", "app_id", "app_domain",
           "app_category", "device_id", "device_ip", "device_model", "device_type",
           "device_conn_type", *(f"C{number}" for number in range(14, 22)))
"""The 21 categorical columns, in the order of the tables."""

NAMES = ("click", "hour", *COLUMNS)
"""The columns that the reader uses."""

HEADER = ",".join(("id", *NAMES))


def text_hashes(fields: Fields) -> np.ndarray:
    """Return a 64-bit hash of the bytes of each field.

    h starts as the number of bytes. For each 8 bytes, as a little-endian integer (zero-padded at
    the end), h becomes mix64(h + golden ^ integer); an empty field counts as a single integer 0.
    See :func:`host.hashing.mix64`; golden is `host.hashing.GOLDEN`.
    """
    words = fields.chunk.words
    starts, lengths = fields.starts.reshape(-1), fields.lengths.reshape(-1)
    hashes = lengths.astype(np.uint64)
    which, done = np.arange(len(starts)), 0
    while len(which):
        drop = (64 - 8 * np.clip(lengths[which] - done, 0, 8)).astype(np.uint64)
        word = (words[starts[which] + done] << drop) >> drop  # a shift by 64 gives 0
        hashes[which] = mix64((hashes[which] + np.uint64(GOLDEN)) ^ word)
        done += 8
        which = which[lengths[which] > done]
    return hashes.reshape(fields.starts.shape)


def read(path: str | Path, model: Model | None) -> Iterator[Samples]:
    """Yield the samples of an Avazu ``train.csv``, a few thousand per chunk.

    The first line is `HEADER`, in any order. Columns besides `NAMES` are ignored. The label is
    ``click``, 0 or 1. The only dense feature is log(1 + the hour of the day), from ``hour``, which
    is YYMMDDHH. The other columns are categories: any text, even an empty one, becomes its
    `text_hashes` modulo the table's rows, or modulo 2^36 - 1 without a model. Blank lines are
    skipped.

    Raises
    ------
    InputError
        The line and column of a malformed field.
    ValueError
        The model does not have one dense feature and 21 tables.
    """
    check_model("Avazu", model, 1, len(COLUMNS))
    sizes = table_sizes(model, len(COLUMNS)).astype(np.uint64)
    for fields in read_columns(path, NAMES, HEADER, "clicks", label="click"):
        label = labels(fields[:, 0], "click")
        dense = np.log1p(_hours(fields[:, 1]).astype(np.float64))
        rows = (text_hashes(fields[:, 2:]) % sizes).astype(np.int64)
        yield Samples.one_hot(dense[:, None], label, rows)


def _hours(column: Fields) -> np.ndarray:
    """Return the hours of the day from YYMMDDHH."""
    value, good = decimals(column)
    month, day, hour = value // 10_000 % 100, value // 100 % 100, value % 100
    column.require(good & (column.lengths == 8) & (month >= 1) & (month <= 12) & (day >= 1)
                   & (day <= 31) & (hour <= 23), lambda text, at:
                   f"hour must be YYMMDDHH, not {text!r}")
    return hour
