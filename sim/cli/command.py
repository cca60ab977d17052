"""Commands with the fields of a dataclass as options, see :mod:`gen.base.option`."""

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

import typer
from rich.console import Console

from gen.base.command import with_options
from sim.files.outputs import check_apart, write_json

__all__ = ["Shown", "command"]

_WRITTEN = ("predictions", "picture", "pcap", "waves", "checkpoint")
_READ = ("data", "files", "model", "cluster", "network", "gpu", "pcie", "faults")


class Shown:
    """Standard output of a command: tables, or the JSON of the result for ``--json -``.

    console: console for tables and progress; standard error if the JSON is on standard output.
    json: value of ``--json``.
    """

    def __init__(self, json: str | None):
        self.json = json
        self.console = Console(stderr=json == "-")

    def result(self, result: dict) -> dict:
        """Return the result of a function of the API, after writing its JSON."""
        if self.json == "-":
            write_json(result, self.json)
        return result

    def end(self, failures: Sequence[str], status: int = 1) -> None:
        """Print ``failures``; end the command with ``status`` if there are any."""
        for line in failures:
            print(f"sim: {line}", file=sys.stderr)
        raise typer.Exit(status if failures else 0)


def command(kind: type) -> Callable[[Callable[[dict[str, Any], Shown], None]], Callable[..., None]]:
    """Return a decorator that makes a command with the options of the dataclass ``kind``.

    The function receives the arguments of the API function by name, and a `Shown`. An option that
    is not given is None.
    """
    def decorate(function: Callable[[dict[str, Any], Shown], None]) -> Callable[..., None]:
        @wraps(function)
        def called(given: dict[str, Any]) -> None:
            json = given.get("json")
            if json == "-":
                _check_no_file(given)
                given["json"] = None
            function(given, Shown(json))

        return with_options(kind)(called)

    return decorate


def _check_no_file(given: Mapping[str, Any]) -> None:
    """Check ``--json -``: raise ``ValueError`` if standard output is closed, or if another option
    in ``given`` names it.
    """
    if sys.stdout is None:
        raise ValueError("json must be a file, not '-': standard output is closed")
    outputs, inputs = ({name: given.get(name) for name in names} for names in (_WRITTEN, _READ))
    check_apart({"json": "-"} | outputs, inputs)
