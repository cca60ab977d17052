"""Time of the graph algorithm, which forms mini-batches on a CPU, by shape and mini-batch."""

from host.devices.cpu import CpuProfile
from host.measurements.published import formed
from host.toml.profile import load_profile
from sim.evaluation.forming import forming_of
from sim.experiments.checks.check import Check, Comparison, percent

__all__ = ["comparison"]

_CPU = "cpu_xeon_6226r"


def comparison() -> Comparison:
    """Return the time of a mini-batch of other shapes than the one that the constant is from."""
    found, cpu = formed(), load_profile(_CPU, CpuProfile)
    checks = [Check(f"{row.model}, {row.mini_batch:,} samples",
                    forming_of("graph", row.keys, cpu, 1).us, row.us, "us", None, 1,
                    row.mini_batch, _CPU) for row in found.rows]
    errors = sorted(check.error for check in checks)
    return Comparison.of(
        "graph algorithm", "CPU time of the graph algorithm for a mini-batch", found.source,
        "The time of each mini-batch. The model is a time per key, from Kaggle's shape with 128 "
        "samples.", checks,
        f"Errors of {percent(errors[0])} to {percent(errors[-1])}. Cause: the algorithm visits "
        "the distinct keys of a window; ranking repeats the keys of a user, and multi_hot sorts "
        "bags. The core is not that of the profile's CPU.")
