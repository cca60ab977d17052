"""Reader of a text file in chunks of whole lines, in bounded memory."""

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

import numpy as np

from host.errors import InputError
from host.reading import open_input

__all__ = ["CHUNK_BYTES", "Chunk", "head", "place", "read_chunks"]

CHUNK_BYTES = 1 << 20

_GZIP_MAGIC = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
_UNREADABLE = (OSError, EOFError, zlib.error)

# Every format here is printable ASCII with tabs and line ends.
_FOREIGN = np.ones(256, bool)
_FOREIGN[32:127] = False
_FOREIGN[[9, 10, 13]] = False

_DIGITS = bytes(int(chr(byte), 16) if chr(byte) in "0123456789abcdefABCDEF" else 255
                for byte in range(256))


@dataclass(frozen=True)
class Chunk:
    """Whole lines: ``data`` ends in a newline and has no carriage returns before newlines."""

    path: Path
    data: bytes
    first_line: int

    @cached_property
    def bytes(self) -> np.ndarray:
        """The data as uint8."""
        return np.frombuffer(self.data, np.uint8)

    @cached_property
    def words(self) -> np.ndarray:
        """The 8 bytes from each position on, first byte lowest, zero-padded at the end: uint64, a
        view that overlaps itself."""
        return _words(self.data + bytes(8))

    @cached_property
    def digits(self) -> np.ndarray:
        """The 8 hexadecimal digits before each position, the last in the highest byte; 255 for
        other bytes: uint64, a view that overlaps itself.
        """
        return _words(bytes(8) + self.data.translate(_DIGITS))


def _words(data: bytes) -> np.ndarray:
    return np.ndarray((len(data) - 7,), "<u8", data, 0, (1,))


def place(chunk: Chunk, at: int, message: str) -> InputError:
    """Return an error at byte ``at`` of the chunk."""
    line = chunk.first_line + chunk.data.count(b"\n", 0, at)
    return InputError(chunk.path, line, at - chunk.data.rfind(b"\n", 0, at), message)


def read_chunks(path: str | Path, size: int = CHUNK_BYTES) -> Iterator[Chunk]:
    """Yield the lines of ``path``, about ``size`` bytes at a time; gzip is detected by content.

    Raises
    ------
    InputError
        The file does not exist, is unreadable, is empty or contains binary bytes; a line is longer
        than ``size`` bytes; or gzip's data are damaged or truncated, at the position reached.
    """
    path = Path(path)
    try:
        with open_input(path) as raw:
            yield from _split(path, _blocks(raw, size), size)
    except OSError as error:
        raise InputError(path, 0, 0, error.strerror or str(error)) from None


def head(path: str | Path, size: int = 1 << 16) -> bytes:
    """Return the first ``size`` bytes of the text in ``path``, without gzip and byte order mark;
    fewer if the file is shorter, b"" if nothing can be read."""
    try:
        with Path(path).open("rb") as raw:
            return next(_blocks(raw, size)).removeprefix(_BOM)
    except (*_UNREADABLE, StopIteration):
        return b""


def _blocks(raw: BinaryIO, size: int) -> Iterator[bytes]:
    """Yield the decompressed content in blocks of ``size`` bytes.

    All readable data are yielded before an error is raised, so that the error has a position and
    earlier mistakes are reported first.
    """
    packed = raw.peek(2)[:2] == _GZIP_MAGIC  # type: ignore[attr-defined]
    file = gzip.GzipFile(fileobj=raw) if packed else raw
    while True:
        parts, left, error = [], size, None
        while left:
            try:
                part = file.read1(left)  # type: ignore[attr-defined]
            except _UNREADABLE as caught:
                error = caught
                break
            if not part:
                break
            parts.append(part)
            left -= len(part)
        if parts:
            yield b"".join(parts)
        if error:
            raise error
        if left:
            return


def _split(path: Path, blocks: Iterator[bytes], size: int) -> Iterator[Chunk]:
    line, rest, any_byte = 1, b"", False
    while True:
        try:
            block = next(blocks, b"")
        except _UNREADABLE as error:
            message = getattr(error, "strerror", None) or str(error) or "cannot be read"
            raise InputError(path, line, len(rest) + 1, message) from None
        if not any_byte:
            block = block.removeprefix(_BOM)
        any_byte = any_byte or bool(block)
        data = rest + block
        if block:
            end = data.rfind(b"\n") + 1
            if not end and len(data) > size:
                _refuse_binary(path, data, line)
                raise InputError(path, line, size, f"the line has more than {size} bytes")
            data, rest = data[:end], data[end:]
        else:
            if not any_byte:
                raise InputError(path, 1, 1, "the file is empty")
            rest = b""
            if data:
                data += b"\n"
        if data:
            _refuse_binary(path, data, line)
            if b"\r" in data:
                data = data.replace(b"\r\n", b"\n")
            yield Chunk(path, data, line)
            line += data.count(b"\n")
        if not block:
            return


def _refuse_binary(path: Path, data: bytes, line: int) -> None:
    values = np.frombuffer(data, np.uint8)
    low = np.count_nonzero(values < 32)
    if values.max() < 127 and low == sum(map(data.count, (b"\t", b"\n", b"\r"))):
        return
    at = int(_FOREIGN[values].argmax())
    raise InputError(path, line + data.count(b"\n", 0, at), at - data.rfind(b"\n", 0, at),
                     f"binary data: byte 0x{data[at]:02x}")
