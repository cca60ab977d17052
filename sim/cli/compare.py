"""The command ``python -m sim compare``."""

from typing import Any

from sim import api
from sim.cli.command import Shown, command
from sim.compare.options import CompareOptions

__all__ = ["compare"]


@command(CompareOptions)
def compare(given: dict[str, Any], shown: Shown) -> None:
    """Compare all systems on one model, cluster and data."""
    from sim.compare.table import compare_table
    from sim.evaluation.compared import choices

    with shown.console.status("reading samples") as status:
        result = shown.result(api.compare(
            **given, progress=lambda system: status.update(f"measuring {system}")))
    shown.console.print(result["reason"], highlight=False, markup=False, soft_wrap=True)
    shown.console.print(compare_table(result))
    for note in (*choices(result["systems"]), *result["notes"]):
        shown.console.print(note, highlight=False, markup=False, soft_wrap=True)
    if given["output"] is not None:
        shown.console.print(f"page: {given['output']}/index.html", highlight=False, markup=False,
                            soft_wrap=True)
    shown.end([])
