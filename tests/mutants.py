"""Blocks with a fault, or with other constants, for proofs and tests that must find the fault.

An edit names code by its tokens, in the class that contains it. White space, line breaks, comments
and code of other classes do not matter.

``python -m tests.mutants MODULE:CLASS OLD NEW TEST...`` runs pytest with an edited class. The file
on disk does not change.
"""

import ast
import bisect
import importlib.util
import inspect
import linecache
import re
import subprocess
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

__all__ = ["Mutant", "broken", "contains", "some_slow", "variant"]

ROOT = Path(__file__).parents[1]


def edited(source: str, name: str, *edits: tuple[str, str]) -> str:
    """Return ``source`` after ``edits`` of the class or function ``name``.

    edits: old code and new code. The old code is in ``name`` once, or else in ``source`` once.
    ``ValueError`` otherwise.
    """
    for old, new in edits:
        found = _found(source, name, old)
        if len(found) != 1:
            raise ValueError(f"{name} must contain {old!r} once, not {len(found)} times: update "
                             "the edit")
        start, end = found[0]
        source = source[:start] + new.strip() + source[end:]
    return source


def source_of(block: Callable) -> str:
    """Return the source of the module of ``block``."""
    return inspect.getsource(sys.modules[block.__module__])


def contains(block: Callable, code: str) -> bool:
    """Return whether ``block`` or its module contains ``code``."""
    return bool(_found(source_of(block), block.__name__, code))


def _found(source: str, name: str, code: str) -> list[tuple[int, int]]:
    """Return the places of ``code`` in ``name``, or else in the rest of ``source``.

    Between two tokens, any white space and comments match.
    """
    tokens = re.findall(r"\w+|[^\w\s]", code)
    pattern = r"(?:\s|#[^\n]*\n)*".join(
        rf"\b{token}\b" if token[0].isalnum() or token[0] == "_" else re.escape(token)
        for token in tokens)
    found = [match.span() for match in re.finditer(pattern, source)]
    starts = [0, *(match.end() for match in re.finditer("\n", source))]
    inside = [span for node in ast.parse(source).body
              if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name == name
              for span in found
              if node.lineno <= bisect.bisect(starts, span[0]) <= (node.end_lineno or 0)]
    return inside or found


def variant(block: type, *edits: tuple[str, str], **names: object) -> type:
    """Return ``block`` after ``edits`` of its module, in which ``names`` are set.

    Other modules keep ``block``.
    """
    name = block.__module__
    made = ModuleType(name)
    made.__package__ = sys.modules[name].__package__
    source = edited(source_of(block), block.__name__, *edits)
    exec(compile(source, f"<variant of {name}>", "exec"), vars(made))
    for key, value in names.items():
        if not hasattr(made, key):
            raise ValueError(f"{name} has no {key}")
        setattr(made, key, value)
    return getattr(made, block.__name__)


def broken(block: type, old: str, new: str) -> type:
    """Return ``block`` with one edit. A proof that also holds for the result has no value."""
    return variant(block, (old, new))


def some_slow(cases: Sequence[tuple], slow: Collection[str], ids: Sequence[str]) -> list:
    """Return ``cases`` as parameters of a test, with their ``ids``; cases named in ``slow`` are
    slow."""
    if len(cases) != len(ids) or not set(slow) <= set(ids):
        raise ValueError(f"ids must name {len(cases)} cases and be {slow!r} among others, "
                         f"not {ids!r}")
    return [pytest.param(*case, id=name, marks=[pytest.mark.slow] if name in slow else [])
            for case, name in zip(cases, ids)]


@dataclass(frozen=True)
class Mutant:
    """A fault that a test must find.

    block: class or function that contains the fault.
    old, new: see :func:`edited`.
    test: test below ``tests/rtl``, as pytest names it.
    """

    block: Callable
    old: str
    new: str
    test: str

    @property
    def source(self) -> str:
        """Source of the block's module with the fault."""
        return edited(source_of(self.block), self.block.__name__, (self.old, self.new))

    def run(self) -> subprocess.CompletedProcess[str]:
        """Run the test with the fault, in a process of its own; status 1 means that the test
        failed."""
        return subprocess.run(
            [sys.executable, "-m", "tests.mutants",
             f"{self.block.__module__}:{self.block.__name__}", self.old, self.new,
             f"tests/rtl/{self.test}"],
            cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)


class _Finder(SourceFileLoader):
    """Finds and loads one module from another source than its file."""

    def find_spec(self, name: str, path: object, target: object = None) -> ModuleSpec | None:
        return importlib.util.spec_from_file_location(
            name, self.path, loader=self) if name == self.name else None

    def get_code(self, fullname: str):
        return self.source_to_code("".join(linecache.getlines(self.path)), self.path)


def main(arguments: Sequence[str]) -> int:
    """Run pytest with the fault that ``arguments`` name; return its exit status."""
    if len(arguments) < 4:
        print("usage: python -m tests.mutants MODULE:CLASS OLD NEW TEST...", file=sys.stderr)
        return 2
    place, old, new, *tests = arguments
    module, _, name = place.partition(":")
    path = str(ROOT.joinpath(*module.split(".")).with_suffix(".py"))
    try:
        source = edited(Path(path).read_text(), name, (old, new))
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    # ``inspect`` reads this, too: variants of the block have the fault.
    linecache.cache[path] = len(source), None, source.splitlines(keepends=True), path
    sys.meta_path.insert(0, _Finder(module, path))  # type: ignore[arg-type]
    return pytest.main(["-x", "-q", "-p", "no:cacheprovider", *tests])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
