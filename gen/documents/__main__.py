"""Command line ``python -m gen.documents``: write the documents of a configuration."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from gen.base.command import NicOptions, run_command, with_options
from gen.base.distinct import check_distinct
from gen.base.files import write_whole
from gen.base.option import AnyPath, option
from gen.documents.blocks import blocks_markdown
from gen.documents.write import documents, renew_command

_MOST_BYTES = 1 << 28
"""Most bytes of a report."""

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@dataclass(frozen=True, kw_only=True)
class DocumentOptions(NicOptions):
    """Options of ``python -m gen.documents``."""

    report: AnyPath | None = option(
        None, "NAME.report.json of python -m gen --report, for resources.md", metavar="PATH")
    timing: AnyPath | None = option(
        None, "NAME.timing.json of python -m gen --timing, for timing.md and timing.svg",
        metavar="PATH")
    timing_training: AnyPath | None = option(
        None, "the same with --set training=true, for a second table in timing.md",
        metavar="PATH")


@app.command()
@with_options(DocumentOptions)
def command(given: dict[str, Any]) -> None:
    """Write registers, wire format, block reference, block diagram, latency, resources and
    timing of a SmartNIC."""
    output = Path(given["output"])
    read = {name: Path(given[name]) for name in ("report", "timing", "timing_training")
            if given[name] is not None}
    files = documents(given["config"], given["set"] or (), **{
        name: _read(path) for name, path in read.items()})
    command = renew_command(given["config"], given["set"] or ())
    files["blocks.md"] = blocks_markdown(
        f"Made from the docstrings of `rtl/` by `{command}`.", output.resolve())
    check_distinct({f"{name} of output": output / name for name in files},
                   {name: [path] for name, path in read.items()})
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
