"""Command line ``python -m gen.documents``: write the documents of a configuration."""

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from gen.base.command import NicOptions, run_command, with_options
from gen.base.distinct import check_distinct
from gen.base.files import write_whole
from gen.base.option import AnyPath, option
from gen.base.settings import configure
from gen.documents.blocks import blocks_markdown
from gen.documents.write import documents, renew_command
from rtl.config import NicConfig, preset

_MOST_BYTES = 1 << 28
"""Largest size of a report in bytes."""

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@dataclass(frozen=True, kw_only=True)
class DocumentOptions(NicOptions):
    """Options of ``python -m gen.documents``."""

    report: AnyPath | None = option(
        None, "NAME.report.json of python -m gen --report, for resources.md",
        shown="the file in --output, if any", metavar="PATH")
    timing: AnyPath | None = option(
        None, "NAME.timing.json of python -m gen --timing, for timing.md and timing.svg",
        shown="the file in --output, if any", metavar="PATH")
    timing_training: AnyPath | None = option(
        None, "NAME.timing.json with --set training=true, for a second table in timing.md",
        metavar="PATH")


@app.command()
@with_options(DocumentOptions)
def command(given: dict[str, Any]) -> None:
    """Write registers, wire format, block reference, block diagram, latency, resources and timing
    of a SmartNIC.

    For resources and timing, run python -m gen with --report and --timing into the same folder
    first."""
    output = Path(given["output"])
    config = configure(preset(given["config"]), given["set"] or ())
    read = _found(output, config) | {
        name: Path(given[name]) for name in ("report", "timing", "timing_training")
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


def _found(output: Path, config: NicConfig) -> dict[str, Path]:
    """Return the reports that ``python -m gen`` wrote to ``output``, by their option.

    Raises ``ValueError`` if they belong to another configuration.
    """
    described = output / f"{config.name}.json"
    found = {name: path for name in ("report", "timing")
             if (path := output / f"{config.name}.{name}.json").is_file()}
    if found and described.is_file():
        made_of = _read(described)
        if (not isinstance(made_of, dict)
                or made_of.get("configuration") != json.loads(json.dumps(asdict(config)))):
            raise ValueError(f"{described} has another configuration than --config and --set. "
                             "Use another --output, or run python -m gen again")
        return found
    return {}


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
