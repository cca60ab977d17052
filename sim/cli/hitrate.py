"""The command ``python -m sim hitrate``."""

from typing import Any

from sim import api
from sim.cli.command import Shown, command
from sim.cli.progress import SampleCount
from sim.files.stop import stoppable
from sim.offline.options import HitrateOptions

__all__ = ["hitrate"]


@command(HitrateOptions)
def hitrate(given: dict[str, Any], shown: Shown) -> None:
    """Show the hit rate of the local cache for several sizes, without running RTL."""
    from sim.offline.hitrate import hitrate_stopped, hitrate_table

    with stoppable() as stop, SampleCount(shown.console) as progress:
        result = shown.result(api.hitrate(**given, progress=progress, stop=stop))
    shown.console.print(hitrate_table(result))
    said = hitrate_stopped(result)
    shown.end([] if said is None else [said], stop.status or 1)
