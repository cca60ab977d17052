"""A slow owner delays only its own lookups if each owner has a queue."""

from sim.job.options import RunOptions
from sim.run.run import run

SMALL = ("requester_merge=false", "lookup_beats=16", "hold_vectors=1024", "remote_in_flight=1024")
"""A window of 4 beats, and room for many more lookups than that."""
SLOW = 2


def got(queues: str) -> list[int]:
    """Return the lookups that each owner got while the GPU of one was silent."""
    result = run(RunOptions.of(
        config="tiny", nodes=4, samples=512, mini_batch=128, threads=1, placement="row",
        fidelity="model", faults=f"silent-gpu=0.5us:9s@{SLOW}",
        settings=(f"output_queues={queues}", *SMALL)))
    assert result["stuck"]
    return [counts["lookup_receiver.records"] for counts in result["counters"]]


def test_other_owners_get_their_lookups():
    one, each = got("false"), got("true")
    assert abs(each[SLOW] - one[SLOW]) < 10
    assert all(each[node] > 3 * one[node] for node in range(4) if node != SLOW)
