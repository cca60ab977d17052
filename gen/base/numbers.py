"""Numbers in text, as options, settings and lists have them: plain decimal, and nothing else.

``int`` and ``float`` of Python also take ``1_0``, digits of other scripts, and blanks around,
and so does what reads a command line.
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
    """Return the integer that ``text`` is in decimal, of at most 30 digits; an integer as it is.

    ``ValueError`` for any other text.
    """
    if isinstance(text, str) and not _INTEGER.fullmatch(text):
        raise ValueError(f"{_cut(text)} is not an integer of decimal digits")
    return int(text)


def number(text: str | float) -> float:
    """Return the number that ``text`` is in decimal, perhaps with an exponent; a number as it is.

    ``inf`` and ``nan`` are numbers, too: the bounds of each field say whether it takes them.
    ``ValueError`` for any other text.
    """
    if isinstance(text, str) and not _NUMBER.fullmatch(text):
        raise ValueError(f"{_cut(text)} is not a decimal number")
    return float(text)


def integer_option(*names: str, **given: Any) -> Any:
    """Return a command line's option whose value is an :func:`integer`."""
    return typer.Option(*names, parser=_complaining(integer), metavar="INTEGER", **given)


def number_option(*names: str, **given: Any) -> Any:
    """Return a command line's option whose value is a :func:`number`."""
    return typer.Option(*names, parser=_complaining(number), metavar="FLOAT", **given)


def _complaining(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return ``read`` with its error as one of the command line's own, which names the option."""
    def parse(text: Any) -> Any:
        try:
            return read(text)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None

    return parse


def _cut(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:40]}...")
