"""EmberNIC's packages beside modules of a program with the same names.

This package imports no other package of EmberNIC: their names may belong to the program.
"""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

__all__ = ["PACKAGES", "VARIABLE", "apart", "beside_program", "check_names", "shadowed_by"]

VARIABLE = "EMBERNIC_TORCH"
"""Set by ``sim torch``: the options of the program, and the address of its server."""

PACKAGES = ("rtl", "gen", "host", "sim")
"""EmberNIC's packages."""

_FOLDER = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
"""Folder of the packages."""

_apart: dict[str, ModuleType] = {}
"""Modules that are not in ``sys.modules`` while a program runs, by name."""


class _Existing:
    """Loader of an imported package, with its modules."""

    def __init__(self, module: ModuleType):
        self._module, self._spec = module, module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the package."""
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        """Put the package's modules into ``sys.modules`` again."""
        module.__spec__ = self._spec
        for name in _of_packages(_apart, (module.__name__,)):
            sys.modules[name] = _apart.pop(name)


class _Finder:
    """Finder of the hidden packages: first in ``sys.meta_path`` while a program runs."""

    @classmethod
    def find_spec(cls, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return the program's own module if Python finds it, or else the hidden package."""
        package = _apart.get(name)
        if package is None or "." in name:
            return None
        for finder in sys.meta_path:
            found = finder.find_spec(name, None, None) if finder is not cls else None
            if found is not None:
                if _file_of(found) != _file_of(package.__spec__):
                    return found
                break
        return ModuleSpec(name, _Existing(package), is_package=True)  # type: ignore[arg-type]


def _file_of(spec: ModuleSpec | None) -> str | None:
    return os.path.realpath(spec.origin) if spec is not None and spec.origin else None


def _of_packages(modules: Iterable[str], packages: Iterable[str]) -> list[str]:
    """Return the names of the modules in ``packages``."""
    return [name for name in modules if name.partition(".")[0] in packages]


def _hide(packages: Iterable[str]) -> None:
    for name in _of_packages(list(sys.modules), packages):
        _apart[name] = sys.modules.pop(name)
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)


def _names_in(folder: str) -> set[str]:
    """Return the possible names of modules in a folder; empty for an unreadable folder."""
    try:
        return {name.partition(".")[0] for name in os.listdir(folder)}
    except OSError:
        return set()


def shadowed_by(folder: str) -> list[str]:
    """Return the packages in ``sys.modules`` that a module in the program's ``folder`` hides.

    The function ignores the modules of :data:`_OF_PYTHON`, which every Python process has imported.
    """
    found = []
    for name in _names_in(folder).intersection(sys.modules) - _OF_PYTHON:
        spec, own = PathFinder.find_spec(name, [folder]), sys.modules[name].__spec__
        if spec is not None and spec.origin and own is not None and (
                _file_of(spec) != _file_of(own)):
            found.append(name)
    return found


_OF_PYTHON = frozenset(sys.builtin_module_names) | {
    "__main__", "_collections_abc", "_sitebuiltins", "abc", "codecs", "encodings", "genericpath",
    "io", "ntpath", "os", "posixpath", "site", "stat", "sitecustomize", "usercustomize", "torch",
    "numpy"}
"""Modules that stay in place: modules of every Python process, and C libraries that Python imports
once."""


@contextmanager
def apart(packages: Iterable[str] = ()) -> Iterator[None]:
    """Let a program import modules with the names of EmberNIC's packages, or of other ``packages``.

    Inside, ``sys.modules`` does not contain EmberNIC's modules. If the program imports such a name
    and has no module of its own, it gets EmberNIC's.
    """
    packages = {*PACKAGES, *packages}
    _hide(packages)
    try:
        yield
    finally:
        if _Finder in sys.meta_path:
            sys.meta_path.remove(_Finder)
        mine = {name for name in _of_packages(list(_apart), packages) if "." not in name}
        for name in _of_packages(list(sys.modules), mine):
            del sys.modules[name]
        sys.modules.update(_apart)
        _apart.clear()


@contextmanager
def beside_program() -> Iterator[None]:
    """Let code import EmberNIC's packages inside, regardless of the program's module names.

    Outside, the program's modules have their names, unless the program has imported EmberNIC.
    """
    folder = os.path.realpath(sys.path[0] if sys.path else os.curdir)
    path, theirs = sys.path[:], {}
    own = any(_is_in(_FOLDER, name) for name in PACKAGES)
    if not own:
        theirs = {name: sys.modules.pop(name) for name in _of_packages(
            list(sys.modules), {*PACKAGES, *filter(partial(_is_in, folder), list(sys.modules))})}
        sys.path[:] = [_FOLDER, *(each for each in path if os.path.realpath(each) != folder)]
    try:
        yield
    finally:
        if not own:  # else the program, or a test, has imported EmberNIC itself
            sys.path[:] = path
            _hide({*PACKAGES, *shadowed_by(folder)})
            sys.modules.update(theirs)


def _is_in(folder: str, name: str) -> bool:
    """Return whether an imported module, or its package, is in a folder."""
    package = name.partition(".")[0]
    file = _file_of(getattr(sys.modules.get(package), "__spec__", None))
    if file is None or package in _OF_PYTHON:
        return False
    place, own = os.path.split(file)
    return folder == (os.path.dirname(place) if own.startswith("__init__.") else place)


def check_names(package: str) -> None:
    """End ``python -m package`` with a message if a module of the current folder hides a required
    package. Python searches that folder first."""
    if sys.argv[:1] != ["-m"] or sys.flags.safe_path:  # "-m" while Python searches for the module
        return
    folder = os.path.realpath(sys.path[0] or os.curdir)
    names = _names_in(folder) if folder != _FOLDER else set()
    for name in names and names.intersection((*PACKAGES, *_needed())):
        spec = PathFinder.find_spec(name, [folder])
        if spec is not None and spec.origin:
            print(f"{package}: {spec.origin} hides the package {name}, which EmberNIC needs: run "
                  f"the command in another folder, or with python -P -m", file=sys.stderr)
            sys.exit(2)


def _needed() -> list[str]:
    """Return the packages that EmberNIC requires, without extras."""
    from importlib.metadata import PackageNotFoundError, requires
    from re import split

    try:
        asked = requires("embernic") or []
    except PackageNotFoundError:  # a folder of sources that is not installed
        asked = []
    return [split(r"[^\w-]", each, maxsplit=1)[0].replace("-", "_")
            for each in asked if "extra ==" not in each]

