"""A cluster of training NICs: builds it, runs its steps, and measures it."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import ceil

import numpy as np

from host.batching.repeats import REPEATS, first_bags
from host.dlrm.dlrm import weighted_of
from host.dlrm.embedding import EmbeddingTables
from host.dlrm.formats import FLOAT32, VectorFormat
from host.dlrm.optimizer import Optimizer
from host.dlrm.row_store import RowStore
from host.model import Model
from host.placement.shard import ShardPlan
from host.samples import KEY_ROW_BITS, Samples
from host.timing.all_reduce import RingAllReduce, weight_bytes
from host.timing.clock import CYCLE_NS
from host.timing.dense_time import DenseTime
from rtl.config import NicConfig
from rtl.formats import BEAT_BYTES, DescriptorKind, EmberHeader, OptimizerMode, Status
from sim.job.fit import fitting_nic
from sim.job.settings import Runtime
from sim.job.workload import Workload
from sim.node.gradients import TrainingHost
from sim.run.backend import Backend
from sim.run.hardware import hardware, percentiles
from sim.run.report import repeats_found
from sim.run.simulation import Simulation, WrittenRows
from sim.training.comparison import Comparison
from sim.training.options import TrainOptions
from sim.training.tables import Clock, ClusterTables
from sim.training.wires import gradient_words

__all__ = ["NicCluster", "check_single_copies", "check_windows", "first_of", "split_rows",
           "training_config", "training_registers"]

_MODES = {"sgd": OptimizerMode.SGD, "rowwise-adagrad": OptimizerMode.ROWWISE_ADAGRAD}


def training_config(config: NicConfig, model: Model, runtime: Runtime, workload: Workload,
                    plan: ShardPlan | None = None) -> NicConfig:
    """Return ``config`` with training, for the tables of ``plan``; ``ValueError`` if the model does
    not fit the NICs."""
    if any("".join(setting.split()) == "training=false" for setting in workload.settings):
        raise ValueError("training must be true where NICs train, not false")
    if plan is not None and plan.pools_at_owner and runtime.overtake:
        raise ValueError("overtake must be false for tables that pool at their owner, not true: "
                         "GPUs pool their own bags when a step begins")
    return fitting_nic(config.with_fields(training=True), model, runtime, workload, plan)


def training_registers(config: NicConfig, runtime: Runtime, optimizer: Optimizer,
                       nodes: int) -> dict[str, int]:
    """Return the register values of the gradient path, by name."""
    share = config.partial_beats // nodes

    def word(value: float) -> int:
        return int(np.float32(value).view(np.uint32))

    return {"training": 1, "overtake": int(runtime.overtake),
            "local_reduction": int(runtime.local_reduction),
            "gradient_partials": int(runtime.gradient_partials == "rounded"),
            "optimizer": int(_MODES[optimizer.name]),
            "learning_rate": word(optimizer.learning_rate), "epsilon": word(optimizer.epsilon),
            "gradient_timeout": runtime.gradient_timeout,
            # An eighth of each share is never granted; only a faulty peer fills it.
            "gradient_window": share - share // 8, "gradient_share": share}


def first_of(workload: Workload, plan: ShardPlan | None,
             model: Model) -> Callable[[Samples], np.ndarray] | None:
    """Return a function from a mini-batch to the sample whose bag stands for each bag, int64 ``[n,
    tables]``, or None if the gradients of all bags are sent. NICs find only repeats of bags that
    pool at their owner. A bag with more keys than NICs remember repeats all the same: the GPU finds
    it by its indices. The gradients of weighted bags are not added: their keys travel one by one.
    """
    if workload.repeats == REPEATS[0]:
        return None
    added = ~weighted_of(model)
    if workload.repeats != "nic":
        return lambda samples: first_bags(samples, workload.nodes, workload.repeats, added)
    assert plan is not None
    added &= plan.owner_pooled > 0
    return lambda samples: first_bags(samples, workload.nodes, "neighbours", added)


def check_windows(registers: Sequence[Mapping[str, int]]) -> None:
    """Raise ``ValueError`` if a node's window exceeds its buffer share at an owner."""
    for node, mine in enumerate(registers):
        for owner, its in enumerate(registers):
            if owner != node and mine["gradient_window"] > its["gradient_share"]:
                raise ValueError(f"gradient_window of node {node} must be at most "
                                 f"{its['gradient_share']}, the gradient_share of node {owner}, "
                                 f"not {mine['gradient_window']}")


def check_single_copies(plan: ShardPlan) -> ShardPlan:
    """Return ``plan``; ``ValueError`` if a table is replicated, because its copies would diverge.
    """
    for number, table in enumerate(plan.tables):
        if table.kind == DescriptorKind.REPLICATED:
            raise ValueError(f"table {number} must be of kind TABLE or ROW in training, not "
                             f"REPLICATED: each copy would follow its own node's gradients")
    return plan


def split_rows(rows: RowStore, plan: ShardPlan) -> list[RowStore]:
    """Split the written rows by owner; return a store for each node."""
    stores = [RowStore(rows.model, rows.seed) for _ in range(plan.nodes)]
    keys, vectors, states = rows.written()
    owners = plan.owner_of(keys >> KEY_ROW_BITS, keys & (1 << KEY_ROW_BITS) - 1)
    for node, store in enumerate(stores):
        own = owners == node
        store.write(keys[own], vectors[own], states[own])
    return stores


class NicCluster:
    """A cluster of training NICs and its measurements.

    Parameters
    ----------
    options: options of the training.
    config, runtime, model: derived from the options, see `training_config`.
    plan: plan of the tables.
    rows: rows written so far.
    backend: implementations.
    wires: formats of vectors and of gradients between nodes.
    in_order: numbers of the tables whose gradients are summed in the order of the mini-batch.

    tables: member; embedding tables in the form that a trainer uses.
    simulation: member; the cluster.
    """

    def __init__(self, options: TrainOptions, config: NicConfig, runtime: Runtime, model: Model,
                 plan: ShardPlan, rows: RowStore, backend: Backend,
                 wires: tuple[VectorFormat, VectorFormat] = (FLOAT32, FLOAT32),
                 in_order: Sequence[int] = ()):
        workload, optimizer = options.run.workload, options.learning.rule
        stores = split_rows(rows, check_single_copies(plan))
        registers = training_registers(config, runtime, optimizer, workload.nodes)
        if config.owner_bags:
            registers |= {"gpu_updates": int(bool(in_order)),
                          "gradient_words": gradient_words(config, model, wires[1])}
        check_windows([registers] * workload.nodes)
        self.simulation = simulation = Simulation(
            options.run, config, runtime, model, plan, backend,
            WrittenRows(stores, registers, in_order, optimizer, wires[1]))
        self.clock = Clock(DenseTime(simulation.gpu, model), RingAllReduce(
            simulation.network, workload.nodes, weight_bytes(model),
            BEAT_BYTES * config.net_payload_beats), simulation.hand_out, float(simulation.start))
        first, self._repeats = first_of(workload, plan, model), workload.repeats
        comparison = None
        if options.method.compare:
            reference = EmbeddingTables(model, workload.seed, optimizer, workload.nodes,
                                        runtime.partials, in_order, first, *wires)
            reference.rows = rows
            comparison = Comparison(reference, stores, plan,
                                    float32=config.gradient_sums == "float32")
        self.tables = ClusterTables(simulation.cluster, self.clock, comparison,
                                    ended=self._step_ended, unique=runtime.deliver == "unique",
                                    plan=plan, repeats=workload.host_repeats, first=first)

    def _step_ended(self, steps: int) -> None:
        """Send every NIC the oldest open step, before the next step begins."""
        self.simulation.write(self.clock.ready, step_floor=steps & 0xFFFF)

    def close(self) -> None:
        """Close the files that are written while the NICs run."""
        self.simulation.close()

    def measured(self, *, wall: float, samples: int, steps: int, ended: bool,
                 stuck: dict | None = None) -> dict:
        """Return the measurements of the NICs for the report; counters only if the run ``ended``.

        ``steps`` and ``samples`` count finished steps and samples.
        """
        simulation, tables, clock = self.simulation, self.tables, self.clock
        cycles = max(0, ceil(clock.last) - simulation.start)
        seconds = cycles * CYCLE_NS * 1e-9
        comparison = tables.comparison
        phases = {"lookup": clock.lookup, "compute": clock.compute, "update": clock.update}
        phases["rest"] = cycles - sum(phases.values())
        hosts = [node.training for node in simulation.cluster.nodes]
        return self.hardware(wall, ended, stuck) | {
            "cycles": cycles,
            "simulated_seconds": seconds,
            "samples_per_second": samples / seconds if seconds else None,
            # Not expected of sums in float32.
            "bit_identical": None if comparison is None or comparison.float32 else (
                bool(samples) and not stuck and comparison.good
                and tables.verdicts["equal"] == samples),
            "results": None if comparison is None else tables.verdicts,
            "rows_compared": comparison and {
                "rows": comparison.rows, "different": comparison.different,
                "rounded": comparison.rounded,
                "extra": comparison.extra, "first": comparison.first},
            "stuck": stuck and stuck["message"],
            "where_stuck": stuck,
            "spilled": _by_level(hosts, "spilled"),
            "spilling_passes": _by_level(hosts, "passes"),
            "all_reduce": {"bytes": steps * clock.all_reduce.bytes,
                           "us": steps * clock.all_reduce.cycles * CYCLE_NS / 1000,
                           "exposed_us": clock.exposed * CYCLE_NS / 1000},
            "errors": [{"node": node, "step": error.step, "status": Status(error.status).name}
                       for node, host in enumerate(hosts) for error in host.refused],
            "latency_us": percentiles(tables.latencies),
            "latencies_us": tables.latencies,
            "phases_us": {name: sum_ * CYCLE_NS / 1000 / steps for name, sum_ in phases.items()
                          } if steps else None,
        }

    def hardware(self, wall: float, ended: bool, stuck: dict | None) -> dict:
        """Return the counts of NICs, network, hosts and GPUs."""
        if ended and stuck is None:
            self.simulation.cluster.settle()
        counters, tables = self.simulation.counters() if ended else None, self.tables
        return hardware(self.simulation, counters, wall) | {
            "repeats": repeats_found(self._repeats, tables.bags, tables.lookups, counters),
            "update_misses": None if counters is None else sum(
                count for node in counters for name, count in node.items()
                if name.endswith(".update_misses")),
            "backward": None if counters is None else [_backward(node) for node in counters]}


def _backward(counters: dict[str, int]) -> dict[str, int]:
    """Return the traffic of a node's PARTIALS packets, from its counters."""
    packets, beats = (counters[f"partial_packager.{name}"] for name in ("packets", "beats"))
    return {"partials": counters["partial_packager.partials"], "packets": packets, "beats": beats,
            # UDP payload: header and beats.
            "bytes": packets * EmberHeader.size // 8 + beats * BEAT_BYTES}


def _by_level(hosts: Sequence[TrainingHost], name: str) -> dict[str, int]:
    total = Counter()
    for host in hosts:
        total.update(dict(zip(("local", "global"), getattr(host, name))))
    return dict(total)
