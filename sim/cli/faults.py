"""The command ``python -m sim faults``."""

import sys
from typing import Any

import typer

from sim import api
from sim.cli.command import Shown, command
from sim.cli.progress import PointBar
from sim.faults.options import FaultsOptions

__all__ = ["faults"]


@command(FaultsOptions)
def faults(given: dict[str, Any], shown: Shown) -> None:
    """Run the fault suite of the reliable link: lost, duplicate, reordered, corrupt, late frames.

    The exit status is 1 if faults change a value of a cell or if a packet is lost.
    """
    from sim.faults.suite import suffers
    from sim.faults.table import fault_tables

    with PointBar(shown.console) as progress:
        result = api.faults(**given, progress=progress)
    for table in fault_tables(result):
        shown.console.print(table)
    for failed in result["failed"]:
        print(f"sim: {failed['cell']}: {failed['error']}", file=sys.stderr)
    raise typer.Exit(int(suffers(result)))
