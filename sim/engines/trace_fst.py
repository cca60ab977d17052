"""Writer of FST files (GTKWave's format) from VCD text, using the FST library in Verilator.

The converter, ``trace_fst.cpp``, is compiled once. The library requires zlib and LZ4; it gets the
copies that are part of Python packages.
"""

import ctypes
import os
import zlib
from ctypes import c_char_p, c_int, c_uint64, c_void_p
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

from lz4 import block as lz4

from gen.base.cache import cached, digest
from gen.base.tools import announce, verilator_root
from sim.engines.library import bind
from sim.engines.toolchain import CXX_FLAGS, compile_files, compiler_id, link

__all__ = ["FstWriter"]

_HERE = Path(__file__).parent
_COMPRESS = ctypes.CFUNCTYPE(c_uint64, c_void_p, c_uint64, c_void_p, c_uint64, c_int)
_FUNCTIONS = {
    "fst_open": (c_void_p, [c_char_p, _COMPRESS]),
    "fst_feed": (c_char_p, [c_void_p, c_char_p, c_uint64]),
    "fst_close": (c_char_p, [c_void_p]),
}
_HEADER_BYTES = 330
"""Size of an FST file's first block, including its type."""


@_COMPRESS
def _compress(data: int, size: int, target: int, capacity: int, level: int) -> int:
    raw = ctypes.string_at(data, size)
    packed = (lz4.compress(raw, store_size=False) if level < 0
              else zlib.compress(raw, level))
    if len(packed) > capacity:
        return 0
    ctypes.memmove(target, packed, len(packed))
    return len(packed)


@cache
def _library() -> SimpleNamespace:
    source = _HERE / "trace_fst.cpp"
    shims = _HERE / "fst"
    texts = [source, *sorted(shims.rglob("*.h"))]
    key = digest(["fst", version("verilator"), compiler_id(), *CXX_FLAGS,
                  *(path.read_text(encoding="utf-8") for path in texts)])

    def build(folder: Path) -> None:
        with announce("compiling the writer of FST files", "20 s"):
            objects = compile_files([source], folder, ["-DNDEBUG"],
                                    [shims, verilator_root() / "include"])
            link(objects, folder / "fst.so")
            objects[0].unlink()

    return bind(cached(f"fst-{key}", build) / "fst.so", _FUNCTIONS, long=_FUNCTIONS)


class FstWriter:
    """An FST file, written as VCD text.

    Parameters: ``path``, the file, which is replaced. ``OSError`` if it cannot be written;
        ``ValueError`` for text that is not VCD of two-state values.
    """

    def __init__(self, path: str):
        with open(path, "wb"):
            pass  # to get the cause of a failure, which the library does not report
        self._path = path
        self._converter = _library().fst_open(os.fsencode(path), _compress)

    def write(self, text: bytes) -> None:
        """Add ``text``; it may end anywhere."""
        self._check(_library().fst_feed(self._converter, text, len(text)))

    def close(self) -> None:
        """Complete the file. A second call has no effect."""
        if self._converter is None:
            return
        converter, self._converter = self._converter, None
        self._check(_library().fst_close(converter))
        self._check_blocks()

    def _check(self, said: bytes | None) -> None:
        if said == b"":
            raise self._incomplete()
        if said is not None:
            raise ValueError(f"waves: {said.decode(errors='replace')}")

    def _incomplete(self) -> OSError:
        return OSError(f"waves cannot be written completely: {self._path}: free disk space")

    def _check_blocks(self) -> None:
        """Check that every block was written completely: the library does not report failed
        writes."""
        at, size = 0, os.path.getsize(self._path)
        with open(self._path, "rb") as file:
            while at < size:
                file.seek(at + 1)
                length = int.from_bytes(file.read(8), "big")
                if length < 8 or (at == 0 and length != _HEADER_BYTES - 1):
                    break
                at += 1 + length
        if not size or at != size:
            raise self._incomplete()
