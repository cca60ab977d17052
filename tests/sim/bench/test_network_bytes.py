"""Bytes on the network over the fewest bytes, on smaller workloads than those of the bench."""

from dataclasses import replace

import pytest

from sim.bench import network_bytes
from sim.bench.network_bytes import CASES, MOST, bytes_jobs, bytes_rows

# Fewer nodes, because more packets of a small mini-batch are the last to their node.
NODES = 4
SMALL = {"kaggle": 512, "dcnv2": 256, "production": 32, "two_towers": 256, "ranking": 512}


def test_every_workload_has_a_job():
    assert {case.model for case in CASES} == set(SMALL)
    assert [job.name for job in bytes_jobs()] == [f"network bytes, {case.name}" for case in CASES]


@pytest.mark.thorough
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_bytes_are_few(case, monkeypatch):
    monkeypatch.setattr(network_bytes, "NODES", NODES)
    rows = bytes_rows(replace(case, mini_batch=SMALL[case.model]))
    assert [row.target for row in rows] == [MOST, MOST, None]
    for row in rows[:2]:
        assert 1 <= row.value <= MOST, row


@pytest.mark.thorough
def test_packets_that_do_not_wait_need_more_bytes(monkeypatch):
    monkeypatch.setattr(network_bytes, "NODES", NODES)
    case = replace(CASES[0], mini_batch=512)
    soon, full = (bytes_rows(each)[0].value for each in (replace(case, settings=()), case))
    assert full < MOST < soon


def test_a_run_that_does_not_end_is_an_error(monkeypatch):
    class Stuck:
        def __init__(self, options):
            pass

        def execute(self, progress):
            return {"complete": False, "stuck": "node 2"}

    monkeypatch.setattr(network_bytes, "Run", Stuck)
    with pytest.raises(RuntimeError, match="kaggle, 2,048: no end: node 2"):
        bytes_rows(CASES[0])
