"""The loops of ``loops.c``: the driver's calls and flags in memory, timed without Python.

They are compiled when they are needed, by the compiler that the environment's ``CC`` names, the
wheel ``ziglang``, or the system's.
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
"""Kinds of an `Action`: a kernel, a graph, and the wait for a stream."""

_LIMIT_US = 2e6
"""After this long, a flag that was not set never will be."""


class Action(ctypes.Structure):
    """A call of the driver: ``call`` is the address of its function.

    ``object`` is the kernel or graph, ``arguments`` the address of an array of the addresses of the
    kernel's arguments.
    """

    _fields_ = [("kind", c_uint32), ("grid", c_uint32), ("block", c_uint32),
                ("reserved", c_uint32), ("call", c_void_p), ("object", c_void_p),
                ("stream", c_void_p), ("arguments", c_void_p)]


class Loops:
    """Compiles and calls the loops.

    Raises :class:`host.calibrate.reading.Missing` without a C compiler, and from each method when
    the driver reports an error or a flag is not set in time.
    """

    def __init__(self) -> None:
        with TemporaryDirectory() as folder:
            self._library = ctypes.CDLL(str(_compiled(Path(folder))))
        self._library.action_size.restype = c_size_t
        if self._library.action_size() != ctypes.sizeof(Action):
            raise Missing("the compiler of loops.c lays out its records differently")
        self._library.row.argtypes = [POINTER(Action), c_int, c_int, POINTER(c_double)]
        self._library.until.argtypes = [POINTER(Action), c_void_p, c_uint32, c_double,
                                        POINTER(c_double), POINTER(c_double)]
        self._library.ring.argtypes = [c_void_p, c_uint64, c_void_p, c_uint32, c_double,
                                       POINTER(c_double)]
        self._library.turns.argtypes = [POINTER(Action), c_int, c_void_p, c_void_p, c_int, c_int,
                                        c_double, c_double, POINTER(c_double)]

    def row(self, actions: Sequence[Action], count: int = 1) -> float:
        """Perform ``actions`` in order, ``count`` times; return the microseconds of a round."""
        us = c_double()
        _check(self._library.row((Action * len(actions))(*actions), len(actions), count,
                                 ctypes.byref(us)))
        return us.value

    def until(self, action: Action, flag: int, value: int,
              limit_us: float = _LIMIT_US) -> tuple[float, float]:
        """Perform ``action``; return the microseconds until the call returns, and until the word
        at the address ``flag`` has ``value``."""
        call, seen = c_double(), c_double()
        _check(self._library.until(ctypes.byref(action), flag, value, limit_us,
                                   ctypes.byref(call), ctypes.byref(seen)))
        return call.value, seen.value

    def ring(self, bell: int, what: int, reply: int, value: int,
             limit_us: float = _LIMIT_US) -> float:
        """Store the 64 bits ``what`` at ``bell``; return the microseconds until the word at
        ``reply`` has ``value``."""
        us = c_double()
        _check(self._library.ring(bell, what, reply, value, limit_us, ctypes.byref(us)))
        return us.value

    def turns(self, graphs: Sequence[Action], words: int, dones: int, branches: int, rounds: int,
              answer_us: float, limit_us: float = _LIMIT_US) -> float:
        """Keep all ``graphs`` under way, ``rounds`` in all; return the microseconds of one.

        Each has ``branches``, of which each has a word and a done word, 64 bytes apart, from the
        addresses ``words`` and ``dones`` on. A graph's words are set ``answer_us`` after its launch
        (below 0: are left alone), and it begins anew when its done words are set.
        """
        us = c_double()
        _check(self._library.turns((Action * len(graphs))(*graphs), len(graphs), words, dones,
                                   branches, rounds, answer_us, limit_us, ctypes.byref(us)))
        return us.value


def compilers() -> list[list[str]]:
    """Return the commands that may compile C here, the preferred first."""
    found = [shlex.split(os.environ["CC"])] if os.environ.get("CC") else []
    if find_spec("ziglang"):
        found.append([sys.executable, "-m", "ziglang", "cc"])
    return found + [[path] for name in ("cc", "gcc", "clang") if (path := shutil.which(name))]


def _compiled(folder: Path) -> Path:
    source, target = folder / "loops.c", folder / "loops.so"
    source.write_text((files("host.calibrate.gpu") / "loops.c").read_text())
    said = "no C compiler was found: the wheel ziglang has one"
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
        raise Missing("a graph did not wait for its words, or no longer")
    if status == -2:
        raise Missing("there are too many graphs, or too few rounds of them")
    if status:
        raise Missing(f"the driver reported error {status}")
