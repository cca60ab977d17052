"""The command line ``python -m sim``: its commands, and how mistakes and signals end them."""

import sys

import typer

from embernic_extras import ExtraError
from gen.base.messages import one_line
from gen.base.signals import Interrupted, forget_unused, interruptible
from sim.cli.batching import batching
from sim.cli.bench import bench
from sim.cli.datasets import datasets
from sim.cli.faults import faults
from sim.cli.hitrate import hitrate
from sim.cli.plan import plan
from sim.cli.reproduce import reproduce
from sim.cli.run import run
from sim.cli.serve import serve
from sim.cli.torch import torch
from sim.cli.train import train
from sim.engines import BuildError

__all__ = ["app", "main"]

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False,
                  help="Run clusters of EmberNIC SmartNICs cycle by cycle.")


@app.callback()
def _commands() -> None:
    """Run clusters of EmberNIC SmartNICs cycle by cycle."""


app.command()(run)
app.command()(train)
app.command()(bench)
app.command()(hitrate)
app.command()(batching)
app.command()(plan)
app.command()(reproduce)
app.command()(serve)
app.command()(faults)
# What follows the script is the script's own.
app.command(context_settings={"allow_interspersed_args": False})(torch)
app.add_typer(datasets, name="datasets")


def main(arguments: list[str] | None = None) -> None:
    """Run a command; a user's mistake is one line on standard error and exit status 2.

    A signal that asks to end is exit status 128 and its number, 130 for Ctrl-C.
    """
    try:
        with interruptible():
            # Without its standalone mode, click returns the status of an Exit, raising nothing.
            status = app(args=arguments, prog_name="sim", standalone_mode=False)
    except Interrupted as error:
        forget_unused()
        print("; ".join((f"sim: {error}", *getattr(error, "__notes__", ()))), file=sys.stderr)
        sys.exit(error.status)
    except OSError as error:
        # As the other complaints are, with the file first.
        _complain(str(error) if error.filename is None or error.strerror is None
                  else f"{error.filename}: {error.strerror}")
    except MemoryError:
        _complain("the memory of this machine is not enough for what is asked")
    except (ValueError, TypeError, BuildError, ExtraError) as error:
        _complain(str(error))
    except Exception as error:
        if hasattr(error, "format_message"):  # click's own complaints about the command line
            _complain(error.format_message())
        raise
    sys.exit(status if isinstance(status, int) else 0)


def _complain(message: str) -> None:
    print(f"sim: {one_line(message)}", file=sys.stderr)
    sys.exit(2)
