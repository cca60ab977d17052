"""The C++ compiler: zig, installed with the package, or the compiler that ``CXX`` names."""

import os
import platform
import re
import shlex
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, lru_cache
from importlib.metadata import version
from pathlib import Path

from gen.base.tools import run_tool

__all__ = ["CXX_FLAGS", "LEVEL", "compile_files", "compiler_id", "link"]

CXX_FLAGS = ("-std=c++20", "-fPIC", "-fvisibility=hidden", "-fno-sanitize=undefined", "-w")
LEVEL = "-O1"
"""Optimisation of designs. -O3 takes 1.5 times as long, and a NIC runs no faster."""

_INCLUDED = re.compile(r'^#include "([^"]+\.cpp)"$', re.MULTILINE)
_SLOW_SHARE = 0.6
"""Time to compile a byte without optimisation, relative to the time with optimisation."""


def compiler() -> list[str]:
    """Return the command of the C++ compiler: ``CXX`` in the environment, else zig."""
    named = os.environ.get("CXX")
    if named:
        return shlex.split(named)
    return [sys.executable, "-m", "ziglang", "c++"]


@cache
def _named_compiler_id(command: tuple[str, ...]) -> str:
    return run_tool([*command, "--version"])


def compiler_id() -> str:
    """Return an identifier of compiler and processor, for cache keys."""
    if os.environ.get("CXX"):
        tool = _named_compiler_id(tuple(compiler()))
    else:
        tool = "zig " + version("ziglang")
    return f"{tool}\n{platform.system()} {platform.machine()}\n{_processor()}"


@lru_cache(maxsize=1)
def _processor() -> str:
    # zig compiles for the processor on which it runs: the identifier keeps processors apart in a
    # cache on a shared disk.
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")


def compile_files(sources: Sequence[Path], folder: Path, flags: Sequence[str],
                  include: Sequence[Path], level: str = "-O3") -> list[Path]:
    """Compile ``sources`` into ``folder``, several at once, at optimisation ``level``.

    Return the objects in the order of compilation: the costliest source first, to keep all
    processors busy until the end.
    """
    includes = [f"-I{path}" for path in include]

    def one(source: Path) -> Path:
        target = folder / f"{source.stem}.o"
        chosen = "-O0" if _is_slow(source) else level
        run_tool([*compiler(), "-c", chosen, *CXX_FLAGS, *flags, *includes, "-o", str(target),
               str(source)])
        return target

    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        return list(pool.map(one, sorted(sources, key=_cost, reverse=True)))


def _is_slow(source: Path) -> bool:
    """Return whether ``source`` is code of Verilator that runs once, when a model starts.
    Optimising such code saves no time."""
    return source.stem.endswith("__Slow")


def _cost(source: Path) -> float:
    """Return the cost of compiling ``source``, in bytes of optimised C++: the source itself and the
    sources in its folder that it includes. Headers cost about the same for all sources."""
    text = source.read_text(encoding="utf-8")
    included = [source.parent / name for name in _INCLUDED.findall(text)]
    size = len(text) + sum(path.stat().st_size for path in included if path.is_file())
    return size * (_SLOW_SHARE if _is_slow(source) else 1)


def link(objects: Sequence[Path], target: Path) -> None:
    """Link ``objects`` into the shared library ``target``.

    The first time, zig builds its C++ library, which takes the least time if it is to be small.
    """
    run_tool([*compiler(), "-Os", "-shared", "-o", str(target), *map(str, objects), "-lpthread"])
