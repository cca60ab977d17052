"""List the proofs: the reach and the number of mutants of each test module.

``python -m tests.formal.listing`` collects the tests of this folder and prints a table.
"""

import ast
import contextlib
import inspect
import io
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

import pytest

__all__ = ["HERE", "Found", "Proofs", "reach", "table"]

HERE = Path(__file__).parent
_MUTANT = "test_broken"
_PROVERS = ("prove", "by_induction")


@dataclass
class Found:
    """The proofs of a module.

    cycles: depths of the proofs; 0 means runs of any length.
    mutants: number of tests whose proof must fail.
    """

    cycles: set[int] = field(default_factory=set)
    mutants: int = 0


class Proofs:
    """A pytest plugin that records the collected proofs. Member: ``found``, by module name."""

    def __init__(self):
        self.found: dict[str, Found] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list) -> None:
        """Count mutants, and record the depth of each call of ``prove`` that must hold."""
        for item in items:
            found = self.found.setdefault(item.module.__name__.rpartition(".")[2], Found())
            if item.name.startswith(_MUTANT):
                found.mutants += 1
                continue
            source = textwrap.dedent(inspect.getsource(item.function))
            if "verdict.holds" not in source:
                continue
            names = {**vars(item.module), **getattr(getattr(item, "callspec", None), "params", {})}
            for call in ast.walk(ast.parse(source)):
                if isinstance(call, ast.Call) and getattr(call.func, "id", "") in _PROVERS:
                    found.cycles |= {
                        eval(ast.unparse(keyword.value), names) or 0  # a depth of a test's own
                        for keyword in call.keywords if keyword.arg == "depth"
                    } or {0}


def reach(found: Found) -> str:
    """Return the reach of a module's proofs: "any" and numbers of cycles."""
    return ", ".join(str(cycles or "any") for cycles in sorted(found.cycles))


def table(found: dict[str, Found]) -> str:
    """Return the modules that have proofs and mutants, as a table in Markdown."""
    lines = ["| test | reach | mutants |", "|---|---|--:|"]
    lines += [f"| `{name}` | {reach(each)} | {each.mutants} |"
              for name, each in sorted(found.items()) if each.cycles and each.mutants]
    return "\n".join(lines)


def main() -> int:
    """Print the table; return pytest's status."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        status = pytest.main([str(HERE), "-p", "no:cacheprovider", "--collect-only", "-q"],
                             plugins=[there := Proofs()])
    print(out.getvalue() if status else table(there.found))
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
