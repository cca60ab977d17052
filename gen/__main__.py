"""``python -m gen``: write the Verilog of a configuration."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from gen.generate import generate
from gen.options import configure
from gen.signals import Interrupted, interruptible
from gen.tables import path_table, report_table, summary_table
from gen.yosys import YosysError
from rtl.config import PRESETS, preset

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def command(
    output: Annotated[Path, typer.Option(help="folder for the files; made if it is missing")],
    config: Annotated[str, typer.Option(help=f"preset: {', '.join(PRESETS)}")] = "kaggle",
    settings: Annotated[list[str] | None, typer.Option(
        "--set", metavar="FIELD=VALUE", help="change a field of the preset")] = None,
    report: Annotated[bool, typer.Option(
        "--report", help="also estimate LUT, FF, RAM, DSP and logic depth by Yosys")] = False,
) -> None:
    """Write NAME.v and NAME.json for a configuration of the SmartNIC."""
    console = Console(stderr=True)
    done = generate(configure(preset(config), settings or ()), output, report=report,
                    progress=lambda line: console.print(line, style="dim", highlight=False))
    shown = Console()
    shown.print(summary_table(done))
    if done["report"] is not None:
        shown.print(report_table(done["report"]))
        shown.print(path_table(done["report"]))


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return the exit status: 0, 2 for bad usage or input, or 128 and the
    number of the signal that ended it."""
    try:
        with interruptible():
            app(args=arguments, standalone_mode=False)
    except Interrupted as error:
        print(f"error: {error}", file=sys.stderr)
        return error.status
    except (ValueError, TypeError) as error:
        return _complain(str(error))
    except OSError as error:
        return _complain(f"{error.filename or 'output'}: {error.strerror or error}")
    except YosysError as error:
        return _complain(f"yosys: {str(error).splitlines()[-1]}")
    except Exception as error:
        # Typer brings its own copy of click: its usage errors share only this method.
        if not hasattr(error, "format_message"):
            raise
        return _complain(error.format_message())
    return 0


def _complain(message: str) -> int:
    print(f"error: {message}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
