"""The command ``python -m sim plan``."""

from typing import Any

from sim import api
from sim.cli.command import Shown, command
from sim.cli.progress import SampleCount
from sim.offline.options import PlanOptions

__all__ = ["plan"]


@command(PlanOptions)
def plan(given: dict[str, Any], shown: Shown) -> None:
    """Show requirements, bottleneck and fit of a model on a cluster, without running RTL."""
    from sim.offline.plan import failures
    from sim.offline.plan_table import plan_tables

    with SampleCount(shown.console) as progress:
        result = shown.result(api.plan(**given, progress=progress))
    shown.console.print(plan_tables(result))
    shown.end(failures(result))
