"""Shared parts of the command lines: options, exit status, one-line error messages."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from gen.base.messages import one_line
from gen.base.signals import Interrupted, forget_unused, interruptible
from gen.base.tools import BuildError
from rtl.config import PRESETS

__all__ = ["Config", "Output", "Settings", "run_command"]

Output = Annotated[Path, typer.Option(help="folder for the files; created if missing")]
Config = Annotated[str, typer.Option(help=f"preset: {', '.join(PRESETS)}")]
Settings = Annotated[list[str] | None, typer.Option(
    "--set", metavar="FIELD=VALUE", help="change a field of the preset")]


def run_command(app: typer.Typer, arguments: list[str] | None = None) -> int:
    """Run a command line; return the exit status: 0, 2 for bad usage or input, or 128 plus the
    number of the signal that ended it."""
    try:
        with interruptible():
            app(args=arguments, standalone_mode=False)
    except Interrupted as error:
        forget_unused()
        print(f"error: {error}", file=sys.stderr)
        return error.status
    except (ValueError, TypeError) as error:
        return _complain(str(error))
    except OSError as error:
        return _complain(f"{error.filename or 'output'}: {error.strerror or error}")
    except MemoryError:
        return _complain("the memory of this machine is not enough for what is asked")
    except BuildError as error:
        first, *output = str(error).splitlines()
        return _complain(" ".join([first, *output[-1:]]))
    except Exception as error:
        # Typer brings its own copy of click: its usage errors share only this method.
        if not hasattr(error, "format_message"):
            raise
        return _complain(error.format_message())
    return 0


def _complain(message: str) -> int:
    print(f"error: {one_line(message)}", file=sys.stderr)
    return 2
