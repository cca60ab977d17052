"""Run tests with one text of a source file replaced: does any of them fail?

``python -m tests.rtl.mutation FILE OLD NEW TEST...`` shows pytest's report of such a run. The file
on disk stays as it is.
"""

import importlib.util
import linecache
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path

import pytest

__all__ = ["ROOT", "Mutant"]

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Mutant:
    """A fault to be found.

    file: source file, relative to the repository's root.
    old, new: text in the file, exactly once, and its replacement.
    test: test below ``tests/rtl`` that must fail, as pytest names it.
    """

    file: str
    old: str
    new: str
    test: str

    @property
    def source(self) -> str:
        """The file's text with ``new`` for ``old``; ``ValueError`` if ``old`` is not there once."""
        source = (ROOT / self.file).read_text()
        if (found := source.count(self.old)) != 1:
            raise ValueError(f"{self.file} must contain {self.old!r} once, not {found} times: "
                             "update the mutant")
        return source.replace(self.old, self.new)

    def run(self) -> subprocess.CompletedProcess[str]:
        """Run the test with the fault, in a process of its own; 1 is a test that failed."""
        return subprocess.run(
            [sys.executable, "-m", "tests.rtl.mutation", self.file, self.old, self.new,
             f"tests/rtl/{self.test}"],
            cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)


class _Finder(SourceFileLoader):
    """Finds and loads one module, from another source than its file's."""

    def find_spec(self, name: str, path: object, target: object = None) -> ModuleSpec | None:
        return importlib.util.spec_from_file_location(
            name, self.path, loader=self) if name == self.name else None

    def get_code(self, fullname: str):
        return self.source_to_code("".join(linecache.getlines(self.path)), self.path)


def main(arguments: Sequence[str]) -> int:
    """Run pytest with the fault that ``arguments`` name; return its exit status."""
    if len(arguments) < 4:
        print("usage: python -m tests.rtl.mutation FILE OLD NEW TEST...", file=sys.stderr)
        return 2
    file, old, new, *tests = arguments
    path = str(ROOT / file)
    try:
        source = Mutant(file, old, new, "").source
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    # Also what ``inspect`` reads: blocks that tests vary have the fault, too.
    linecache.cache[path] = len(source), None, source.splitlines(keepends=True), path
    name = ".".join(Path(file).with_suffix("").parts)
    sys.meta_path.insert(0, _Finder(name, path))  # type: ignore[arg-type]
    return pytest.main(["-x", "-q", "-p", "no:cacheprovider", *tests])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
