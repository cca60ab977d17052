"""NICs in RTL that look up the rows of a PyTorch program, cycle by cycle."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from host.model import Model
from host.placement.shard import ShardPlan
from host.samples import Samples
from host.timing.clock import CYCLE_NS
from host.wire.indices import MOST_INDICES
from host.wire.rows import GivenRows
from rtl.config import NicConfig, preset
from rtl.formats import Status
from sim.cluster.watchdog import StuckError
from sim.job.fit import fitting_nic
from sim.job.options import RunOptions
from sim.job.settings import Runtime, apply_settings
from sim.job.workload import Workload
from sim.node.step import Step
from sim.run.backend import choose
from sim.run.simulation import Simulation, WrittenRows
from sim.torch.values.cache_counts import CacheCounts

__all__ = ["LookupNics", "NicsError"]

_COUNTED = {"local_cache": ("hits", "accesses", "misses"),
            "remote_cache": ("hits", "accesses", "misses"), "dedupe": ("requests", "unique")}


class NicsError(Exception):
    """NICs did not answer a program correctly."""


class LookupNics:
    """A cluster of NICs that answers consecutive mini-batches.

    The cluster is idle between mini-batches. Its caches stay warm, unless they are switched off:
    the host does not notify inference NICs when it writes rows.

    Parameters
    ----------
    options: options of the cluster.
    model: model with the tables.
    rows: rows in GPU memory.
    to_build: function that returns the NIC to build; its parameters are those of
        :func:`sim.job.fit.fitting_nic`, which is the default.
    written: function that returns the trained rows, from the NIC, the run-time settings and the
        plan; None for NICs that only look up.

    Members
    -------
    model: model with run-time settings applied.
    sample_slots: most slots of a sample.
    cached: True if the caches are on.
    most_slots: most slots of a share, or None for no limit.
    latencies: time of each mini-batch in microseconds, from the first query at a host to the last
        result.
    caches: counts of local caches by mini-batch, once the cluster has ended.
    simulation: the cluster.
    steps: number of finished steps of the cluster.
    ready: cycle at which the next step can begin.

    Raises ``ValueError`` if the model does not fit the NIC.
    """

    def __init__(self, options: RunOptions, model: Model, rows: GivenRows,
                 to_build: Callable[[NicConfig, Model, Runtime, Workload], NicConfig] = fitting_nic,
                 written: Callable[[NicConfig, Runtime, ShardPlan], WrittenRows] | None = None):
        workload = options.workload
        config, runtime = apply_settings(preset(workload.config), list(workload.settings))
        if runtime.interaction:
            raise ValueError("interaction must be false for a PyTorch program, which computes it "
                             "from pooled vectors, not true")
        runtime, self.model = runtime.with_model(model)
        config = to_build(config, self.model, runtime, workload)
        plan = ShardPlan.deal(self.model, workload.nodes, workload.placement)
        self.simulation = Simulation(
            options, config, runtime, self.model, plan, replace(choose(options), given=rows),
            written and written(config, runtime, plan))
        self._repeats = workload.repeats
        self.ready = float(self.simulation.start)
        self.steps = self._samples = 0
        self.sample_slots = config.sample_slots
        self.most_slots = MOST_INDICES if runtime.deliver == "unique" else None
        self.cached = runtime.local_cache or runtime.remote_cache
        self.latencies: list[float] = []
        self._by_step = CacheCounts(self.simulation.registers)
        self.caches = Counter[tuple[int, int, str]]()

    def begin(self, steps: tuple[int, ...]) -> None:
        """Assign following lookups and updates to the program's mini-batches ``steps``, one per
        node."""
        self._by_step.begin(steps)

    def switch_caches_off(self) -> None:
        """From the next mini-batch on, read every row from GPU memory once per mini-batch."""
        self.simulation.write(self.ready, local_cache_enable=0, remote_cache_enable=0)
        self.cached = False

    def look_up(self, samples: Samples) -> np.ndarray:
        """Return the NICs' answers to a mini-batch, float32 ``[n, columns, dimension]``.

        Raises :class:`NicsError` if a NIC rejects a sample,
        :class:`sim.cluster.watchdog.StuckError` if a NIC does not answer.
        """
        answers = self.answers(samples)
        self.end_step()
        return answers

    def answers(self, samples: Samples) -> np.ndarray:
        """Return the result of :meth:`look_up` without ending the step."""
        simulation = self.simulation
        step = Step.of(self.steps, self._samples, samples, simulation.plan.nodes,
                       (samples.table_count, self.model.dimension),
                       unique=simulation.runtime.deliver == "unique",
                       repeats=self._repeats)
        simulation.submit(step, self.ready)
        simulation.advance(lambda: not step.done)
        simulation.finished()
        if step.status.any():
            at = int(step.status.argmax())
            raise NicsError(f"a NIC rejected sample {at} of mini-batch {self.steps}: "
                            f"{Status(int(step.status[at])).name}")
        self._samples += len(samples)
        self.ready = step.finished + simulation.hand_out
        self.latencies.append((step.finished - step.started) * CYCLE_NS / 1000)
        return step.answers

    def end_step(self) -> None:
        """End the step, and send every NIC the oldest open step."""
        self.steps += 1
        self.simulation.write(self.ready, step_floor=self.steps & 0xFFFF)

    def diagnose(self, error: StuckError) -> dict:
        """Return the diagnosis of the stuck cluster, see :mod:`sim.cluster.stuck`."""
        return self.simulation.diagnose(error)

    def abandon(self) -> None:
        """End the cluster in the middle of a mini-batch."""
        self.simulation.close()

    def close(self) -> Counter[str]:
        """End the cluster; return the counts of its NICs, GPUs and network, by name."""
        cluster, counts = self.simulation.cluster, Counter[str]()
        cluster.settle()
        counters = self.simulation.counters()
        self.caches = self._by_step.end(counters)
        for read in counters:
            counts.update({f"{block}.{name}": read[f"{block}.{name}"]
                           for block, names in _COUNTED.items() for name in names})
        for node in cluster.nodes:
            counts.update({"gpu.launches": node.gpu.launches, "gpu.rows": node.gpu.rows,
                           "pcie.to_nic_bytes": node.host_bytes["to_nic"],
                           "pcie.from_nic_bytes": node.host_bytes["from_nic"],
                           "node_cycles": node.engine.cycles_run})
        counts.update({"network.packets": cluster.exchange.frames,
                       "network.bytes": cluster.exchange.frame_bytes})
        self.simulation.close()
        return counts
