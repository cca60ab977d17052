"""Malformed files of every format: their contents, and the expected messages."""

import gzip
from dataclasses import dataclass

import numpy as np

from tests.host.data.readers.files import (
    avazu_lines,
    criteo_lines,
    npy_bytes,
    npz_arrays,
    npz_bytes,
)

__all__ = ["CASES", "Case"]


@dataclass(frozen=True)
class Case:
    """A file that is not a valid ``format``. ``said`` is the message after the path, beginning with
    the place."""

    format: str
    name: str
    content: bytes
    said: str

    def __str__(self) -> str:
        return f"{self.format}, {self.name}"


def _text(lines: list[str]) -> bytes:
    return ("\n".join(lines) + "\n").encode()


def _changed(lines: list[str], line: int, separator: str, column: int, text: str) -> bytes:
    """Return the lines with one field changed; line and column count from 1."""
    fields = lines[line - 1].split(separator)
    fields[column - 1] = text
    return _text([*lines[:line - 1], separator.join(fields), *lines[line:]])


def _column(lines: list[str], line: int, separator: str, column: int) -> str:
    """Return the place of a field."""
    fields = lines[line - 1].split(separator)
    return f":{line}:{len(separator.join(fields[:column - 1])) + 1 + (column > 1)}: "


def _fields(lines: list[str], line: int, count: int) -> str:
    """Return the first fields of a line with tabs."""
    return "\t".join(lines[line - 1].split("\t")[:count])


def _any_text(format: str, lines: list[str]) -> list[Case]:
    """Return errors of any text: no text, no end, an empty file."""
    whole = _text(lines)
    latin = _text([*lines[:2], "caf\xe9"]).decode().encode("latin-1")
    return [
        Case(format, "empty file", b"", ":1:1: the file is empty"),
        Case(format, "empty gzip", gzip.compress(b"", mtime=0), ":1:1: the file is empty"),
        Case(format, "not UTF-8", latin, ":3:4: binary data: byte 0xe9"),
        Case(format, "NUL bytes", lines[0].encode() + b"\n\0\0\0\n", ":2:1: binary data: byte "
                                                                     "0x00"),
        Case(format, "gzip cut off", gzip.compress(whole, mtime=0)[:-8],
             f":{len(lines) + 1}:1: Compressed file ended before the end-of-stream marker"),
        Case(format, "gzip damaged", gzip.compress(whole, mtime=0)[:-8] + bytes(8),
             f":{len(lines) + 1}:1: CRC check failed"),
    ]


def _criteo(format: str) -> list[Case]:
    lines = criteo_lines(5)
    short, long = lines[1].rpartition("\t")[0], lines[1] + "\t0"
    return [*_any_text(format, lines), *(Case(format, *case) for case in (
        ("missing column", _text([lines[0], short]),
         f":2:{len(short) + 1}: 39 columns instead of 40 (label, 13 integers"),
        ("extra column", _text([lines[0], long]), f":2:{len(long) + 1}: 41 columns instead of 40"),
        ("without labels", _text([line.partition("\t")[2] for line in lines]),
         f":1:{len(lines[0]) - 1}: 39 columns instead of 40 (label, 13 integers, 26 hexadecimal "
         "categories, separated by tabs); for samples without labels, put 0 and a tab before each"),
        ("blanks", _text([lines[0], "  ", lines[1]]), ":2:3: 1 column instead of 40"),
        ("blank lines alone", b"\n\r\n\n", ":1:1: the file has only blank lines"),
        ("commas", _text([line.replace("\t", ",") for line in lines]),
         f":1:{len(lines[0]) + 1}: 1 column instead of 40"),
        ("header", _text(["\t".join(["label"] * 40), *lines]),
         ":1:1: label must be 0 or 1, not 'label'"),
        ("float", _changed(lines, 3, "\t", 2, "3.0"),
         ":3:3: integer feature 1 is not an integer: '3.0'"),
        ("quote that is open", _changed(lines, 2, "\t", 15, '"a'),
         _column(lines, 2, "\t", 15) + "the quote is not closed in its line"),
        ("quotes in a field", _changed(lines, 2, "\t", 15, 'a""b'),
         f":2:{len(_fields(lines, 2, 14)) + 3}: a quote inside a field"),
        ("label", _changed(lines, 3, "\t", 1, "2"), ":3:1: label must be 0 or 1, not '2'"),
        ("not an integer", _changed(lines, 4, "\t", 6, "1e3"),
         _column(lines, 4, "\t", 6) + "integer feature 5 is not an integer: '1e3'"),
        ("not hexadecimal", _changed(lines, 5, "\t", 17, "xyz"),
         _column(lines, 5, "\t", 17) + "category 3 is not 1 to 8 hexadecimal digits: 'xyz'"),
        ("category of 9 digits", _changed(lines, 2, "\t", 40, "123456789"),
         _column(lines, 2, "\t", 40) + "category 26 is not 1 to 8"),
    ))]


def _avazu() -> list[Case]:
    lines = avazu_lines(5)
    short, long = lines[2].rpartition(",")[0], lines[2] + ",0"
    return [*_any_text("avazu", lines), *(Case("avazu", *case) for case in (
        ("missing column", _text([*lines[:2], short]),
         f":3:{len(short) + 1}: 23 columns instead of 24 (id,click,hour,C1"),
        ("extra column", _text([*lines[:2], long]), f":3:{len(long) + 1}: 25 columns instead of"),
        ("no header", _text(lines[1:]), ":1:1: the header must be id,click,hour,C1,banner_pos"),
        ("header of the test set", _text([lines[0].replace("click,", ""), *lines[1:]]),
         f":1:1: the header must be {lines[0]}, in any order, but click is missing; for samples "
         "without labels, add a column click of 0"),
        ("two columns missing", _text([lines[0].replace("hour,C1,", ""), *lines[1:]]),
         f":1:1: the header must be {lines[0]}, in any order, but hour, C1 is missing"),
        ("a column twice", _text([lines[0] + ",hour", *lines[1:]]),
         ":1:1: the header must name the column hour once, not 2 times"),
        ("tabs", _text([line.replace(",", "\t") for line in lines]),
         f":1:1: the header must be {lines[0]}, in any order, not "),
        ("header alone", _text(lines[:1]), f":1:{len(lines[0]) + 1}: no clicks follow"),
        ("click", _changed(lines, 4, ",", 2, "yes"),
         _column(lines, 4, ",", 2) + "click must be 0 or 1, not 'yes'"),
        ("hour of 24", _changed(lines, 5, ",", 3, "14102124"),
         _column(lines, 5, ",", 3) + "hour must be YYMMDDHH, not '14102124'"),
        ("hour of another form", _changed(lines, 2, ",", 3, "2014-10-21"),
         _column(lines, 2, ",", 3) + "hour must be YYMMDDHH, not '2014-10-21'"),
    ))]


def _movielens() -> list[Case]:
    lines = ["userId,movieId,rating,timestamp", "1,31,2.5,1260759144", "7,1029,3.0,1260759179",
             "2,10,4.0,835355493"]
    return [*_any_text("movielens", lines), *(Case("movielens", *case) for case in (
        ("missing column", _text([*lines[:2], "1,2,3.0"]), ":3:8: 3 columns instead of 4 (user"),
        ("extra column", _text([*lines[:3], "1,2,3.0,4,5"]), ":4:12: 5 columns instead of 4"),
        ("no header", _text(lines[1:]), ":1:1: the header must be userId,movieId,rating"),
        ("header alone", _text(lines[:1]), ":1:32: no ratings follow"),
        ("user", _changed(lines, 3, ",", 1, "x7"), ":3:1: userId is not a number: 'x7'"),
        ("rating", _changed(lines, 4, ",", 3, "4.2"), ":4:6: rating must be 0 to 5 in steps of"),
        ("timestamp", _changed(lines, 2, ",", 4, "-5"), ":2:10: timestamp is not a number: '-5'"),
    ))]


def _trace() -> list[Case]:
    lines = ["0:1 1:5", "", "1:3 1:3"]
    return [*_any_text("trace", lines), *(Case("trace", *case) for case in (
        ("no colon", b"0:1\n0:2 17\n", ":2:5: a key must be table:row, not '17'"),
        ("two colons", b"0:1 0:1:1\n", ":1:5: a key must be table:row, not '0:1:1'"),
        ("not a number", b"0:1\n0:1\n0:a\n", ":3:1: a key must be table:row in decimal, not '0:a'"),
        ("negative row", b"0:1\n 0:-2\n", ":2:2: a key must be table:row in decimal, not '0:-2'"),
        ("table beyond the format", b"4096:1\n", ":1:1: table of 4096:1 is beyond the 4096"),
        ("row beyond the format", b"0:68719476735\n", ":1:1: row of 0:68719476735 is beyond the"),
    ))]


def _trace_array() -> list[Case]:
    good = np.arange(12).reshape(4, 3)
    whole, negative = npy_bytes(good), good.copy()
    negative[2, 1] = -1
    large = good.astype(np.uint64)
    large[3, 0] = 1 << 36
    return [Case("trace", f".npy {name}", content, said) for name, content, said in (
        ("cut off", whole[:-5], ": array: shape (4, 3) of int64 takes 96 bytes, but there are 91"),
        ("longer than it says", whole + b"more", ": array: shape (4, 3) of int64 takes 96 bytes"),
        ("header cut off", whole[:40], ": array: not an array in NumPy's format: "),
        ("header not readable", whole.replace(b"'shape'", b"'shawl'"), ": array: not an array in"),
        ("floats", npy_bytes(good / 2), ": array: dtype must be of integers, not float64"),
        ("objects", npy_bytes(np.array([[1, "a"]], object)),
         ": array: dtype must be of integers or floats, not object"),
        ("strings", npy_bytes(np.array([["a"]])), ": array: dtype must be of integers or floats"),
        ("one axis", npy_bytes(good[0]), ": array: shape must be (samples, 1 to 4096 tables), "
                                         "not (3,)"),
        ("three axes", npy_bytes(good[None]), ": array: shape must be (samples, 1 to 4096"),
        ("no samples", npy_bytes(good[:0]), ": array: there are no samples"),
        ("negative key", npy_bytes(negative), ": array[2, 1]: -1 is negative"),
        ("negative key, by columns", npy_bytes(np.asfortranarray(negative)),
         ": array[2, 1]: -1 is negative"),
        ("key beyond the format", npy_bytes(large), ": array[3, 0]: 68719476736 is beyond the"),
    )]


def _damaged(content: bytes) -> bytes:
    """Return an archive in which one byte of the packed data of X_cat is changed."""
    at = content.index(b"X_cat.npy") + 2000
    return content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1:]


def _npz() -> list[Case]:
    whole = npz_arrays(200)

    def but(**changed) -> bytes:
        arrays = {name: array for name, array in {**whole, **changed}.items() if array is not None}
        return npz_bytes(arrays)

    def element(name: str, at, value) -> bytes:
        array = whole[name].astype(float if isinstance(value, float) else whole[name].dtype)
        array[at] = value
        return but(**{name: array})

    counts = whole["counts"]
    return [Case("dlrm-npz", name, content, said) for name, content, said in (
        ("empty file", b"", ": not a complete zip archive: File is not a zip file"),
        ("cut off", npz_bytes(whole)[:-40], ": not a complete zip archive: File is not a zip file"),
        ("begins like an archive", b"PK\x03\x04" + bytes(500), ": not a complete zip archive: "),
        ("array missing", but(X_cat=None), ": X_cat: the array is missing; the file must"),
        ("no counts", but(counts=None), ": counts: the array is missing; name a model"),
        ("text", but(X_cat=whole["X_cat"].astype(str)), ": X_cat: dtype must be of integers or"),
        ("objects", but(X_int=whole["X_int"].astype(object)), ": X_int: dtype must be of integers"),
        ("one axis", but(X_cat=whole["X_cat"][:, 0]), ": X_cat: must have 2 axes, not shape "
                                                      "(200,)"),
        ("transposed", but(X_int=whole["X_int"].T), ": X_int: must have 200 rows, as y has, not "
                                                    "shape (13, 200)"),
        ("labels of two axes", but(y=whole["y"][:, None]), ": y: must have 1 axis, not shape"),
        ("no tables", but(X_cat=whole["X_cat"][:, :0]), ": X_cat: must have 1 to 4096 columns"),
        ("more tables than the format", but(X_cat=np.zeros((200, 4097))),
         ": X_cat: must have 1 to 4096 columns, not shape (200, 4097)"),
        ("no samples", but(y=whole["y"][:0]), ": y: there are no samples"),
        ("counts of other tables", but(counts=counts[:25]), ": counts: must have shape (26,), one"),
        ("count of zero", element("counts", 7, 0), ": counts[7]: must be between 1 and"),
        ("negative key", element("X_cat", (190, 3), -1), ": X_cat[190, 3]: -1.0 is negative"),
        ("key beyond counts", element("X_cat", (5, 25), counts[25]),
         f": X_cat[5, 25]: {counts[25]}.0 is beyond the {counts[25]} counts of table 25"),
        ("key with a fraction", element("X_cat", (0, 0), 0.5),
         ": X_cat[0, 0]: must be a whole number, not 0.5"),
        ("key that is no number", element("X_cat", (0, 0), float("nan")),
         ": X_cat[0, 0]: must be a whole number, not nan"),
        ("dense feature that is no number", element("X_int", (9, 1), float("inf")),
         ": X_int[9, 1]: not a number: inf"),
        ("label", element("y", 199, 2), ": y[199]: must be 0 or 1, not 2"),
        ("packed data damaged", _damaged(npz_bytes(whole)), ": X_cat"),
        ("stored data damaged", _damaged(npz_bytes(whole, compressed=False)),
         ": X_cat: the data are damaged: their CRC-32 differs from the archive's"),
    )]


CASES = [*_criteo("criteo"), *_avazu(), *_movielens(), *_trace(), *_trace_array(), *_npz(),
         # Their values exceed the rows of a Kaggle table: only messages about a line matter.
         *(case for case in _criteo("criteo-exact") if "gzip" not in case.name)]
