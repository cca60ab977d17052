"""The choice of implementations: what exists in Python and in C++ is picked here, nowhere else.

The reference is Python (:mod:`sim.node`, :mod:`sim.cluster`, :mod:`host.dlrm`), and has the same
bits and cycles. It runs beside Amaranth's simulator, which is there for machines without a
compiler, and wherever a part of it is to behave otherwise: a traced NIC, a host or GPU that falls
silent, training, a test.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from host.model import Model
from host.timing.gpu import GpuProfile
from host.timing.network import Network
from host.timing.pcie import PcieProfile
from host.wire.rows import Answer, row_answers
from rtl.config import NicConfig
from sim.cluster.crew import NodeCrew
from sim.cluster.exchange import Exchange
from sim.cluster.protocols import CrewFactory, FrameExchange
from sim.engines import Engine
from sim.engines.compiled import CompiledEngine
from sim.job.options import RunOptions
from sim.model.engine import ModelEngine
from sim.model.nic import ModelNic
from sim.model.node import ModelNode
from sim.native.crew import CompiledCrew, crew_functions
from sim.native.exchange import CompiledExchange
from sim.native.host import NativeNode
from sim.native.node import CompiledNode
from sim.native.numerics import COMPILED, NUMPY, Numerics
from sim.nic.build import NicModel, nic_model
from sim.node.node import Node
from sim.node.protocol import ClusterNode

__all__ = ["Backend", "RowsOf", "choose"]

RowsOf = Callable[[Model, int, int, int], Answer]
"""What answers with rows as :func:`host.wire.rows.row_answers` does."""


@dataclass(frozen=True)
class Backend:
    """Implementations for one run; :func:`choose` makes it of the run's options.

    Members
    -------
    options: of the run.
    numerics: linear layers and pooled vectors, for the check of results and for training.
    compiled_hosts: whether hosts and GPUs are compiled where their NIC is and nothing of theirs
        is to be watched or disturbed.
    rows: what answers with the rows in GPU memory, where these are not those of the seed; hosts
        are then Python's.
    exchange: makes what hands on frames; None for the compiled one between compiled NICs, else
        that of Python.
    """

    options: RunOptions
    numerics: Numerics
    compiled_hosts: bool = True
    rows: RowsOf | None = None
    exchange: Callable[[Sequence[Engine], Network], FrameExchange] | None = None

    def nic(self, config: NicConfig, *, traced: bool = False) -> NicModel | ModelNic:
        """Return what makes NICs of ``config``: running or modelled, as the options say."""
        if self.options.simulation.fidelity == "model":
            return ModelNic(config)
        return nic_model(config, self.options.simulation.engine, traced=traced,
                         clock_gating=self.options.simulation.clock_gating)

    def node(self, number: int, engine: Engine, config: NicConfig, model: Model,
             pcie: PcieProfile, gpu: GpuProfile, bottom: int | None) -> ClusterNode:
        """Return a node for inference; the parameters are those of :class:`sim.node.node.Node`."""
        workload = self.options.workload
        rest = pcie, gpu, workload.in_flight, bottom
        if isinstance(engine, ModelEngine):
            return ModelNode(number, engine, config, model.dimension, *rest)
        plain = self.compiled_hosts and self.rows is None and not workload.silences
        if plain and isinstance(engine, CompiledEngine) and engine.drivable:
            return CompiledNode(number, engine, config, model, workload.seed, *rest)
        rows = self.rows or row_answers
        answer = rows(model, workload.seed, number, config.host_payload_beats)
        return Node(number, engine, config, answer, model.dimension, *rest)

    def exchange_between(self, nodes: Sequence[ClusterNode], network: Network) -> FrameExchange:
        """Return what hands frames from node to node."""
        engines = [node.engine for node in nodes]
        if self.exchange is not None:
            return self.exchange(engines, network)
        compiled = [engine for engine in engines if isinstance(engine, CompiledEngine)]
        if len(compiled) == len(engines):
            return CompiledExchange(compiled, network)
        return Exchange(engines, network)

    def crew(self, nodes: Sequence[ClusterNode]) -> CrewFactory:
        """Return what makes the threads that advance ``nodes``."""
        native = [node for node in nodes if isinstance(node, NativeNode)]
        if len(native) == len(nodes):
            crew_functions()  # compiled now, before the clock of a run begins
            return partial(CompiledCrew, native)
        return partial(NodeCrew, nodes)


def choose(options: RunOptions) -> Backend:
    """Return the fastest implementations that give what ``options`` ask for."""
    return Backend(options, NUMPY if options.simulation.engine == "pysim" else COMPILED)
