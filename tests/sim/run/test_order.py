"""Frames may arrive in any order: predictions and weights are the same as in order.

Half of the frames are late by up to 40 us, several times the time of an answer: frames of a pair
overtake each other all the time. No frame is lost.
"""

import pytest

from sim.job.options import RunOptions
from sim.run.report import failures
from sim.run.run import run

HEAVY = "reorder=0.5:40us,delay=0.2:20us"

MODES = {
    "pooled": (), "unique": ("deliver=unique",),
    "completions": ("deliver=unique", "completions=true"),
    "rings": ("gpu_rings=true", "deliver=unique", "completions=true"),
    "interaction": ("interaction=true",),
    "no remote cache": ("remote_cache=false", "requester_merge=false"),
    "output queues": ("output_queues=true", "requester_merge=false"),
    "no dedupe": ("dedupe=false", "local_cache=false"),
}


def _run(*settings: str, **options) -> dict:
    result = run(RunOptions.of(settings=settings, **{
        "config": "tiny", "nodes": 4, "samples": 96, "mini_batch": 16, "in_flight": 4,
        "placement": "row", "threads": 1} | options))
    assert failures(result) == [] and result["complete"] and result["bit_identical"]
    return result


@pytest.mark.thorough
@pytest.mark.parametrize("settings", [
    pytest.param(settings, id=mode, marks=pytest.mark.slow if mode == "interaction" else ())
    for mode, settings in MODES.items()])
def test_lookups_and_vectors_in_any_order(settings):
    calm, mixed = _run(*settings), _run(*settings, faults=HEAVY)
    assert mixed["predictions_sha256"] == calm["predictions_sha256"]
    late = {}
    for row in mixed["faults"]["injected"]:
        late[row["opcode"]] = late.get(row["opcode"], 0) + row["frames"]
    assert late.keys() == {"LOOKUPS", "VECTORS"} and min(late.values()) > 50
    for node in mixed["counters"]:
        assert not any(count for name, count in node.items() if name.endswith((
            "bad_fills", "over_credit", "bad_table", "bad_row", "bad_owner", "overruns")))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("settings", MODES.values(), ids=MODES)
def test_many_orders(settings, seed):
    _run(*settings, faults=f"{HEAVY},seed={seed}")
