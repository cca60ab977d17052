"""Whole lines of a text file, chunk by chunk, in bounded memory."""

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import InputError

__all__ = ["CHUNK_BYTES", "Chunk", "first_line", "read_chunks"]

CHUNK_BYTES = 1 << 20
_GZIP_MAGIC = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"

# Every format here is printable ASCII with tabs and line ends.
_FOREIGN = np.ones(256, bool)
_FOREIGN[32:127] = False
_FOREIGN[[9, 10, 13]] = False


@dataclass(frozen=True)
class Chunk:
    """Whole lines: ``data`` ends in a newline and has no carriage returns before newlines."""

    path: Path
    data: bytes
    first_line: int


def read_chunks(path: str | Path, size: int = CHUNK_BYTES) -> Iterator[Chunk]:
    """Yield the lines of ``path``, about ``size`` bytes at a time; gzip is seen by its content.

    Raises
    ------
    InputError
        The file is not there, cannot be read, is empty, holds bytes that are no text, or a line
        is longer than ``size`` bytes.
    """
    path = Path(path)
    try:
        with path.open("rb") as raw:
            packed = raw.peek(2)[:2] == _GZIP_MAGIC
            file = gzip.GzipFile(fileobj=raw) if packed else raw
            yield from _split(path, file, size)
    except (OSError, EOFError, zlib.error) as error:
        message = getattr(error, "strerror", None) or str(error) or "cannot be read"
        raise InputError(path, 0, 0, message) from None


def first_line(path: str | Path) -> bytes:
    """Return the first line of ``path``, at most 4 KiB of it; b"" where it cannot be read."""
    try:
        with Path(path).open("rb") as raw:
            packed = raw.peek(2)[:2] == _GZIP_MAGIC
            file = gzip.GzipFile(fileobj=raw) if packed else raw
            return file.readline(4096).removeprefix(_BOM).rstrip(b"\r\n")
    except (OSError, EOFError, zlib.error):
        return b""


def _split(path: Path, file, size: int) -> Iterator[Chunk]:
    line, rest, any_byte = 1, b"", False
    while True:
        block = file.read(size)
        if not any_byte:
            block = block.removeprefix(_BOM)
        any_byte = any_byte or bool(block)
        data = rest + block
        if block:
            end = data.rfind(b"\n") + 1
            if not end and len(data) > size:
                _refuse_binary(path, data, line)
                raise InputError(path, line, size, f"a line of more than {size} bytes")
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
    foreign = _FOREIGN[np.frombuffer(data, np.uint8)]
    if foreign.any():
        at = int(foreign.argmax())
        raise InputError(path, line + data.count(b"\n", 0, at), at - data.rfind(b"\n", 0, at),
                         f"binary data: byte 0x{data[at]:02x}")
