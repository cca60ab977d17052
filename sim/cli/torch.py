"""The command ``python -m sim torch``."""

import contextlib
import os
import sys
from typing import Any

import typer
from rich.console import Console

from gen.base.messages import one_line
from gen.base.signals import Interrupted
from sim import api
from sim.cli.command import Shown, command
from sim.files.outputs import write_json
from sim.job.program import TorchArguments

__all__ = ["torch"]


@command(TorchArguments)
def torch(given: dict[str, Any], to: Shown) -> None:
    """Run an unedited PyTorch script with its embedding bags on NICs."""
    json, report = to.json, given["report"]
    from sim.torch.ends import ProgramError, ProgramStopped, unhurried
    from sim.torch.processes.peers import ProcessError, first_says_it
    from sim.torch.values.nics import NicsError

    # Output of the script must not mix with the JSON.
    shown = sys.stderr if json == "-" else sys.stdout
    try:
        with contextlib.redirect_stdout(shown):
            result = api.torch(**given, left=lambda found: _left(found, json))
    except ProcessError as error:
        with unhurried() as hush:
            hush()
            _show(error.result, json)
        raise typer.Exit(error.status) from None
    except (ValueError, TypeError, OSError) as error:
        _show(getattr(error, "result", None), json)
        if first_says_it():
            raise typer.Exit(2) from None
        raise
    except ProgramStopped as error:
        _show(error.result, json)
        stopped = Interrupted(error.number)
        if error.result is not None:
            for path in filter(None, (json, report)):
                stopped.add_note(f"{path} contains the results until then")
        raise stopped from None
    except ProgramError as error:
        if not error.shown:
            cause = error.__cause__
            sys.__excepthook__(type(cause), cause, cause.__traceback__)
        _show(error.result, json)
        print(f"sim: {one_line(str(error))}", file=sys.stderr)
        raise typer.Exit(1) from None
    except NicsError as error:
        _show(getattr(error, "result", None), json)
        print(f"sim: {one_line(str(error))}", file=sys.stderr)
        raise typer.Exit(1) from None
    wrong = _show(result, json)
    for line in wrong:
        print(f"sim: {line}", file=sys.stderr)
    raise typer.Exit(1 if wrong else result["exit_status"])


def _left(result: dict, json: str | None) -> bool:
    """Print the report of a script that ends its process; return whether its NICs were correct.

    Output that the script left in the buffer of standard output stays unwritten, as without NICs.
    """
    with open(os.dup(1), "w") as shown, contextlib.redirect_stdout(shown):
        wrong = _show(result, json)
    for line in wrong:
        print(f"sim: {line}", file=sys.stderr, flush=True)
    return not wrong


def _show(result: dict | None, json: str | None) -> list[str]:
    """Print a report and return the failures of the NICs.

    ``result`` is None if no lookup was captured, or if another process owns the report.
    """
    from sim.torch.report.result import failures
    from sim.torch.report.shown import tables_of

    if result is None or "systems" not in result:
        return []
    if json == "-":
        write_json(result, json)
    shown = sys.stderr if json == "-" else sys.stdout
    if shown is None or shown.closed:  # by the script
        return failures(result)
    console = Console(file=shown)
    for table in tables_of(result):
        console.print(table)
    for note in result["notes"]:
        console.print(note, highlight=False, markup=False, soft_wrap=True)
    return failures(result)
