"""Commands whose options are the fields of a dataclass, see :mod:`sim.job.option`."""

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Annotated, Any

import typer

from gen.base.numbers import integer_option, number_option
from sim.job.option import CALLABLE, Given, given_options

__all__ = ["command"]

_READERS = {"an integer": (int, integer_option), "a number": (float, number_option),
            "True or False": (bool, typer.Option)}
"""Type and option of each kind, see :mod:`sim.job.kinds`. Each other kind is a text."""


def command(kind: type) -> Callable[[Callable[[dict[str, Any]], None]], Callable[..., None]]:
    """Return a decorator: a command with the options of the dataclass ``kind``.

    The function gets the values by name; None stands for an option that is not given.
    """
    parameters = [_parameter(each) for each in given_options(kind) if each.kind != CALLABLE]

    def decorate(function: Callable[[dict[str, Any]], None]) -> Callable[..., None]:
        def called(**given: Any) -> None:
            function(given)

        called.__name__, called.__doc__ = function.__name__, function.__doc__
        called.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        return called

    return decorate


def _parameter(given: Given) -> Parameter:
    """Return an option as Typer reads it from a signature."""
    option, repeated = given.option, "a sequence of " in (given.kind or "")
    value, make = (list[str], typer.Option) if repeated else _READERS.get(
        given.kind or "", (str, typer.Option))
    details: dict[str, Any] = {"help": option.help}
    if option.metavar is not None:
        details["metavar"] = option.metavar
    default = None if option.of_cluster or repeated else given.default
    shown = str(given.default) if option.of_cluster else option.shown
    if shown is not None:
        details["show_default"] = shown
    return Parameter(
        given.name, Parameter.KEYWORD_ONLY, default=default,
        annotation=Annotated[value | None if default is None else value,  # type: ignore
                             make(**details)])
