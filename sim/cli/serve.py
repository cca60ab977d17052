"""The command ``python -m sim serve``."""

from typing import Any

from sim import api
from sim.cli.command import Shown, command
from sim.cli.progress import PointBar
from sim.serving.options import ServeOptions

__all__ = ["serve"]


@command(ServeOptions)
def serve(given: dict[str, Any], shown: Shown) -> None:
    """Show latency under load, and the load that each system serves within a p99."""
    from sim.evaluation.compared import choices
    from sim.serving.table import serve_tables

    with PointBar(shown.console) as progress:
        result = shown.result(api.serve(**given, progress=progress))
    for table in serve_tables(result):
        shown.console.print(table)
    for note in (*choices(result["systems"]), *result["notes"]):
        shown.console.print(note, highlight=False, markup=False, soft_wrap=True)
    shown.end([f"{failed['what']}: {failed['error']}" for failed in result["failed"]])
