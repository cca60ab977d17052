"""End of ``run`` and ``train``: printed lines and exit status."""

import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from sim.cluster.stuck import stuck_table
from sim.files.stop import Stop

__all__ = ["conclude"]


def conclude(console: Console, result: dict, table: Table, lines: Sequence[str], stop: Stop, *,
             stopped: str | None, failures: Sequence[str]) -> int:
    """Print ``table``, ``lines``, ``stopped`` and ``failures``; return the exit status.

    stopped: line on the signal that stopped the command, or None.

    The exit status is that of the signal, 1 for failures, else 0.
    """
    console.print(table)
    for line in (*lines, *result["notes"]):
        console.print(line, highlight=False, soft_wrap=True)
    if stopped is not None:
        print(f"sim: {stopped}", file=sys.stderr)
    if result["where_stuck"] is not None:
        console.print(stuck_table(result["where_stuck"]))
    for line in failures:
        print(f"sim: {line}", file=sys.stderr)
    if result["interrupted"] is not None:
        return stop.status or 1
    return 1 if failures else 0
