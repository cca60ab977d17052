"""Archives of arrays (``.npz``) with a checksum: SHA-256 of all bytes before it.

The checksum is the comment of the zip archive, which :func:`numpy.load` and other tools ignore. A
changed, truncated or partly written file is rejected before its content is read.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import BufferedReader
from math import prod
from pathlib import Path
from typing import BinaryIO, NamedTuple
from zipfile import ZipFile

import numpy as np

from host.errors import InputError
from host.reading import open_regular

__all__ = ["Parts", "Sealed", "open_sealed", "write_sealed"]

_FORM = re.compile(rb"sha256 ([0-9a-f]{64})")
_LENGTH = 71
_BLOCK = 1 << 20


class Parts(NamedTuple):
    """An array that is written in ``parts`` along its first axis, so that it is never whole in
    memory.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    parts: Iterable[np.ndarray]


def write_sealed(file: BinaryIO, arrays: Mapping[str, np.ndarray | Parts]) -> None:
    """Write ``arrays`` and their checksum to the empty ``file``, which must also be readable.

    The same arrays give the same bytes: those of :func:`numpy.savez`, then the checksum.
    """
    with ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                if not isinstance(array, Parts):
                    np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
                    continue
                np.lib.format.write_array_header_1_0(member, {
                    "descr": np.lib.format.dtype_to_descr(array.dtype), "fortran_order": False,
                    "shape": array.shape})
                for part in array.parts:
                    member.write(np.ascontiguousarray(part, array.dtype))
    # The archive ends with the length of its comment.
    file.seek(-2, 2)
    file.write(_LENGTH.to_bytes(2, "little"))
    file.seek(0)
    seal = _digest(file, None)
    file.seek(0, 2)
    file.write(b"sha256 " + seal.encode())


class Sealed:
    """An open archive whose checksum is valid.

    Each method raises `InputError` if an array of the archive is damaged.
    """

    def __init__(self, path: str | Path, what: str, archive: ZipFile):
        self._path, self._what, self._archive = path, what, archive

    def form(self, name: str) -> tuple[np.dtype, tuple[int, ...]] | None:
        """Return type and shape of an array; None if the archive has no array of that name."""
        if f"{name}.npy" not in self._archive.namelist():
            return None
        with self._member(name) as member:
            dtype, shape, _ = _head(member)
            return dtype, shape

    def array(self, name: str) -> np.ndarray:
        """Return an existing array."""
        with self._member(name) as member:
            return np.lib.format.read_array(member, allow_pickle=False)

    def parts(self, name: str, rows: int) -> Iterator[np.ndarray]:
        """Yield an existing array in parts of ``rows`` rows of its first axis."""
        with self._member(name) as member:
            dtype, shape, columns_first = _head(member)
            if dtype.hasobject or (columns_first and len(shape) > 1):
                raise ValueError
            for first in range(0, shape[0], rows):
                part = (min(rows, shape[0] - first), *shape[1:])
                size = prod(part) * dtype.itemsize
                data = member.read(size)
                if len(data) != size:
                    raise ValueError
                yield np.frombuffer(data, dtype).reshape(part)

    @contextmanager
    def _member(self, name: str) -> Iterator[BinaryIO]:
        try:
            with self._archive.open(f"{name}.npy") as member:
                yield member  # type: ignore[misc]
        except (InputError, GeneratorExit):
            raise
        except (Exception, RecursionError):
            # Valid checksum, invalid archive: NumPy's header parser may raise any exception.
            raise InputError(self._path, 0, 0, f"is not {self._what}") from None


@contextmanager
def open_sealed(path: str | Path, what: str) -> Iterator[Sealed]:
    """Open ``path``; raise `InputError` if it is not ``what`` or is damaged."""
    try:
        with open_regular(path) as raw, BufferedReader(raw) as file:  # type: ignore[type-var]
            _check(file, path, what)
            try:
                archive = ZipFile(file)
            except Exception:
                raise InputError(path, 0, 0, f"is not {what}") from None
            with archive:
                yield Sealed(path, what, archive)
    except OSError as error:
        raise InputError(path, 0, 0, error.strerror or str(error)) from None


def _check(file: BinaryIO, path: str | Path, what: str) -> None:
    """Raise `InputError` unless the checksum matches the file."""
    size = file.seek(0, 2)
    file.seek(max(0, size - _LENGTH))
    found = _FORM.fullmatch(file.read(_LENGTH))
    if found is None:
        raise InputError(path, 0, 0, f"is not {what}: it does not end with a SHA-256 checksum")
    file.seek(0)
    if _digest(file, size - _LENGTH) != found[1].decode():
        raise InputError(path, 0, 0, f"is not {what}, or is damaged: checksum mismatch")
    file.seek(0)


def _head(member: BinaryIO) -> tuple[np.dtype, tuple[int, ...], bool]:
    """Return type, shape and column order (``fortran_order``) of the array at this position."""
    version = np.lib.format.read_magic(member)
    read = {(1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0}[version]
    shape, fortran, dtype = read(member)
    return dtype, shape, fortran


def _digest(file: BinaryIO, size: int | None) -> str:
    """Return the SHA-256 of the next ``size`` bytes; None means the rest."""
    total = hashlib.sha256()
    while (size is None or size) and (
            part := file.read(_BLOCK if size is None else min(size, _BLOCK))):
        total.update(part)
        size = None if size is None else size - len(part)
    return total.hexdigest()
