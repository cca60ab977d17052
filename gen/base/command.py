"""Command lines: commands whose options are the fields of a dataclass, see :mod:`gen.base.option`;
exit status, and error messages of one line."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import Parameter, Signature
from typing import Annotated, Any

import typer

from embernic_extras import ExtraError
from gen.base.messages import BuildError, one_line
from gen.base.numbers import integer, integer_option, number, number_option
from gen.base.option import CALLABLE, REQUIRED, AnyPath, Given, Settings, given_options, option
from gen.base.signals import Interrupted, forget_unused, interruptible
from rtl.config import PRESETS

__all__ = ["NicOptions", "run_command", "with_options"]

_READERS = {"an integer": (int, integer_option), "a number": (float, number_option),
            "True or False": (bool, typer.Option)}
"""Type and option of each kind, see :mod:`gen.base.option`. All other kinds are text."""

_LISTED: dict[str, Callable[[str], Any]] = {
    "integers": integer, "numbers": number, "texts": str.strip}
"""Readers of the values of a comma-separated option, by kind."""


@dataclass(frozen=True, kw_only=True)
class NicOptions:
    """Options of a command that writes files of a NIC."""

    output: AnyPath = option(
        REQUIRED, "folder for the files; created if missing", metavar="PATH")
    config: str = option("kaggle", f"preset: {', '.join(PRESETS)}")
    set: Settings = option((), "change a field of the preset", metavar="FIELD=VALUE")


def with_options(kind: type) -> Callable[[Callable[[dict[str, Any]], None]], Callable[..., None]]:
    """Return a decorator: a command with the options of the dataclass ``kind``.

    The function gets the values by name. None represents a missing option.
    """
    options = {each.name: each for each in given_options(kind) if each.kind != CALLABLE}

    def decorate(function: Callable[[dict[str, Any]], None]) -> Callable[..., None]:
        def called(**given: Any) -> None:
            function({name: _read(options[name], value) for name, value in given.items()})

        called.__name__, called.__doc__ = function.__name__, function.__doc__
        called.__signature__ = Signature(  # type: ignore[attr-defined]
            [_parameter(each) for each in options.values()])
        return called

    return decorate


def run_command(app: typer.Typer, arguments: Sequence[str] | None = None,
                name: str | None = None) -> int:
    """Run a command line and return its exit status.

    The status is 2 for a user error, which is a line on standard error, or 128 plus the number of
    the signal that ended the command.

    name: name of the program; by default the name of the module.
    """
    begin = name or "error"
    try:
        with interruptible():
            # Without its standalone mode, click returns an Exit's status instead of raising it.
            status = app(args=arguments, prog_name=name, standalone_mode=False)
    except Interrupted as error:
        forget_unused()
        print("; ".join((f"{begin}: {error}", *getattr(error, "__notes__", ()))), file=sys.stderr)
        return error.status
    except MemoryError:
        message = "out of memory: use a smaller configuration or fewer processes"
    except BuildError as error:
        first, *output = str(error).splitlines()
        message = " ".join([first, *output[-1:]])
    except Exception as error:
        if isinstance(error, OSError) and error.filename is not None and error.strerror is not None:
            message = f"{error.filename}: {error.strerror}"
        elif isinstance(error, (OSError, ValueError, TypeError, ExtraError)):
            message = str(error)
        # Typer contains its own copy of click: both kinds of usage error have this method.
        elif hasattr(error, "format_message"):
            if not (message := error.format_message()):
                return 2  # the help was shown instead
        else:
            raise
    else:
        return status if isinstance(status, int) else 0
    print(f"{begin}: {one_line(message)}", file=sys.stderr)
    return 2


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
    """Return the kind of the values of a comma-separated option; None for another option."""
    several = (given.kind or "").rpartition("a sequence of ")[2]
    return several if given.named and several in _LISTED else None


def _read(given: Given, value: Any) -> Any:
    """Return a command-line value in the form that the API takes."""
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
