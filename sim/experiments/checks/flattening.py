"""Training of MLPerf's DLRM-DCNv2 on 8, 64 and 128 H100s: loss of scaling efficiency.

Two submissions of NVIDIA, half a year apart, with two releases of HugeCTR.
:mod:`sim.experiments.checks.hugectr_step` models their iteration.
"""

from collections.abc import Callable, Iterable

from host.measurements.published import Flattening, Run, flattening, flattening_v3_1
from sim.experiments.checks.check import Check, Comparison, percent
from sim.experiments.checks.hugectr_shards import GPUS, shards_of
from sim.experiments.checks.hugectr_step import COPIES, GPU, LAUNCHES, Parts, step_parts

__all__ = ["comparison", "comparison_v3_1"]

_BOUND = 0.2
_Steps = dict[int, Parts]


def comparison() -> Comparison:
    """Return the ratio of the throughputs on the most and the fewest GPUs, and the iterations."""
    found = flattening()
    few, many = found.runs[0], found.runs[-1]
    return _compared(
        found, "8 to 128 H100", _BOUND, _conclusion,
        "The ratio of throughputs between evaluations. Logged throughputs count evaluations as "
        f"training time, which gives the ratio {many.throughput_m / few.throughput_m:.2f} instead "
        f"of {many.rate / few.rate:.2f}. The submission's own planner places the tables.")


def comparison_v3_1() -> Comparison:
    """Return the same comparison for the later submission."""
    return _compared(
        flattening_v3_1(), "8 to 128 H100, v3.1", None, _conclusion_v3_1,
        "The same values, without a bound. These logs were read after the comparison with v3.0, to "
        "find the cause of its errors.")


def _compared(found: Flattening, name: str, bound: float | None,
              conclusion: Callable[[Flattening, _Steps, list[Check]], str],
              compared: str) -> Comparison:
    ours = _steps(found)
    few, many = found.runs[0], found.runs[-1]
    checks = [Check(f"throughput of {many.gpus} GPUs over that of {few.gpus}",
                    _gain(ours, few, many), many.rate / few.rate, "x", bound, many.gpus,
                    many.mini_batch, GPU)]
    checks += [Check(f"iteration on {run.gpus} GPUs", ours[run.gpus].us / 1e3, run.ms, "ms", None,
                     run.gpus, run.mini_batch, GPU) for run in found.runs]
    version = found.source.split(",")[0]
    return Comparison.of(name, f"DLRM-DCNv2 on 8 to 128 H100s, {version}", found.source, compared,
                         checks, conclusion(found, ours, checks))


def _steps(found: Flattening) -> _Steps:
    return {run.gpus: step_parts(found, run) for run in found.runs}


def _gain(ours: _Steps, few: Run, many: Run) -> float:
    """Return our throughput of one configuration over that of another."""
    return (many.mini_batch / ours[many.gpus].us) / (few.mini_batch / ours[few.gpus].us)


def _conclusion(found: Flattening, ours: _Steps, checks: list[Check]) -> str:
    middle, many = found.runs[1:]
    later = flattening_v3_1()
    verdict = "within the bound" if checks[0].good else "outside the bound"
    shards = [shards_of(found, run) for run in (middle, many)]
    tables = [max(shard.tables for shard in each) for each in shards]
    lookups = [max(shard.lookups for shard in each) for each in shards]
    # An iteration is the sum of a constant part and a part inverse to the number of GPUs.
    stays = (many.gpus * many.ms - middle.gpus * middle.ms) / (many.gpus - middle.gpus)
    changed = [new.ms / old.ms - 1 for old, new in zip(found.runs, later.runs)]
    planned = [part.us / ours[gpus].us - 1 for gpus, part in _steps(later).items()]
    size = 4 * (1 + found.dense + sum(found.hot))  # label, dense features and keys of a sample
    read = _listed(f"{run.rate * size / run.hosts / 1e9:.1f}" for run in found.runs)
    return (
        f"The ratio is {verdict} ({percent(checks[0].error)}). {_parts(ours)} {_missing(checks)} "
        f"Cause: from {middle.gpus} to {many.gpus} GPUs their iteration goes from {middle.ms:.2f} "
        f"to {many.ms:.2f} ms, so {stays:.2f} ms do not depend on the number of GPUs. HugeCTR's "
        "source contains no constant work on the GPUs. Their work for the samples of all GPUs "
        f"depends on the tables of a host, at most {tables[0]} and {tables[1]}, and on the lookups "
        f"of a sample on the busiest GPU, {lookups[0]:.1f} and {lookups[1]:.1f}. No table is "
        "replicated, and a GPU reads only its own samples. The source does contain constant work "
        f"on the hosts. Only the dense part is a CUDA graph: {LAUNCHES} launches and {COPIES} "
        f"copies of an iteration are outside it, {ours[many.gpus].host / 1e3:.2f} ms by our "
        "constants. Once per iteration the host waits for key counts from all GPUs. Before that, "
        f"each of a host's {GPUS} threads creates objects for the keys of all {GPUS} GPUs and uses "
        f"only its own: {GPUS * GPUS * len(found.hot):,} objects per iteration on any number of "
        "hosts, for which the model has no constant. MLPerf v3.1 ran the same mini-batches with a "
        "release that does not create them, and with small tables on every GPU. Its iterations "
        f"differ by {_listed(map(percent, changed))} on "
        f"{_listed(str(run.gpus) for run in found.runs)} GPUs. Its placement changes ours by "
        f"{_listed(map(percent, planned))}, which leaves "
        f"{percent((1 + changed[-1]) / (1 + planned[-1]) - 1)} on {many.gpus} GPUs to the release "
        "or the cluster. The logs do not show whether the objects are the cause. A host reads "
        f"{read} GB/s of samples. One host alone reads the most; a limit that several hosts share "
        "is not known.")


def _conclusion_v3_1(found: Flattening, ours: _Steps, checks: list[Check]) -> str:
    middle, many = found.runs[1:]
    before = flattening().runs
    ratio = before[-1].rate / before[0].rate
    return (f"Their ratio is {checks[0].theirs:.1f}, in v3.0 {ratio:.1f}; ours differs by "
            f"{percent(checks[0].error)}. From {middle.gpus} to {many.gpus} GPUs "
            f"their throughput grows by {percent(many.rate / middle.rate - 1)}, ours by "
            f"{percent(_gain(ours, middle, many) - 1)}. {_parts(ours)} {_missing(checks)}")


def _parts(ours: _Steps) -> str:
    """Return a sentence with our parts."""
    return "Ours: " + "; ".join(
        f"{gpus} GPUs: lookups {part.lookup / 1e3:.2f}, vectors {part.exchange / 1e3:.2f} each "
        f"way, dense {part.dense / 1e3:.2f} beside keys {part.keys / 1e3:.2f}, updates "
        f"{part.update / 1e3:.2f} beside all-reduce {part.all_reduce / 1e3:.2f} ms"
        for gpus, part in ours.items()) + "."


def _missing(checks: list[Check]) -> str:
    """Return a sentence on the errors of the iterations; the first is that of one host."""
    one, *several = checks[1:]
    return (f"The error of the iteration is {percent(one.error)} on one host and "
            f"{_listed(percent(check.error) for check in several)} on several hosts, where "
            f"{_listed(f'{check.theirs - check.ours:.2f}' for check in several)} ms are missing. "
            "In the model, work that overlaps costs nothing.")


def _listed(words: Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}"
