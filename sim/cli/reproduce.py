"""The command ``python -m sim reproduce``."""

from typing import Any

from rich.console import Console

from sim import api
from sim.cli.command import Shown, command
from sim.cli.progress import PointBar
from sim.experiments.options import ReproduceOptions

__all__ = ["reproduce"]


@command(ReproduceOptions)
def reproduce(given: dict[str, Any], shown: Shown) -> None:
    """Make the paper's figures (PNG, CSV) and judge its claims (claims.json, index.html)."""
    with PointBar(shown.console) as progress:
        found = api.reproduce(**given, progress=progress)
    _tell(shown.console, found, given["output"])
    failed = found["failed"]
    shown.end([f"{len(failed)} of {found['points']} points failed, such as {failed[0]['point']}: "
               f"{failed[0]['error']}"] if failed else [])


def _tell(console: Console, found: dict, output: str) -> None:
    for row in found["headlines"]:
        if row["mean"] is not None:
            spread = "" if row["low"] is None else f" [{row['low']:.2f}, {row['high']:.2f}]"
            console.print(f"{row['system'].upper()} {row['workload']}, {row['software']} software, "
                          f"over {row['base']}: {row['mean']:.2f}x{spread}", highlight=False,
                          markup=False)
    for row in found["claims"]:
        verdict = {True: "agrees", False: "differs", None: "not measured"}[row["agrees"]]
        console.print(f"{row['claim']:>3} {verdict}: {row['ours']}", highlight=False, markup=False,
                      soft_wrap=True)
    console.print(f"{len(found['figures'])} figures, claims.json, index.html: {output}",
                  highlight=False, soft_wrap=True)
