"""The process group: results and records of all collectives, in any order."""

import json
import subprocess
import sys

import pytest

from tests.optional import absent

pytest.importorskip("torch", reason=absent("torch"))

from tests.sim.torch.collectives import EVERY


def run(processes: int, store, *more: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "tests.sim.torch.collectives", str(processes), str(store), *more],
        capture_output=True, text=True, timeout=240)


@pytest.mark.thorough
@pytest.mark.parametrize("processes", [2, 13])
def test_every_ordered_pair_of_collectives(tmp_path, processes):
    done = run(processes, tmp_path / "store")
    assert done.returncode == 0, done.stderr[-2000:]
    record = json.loads(done.stdout)
    sixteen = 4 * 4  # four float32
    given = {(name, size) for name, size, _ in record}
    assert {("allreduce", sixteen), ("allgather", sixteen), ("reduce_scatter", sixteen * processes),
            ("alltoall", sixteen * processes), ("barrier", 0)} <= given
    singles = [to for name, _, to in record if name == "alltoall_base"]
    assert len(singles) == 2 * len(EVERY)
    assert all(to == [4 * (k + 1) for k in range(processes)] for to in singles)


@pytest.mark.thorough
def test_a_process_that_ends_ends_the_others(tmp_path):
    done = run(3, tmp_path / "store", "dies")
    assert done.returncode == 1
    [statuses] = [line for line in done.stderr.splitlines() if line.startswith("exit statuses")]
    assert statuses == "exit statuses [1, 1, 9]"
