"""How ``run`` and ``train`` end: what they say, and their exit status."""

import sys

from rich.console import Console
from rich.table import Table

from sim.cluster.stuck import stuck_table
from sim.engines.waves import Waves
from sim.files.stop import Stop

__all__ = ["conclude"]


def conclude(console: Console, result: dict, table: Table, stop: Stop, *, waves: Waves | None,
             stopped: str | None, failures: list[str]) -> int:
    """Print ``table`` and what there is to say of the waves, an early end and failures.

    Returns the exit status: that of the signal that ended it, 1 for failures, else 0.
    """
    console.print(table)
    if waves is not None:
        console.print(waves.summary(), highlight=False, soft_wrap=True)
    if stopped is not None:
        print(f"sim: {stopped}", file=sys.stderr)
    if result["where_stuck"] is not None:
        console.print(stuck_table(result["where_stuck"]))
    for line in failures:
        print(f"sim: {line}", file=sys.stderr)
    if result["interrupted"] is not None:
        return stop.status or 1
    return 1 if failures else 0
