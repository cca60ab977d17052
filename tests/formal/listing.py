"""The list of all proofs: their reach, their time, and the number of mutants that they detect.

::

    python -m tests.formal.listing --output out/proofs.md
    python -m tests.formal.listing --output out/proofs.md --measure test_tags test_streams

collects the tests of this folder and writes the list as Markdown. With ``--measure``, it first runs
the named modules, or all, and stores processor time and detected mutants in
``tests/formal/times.json``. Further arguments go to pytest. A cached proof takes no time: set
``EMBERNIC_CACHE`` to an empty folder to measure it.
"""

import argparse
import ast
import inspect
import json
import resource
import sys
import textwrap
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from tests.formal.prove import Verdict
from tests.formal.waits import APART, ENVIRONMENT, TAKEN

__all__ = ["HERE", "TIMES", "Found", "Proofs", "contracts", "table"]

HERE = Path(__file__).parent
TIMES = HERE / "times.json"
_MUTANT = "test_broken"
_PROVERS = ("prove", "by_induction")


@dataclass
class Found:
    """The tests of a module: their title, the cycles that their proofs reach (0: any run), and the
    number of mutants."""

    title: str
    cycles: set[int] = field(default_factory=set)
    mutants: int = 0


class Proofs:
    """A pytest plugin that records the collected proofs and the results of a run.

    Members
    -------
    found: collected proofs, by module.
    times: by module: processor seconds for proofs and for mutants, mutants run, and mutants
        detected.
    """

    def __init__(self):
        self.found: dict[str, Found] = {}
        self.times: dict[str, list[float]] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list) -> None:
        """Record mutants, and the depth of each call of ``prove`` that must hold."""
        for item in items:
            title = (item.module.__doc__ or "").partition("\n\n")[0].replace("\n", " ")
            found = self.found.setdefault(item.module.__name__.rpartition(".")[2], Found(title))
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
                        eval(ast.unparse(keyword.value), names) or 0  # a depth defined in a test
                        for keyword in call.keywords if keyword.arg == "depth"
                    } or {0}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item) -> Iterator[None]:
        """Run a test with provers whose time is measured."""
        originals = {name: getattr(item.module, name) for name in _PROVERS
                     if hasattr(item.module, name)}
        if not originals:
            return (yield)
        times = self.times.setdefault(item.module.__name__.rpartition(".")[2], [0, 0, 0, 0])
        mutant, holding = item.name.startswith(_MUTANT), True

        def noted(original: Callable[..., Verdict], *arguments, **options) -> Verdict:
            nonlocal holding
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            verdict = original(*arguments, **options)
            times[mutant] += resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
            holding &= verdict.holds
            return verdict

        vars(item.module).update({
            name: partial(noted, original) for name, original in originals.items()})
        try:
            result = yield
        finally:
            vars(item.module).update(originals)
        if mutant:
            times[2] += 1
            times[3] += not holding
        return result


def table(found: dict[str, Found], times: dict[str, list[float]]) -> str:
    """Return the list as a Markdown table."""
    lines = ["| proof | reach | time | mutants | found in that time |", "|---|---|---|---|---|"]
    for name, each in sorted(found.items()):
        if not each.cycles or not each.mutants:
            continue
        reach = "; ".join("any run" if cycles == 0 else f"{cycles} cycles"
                          for cycles in sorted(each.cycles))
        taken = times.get(name)
        title = each.title.removeprefix("Proof of ").removeprefix("Proofs of ")
        lines.append(f"| {title} (`tests/formal/{name}.py`) | {reach} | " + (
            f"{taken[0]:.0f} s, mutants {taken[1]:.0f} s | {each.mutants} | "
            f"{taken[3]} of {taken[2]} |" if taken else f"| {each.mutants} | |"))
    return "\n".join(lines)


def contracts() -> str:
    """Return the contracts of the wait-for graph as a Markdown table."""
    groups = defaultdict(list)
    beside = {f"{port} beside {out}": contract for (port, out), contract in APART.items()}
    for name, contract in (*TAKEN.items(), *beside.items(), *ENVIRONMENT.items()):
        groups[contract].append(name)
    lines = ["| of | promise | shown by |", "|---|---|---|"]
    for contract, names in groups.items():
        shown = f"`tests/formal/{contract.test}.py`" if contract.test else "assumed"
        lines.append(f"| {', '.join(names)} | {contract.promise} | {shown} |")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Collect the tests or run them, and write the list; return pytest's status."""
    parser = argparse.ArgumentParser(prog="python -m tests.formal.listing")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--measure", nargs="*", metavar="MODULE")
    options, rest = parser.parse_known_args(arguments)
    quiet, status = ["-q", "-p", "no:cacheprovider"], 0
    times = json.loads(TIMES.read_text(encoding="utf-8")) if TIMES.exists() else {}
    if options.measure is not None:
        for path in sorted(HERE.glob("test_*.py")):
            if not options.measure or path.stem in options.measure:
                status |= pytest.main([str(path), *quiet, *rest], plugins=[ran := Proofs()])
                times |= ran.times
                TIMES.write_text(json.dumps(times, indent=1, sort_keys=True) + "\n",
                                 encoding="utf-8")
    pytest.main([str(HERE), *quiet, "--collect-only", "-q"], plugins=[there := Proofs()])
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(f"{table(there.found, times)}\n\n{contracts()}\n", encoding="utf-8")
    return int(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
