"""The loops of ``loops.c``: driver calls and flags in memory, timed without Python.

They are compiled at run time by the command in the environment variable ``CC``, by the wheel
``ziglang``, or by the system's compiler.
"""

import ctypes
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from ctypes import POINTER, c_double, c_int, c_size_t, c_uint32, c_uint64, c_void_p
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from host.calibrate.reading import Missing

__all__ = ["GRAPH", "LAUNCH", "WAIT", "Action", "Loops", "compilers"]

LAUNCH, GRAPH, WAIT = range(3)
"""Kinds of an `Action`: launch a kernel, launch a graph, wait for a stream."""

_LIMIT_US = 2e6
"""Microseconds after which an unset flag counts as an error."""


class Action(ctypes.Structure):
    """A driver call; ``call`` is the address of its function.

    ``object`` is the kernel or graph; ``arguments`` is the address of an array of pointers to the
    kernel's arguments.
    """

    _fields_ = [("kind", c_uint32), ("grid", c_uint32), ("block", c_uint32),
                ("reserved", c_uint32), ("call", c_void_p), ("object", c_void_p),
                ("stream", c_void_p), ("arguments", c_void_p)]


class Loops:
    """Compiles and calls the loops.

    Raises :class:`host.calibrate.reading.Missing` without a C compiler. Each method raises it for a
    driver error, or for a flag that is not set in time.
    """

    def __init__(self) -> None:
        with TemporaryDirectory() as folder:
            self._library = ctypes.CDLL(str(_compiled(Path(folder))))
        self._library.action_size.restype = c_size_t
        if self._library.action_size() != ctypes.sizeof(Action):
            raise Missing("the compiled loops.c has a different layout of structs")
        self._library.row.argtypes = [POINTER(Action), c_int, c_int, POINTER(c_double)]
        self._library.until.argtypes = [POINTER(Action), c_void_p, c_uint32, c_double,
                                        POINTER(c_double), POINTER(c_double)]
        self._library.ring.argtypes = [c_void_p, c_uint64, c_void_p, c_uint32, c_double,
                                       POINTER(c_double)]
        self._library.turns.argtypes = [POINTER(Action), c_int, c_void_p, c_void_p, c_int, c_int,
                                        c_double, c_double, POINTER(c_double)]

    def row(self, actions: Sequence[Action], count: int = 1) -> float:
        """Run ``actions`` in order, ``count`` times; return the microseconds of a round."""
        us = c_double()
        _check(self._library.row((Action * len(actions))(*actions), len(actions), count,
                                 ctypes.byref(us)))
        return us.value

    def until(self, action: Action, flag: int, value: int,
              limit_us: float = _LIMIT_US) -> tuple[float, float]:
        """Run ``action``; return the microseconds until the call returns, and until the word at
        address ``flag`` equals ``value``.
        """
        call, seen = c_double(), c_double()
        _check(self._library.until(ctypes.byref(action), flag, value, limit_us,
                                   ctypes.byref(call), ctypes.byref(seen)))
        return call.value, seen.value

    def ring(self, bell: int, what: int, reply: int, value: int,
             limit_us: float = _LIMIT_US) -> float:
        """Store the 64-bit value ``what`` at ``bell``; return the microseconds until the word at
        ``reply`` equals ``value``.
        """
        us = c_double()
        _check(self._library.ring(bell, what, reply, value, limit_us, ctypes.byref(us)))
        return us.value

    def turns(self, graphs: Sequence[Action], words: int, dones: int, branches: int, rounds: int,
              answer_us: float, limit_us: float = _LIMIT_US) -> float:
        """Keep all ``graphs`` in flight for ``rounds`` launches in total; return the microseconds
        of a round.

        Each graph has ``branches`` branches. Each branch has a word and a done word, 64 bytes
        apart, starting at ``words`` and ``dones``. A graph's words are set ``answer_us`` after its
        launch, or never if ``answer_us`` is negative. A graph is launched again when all its done
        words are set.
        """
        us = c_double()
        _check(self._library.turns((Action * len(graphs))(*graphs), len(graphs), words, dones,
                                   branches, rounds, answer_us, limit_us, ctypes.byref(us)))
        return us.value


def compilers() -> list[list[str]]:
    """Return the available commands that compile C, in order of preference."""
    found = [shlex.split(os.environ["CC"])] if os.environ.get("CC") else []
    if find_spec("ziglang"):
        found.append([sys.executable, "-m", "ziglang", "cc"])
    return found + [[path] for name in ("cc", "gcc", "clang") if (path := shutil.which(name))]


def _compiled(folder: Path) -> Path:
    source, target = folder / "loops.c", folder / "loops.so"
    source.write_text((files("host.calibrate.gpu") / "loops.c").read_text())
    said = "no C compiler was found: install the wheel ziglang"
    for command in compilers():
        try:
            done = subprocess.run([*command, "-O2", "-fno-sanitize=undefined", "-shared",
                                   "-fPIC", "-o", str(target), str(source)],
                                  capture_output=True, text=True, timeout=120)
        except (OSError, subprocess.TimeoutExpired) as error:
            said = f"{command[0]} does not run: {error}"
            continue
        if done.returncode == 0:
            return target
        said = (f"{' '.join(command)} does not compile loops.c: "
                f"{done.stderr.strip()[-200:] or f'exit status {done.returncode}'}")
    raise Missing(said)


def _check(status: int) -> None:
    if status == -1:
        raise Missing("the GPU did not set its flag in time")
    if status == -3:
        raise Missing("a graph did not wait for its words, or stopped waiting")
    if status == -2:
        raise Missing("there are too many graphs, or too few rounds")
    if status:
        raise Missing(f"the driver reported error {status}")
