"""Command line: ``python -m host.measurements trace KINETO EXECUTION --output FOLDER``."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from host.measurements.kineto import collectives, kernels, read_traces
from host.measurements.step import COLLECTIVES, KERNELS, write_collectives, write_kernels

__all__ = ["app", "main"]

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


@app.callback()
def _all() -> None:
    """Count what others measured, from their traces."""


@app.command()
def trace(kineto: Annotated[Path, typer.Argument(help="Folder with a Kineto trace per rank.")],
          execution: Annotated[Path, typer.Argument(help="Folder with their execution traces.")],
          output: Annotated[Path, typer.Option(help="Folder to write to.")] = Path(".")) -> None:
    """Count a step's kernels and collectives: two CSV files like those in host/measurements."""
    traces, executions = read_traces(kineto), read_traces(execution)
    if len(traces) != len(executions):
        raise ValueError(f"execution must have a trace for each of {len(traces)} ranks, "
                         f"not {len(executions)}")
    output.mkdir(parents=True, exist_ok=True)
    pairs = list(zip(traces, executions))
    write_kernels(output / KERNELS, [kernels(*pair) for pair in pairs])
    write_collectives(output / COLLECTIVES, [collectives(*pair) for pair in pairs])
    print(f"wrote {output / KERNELS} and {output / COLLECTIVES}")


def main() -> int:
    """Run the command line; return the exit status."""
    try:
        app(standalone_mode=False)
    except typer.Exit as stop:
        return stop.exit_code
    except (ValueError, KeyError, OSError, typer.BadParameter) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
