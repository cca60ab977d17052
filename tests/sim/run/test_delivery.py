"""Clusters whose NICs deliver unique vectors and completions: the answers are those of the model."""

import pytest

from host.model import Model, load_model
from rtl.formats import Status
from sim.job.options import RunOptions
from sim.run.report import failures
from sim.run.run import Run
from tests.sim import inputs

DELIVERIES = {
    "pooled": (), "unique": ("deliver=unique",), "completions": ("completions=true",),
    "both": ("deliver=unique", "completions=true"),
    "both, without flushes": ("deliver=unique", "completions=true", "completion_flush=false")}


def _result(*settings: str, **options) -> dict:
    given = {"config": "tiny", "samples": 96, "mini_batch": 16, "nodes": 2, "threads": 1}
    result = Run(RunOptions.of(settings=settings, **given | options)).execute()
    assert failures(result) == [] and result["complete"] and result["bit_identical"]
    assert not result["errors"]
    return result


def _counters(result: dict, name: str) -> list[int]:
    return [counters[name] for counters in result["counters"]]


@pytest.mark.parametrize("options", [{"in_flight": 1}, {"in_flight": 16, "mini_batch": 5}])
def test_every_delivery_gives_the_same_predictions(options):
    results = {name: _result(*settings, **options) for name, settings in DELIVERIES.items()}
    assert len({result["predictions_sha256"] for result in results.values()}) == 1
    steps = -(-96 // options.get("mini_batch", 16))
    for name, result in results.items():
        completed, flushes = (steps if "co" in name or "both" in name else 0,
                              0 if "without" in name else None)
        assert _counters(result, "completion_writer.completed") == [completed] * 2
        assert _counters(result, "completion_writer.flushes") == [
            completed if flushes is None else flushes] * 2
        for bad in ("refused", "bad_flushed", "bad_freed"):
            assert not any(_counters(result, f"completion_writer.{bad}"))
