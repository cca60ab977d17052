"""Numbers in text, as in options, settings and lists: plain decimal only.

Python's ``int`` and ``float`` also accept ``1_0``, digits of other scripts, and surrounding blanks.
"""

import re
from collections.abc import Callable
from typing import Any

import typer

__all__ = ["integer", "integer_option", "number", "number_option"]

_INTEGER = re.compile(r"[-+]?[0-9]{1,30}")
_NUMBER = re.compile(r"[-+]?(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})"
                     r"(?:[eE][-+]?[0-9]{1,3})?|-?inf|nan")


def integer(text: str | int) -> int:
    """Return the integer in ``text``, of at most 30 decimal digits; return an integer unchanged.

    Raises ``ValueError`` for other text.
    """
    if isinstance(text, str) and not _INTEGER.fullmatch(text):
        raise ValueError(f"{_cut(text)} is not an integer of decimal digits")
    return int(text)


def number(text: str | float) -> float:
    """Return the decimal number in ``text``, with an optional exponent; return a number unchanged.

    ``inf`` and ``nan`` are numbers; the bounds of a field may reject them. Raises ``ValueError``
    for other text.
    """
    if isinstance(text, str) and not _NUMBER.fullmatch(text):
        raise ValueError(f"{_cut(text)} is not a decimal number")
    return float(text)


def integer_option(*names: str, **given: Any) -> Any:
    """Return a command-line option whose value is an :func:`integer`."""
    return typer.Option(*names, parser=_complaining(integer), metavar="INTEGER", **given)


def number_option(*names: str, **given: Any) -> Any:
    """Return a command-line option whose value is a :func:`number`."""
    return typer.Option(*names, parser=_complaining(number), metavar="FLOAT", **given)


def _complaining(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return ``read`` with its error as a usage error, which contains the option's name."""
    def parse(text: Any) -> Any:
        try:
            return read(text)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None

    return parse


def _cut(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:40]}...")
