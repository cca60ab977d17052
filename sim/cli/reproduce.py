"""The command ``python -m sim reproduce``."""

from typing import Any

from rich.console import Console
from rich.table import Column, Table

from sim import api
from sim.cli.command import Shown, command
from sim.cli.progress import PointBar
from sim.experiments.options import ReproduceOptions

__all__ = ["reproduce"]


@command(ReproduceOptions)
def reproduce(given: dict[str, Any], shown: Shown) -> None:
    """Make the page of results, or the paper's figures and the verdicts on its claims."""
    with PointBar(shown.console) as progress:
        found = api.reproduce(**given, progress=progress)
    (_tell_results if "rows" in found else _tell)(shown.console, found, given["output"])
    failed = found["failed"]
    shown.end([f"{len(failed)} of {found['points']} points failed, such as {failed[0]['point']}: "
               f"{failed[0]['error']}"] if failed else [])


def _tell(console: Console, found: dict, output: str) -> None:
    for row in found["headlines"]:
        if row["mean"] is not None:
            console.print(f"{row['system'].upper()} {row['workload']}, {row['software']} software, "
                          f"over {row['base']}: {row['mean']:.2f}x", highlight=False,
                          markup=False)
    for row in found["claims"]:
        verdict = {True: "agrees", False: "differs", None: "not measured"}[row["agrees"]]
        console.print(f"{row['claim']:>3} {verdict}: {row['ours']}", highlight=False, markup=False,
                      soft_wrap=True)
    console.print(f"{len(found['figures'])} figures, claims.json, index.html: {output}",
                  highlight=False, soft_wrap=True)


def _range(row: dict) -> str:
    """Return the range of EN's ratio over uncertain constants."""
    found = row["spread"]["en"]
    return f"{found['low']:.2f} to {found['high']:.2f}" if found else "n/a"


def _tell_results(console: Console, found: dict, output: str) -> None:
    from sim.experiments.results.rows import place_of

    console.print(found["answer"], highlight=False, markup=False, soft_wrap=True)
    table = Table("workload", "cluster", *(Column(name, justify="right") for name in (
        "mini-batch", "bl-tuned us", "FS x", "EN x", "5 to 95 %")))
    for row in found["rows"]:
        base = row["systems"]["bl-tuned"]["interval_us"]
        table.add_row(row["workload"], row["cluster"], f"{row['mini_batch']:,}", *(
            "n/a" if value is None else f"{value:,.{digits}f}" for value, digits in (
                (base, 1), (row["ratios"]["fs"], 2), (row["ratios"]["en"], 2))), _range(row))
    console.print(table)
    for row in found["rows"]:
        if row["why"]:
            console.print(f"{place_of(row)}: {row['why']}", highlight=False, markup=False,
                          soft_wrap=True)
    console.print(f"results.html, results.json, results.csv, results.png: {output}",
                  highlight=False, soft_wrap=True)
