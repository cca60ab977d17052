"""NICs that look up the rows of a PyTorch program, cycle by cycle: values come from their RTL."""

from collections import Counter
from dataclasses import replace
from math import ceil

import numpy as np

from host.model import Model
from host.placement.shard import ShardPlan
from host.samples import Samples
from host.timing.clock import CYCLE_NS
from host.timing.gpu import GpuProfile
from host.timing.pcie import PcieProfile
from host.wire.rows import GivenRows
from rtl.config import NicConfig, preset
from rtl.formats import Status
from sim.cluster.watchdog import StuckError
from sim.engines import Engine
from sim.job.fit import check_fit, config_to_build
from sim.job.options import RunOptions
from sim.job.settings import Runtime, apply_settings
from sim.job.workload import Workload
from sim.nic.registers import RegisterFile
from sim.node.delivery import Delivery
from sim.node.protocol import ClusterNode
from sim.node.step import Step
from sim.run.backend import Backend, choose
from sim.run.setup import ClusterSetup
from sim.torch.values.cache_counts import CacheCounts

__all__ = ["LookupNics", "NicsError"]

_COUNTED = {"local_cache": ("hits", "accesses", "misses"),
            "remote_cache": ("hits", "accesses", "misses"), "dedupe": ("requests", "unique")}


class NicsError(Exception):
    """NICs did not answer a program as they must."""


class LookupNics:
    """A cluster of NICs that answers one mini-batch after the other.

    It stands between mini-batches as long as the script computes. Its caches stay warm over them,
    unless they are switched off, since a NIC of inference is not told of rows that others write.

    Parameters
    ----------
    options: of the cluster. model: of its tables. rows: those in GPU memory.

    Members: ``model``; ``sample_slots``, of the largest sample that they take; ``cached``, whether
    the caches are on; ``latencies``, of each mini-batch in microseconds, first query leaves a host
    to last result; ``caches``, what the local ones counted by mini-batch, once the cluster has
    ended.

    ``ValueError`` where model and NIC do not fit each other.
    """

    def __init__(self, options: RunOptions, model: Model, rows: GivenRows):
        workload = options.workload
        self._options = options
        config, self._runtime = apply_settings(preset(workload.config), list(workload.settings))
        if self._runtime.interaction:
            raise ValueError("interaction must be false for a PyTorch program, which computes it "
                             "from pooled vectors, not true")
        self.model = self._runtime.of_model(model)
        self._runtime = replace(self._runtime, pooling=self.model.pooling)
        self._config = self._to_build(config, self._runtime, workload)
        self._plan = ShardPlan.deal(self.model, workload.nodes, workload.placement)
        self._backend: Backend = replace(choose(options), given=rows)
        self._setup = ClusterSetup(options, self._config, self._runtime, self.model,
                                   self._plan, self._backend, self._node, self._configure)
        self._ready = float(self._setup.start)
        self._steps = self._samples = 0
        self.sample_slots = self._config.sample_slots
        self.cached = self._runtime.local_cache or self._runtime.remote_cache
        self.latencies: list[float] = []
        self._by_step = CacheCounts(self._setup.registers)
        self.caches = Counter[tuple[int, int, str]]()

    def _to_build(self, config: NicConfig, runtime: Runtime, workload: Workload) -> NicConfig:
        """Return the NIC to build."""
        config = config_to_build(config, self.model, runtime, workload)
        check_fit(config, self.model, runtime, workload)
        return config

    def _configure(self, registers: RegisterFile) -> None:
        """Write what else the registers of a node need."""

    def _node(self, number: int, engine: Engine, pcie: PcieProfile,
              gpu: GpuProfile) -> ClusterNode:
        return self._backend.node(number, engine, self._config, self.model, pcie, gpu, None,
                                  Delivery.of(self._config, self._runtime, self.model, self._plan,
                                              number))

    def begin(self, steps: tuple[int, ...]) -> None:
        """What is looked up and written from now on is of the program's mini-batches with these
        numbers, one for each node."""
        self._by_step.begin(steps)

    def switch_caches_off(self) -> None:
        """From the next mini-batch on, read every row from GPU memory once in a mini-batch."""
        for registers in self._setup.registers:
            for cache in ("local_cache", "remote_cache"):
                registers.write(f"{cache}_enable", 0, ceil(self._ready))
        self.cached = False

    def look_up(self, samples: Samples) -> np.ndarray:
        """Return what the NICs answer to a mini-batch, float32 ``[n, columns, dimension]``.

        :class:`NicsError` where a NIC refuses a sample, :class:`sim.cluster.watchdog.StuckError`
        where one does not answer.
        """
        return self._answers(samples)

    def _answers(self, samples: Samples) -> np.ndarray:
        nodes = self._setup.cluster.nodes
        step = Step.of(self._steps, self._samples, samples, len(nodes),
                       (samples.table_count, self.model.dimension),
                       unique=self._runtime.deliver == "unique")
        for node in nodes:
            node.submit(step, self._ready)
        self._setup.cluster.run(lambda: not step.done)
        for node in nodes:
            node.finished.clear()
        if step.status.any():
            at = int(step.status.argmax())
            raise NicsError(f"a NIC refused sample {at} of mini-batch {self._steps}: "
                            f"{Status(int(step.status[at])).name}")
        self._samples += len(samples)
        self._ready = step.finished + self._setup.hand_out
        self._over()
        self.latencies.append((step.finished - step.started) * CYCLE_NS / 1000)
        return step.answers

    def _over(self) -> None:
        """A step is over: begin the next."""
        self._steps += 1
        self._tell()

    def _tell(self) -> None:
        """Tell every NIC the oldest open step."""
        for registers in self._setup.registers:
            registers.write("step_floor", self._steps & 0xFFFF, ceil(self._ready))

    def diagnose(self, error: StuckError) -> dict:
        """Return the diagnosis of the cluster, which is stuck; see :mod:`sim.cluster.stuck`."""
        return self._setup.diagnose(error)

    def abandon(self) -> None:
        """End the cluster in the middle of a mini-batch."""
        self._setup.close()

    def close(self) -> Counter[str]:
        """End the cluster; return what its NICs, GPUs and network counted, by name."""
        cluster, counts = self._setup.cluster, Counter[str]()
        cluster.settle()
        counters = [registers.counters() for registers in self._setup.registers]
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
        self._setup.close()
        return counts
