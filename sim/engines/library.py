"""Small shared libraries of C++ beside the simulator, compiled once for each content."""

import ctypes
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from gen.cache import cached, digest
from sim.engines.toolchain import CXX_FLAGS, compile_files, compiler_id, link

__all__ = ["library"]

FLAGS = ("-ffp-contract=off",)
"""Products and sums are rounded apart, as numpy's are."""


def library(source: Path, functions: Mapping[str, tuple[Any, Sequence[Any]]], *,
            short: bool = False) -> ctypes.CDLL:
    """Return ``source`` compiled; its ``functions`` are name to result and argument types.

    Calls release Python's lock, unless they are ``short``: to give it away and have it back takes
    longer than they do. ``BuildError`` when the C++ compiler fails; the first call compiles where
    nothing is cached.
    """
    loaded = _library(source, ctypes.PyDLL if short else ctypes.CDLL)
    for name, (result, arguments) in functions.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded


@cache
def _library(source: Path, kind: type[ctypes.CDLL]) -> ctypes.CDLL:
    name = source.stem
    # It may include any header beside it.
    texts = [path.read_text(encoding="utf-8")
             for path in (source, *sorted(source.parent.glob("*.h")))]
    key = digest([name, *texts, compiler_id(), *CXX_FLAGS, *FLAGS])

    def build(folder: Path) -> None:
        link(compile_files([source], folder, FLAGS, []), folder / f"{name}.so")

    return kind(str(cached(f"{name}-{key}", build) / f"{name}.so"))
