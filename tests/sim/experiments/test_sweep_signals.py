"""Signals to a sweep in several processes: one line, and no process that stays."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes of Linux")

_SWEEP = """
import sys, time
from gen.base.signals import Interrupted, interruptible
from pathlib import Path
from sim.evaluation.store import Store
from sim.evaluation.sweep import sweep
from tests.sim.experiments.fakes import Spot, long

try:
    with interruptible():
        sweep([Spot(str(n), n) for n in range(int(sys.argv[2]))], long,
              Store(sys.argv[1], "v"), jobs=3,
              progress=lambda done, total, share: print(done, flush=True))
        sweep([Spot("x", 1.0), Spot("y", 2.0)], long, Store(sys.argv[1], "w"), jobs=3)
        time.sleep(60)
except Interrupted as error:
    print(error, *error.__notes__, sep="; ", file=sys.stderr)
    sys.exit(error.status)
"""


def _session(leader: int) -> list[int]:
    """Return the processes of a session that have not ended."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == leader and fields[0] != "Z":
            found.append(int(path.parent.name))
    return found


def _gone(leader: int, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while _session(leader) and time.monotonic() < end:
        time.sleep(0.1)
    return not _session(leader)


@pytest.fixture
def sweeping(tmp_path):
    """A sweep, in a session of its own, that has measured two points of ten."""
    with subprocess.Popen([sys.executable, "-c", _SWEEP, str(tmp_path), "10"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          start_new_session=True) as process:
        try:
            while process.stdout.readline().strip() not in ("2", ""):
                pass
            yield process
        finally:
            process.kill()


def test_workers_end_with_the_process_that_is_killed(sweeping):
    assert len(_session(sweeping.pid)) >= 4
    sweeping.kill()
    sweeping.wait()
    assert _gone(sweeping.pid, 30)


@pytest.mark.thorough
@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["SIGHUP", "SIGTERM", "SIGINT"])
@pytest.mark.parametrize("to_all", [True, False])
def test_a_signal_is_one_line(sweeping, name, to_all):
    number = getattr(signal, name)
    if to_all:  # as a terminal does
        os.killpg(sweeping.pid, number)
    else:
        sweeping.send_signal(number)
    _, said = sweeping.communicate(timeout=300)
    assert sweeping.returncode == 128 + number
    assert said.startswith(f"stopped by {name}; ") and said.count("\n") == 1, said
    assert said.endswith(" of 10 points are finished; run the same command again to resume\n")
    assert _gone(sweeping.pid, 30)
