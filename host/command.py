"""What the command lines of `host` share: numbers in plain decimal, and mistakes in one line."""

import re
import sys
from collections.abc import Callable
from typing import Any

import typer

from embernic_extras import ExtraError

__all__ = ["decimal", "positive_option", "run_command"]

_MOST = 1000
"""Characters of a complaint."""

_DECIMAL = re.compile(r"[0-9]{1,18}")
_POSITIVE = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,18})?(?:e-[0-9]{1,2})?")


def decimal(text: str) -> int:
    """Return the integer that ``text`` is in decimal digits, at most 18; ``int`` also takes
    ``1_0``, blanks and digits of other scripts. ``ValueError`` for any other text."""
    if not _DECIMAL.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is not a number of decimal digits")
    return int(text)


def positive_option(help: str, kind: type[int] | type[float] = int, *, least: float = 1,
                    most: float = float("inf")) -> Any:
    """Return an option of a number in plain decimal, ``least`` to ``most``."""
    form: Callable[[str], Any] = (_DECIMAL if kind is int else _POSITIVE).fullmatch

    def parse(text: Any) -> int | float:
        if (isinstance(text, str) and not form(text)) or not least <= kind(text) <= most:
            bounds = f"of at least {least}" if most == float("inf") else f"of {least} to {most}"
            raise typer.BadParameter(
                f"{str(text)[:40]!r} is not {'an integer' if kind is int else 'a number'} {bounds}")
        return kind(text)

    return typer.Option(parser=parse, metavar=kind.__name__.upper(), help=help)


def run_command(app: typer.Typer, name: str, arguments: list[str] | None = None) -> int:
    """Run the command line ``name``; return its exit status.

    A mistake of the user is one line on standard error and status 2, an interrupt status 130.
    """
    try:
        status = app(args=arguments, prog_name=name, standalone_mode=False)
    except OSError as error:
        return _complain(name, str(error) if error.filename is None or error.strerror is None
                         else f"{error.filename}: {error.strerror}")
    except (ValueError, MemoryError, ExtraError) as error:
        return _complain(name, str(error) or "not enough memory")
    except KeyboardInterrupt:
        status = 130
    except Exception as error:
        if not hasattr(error, "format_message"):  # click's own errors about the command line
            raise
        return _complain(name, error.format_message())
    if status == 130:  # also what Typer makes of an interrupt
        print(f"{name}: stopped by SIGINT", file=sys.stderr)
    return status if isinstance(status, int) else 0


def _complain(name: str, message: str) -> int:
    line = " ".join(message.split())
    # Whatever was given in place of a path may be of any length.
    if len(line) > _MOST:
        line = f"{line[:_MOST // 2]}...{line[-_MOST // 4:]}"
    print(f"{name}: {line}", file=sys.stderr)
    return 2
