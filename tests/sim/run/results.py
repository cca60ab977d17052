"""Properties of every run without errors."""

from collections import Counter

from sim.run.report import failures

__all__ = ["faultless", "totals"]


def faultless(result: dict) -> dict:
    """Return the result of a run that answered every sample with the right bits and no error."""
    assert failures(result) == [] and result["complete"] and result["bit_identical"]
    assert not result["errors"]
    return result


def totals(result: dict) -> Counter:
    """Return the counters of a run, summed over the nodes."""
    counters = Counter()
    for node in result["counters"]:
        counters.update(node)
    return counters
