"""Properties of every run without errors."""

from sim.run.report import failures

__all__ = ["faultless"]


def faultless(result: dict) -> dict:
    """Return the result of a run that answered every sample with the right bits and no error."""
    assert failures(result) == [] and result["complete"] and result["bit_identical"]
    assert not result["errors"]
    return result
