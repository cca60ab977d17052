"""The C++ compiler: zig as installed with the package, or what ``CXX`` names. No make."""

import os
import platform
import shlex
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cache, lru_cache
from importlib.metadata import version
from pathlib import Path

from rich.console import Console

from gen.tools import run_tool

__all__ = ["CXX_FLAGS", "LEVEL", "announce", "compile_files", "compiler_id", "link"]

CXX_FLAGS = ("-std=c++20", "-fPIC", "-fvisibility=hidden", "-fno-sanitize=undefined", "-w")
LEVEL = "-O1"
"""What designs are compiled with: -O3 takes half as long again, and makes a NIC no faster."""


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
    """Return what tells one compiler and processor from another, for cache keys."""
    if os.environ.get("CXX"):
        tool = _named_compiler_id(tuple(compiler()))
    else:
        tool = "zig " + version("ziglang")
    return f"{tool}\n{platform.system()} {platform.machine()}\n{_processor()}"


@lru_cache(maxsize=1)
def _processor() -> str:
    # zig compiles for the processor it runs on: a cache on a shared disk must not mix them.
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")


def compile_files(sources: Sequence[Path], folder: Path, flags: Sequence[str],
                  include: Sequence[Path], level: str = "-O3") -> list[Path]:
    """Compile ``sources`` into ``folder``, several at once, optimised as ``level`` says; return the
    objects."""
    includes = [f"-I{path}" for path in include]

    def one(source: Path) -> Path:
        target = folder / f"{source.stem}.o"
        # What runs once, when a model starts, is not worth the optimiser's time.
        chosen = "-O0" if source.stem.endswith("__Slow") else level
        run_tool([*compiler(), "-c", chosen, *CXX_FLAGS, *flags, *includes, "-o", str(target),
               str(source)])
        return target

    # The largest first, so that none is left over at the end.
    ordered = sorted(sources, key=lambda path: -path.stat().st_size)
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        return list(pool.map(one, ordered))


def link(objects: Sequence[Path], target: Path) -> None:
    """Link ``objects`` into the shared library ``target``."""
    run_tool([*compiler(), "-shared", "-o", str(target), *map(str, objects), "-lpthread"])


def announce(what: str) -> AbstractContextManager:
    """Say on standard error that ``what`` is going on; a spinner, where that is a terminal."""
    console = Console(stderr=True)
    if console.is_terminal:
        return console.status(f"{what} ...")
    print(f"{what} ...", file=sys.stderr, flush=True)
    return nullcontext()
