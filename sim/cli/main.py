"""The command line ``python -m sim``."""

import sys

import typer

from gen.base.command import run_command
from sim.cli.batching import batching
from sim.cli.bench import bench
from sim.cli.compare import compare
from sim.cli.datasets import datasets
from sim.cli.faults import faults
from sim.cli.hitrate import hitrate
from sim.cli.plan import plan
from sim.cli.reproduce import reproduce
from sim.cli.run import run
from sim.cli.serve import serve
from sim.cli.torch import torch
from sim.cli.train import train

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
app.command()(compare)
app.command()(reproduce)
app.command()(serve)
app.command()(faults)
# Arguments after the script belong to the script.
app.command(context_settings={"allow_interspersed_args": False})(torch)
app.add_typer(datasets, name="datasets")


def main(arguments: list[str] | None = None) -> None:
    """Run a command and exit with its status, see :func:`gen.base.command.run_command`."""
    sys.exit(run_command(app, arguments, "sim"))
