"""Row of a NIC that computes the interaction with every row in its local cache.

Two runs repeat the same samples, the second run more often. The difference of the runs, in cycles
and on every link, is the cost of samples whose rows are all cached.
"""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from host.data.generator import generate
from host.dlrm.interaction import ResultLayout
from host.model import MODELS, Model
from host.samples import concatenate
from host.timing.pcie import Pcie, PcieProfile
from host.toml.profile import load_profile
from rtl.formats import BEAT_BYTES
from sim.bench.nic import limits
from sim.bench.rows import Job, Progress, Row
from sim.job.options import RunOptions
from sim.run.run import run

__all__ = ["interaction_job", "interaction_row"]

_SAMPLES, _WARM, _MEASURED = 512, 2, 8
"""Samples to repeat, with fewer rows than the local cache holds; repetitions in both runs; and
additional repetitions in the longer one."""

_NAME = "NIC, interaction, 1 node, every row cached"


def interaction_job() -> Job:
    """Return the job of a ``kaggle`` NIC with dot interaction."""
    def rows(progress: Progress) -> Sequence[Row]:
        return [interaction_row("kaggle", MODELS["kaggle"], _SAMPLES, progress)]

    return Job("nic", _NAME, rows)


def interaction_row(config: str, model: Model, samples: int,
                    progress: Progress = lambda line: None, settings: tuple[str, ...] = ()) -> Row:
    """Return the cycles per result of a NIC whose host keeps it busy.

    Parameters: preset ``config`` with ``settings``; ``model``, a built-in one; ``samples``, the
    number to repeat.
    """
    keys = concatenate(generate(model, samples, 1)).rows.reshape(samples, model.tables)
    results = []
    with TemporaryDirectory() as folder:
        for times in (_WARM, _WARM + _MEASURED):
            path = Path(folder) / f"{times}.npy"
            np.save(path, np.tile(keys, (times, 1)))
            total = samples * times
            result = run(RunOptions.of(config=config, settings=("interaction=true", *settings),
                                    model=model.name, nodes=1, data=str(path), format="trace"),
                         lambda done, cycle, total=total: progress(
                             f"{done:,} of {total:,} samples"))
            if not result["bit_identical"]:
                raise RuntimeError(f"{_NAME}: results differ from the numpy model: "
                                   f"{result['results']}")
            results.append(result)
    shorter, longer = results
    more = _difference(shorter, longer)
    missed = more["counters"][0]["local_cache.misses"]
    limit = limits(more)[0]
    pcie = Pcie(load_profile(longer["options"]["pcie"], PcieProfile)).from_nic
    beats = ResultLayout.of(model).beats
    return Row(
        _NAME, more["cycles"] / more["samples"], "cycles/result", sense="<=",
        bound=limit.cycles / more["samples"],
        note=f"{more['samples']:,} samples in {more['cycles']:,} cycles, {missed:,} of "
             f"{more['lookups']:,} lookups missed the cache; bottleneck {limit.name}, busy "
             f"{100 * limit.cycles / more['cycles']:.1f} % of the time; the {beats} beats of a "
             f"result alone take {beats * BEAT_BYTES * pcie.cycles_per_byte:.1f} cycles of PCIe")


def _difference(shorter: dict, longer: dict) -> dict:
    """Return ``longer`` with the counts of ``shorter`` subtracted."""
    counters = [{name: count - before[name] for name, count in after.items()}
                for before, after in zip(shorter["counters"], longer["counters"])]
    counts = {name: longer[name] - shorter[name] for name in ("samples", "lookups", "cycles")}
    return longer | counts | {"counters": counters}
