"""Command line ``python -m gen``: write the Verilog of a configuration."""

import sys
from typing import Annotated

import typer
from rich.console import Console

from gen.base.command import Config, Output, Settings, run_command
from gen.base.numbers import integer_option
from gen.base.options import configure
from gen.documents.generate import generate
from gen.documents.tables import path_table, report_table, summary_table
from gen.shells import SHELLS
from gen.timing.tables import timing_lines, timing_tables
from rtl.config import preset

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def command(
    output: Output,
    config: Config = "kaggle",
    settings: Settings = None,
    shell: Annotated[str, typer.Option(
        help=f"none, or the shell that wraps the NIC: {', '.join(SHELLS)}")] = "none",
    functions: Annotated[int | None, integer_option(
        help="of OpenNIC, as -num_phys_func of its build.tcl: 1 to 4")] = None,
    qdma: Annotated[int | None, integer_option(
        help="of OpenNIC, as -num_qdma: 1 or 2")] = None,
    macs: Annotated[int | None, integer_option(
        help="of OpenNIC, as -num_cmac_port: 1 or 2")] = None,
    report: Annotated[bool, typer.Option(
        "--report", help="also estimate LUT, FF, RAM, DSP and logic depth by Yosys")] = False,
    timing: Annotated[bool, typer.Option(
        "--timing", help="also estimate the slack of every path, not placed, in three cases of "
        "nets, and with a shell write constraints that follow from it")] = False,
) -> None:
    """Write NAME.v, NAME.json and a script for Vivado of a configuration of the SmartNIC, or all
    files that a shell needs."""
    console = Console(stderr=True)
    options = {"functions": functions, "qdma": qdma, "macs": macs}
    # What leaves a shell crosses a network that may lose it.
    base = preset(config).with_fields(link=shell != "none")
    done = generate(configure(base, settings or ()), output, shell=shell,
                    options={name: value for name, value in options.items() if value is not None},
                    report=report, timing=timing,
                    progress=lambda line: console.print(line, style="dim", highlight=False))
    for warning in done["warnings"]:
        console.print(f"warning: {warning}", highlight=False, markup=False, soft_wrap=True)
    shown = Console()
    shown.print(summary_table(done))
    if done["report"] is not None:
        shown.print(report_table(done["report"]))
        shown.print(path_table(done["report"]))
        left = done["report"]["not_estimated"]
        shown.print(f"left to {left['tool']}: {', '.join(left['what'])} ({left['script']})",
                    highlight=False, soft_wrap=True)
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
