"""Command line ``python -m gen.documents``: write the documents of a configuration."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from gen.base.command import Config, Output, Settings, run_command
from gen.base.distinct import check_distinct
from gen.base.files import write_whole
from gen.documents.write import documents

_MOST_BYTES = 1 << 28
"""Most bytes of a report."""

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def command(
    output: Output,
    config: Config = "kaggle",
    settings: Settings = None,
    report: Annotated[Path | None, typer.Option(
        help="NAME.report.json of python -m gen --report, for resources.md")] = None,
    timing: Annotated[Path | None, typer.Option(
        help="NAME.timing.json of python -m gen --timing, for timing.md and timing.svg")] = None,
    timing_training: Annotated[Path | None, typer.Option(
        help="the same with --set training=true, for a second table in timing.md")] = None,
) -> None:
    """Write register map, wire format, block diagram, latency, resources and timing of a
    SmartNIC."""
    given = {"report": report, "timing": timing, "timing_training": timing_training}
    files = documents(config, settings or (), **{
        name: None if path is None else _read(path) for name, path in given.items()})
    check_distinct({f"{name} of output": output / name for name in files},
                   {name: [] if path is None else [path] for name, path in given.items()})
    output.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        write_whole(output / name, text)
        Console().print(str(output / name), highlight=False, soft_wrap=True)


def _read(path: Path) -> Any:
    if path.exists() and not path.is_file():  # a device may have no end
        raise ValueError(f"{path}: not a file")
    if path.exists() and path.stat().st_size > _MOST_BYTES:
        raise ValueError(f"{path} must have at most {_MOST_BYTES:,} bytes, "
                         f"not {path.stat().st_size:,}")
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}:{error.lineno}:{error.colno}: {error.msg}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path}: not a text file") from None


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return its exit status, see :func:`gen.base.command.run_command`."""
    return run_command(app, arguments)


if __name__ == "__main__":
    sys.exit(main())
