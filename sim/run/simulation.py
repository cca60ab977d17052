"""Simulation: the one place that builds a cluster of NICs, hosts and GPUs, and drives it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil

from host.dlrm.formats import FLOAT32, VectorFormat, in_lanes
from host.dlrm.optimizer import Optimizer
from host.dlrm.row_store import RowStore
from host.model import Model
from host.placement.shard import ShardPlan
from host.timing.gpu import GpuProfile
from host.timing.network import Network, NetworkProfile
from host.timing.pcie import PcieProfile
from host.toml.profile import load_profile
from rtl.config import NicConfig
from sim.cluster.cluster import Cluster
from sim.cluster.stuck import diagnose, explain_given_up
from sim.cluster.watchdog import StuckError
from sim.engines import Engine
from sim.engines.waves import Waves
from sim.job.faults import PARTS, windows
from sim.job.fit import decodes
from sim.job.frame_faults import rule_of
from sim.job.options import RunOptions
from sim.job.row_places import check_bar
from sim.job.settings import Runtime
from sim.nic.registers import RegisterFile
from sim.node.delivery import Delivery
from sim.node.dense_vectors import bottom_operations
from sim.node.protocol import ClusterNode
from sim.node.step import Step
from sim.run.backend import Backend
from sim.run.patience import honest_waits

__all__ = ["Simulation", "WrittenRows"]


@dataclass(frozen=True)
class WrittenRows:
    """Rows that NICs train.

    Members
    -------
    stores: rows in GPU memory of each node.
    registers: values of the gradient path's registers, by name.
    gpu_tables: numbers of the tables whose rows GPUs update. optimizer: by which they do.
    gradient_wire: format of gradients between nodes.
    """

    stores: Sequence[RowStore]
    registers: Mapping[str, int] = field(default_factory=dict)
    gpu_tables: Sequence[int] = ()
    optimizer: Optimizer = field(default_factory=Optimizer)
    gradient_wire: VectorFormat = FLOAT32


class Simulation:
    """A cluster with its surroundings, idle and ready to start.

    Parameters
    ----------
    options: of the run. config, runtime, model, plan: derived from them.
    backend: the implementations.
    written: rows that the NICs train; None for inference.

    ``ValueError`` where NICs are to read rows and tables do not fit the BAR of their GPU.

    Members
    -------
    config, runtime, model, plan: as given. lanes: the model as NICs see it, with dimensions in
        lanes of the format on the wire.
    cluster; registers, of each node; waves, the waveform writer or None; network; gpu, its profile.
    hand_out: cycles from an answer at one node until the front end can act on it at another.
    faults: of the run. restarts: return values of :func:`sim.run.restart.restart` so far.
    start: cycle at which the nodes are ready. boot_run: node-cycles run before it.
    """

    def __init__(self, options: RunOptions, config: NicConfig, runtime: Runtime, model: Model,
                 plan: ShardPlan, backend: Backend, written: WrittenRows | None = None):
        workload, simulation = options.workload, options.simulation
        self.config, self.runtime, self.model, self.plan = config, runtime, model, plan
        self.lanes = in_lanes(model, workload.wire)
        self._backend, self._written = backend, written
        self._pcie = load_profile(workload.pcie, PcieProfile, field="pcie")
        self.faults = workload.fault_plan
        self.gpu = load_profile(workload.gpu, GpuProfile, field="gpu")
        network = load_profile(workload.network, NetworkProfile, field="network")
        self.network = Network(network, workload.nodes)
        if runtime.row_reads:
            check_bar(plan, model.width, self.gpu)
        traced_by = options.traced
        nic = traced = backend.nic(config, traced=traced_by is not None)
        if traced_by and workload.nodes > 1:
            nic = backend.nic(config)
        self._nic, self._skip = nic, simulation.skip
        self.waves: Waves | None = None
        self.restarts: list[dict[str, int]] = []
        nodes: list[ClusterNode] = []
        self.registers: list[RegisterFile] = []
        for number in range(workload.nodes):
            shown = traced_by is not None and number == traced_by.node
            engine, registers = (traced if shown else nic).instance(skip=simulation.skip)
            if traced_by is not None and shown:
                self.waves = Waves(traced_by, engine)
            self.registers.append(registers)
            self.load(number)
            nodes.append(self._node(number, engine))
        # The front end learns of a finished mini-batch and hands out the next: the network once,
        # and PCIe once in each direction.
        lookahead = nodes[0].pcie.lookahead
        self.hand_out = lookahead + (self.network.lookahead if workload.nodes > 1 else 0)
        waits = honest_waits(config, runtime, model, workload.mini_batch, self.faults, self.gpu,
                             nodes[0].pcie, self.network, workload.nodes, plan)
        self.cluster = Cluster(
            nodes, self.network, backend.exchange_between(nodes, self.network),
            simulation.threads, reaction=self.hand_out,
            patience=max(simulation.patience, waits.still),
            without=simulation.patience + waits.result)
        try:
            self.start = self._boot(min(lookahead, self.network.lookahead))
            self._disturb()
            if self.waves is not None:
                self.waves.begin(self.start)
        except BaseException:
            self.close()
            raise

    def load(self, number: int) -> None:
        """Queue the register writes of node ``number``."""
        registers, workload = self.registers[number], self._backend.options.workload
        self._nic.configure(registers, self.runtime, self.plan, self.lanes, node=number,
                            nodes=self.plan.nodes,
                            repeats=workload.repeats == "nic", decoded=VectorFormat.of(
                                self.model, workload.wire if decodes(
                                    workload.wire, self.runtime) else "float32"))
        for item in self._written.registers.items() if self._written else ():
            registers.write(*item)

    def _node(self, number: int, engine: Engine) -> ClusterNode:
        config, model, workload = self.config, self.model, self._backend.options.workload
        delivery = Delivery.of(config, self.runtime, model, self.plan, number,
                               workload.owner_tables is None, workload.wire)
        if self._written is not None:
            return self._backend.training_node(
                number, engine, config, self.plan, self._written.stores[number], self._pcie,
                self.gpu, replace(delivery, gradient_wire=self._written.gradient_wire),
                self._written.gpu_tables, self._written.optimizer)
        bottom = bottom_operations(model) if self.runtime.interaction else None
        return self._backend.node(number, engine, config, model, self._pcie, self.gpu, bottom,
                                  delivery)

    def submit(self, step: Step, now: float) -> None:
        """Hand every node its share of ``step``, to start at cycle ``now`` at the earliest."""
        for node in self.cluster.nodes:
            node.submit(step, now)

    def advance(self, work_left: Callable[[], bool],
                at_quantum: Callable[[int], None] = lambda cycle: None) -> None:
        """Run until ``work_left()`` is false, see :meth:`sim.cluster.cluster.Cluster.run`."""
        self.cluster.run(work_left, at_quantum)

    def finished(self) -> list[Step]:
        """Return the steps that finished since the last call, in order of time."""
        done: dict[int, Step] = {}
        for node in self.cluster.nodes:
            done |= {step.number: step for step in node.finished if step.done}
            node.finished.clear()
        return sorted(done.values(), key=lambda step: (step.finished, step.number))

    def write(self, cycle: float, **values: int) -> None:
        """Write registers of every NIC at ``cycle``, by name."""
        for registers in self.registers:
            for name, value in values.items():
                registers.write(name, value, ceil(cycle))

    def counters(self) -> list[dict[str, int]]:
        """Return every counter of each NIC; the NICs run until all registers answer."""
        return [registers.counters() for registers in self.registers]

    def diagnose(self, error: StuckError) -> dict:
        """Return the diagnosis of the cluster, which is stuck; see :mod:`sim.cluster.stuck`."""
        return diagnose(self.cluster, self.registers, error, self.config.link,
                        bool(self.restarts))

    def explain_given_up(self, counters: Sequence[Mapping[str, int]]) -> str | None:
        """Return which nodes were given up and why, see :mod:`sim.cluster.stuck`; ``counters``: of
        each node."""
        if not self.config.link:
            return None
        return explain_given_up(self.cluster, self.registers, counters, bool(self.restarts))

    def power_up(self, number: int) -> None:
        """Replace NIC, host and GPU of node ``number`` by new ones; registers are not loaded."""
        engine, self.registers[number] = self._nic.instance(skip=self._skip)
        engine.run(self.cluster.cycle)
        self.cluster.replace(self._node(number, engine))

    def close(self) -> None:
        """Finish the waveform file, if there is one."""
        if self.waves is not None:
            self.waves.close()

    def _disturb(self) -> None:
        """Schedule the silences, and let faults of frames happen."""
        self.cluster.exchange.inject([rule_of(fault, self.start) for fault in self.faults.frames],
                                     self.faults.seed)
        for node in self.cluster.nodes:
            silent = {part: windows(self.faults.silences, part, node.number, self.start)
                      for part in PARTS}
            node.silent_host, node.silent_gpu = silent["host"], silent["gpu"]
            for part, stream in (("host", "host_tx"), ("network", "net_tx")):
                for first, end in silent[part].spans:
                    self.cluster.hold(node.number, stream, first, end)

    def _boot(self, step: int) -> int:
        """Run every NIC until its registers are written and its tables are cleared.

        Return the cycle at which this is so: that of the last register write plus a multiple of
        ``step``.
        """
        nodes = self.cluster.nodes
        for registers in self.registers:
            registers.finish()
        first = max(node.engine.cycle for node in nodes)
        while not all(node.engine.get_signal("idle") for node in nodes):
            first += step
            for node in nodes:
                node.engine.run(first)
        for node in nodes:
            node.engine.run(first)
        self.cluster.cycle = first
        self.boot_run = sum(node.engine.cycles_run for node in nodes)
        return first
