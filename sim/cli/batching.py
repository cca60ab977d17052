"""The command ``python -m sim batching``."""

from typing import Any

from sim import api
from sim.cli.command import Shown, command
from sim.offline.options import BatchingOptions

__all__ = ["batching"]


@command(BatchingOptions)
def batching(given: dict[str, Any], shown: Shown) -> None:
    """Compare the algorithms that form mini-batches: keys saved and cost. Runs no RTL."""
    from sim.offline.batching import batching_tables

    with shown.console.status("forming mini-batches") as status:

        def progress(doing: str) -> None:
            status.update(doing)
            if not shown.console.is_terminal:
                shown.console.print(doing, highlight=False)

        result = shown.result(api.batching(**given, progress=progress))
    for table in batching_tables(result):
        shown.console.print(table)
