"""Shared libraries: binds their functions for Python, and compiles the simulator's C++ with a
cache."""

import ctypes
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from gen.base.cache import cached, digest
from gen.base.tools import BuildError
from sim.engines.toolchain import CXX_FLAGS, compile_files, compiler_id, link

__all__ = ["Functions", "bind", "library"]

Functions = Mapping[str, tuple[Any, Sequence[Any]]]
"""Maps a function's name to the types of its result and arguments."""

FLAGS = ("-ffp-contract=off",)
"""Compiler flags: round products and sums separately, as numpy does."""


def bind(path: Path, functions: Functions, long: Collection[str] = ()) -> SimpleNamespace:
    """Return ``functions`` of the shared library at ``path``.

    Calls hold Python's lock, because releasing and reacquiring it takes longer than a call.
    Functions in ``long`` release the lock. ``BuildError`` for a damaged library.
    """
    try:
        releasing, holding = ctypes.CDLL(str(path)), ctypes.PyDLL(str(path))
    except OSError as error:
        raise BuildError(f"{error}: remove {path.parent} to build it again") from None
    found = {}
    for name, (result, arguments) in functions.items():
        function = found[name] = getattr(releasing if name in long else holding, name)
        function.restype, function.argtypes = result, arguments
    return SimpleNamespace(**found)


def library(source: Path, functions: Functions, *, long: Collection[str] = (),
            include: Sequence[Path] = (),
            generated: Mapping[str, str] | None = None) -> SimpleNamespace:
    """Compile ``source`` and return its ``functions``, as :func:`bind` does.

    source: C++ file. It may include headers of its own folder.
    include: further folders of headers.
    generated: texts of further headers, by file name.

    ``BuildError`` if the C++ compiler fails. The first call compiles unless the cache has the
    library.
    """
    made = tuple((generated or {}).items())
    return bind(_compiled(source, tuple(include), made), functions, long)


@cache
def _compiled(source: Path, include: tuple[Path, ...],
              generated: tuple[tuple[str, str], ...]) -> Path:
    name, folders = source.stem, (source.parent, *include)
    headers = [header for folder in folders for header in sorted(folder.glob("*.h"))]
    key = digest([name, *(path.read_text(encoding="utf-8") for path in (source, *headers)),
                  *chain(*generated), compiler_id(), *CXX_FLAGS, *FLAGS])

    def build(folder: Path) -> None:
        for header, text in generated:
            (folder / header).write_text(text, encoding="utf-8")
        objects = compile_files([source], folder, FLAGS, [*folders, folder])
        link(objects, folder / f"{name}.so")

    return cached(f"{name}-{key}", build) / f"{name}.so"
