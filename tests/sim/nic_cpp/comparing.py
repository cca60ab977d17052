"""Comparison of runs of the RTL and of the model."""


import numpy as np

from sim.job.options import RunOptions
from sim.run.report import failures
from sim.run.run import run

__all__ = ["both", "compared"]

BLOCKS = ("local_cache", "remote_cache", "dedupe", "network", "gpu", "pcie", "bags")
"""Parts of a result with counts of hits and bytes."""


def both(options: RunOptions) -> tuple[dict, dict]:
    """Return the results of a run in RTL and in the model."""
    rtl, model = (run(options.with_fields(fidelity=fidelity)) for fidelity in ("rtl", "model"))
    assert failures(rtl) == [] and failures(model) == []
    return rtl, model


def compared(options: RunOptions) -> float:
    """Check the model's counts of a run against the RTL's. Print the relative errors of latency
    (mean absolute) and of the interval between mini-batches, and return the larger."""
    rtl, model = both(options)
    assert model.keys() == rtl.keys()
    assert (model["engine"], model["bit_identical"], model["predictions_sha256"]) == (None,) * 3
    assert rtl["samples"] == model["samples"] and rtl["lookups"] == model["lookups"]
    for block in BLOCKS:
        counts, expected = model[block], rtl[block]
        assert (counts is None) == (expected is None), block
        assert (counts or {}).keys() == (expected or {}).keys()
        known = {name: value for name, value in (counts or {}).items() if value is not None}
        assert known == {name: (expected or {})[name] for name in known}, block
    for node, (counts, expected) in enumerate(zip(
            model["counters"], rtl["counters"], strict=True)):
        assert counts.keys() == expected.keys()
        wrong = {name: (value, expected[name]) for name, value in counts.items()
                 if value is not None and value != expected[name]}
        assert wrong == {}, f"node {node}: of the model, and of RTL"
    latencies = np.array([rtl["latencies_us"], model["latencies_us"]])
    error = float(np.abs(latencies[1] / latencies[0] - 1).mean())
    interval = abs(model["cycles"] / rtl["cycles"] - 1)
    print(f"{rtl['config']['name']}, {rtl['model']['name']}, {rtl['nodes']} nodes, "
          f"{' '.join(options.workload.settings) or 'defaults'}: {len(latencies[0])} mini-batches, "
          f"error of the latency {error:.4%}, of the interval {interval:.4%}")
    return max(error, interval)
