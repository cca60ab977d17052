"""Command line ``python -m gen``: write the Verilog of a configuration."""

import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from gen.base.command import NicOptions, run_command, with_options
from gen.base.option import option, same
from gen.base.settings import configure
from gen.documents.generate import generate
from gen.documents.tables import path_table, report_table, summary_table
from gen.shells import SHELLS, OpenNicPorts
from gen.timing.tables import timing_lines, timing_tables
from rtl.config import preset

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@dataclass(frozen=True, kw_only=True)
class GenOptions(NicOptions):
    """Options of ``python -m gen``."""

    shell: str = option("none", f"none, or the shell that wraps the NIC: {', '.join(SHELLS)}")
    functions: int | None = same(OpenNicPorts, "functions", default=None)
    qdma: int | None = same(OpenNicPorts, "qdma", default=None)
    macs: int | None = same(OpenNicPorts, "macs", default=None)
    report: bool = option(False, "also estimate LUT, FF, RAM, DSP and logic depth by Yosys")
    timing: bool = option(
        False, "also estimate the slack of every path without placement, for three assumptions "
        "about nets; with a shell, write constraints from the estimate")


@app.command()
@with_options(GenOptions)
def command(given: dict[str, Any]) -> None:
    """Write a SmartNIC's Verilog, its description and a Vivado script, or the files of a shell."""
    console = Console(stderr=True)
    shell = given["shell"]
    # The network behind a shell may lose packets.
    base = preset(given["config"]).with_fields(link=shell != "none")
    done = generate(configure(base, given["set"] or ()), Path(given["output"]), shell=shell,
                    options={each.name: given[each.name] for each in fields(OpenNicPorts)
                             if given[each.name] is not None},
                    report=given["report"], timing=given["timing"],
                    progress=lambda line: console.print(line, style="dim", highlight=False))
    for warning in done["warnings"]:
        console.print(f"warning: {warning}", highlight=False, markup=False, soft_wrap=True)
    shown = Console()
    shown.print(summary_table(done))
    if done["report"] is not None:
        shown.print(report_table(done["report"]))
        shown.print(path_table(done["report"]))
        left = done["report"]["not_estimated"]
        shown.print(f"not estimated: {', '.join(left['what'])}. Run {left['script']} in "
                    f"{left['tool']}", highlight=False, soft_wrap=True)
    if done["timing"] is not None:
        for table in timing_tables(done["timing"]):
            shown.print(table)
        for line in timing_lines(done["timing"], shell):
            shown.print(line, highlight=False, soft_wrap=True)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return its exit status, see :func:`gen.base.command.run_command`."""
    return run_command(app, arguments)


if __name__ == "__main__":
    sys.exit(main())
