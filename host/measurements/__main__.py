"""Command line: ``python -m host.measurements trace KINETO EXECUTION --output FOLDER``."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from gen.base.command import run_command
from host.measurements.kineto import collectives, kernels, read_traces
from host.measurements.step import COLLECTIVES, KERNELS, write_collectives, write_kernels

__all__ = ["app", "main"]

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


@app.callback()
def _all() -> None:
    """Count kernels and collectives in traces of a training step."""


@app.command()
def trace(kineto: Annotated[Path, typer.Argument(help="Folder with a Kineto trace per rank.")],
          execution: Annotated[Path, typer.Argument(help="Folder with an execution trace each.")],
          output: Annotated[Path, typer.Option(help="Folder to write to.")] = Path(".")) -> None:
    """Count a step's kernels and collectives: two CSV files like those in host/measurements."""
    traces, executions = read_traces(kineto), read_traces(execution)
    if len(traces) != len(executions):
        raise ValueError(f"execution must have a trace for each of {len(traces)} ranks, "
                         f"not {len(executions)}")
    output.mkdir(parents=True, exist_ok=True)
    ranks = []
    for (path, ran), (beside, made) in zip(traces.items(), executions.items()):
        try:
            ranks.append((kernels(ran, made), collectives(ran, made)))
        except (KeyError, TypeError, AttributeError, IndexError, StopIteration) as error:
            raise ValueError(f"{path} and {beside} are not traces of a rank's step: "
                             f"{type(error).__name__} {error}") from None
    write_kernels(output / KERNELS, [ran for ran, _ in ranks])
    write_collectives(output / COLLECTIVES, [sent for _, sent in ranks])
    print(f"wrote {output / KERNELS} and {output / COLLECTIVES}")


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return the exit status, see :func:`gen.base.command.run_command`."""
    return run_command(app, arguments, "host.measurements")


if __name__ == "__main__":
    sys.exit(main())
