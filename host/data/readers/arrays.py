"""Reader of rows of NumPy arrays, plain or inside a zip archive, a chunk at a time.

An array is never held whole: compressed data are decompressed during reading. Both element orders
work. Columns stored in sequence (``fortran_order``, used by DLRM's preprocessing for categories)
are read with a cursor per column. In a compressed member, a cursor is a copy of the decompressor's
state at the start of its column, found in a pass over the member. Format: ``numpy.lib.format``;
zip: PKWARE's APPNOTE, section 4.3.7.
"""

import struct
import warnings
import zipfile
import zlib
from collections.abc import Container, Iterator
from pathlib import Path
from tokenize import TokenError
from typing import BinaryIO, Protocol

import numpy as np

from host.errors import InputError
from host.reading import is_pipe

__all__ = ["ArrayFile", "array_error", "first_member", "open_npy", "open_npz", "storage"]

_MAGIC = {b"\x93NUMPY": "npy", b"PK\x03\x04": "npz", b"PK\x05\x06": "npz"}
_BLOCK = 1 << 16
_MOST_HEADER = 1 << 14
_LOCAL_HEADER = struct.Struct("<4s22xHH")


def storage(path: str | Path) -> str | None:
    """Return ``npy`` or ``npz`` by the first bytes of a file; None for other files and pipes."""
    try:
        first = b"" if is_pipe(path) else _first(path, 8)
    except OSError:
        return None
    return next((kind for magic, kind in _MAGIC.items() if first.startswith(magic)), None)


def first_member(path: str | Path) -> str:
    """Return the name of the first array of an ``.npz`` file, from its first bytes."""
    start = _first(path, _LOCAL_HEADER.size + 256)
    length = _LOCAL_HEADER.unpack_from(start.ljust(_LOCAL_HEADER.size, b"\0"))[1]
    name = start[_LOCAL_HEADER.size:_LOCAL_HEADER.size + length]
    return name.decode("utf-8", "replace").removesuffix(".npy")


def _first(path: str | Path, size: int) -> bytes:
    with open(path, "rb") as file:
        return file.read(size)


def array_error(path: str | Path, name: str, message: str) -> InputError:
    """Return an error in an array; ``name`` names the array, with an index if known."""
    return InputError(path, 0, 0, f"{name}: {message}")


class _Cursor(Protocol):
    """A position in the bytes of an array that advances as they are read."""

    def read(self, size: int) -> bytes: ...


class _Plain:
    """Uncompressed bytes of the file."""

    def __init__(self, file: BinaryIO, at: int, end: int):
        self._file, self._at, self._end = file, at, end

    def read(self, size: int) -> bytes:
        self._file.seek(self._at)
        data = self._file.read(max(0, min(size, self._end - self._at)))
        self._at += len(data)
        return data

    def copy(self) -> "_Plain":
        return _Plain(self._file, self._at, self._end)


class _Deflated:
    """Bytes of a deflated member (RFC 1951). Cursors may share a file."""

    def __init__(self, packed: _Plain, state=None):
        self._packed = packed
        self._state = state or zlib.decompressobj(-zlib.MAX_WBITS)

    def read(self, size: int) -> bytes:
        parts, left = [], size
        while left and not self._state.eof:
            packed = self._state.unconsumed_tail or self._packed.read(_BLOCK)
            part = self._state.decompress(packed, left)
            if not part and not packed:
                break
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    def copy(self) -> "_Deflated":
        return _Deflated(self._packed.copy(), self._state.copy())


class _Checked:
    """A cursor that reads everything once and computes the checksum."""

    def __init__(self, cursor: _Plain | _Deflated):
        self.cursor = cursor
        self.count = self.crc = 0

    def read(self, size: int) -> bytes:
        data = self.cursor.read(size)
        self.count += len(data)
        self.crc = zlib.crc32(data, self.crc)
        return data


class _Short:
    """A cursor at a header, whose stated length may be 4 GiB."""

    def __init__(self, cursor: _Checked):
        self._cursor = cursor

    def read(self, size: int) -> bytes:
        if size > _MOST_HEADER:
            raise ValueError(f"a header must have at most {_MOST_HEADER:,} bytes, not {size:,}")
        return self._cursor.read(size)


class ArrayFile:
    """An array in a file, read once from start to end.

    Parameters
    ----------
    path, name: file, and name of the array in the file, for messages.
    cursor: position at the first byte of NumPy's header.
    size: bytes from there to the end.
    crc: CRC-32 of these bytes, None if unknown.

    Members
    -------
    shape, dtype: of the array.

    Raises
    ------
    InputError
        It is not an array of numbers, or has more or fewer bytes than its shape needs.
    """

    def __init__(self, path: Path, name: str, cursor: _Plain | _Deflated, size: int,
                 crc: int | None = None):
        self.path, self.name = path, name
        self._cursor = _Checked(cursor)
        self._crc = crc
        self.shape, self._fortran, self.dtype = self._header()
        needed, there = self.dtype.itemsize, size - self._cursor.count
        for length in self.shape:
            needed *= length
        if needed != there or min(self.shape, default=0) < 0:
            raise self.error(f"shape {self.shape} of {self.dtype} takes {needed} bytes, "
                             f"but there are {there}")

    def _header(self) -> tuple[tuple[int, ...], bool, np.dtype]:
        cursor = _Short(self._cursor)
        try:
            version = np.lib.format.read_magic(cursor)
            if version not in ((1, 0), (2, 0)):
                raise ValueError(f"version {version[0]}.{version[1]} of the format is unknown")
            read = (np.lib.format.read_array_header_1_0 if version == (1, 0)
                    else np.lib.format.read_array_header_2_0)
            with warnings.catch_warnings():  # for headers written by Python 2
                warnings.simplefilter("ignore")
                shape, fortran, dtype = read(cursor)
        except (ValueError, TypeError, SyntaxError, TokenError, RecursionError,
                zlib.error) as error:  # exceptions of NumPy's header parser
            raise self.error(f"not an array in NumPy's format: {_short(error)}") from None
        if dtype.kind not in "biuf":
            raise self.error(f"dtype must be of integers or floats, not {dtype}")
        return shape, fortran, dtype

    def error(self, message: str, index: tuple[int, ...] = ()) -> InputError:
        """Return an error in this array, or in the element at ``index``."""
        where = f"[{', '.join(map(str, index))}]" if index else ""
        return array_error(self.path, self.name + where, message)

    def chunks(self, rows: int) -> Iterator[np.ndarray]:
        """Yield ``rows`` of the first axis at a time; the last chunk may be shorter."""
        count, width = self.shape[0], int(np.prod(self.shape[1:], dtype=np.int64))
        if not self._fortran or width <= 1:
            for first in range(0, count, rows):
                n = min(rows, count - first)
                yield self._take(self._cursor, n * width, first).reshape(n, *self.shape[1:])
            self._check_crc()
            return
        if len(self.shape) != 2:
            raise self.error(f"an array of {len(self.shape)} axes must be in C order")
        cursors = list(self._columns(count * self.dtype.itemsize, width))
        self._check_crc()
        for first in range(0, count, rows):
            n = min(rows, count - first)
            yield np.stack([self._take(cursor, n, first, column)
                            for column, cursor in enumerate(cursors)], axis=1)

    def check_rows(self, rows: np.ndarray, sizes: np.ndarray, first: int,
                   table: int | None = None) -> None:
        """Raise `InputError` for an element of ``rows [n, columns]`` outside 0 to ``sizes`` - 1.

        first: number of the first row in the array.
        table: table of all columns; None if each column is a table.
        """
        good = (rows >= 0) & (rows < sizes)
        if good.all():
            return
        at = tuple(int(i) for i in np.unravel_index(int((~good).argmax()), good.shape))
        value, column = rows[at], at[1] if table is None else 0
        raise self.error(f"{value} is negative" if value < 0 else
                         f"{value} is beyond the {sizes[column]} rows of table "
                         f"{column if table is None else table}", (first + at[0], at[1]))

    def whole(self) -> np.ndarray:
        """Return the whole array, for small arrays."""
        return next(self.chunks(max(1, self.shape[0])), np.empty(self.shape, self.dtype))

    def _columns(self, size: int, width: int) -> Iterator[_Plain | _Deflated]:
        """Yield a cursor at the beginning of each column of ``size`` bytes."""
        for column in range(width):
            yield self._cursor.cursor.copy()
            left = size
            while left:
                left -= len(self._read(self._cursor, min(left, 1 << 20), (0, column)))

    def _check_crc(self) -> None:
        if self._crc is not None and self._cursor.crc != self._crc:
            raise self.error("the data are damaged: their CRC-32 differs from the archive's")

    def _take(self, cursor: _Cursor, count: int, row: int, column: int | None = None,
              ) -> np.ndarray:
        index = (row,) if column is None else (row, column)
        data = self._read(cursor, count * self.dtype.itemsize, index)
        return np.frombuffer(data, self.dtype)

    def _read(self, cursor: _Cursor, size: int, index: tuple[int, ...]) -> bytes:
        try:
            data = cursor.read(size)
        except zlib.error as error:
            raise self.error(f"the data are damaged from here on: {error}", index) from None
        if len(data) < size:
            raise self.error(f"the data end here, {size - len(data)} bytes too early", index)
        return data


def _short(error: Exception) -> str:
    """Return the error message, shortened if it quotes a whole header."""
    text = " ".join(str(error).split())
    return text if len(text) <= 120 else f"{text[:100]}..."


def open_npy(path: Path, file: BinaryIO) -> ArrayFile:
    """Return the array of an open ``.npy`` file. Raises `InputError` if it is malformed."""
    size = file.seek(0, 2)
    return ArrayFile(path, "array", _Plain(file, 0, size), size)


def open_npz(path: Path, file: BinaryIO, wanted: Container[str]) -> dict[str, ArrayFile]:
    """Return the arrays of an open ``.npz`` file that are ``wanted`` and present, by name.

    Raises
    ------
    InputError
        The file is not a complete zip archive, or a member has an unsupported compression or is not
        an array.
    """
    try:
        members = zipfile.ZipFile(file).infolist()
    except (zipfile.BadZipFile, EOFError, NotImplementedError, struct.error, ValueError) as error:
        raise InputError(path, 0, 0, f"not a complete zip archive: {error}") from None
    arrays = {}
    for member in members:
        name = member.filename.removesuffix(".npy")
        if name not in wanted:
            continue
        if member.flag_bits & 1:
            raise array_error(path, name, "the member is encrypted")
        file.seek(max(0, member.header_offset))
        local = file.read(_LOCAL_HEADER.size)
        if len(local) < _LOCAL_HEADER.size or not local.startswith(b"PK\x03\x04"):
            raise array_error(path, name, "the member's header is damaged")
        start = member.header_offset + _LOCAL_HEADER.size + sum(_LOCAL_HEADER.unpack(local)[1:])
        packed = _Plain(file, start, start + member.compress_size)
        if member.compress_type == zipfile.ZIP_STORED:
            cursor = packed
        elif member.compress_type == zipfile.ZIP_DEFLATED:
            cursor = _Deflated(packed)
        else:
            raise array_error(path, name, "the member must be stored or deflated, not compressed "
                                          f"by method {member.compress_type}")
        arrays[name] = ArrayFile(path, name, cursor, member.file_size, member.CRC)
    return arrays
