"""First lines of each emitted file: the version, the tools and the command that generates it."""

import shlex
from collections.abc import Mapping
from dataclasses import fields
from importlib.metadata import version
from pathlib import PurePath
from typing import Any

from gen.base.yosys import yosys_id
from rtl.config import PRESETS, NicConfig, preset

__all__ = ["gen_command", "with_headings"]

_COMMENTS = {".v": "//", ".vh": "//", ".xdc": "#", ".tcl": "#", ".cfg": "#"}
"""Start of a comment by the suffix of a file; other files have no heading."""


def gen_command(config: NicConfig, shell: str = "none", options: Mapping[str, Any] | None = None,
                *, timing: bool = False) -> str:
    """Return the command line of ``python -m gen`` that generates the files of ``config``.

    Parameters
    ----------
    config: configuration; settings that differ from its preset become ``--set``.
    shell, options, timing: see :func:`gen.documents.generate.generate`.
    """
    base = preset(config.name if config.name in PRESETS else next(iter(PRESETS)))
    parts = ["python", "-m", "gen", "--config", base.name]
    if shell != "none":
        parts += ["--shell", shell]
    for name, value in (options or {}).items():
        parts += [f"--{name}", str(value)]
    base = base.with_fields(link=shell != "none")
    for name in (field.name for field in fields(config)):
        value = getattr(config, name)
        if value != getattr(base, name):
            text = str(value).lower() if isinstance(value, bool) else str(value)
            parts += ["--set", f"{name}={text}"]
    if timing:
        parts.append("--timing")
    return shlex.join([*parts, "--output", "FOLDER"])


def with_headings(files: Mapping[str, str], command: str) -> dict[str, str]:
    """Return ``files``, texts by path, with a heading in each format that has comments."""
    lines = [f"EmberNIC {version('embernic')}",
             f"Tools: amaranth {version('amaranth')}, {yosys_id().strip()}",
             f"Made by: {command}"]
    headed = {}
    for path, text in files.items():
        comment = _COMMENTS.get(PurePath(path).suffix)
        heading = "".join(f"{comment} {line}\n" for line in lines) if comment else ""
        headed[path] = heading + text
    return headed
