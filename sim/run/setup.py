"""Set-up of a cluster: builds NICs, hosts and network, and writes the registers."""

from collections.abc import Callable, Mapping, Sequence

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
from sim.job.frame_faults import rule_of
from sim.job.options import RunOptions
from sim.job.row_places import check_bar
from sim.job.settings import Runtime
from sim.nic.registers import RegisterFile
from sim.node.protocol import ClusterNode
from sim.run.backend import Backend
from sim.run.patience import honest_waits

__all__ = ["ClusterSetup"]


class ClusterSetup:
    """A cluster with its surroundings, idle and ready to start.

    Parameters
    ----------
    options: of the run. config, runtime, model, plan: derived from them.
    backend: the implementations. node: makes a node from its number, its engine, and the profiles
        of PCIe and GPU.
    configure: queues additional register writes of a node.

    ``ValueError`` where NICs are to read rows and tables do not fit the BAR of their GPU.

    Members
    -------
    cluster; registers, of each node; waves, the waveform writer or None; network; gpu, its profile.
    load: queues the register writes of a node, by its registers and number.
    hand_out: cycles from an answer at one node until the front end can act on it at another.
    faults: of the run. restarts: what :func:`sim.run.restart.restart` returned of each so far.
    start: cycle at which the nodes are ready. boot_run: node-cycles run before
        it.
    """

    def __init__(self, options: RunOptions, config: NicConfig, runtime: Runtime, model: Model,
                 plan: ShardPlan, backend: Backend,
                 node: Callable[[int, Engine, PcieProfile, GpuProfile], ClusterNode],
                 configure: Callable[[RegisterFile], None] = lambda registers: None):
        workload, simulation = options.workload, options.simulation
        pcie = load_profile(workload.pcie, PcieProfile, field="pcie")
        self.faults, self._linked = workload.fault_plan, config.link
        self.gpu = load_profile(workload.gpu, GpuProfile, field="gpu")
        network = load_profile(workload.network, NetworkProfile, field="network")
        self.network = Network(network, workload.nodes)
        if runtime.row_reads:
            check_bar(plan, model.dimension, self.gpu)
        traced_by = options.traced
        nic = traced = backend.nic(config, traced=traced_by is not None)
        if traced_by and workload.nodes > 1:
            nic = backend.nic(config)
        self._nic, self._skip = nic, simulation.skip
        self._node = lambda number, engine: node(number, engine, pcie, self.gpu)

        def load(registers: RegisterFile, number: int) -> None:
            nic.configure(registers, runtime, plan, model, node=number, nodes=workload.nodes)
            configure(registers)

        self.load = load
        self.waves: Waves | None = None
        self.restarts: list[dict[str, int]] = []
        nodes: list[ClusterNode] = []
        self.registers: list[RegisterFile] = []
        for number in range(workload.nodes):
            shown = traced_by is not None and number == traced_by.node
            engine, registers = (traced if shown else nic).instance(skip=simulation.skip)
            if traced_by is not None and shown:
                self.waves = Waves(traced_by, engine)
            load(registers, number)
            nodes.append(self._node(number, engine))
            self.registers.append(registers)
        # The front end learns of a finished mini-batch and hands out the next: the network once,
        # and PCIe once in each direction.
        lookahead = nodes[0].pcie.lookahead
        self.hand_out = lookahead + (self.network.lookahead if workload.nodes > 1 else 0)
        waits = honest_waits(config, runtime, model, workload.mini_batch, self.faults, self.gpu,
                             nodes[0].pcie, self.network, workload.nodes)
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

    def diagnose(self, error: StuckError) -> dict:
        """Return the diagnosis of the cluster, which is stuck; see :mod:`sim.cluster.stuck`."""
        return diagnose(self.cluster, self.registers, error, self._linked, bool(self.restarts))

    def explain_given_up(self, counters: Sequence[Mapping[str, int]]) -> str | None:
        """Return which nodes were given up and why, see :mod:`sim.cluster.stuck`; ``counters``: of
        each node."""
        return explain_given_up(
            self.cluster, self.registers, counters, bool(self.restarts)) if self._linked else None

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
