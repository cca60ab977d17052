"""Commands whose options are the fields of a dataclass, see :mod:`sim.job.option`."""

import sys
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature
from typing import Annotated, Any

import typer
from rich.console import Console

from gen.base.numbers import integer, integer_option, number, number_option
from sim.files.outputs import check_apart, write_json
from sim.job.option import CALLABLE, REQUIRED, Given, given_options

__all__ = ["Shown", "command"]

_READERS = {"an integer": (int, integer_option), "a number": (float, number_option),
            "True or False": (bool, typer.Option)}
"""Type and option of each kind, see :mod:`sim.job.kinds`. Each other kind is a text."""

_LISTED: dict[str, Callable[[str], Any]] = {
    "integers": integer, "numbers": number, "texts": str.strip}
"""Readers of the values that an option lists with commas between, by kind."""

_WRITTEN = ("predictions", "picture", "pcap", "waves", "checkpoint")
_READ = ("data", "files", "model", "cluster", "network", "gpu", "pcie", "faults")


class Shown:
    """Standard output of a command: its tables, or the JSON of its result for ``--json -``.

    console: console for all else; standard error where the JSON is on standard output.
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
    """Return a decorator: a command with the options of the dataclass ``kind``.

    The function gets the values by name, as the function of the API takes them, and a `Shown`. None
    stands for an option that is not given.
    """
    options = {each.name: each for each in given_options(kind) if each.kind != CALLABLE}

    def decorate(function: Callable[[dict[str, Any], Shown], None]) -> Callable[..., None]:
        def called(**given: Any) -> None:
            json = given.get("json")
            given = {name: _read(options[name], value) for name, value in given.items()}
            if json == "-":
                _check_no_file(given)
                given["json"] = None
            function(given, Shown(json))

        called.__name__, called.__doc__ = function.__name__, function.__doc__
        called.__signature__ = Signature(  # type: ignore[attr-defined]
            [_parameter(each) for each in options.values()])
        return called

    return decorate


def _parameter(given: Given) -> Parameter:
    """Return an option as Typer reads it from a signature."""
    option, default = given.option, given.default
    several = "a sequence of " in (given.kind or "")
    value, make = _READERS.get(given.kind or "", (str, typer.Option))
    names: tuple[str, ...] = ()
    details: dict[str, Any] = {"help": option.help, "hidden": option.hidden}
    if option.metavar is not None:
        details["metavar"] = option.metavar
    if option.shown is not None or option.of_cluster:
        details["show_default"] = str(default) if option.of_cluster else option.shown
    if option.of_cluster:
        default = None
    elif several and _lists(given) is not None:
        values = default if isinstance(default, tuple) else () if default is None else (default,)
        default = ",".join(map(str, values)) or option.none or None
    elif several or option.joined:
        value, default = list[str], REQUIRED if default is REQUIRED else None
    elif default is False:
        names = (f"--{given.name}",)
    if not given.named:
        make = typer.Argument
    default = ... if default is REQUIRED else default
    return Parameter(
        given.name, Parameter.KEYWORD_ONLY, default=default,
        annotation=Annotated[value | None if default is None else value,  # type: ignore
                             make(*names, **details)])


def _lists(given: Given) -> str | None:
    """Return the kind of the values that an option lists with commas between; None if it does not.
    """
    several = (given.kind or "").rpartition("a sequence of ")[2]
    return several if given.named and several in _LISTED else None


def _read(given: Given, value: Any) -> Any:
    """Return a value of the command line as the function of the API takes it."""
    option, several = given.option, _lists(given)
    if value is None or value == option.none:
        return None
    if option.joined:
        return ",".join(value) or None
    if several is None:
        return value or None if isinstance(value, list) else value
    try:
        found = [_LISTED[several](part) for part in value.split(",")]
    except ValueError:
        words = " or ".join(filter(None, (option.none, several)))
        raise ValueError(f"{given.name} must be {words} with commas between, "
                         f"not {value!r}") from None
    return found[0] if len(found) == 1 and " or a sequence" in str(given.kind) else found


def _check_no_file(given: Mapping[str, Any]) -> None:
    """Check ``--json -``, for which the command line itself writes to standard output.

    ``ValueError`` where standard output is closed, or a file that another option ``given`` names.
    """
    if sys.stdout is None:
        raise ValueError("json must be a file, not '-': standard output is closed")
    outputs, inputs = ({name: given.get(name) for name in names} for names in (_WRITTEN, _READ))
    check_apart({"json": "-"} | outputs, inputs)
