"""The command ``python -m sim faults``."""

import sys
from typing import Annotated

import typer
from rich.console import Console

from gen.base.numbers import integer_option
from sim import api
from sim.cli.progress import PointBar

__all__ = ["faults"]


def faults(
    output: Annotated[str, typer.Option(
        help="Folder of faults.json and faults.png. Finished cells stay in it, and the same "
             "command goes on from them.")],
    short: Annotated[bool, typer.Option(
        "--short", help="Only cells that take seconds.")] = False,
    jobs: Annotated[int | None, integer_option(
        help="Cells measured at once.", show_default="processors")] = None,
) -> None:
    """Run the fault suite of the reliable link: frames lost, doubled, reordered, corrupted, late.

    The exit status is 1 when a cell has other values than without faults, or lost a packet.
    """
    from sim.faults.suite import suffers
    from sim.faults.table import fault_tables

    console = Console()
    with PointBar(console) as progress:
        result = api.faults(output=output, short=short, jobs=jobs, progress=progress)
    for table in fault_tables(result):
        console.print(table)
    for failed in result["failed"]:
        print(f"sim: {failed['cell']}: {failed['error']}", file=sys.stderr)
    raise typer.Exit(int(suffers(result)))
