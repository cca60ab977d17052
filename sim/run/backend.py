"""Backend: chooses between the Python and the C++ implementations.

The Python implementations (:mod:`sim.node`, :mod:`sim.cluster`, :mod:`host.dlrm`) are the
reference; both give the same bits and cycles. Python is used with Amaranth's simulator, which needs
no compiler, and for special behaviour: a traced NIC, a silent host or GPU, repeated bags, bags with
weights, values of 16 bits on the wire, training, a test.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from host.dlrm.optimizer import Optimizer
from host.dlrm.row_store import RowStore
from host.dlrm.rows import row_values
from host.model import Model
from host.placement.shard import ShardPlan
from host.samples import KEY_ROW_BITS
from host.timing.gpu import GpuProfile
from host.timing.network import Network
from host.timing.pcie import PcieProfile
from host.wire.bags import ReadRows
from host.wire.rows import Answer, GivenRows, row_answers
from rtl.config import NicConfig
from sim.cluster.exchange import Exchange
from sim.cluster.protocols import FrameExchange
from sim.engines import Engine
from sim.engines.compiled import CompiledEngine
from sim.host_cpp.exchange import CompiledExchange
from sim.host_cpp.node import CompiledNode
from sim.host_cpp.numerics import COMPILED, NUMPY, Numerics
from sim.job.options import RunOptions
from sim.nic.build import RtlNic, nic_model
from sim.nic_cpp.engine import ModelEngine
from sim.nic_cpp.nic import FastNic
from sim.nic_cpp.node import ModelNode
from sim.node.delivery import Delivery
from sim.node.gpu_memory import GpuMemory, store_answers
from sim.node.gpu_updates import GpuUpdates
from sim.node.gradients import TrainingHost, gradient_payload
from sim.node.node import Node
from sim.node.protocol import ClusterNode

__all__ = ["Backend", "RowsOf", "choose"]

RowsOf = Callable[[Model, int, int, int], Answer]
"""Makes a function that answers requests for rows, as :func:`host.wire.rows.row_answers` does."""


@dataclass(frozen=True)
class Backend:
    """Implementations for one run; :func:`choose` derives it from the run's options.

    Members
    -------
    options: options of the run.
    numerics: linear layers and pooled vectors, for checks and for training.
    compiled_hosts: whether to use compiled hosts and GPUs if the NIC is compiled and no host is
        observed or disturbed.
    rows: maker of the hosts' answers for rows that are not derived from the seed, in the format of
        the wire; requires hosts in Python.
    given: rows in GPU memory that are not derived from the seed.
    exchange: maker of the frame exchange; None selects the compiled exchange if all NICs are
        compiled, else the Python exchange.
    """

    options: RunOptions
    numerics: Numerics
    compiled_hosts: bool = True
    rows: RowsOf | None = None
    given: GivenRows | None = None
    exchange: Callable[[Sequence[Engine], Network], FrameExchange] | None = None

    def nic(self, config: NicConfig, *, traced: bool = False) -> RtlNic | FastNic:
        """Return a factory of NICs of ``config``: RTL or model, by the options' fidelity."""
        if self.options.simulation.fidelity == "model":
            return FastNic(config)
        return nic_model(config, self.options.simulation.engine, traced=traced,
                         clock_gating=self.options.simulation.clock_gating)

    def node(self, number: int, engine: Engine, config: NicConfig, model: Model,
             pcie: PcieProfile, gpu: GpuProfile, bottom: int | None,
             delivery: Delivery) -> ClusterNode:
        """Return a node for inference; the parameters are those of :class:`sim.node.node.Node`."""
        workload = self.options.workload
        rest = pcie, gpu, workload.in_flight, bottom
        # Compiled hosts pool all own bags alike.
        uneven = delivery.plan is not None and delivery.plan.means.any()
        if (self.compiled_hosts and self.rows is None and not uneven
                and not workload.fault_plan.silences and workload.host_repeats == "send"
                and not model.weighted_tables):
            if isinstance(engine, ModelEngine):
                return ModelNode(number, engine, config, model.width, *rest, delivery)
            if (isinstance(engine, CompiledEngine) and engine.drivable
                    and workload.wire == "float32"):
                return CompiledNode(number, engine, config, model, workload.seed, *rest, delivery,
                                    self.given)
        if self.rows is not None:
            answer = self.rows(model, workload.seed, number, config.host_payload_beats)
        else:
            rows = self.given.answers if self.given else row_answers
            answer = rows(model, workload.seed, number, config.host_payload_beats, workload.wire)
        read = None if delivery.plan is None else self._read(model)
        return Node(number, engine, config, answer, model.width, *rest, delivery=delivery,
                    read=read)

    def _read(self, model: Model) -> ReadRows:
        """Return the function that reads rows in GPU memory."""
        if self.rows is not None:
            raise ValueError("rows must be None for tables that pool at their owner: use given")
        if self.given is not None:
            return partial(self.given.read, dimension=model.width)
        return partial(row_values, model, self.options.workload.seed)

    def training_node(self, number: int, engine: Engine, config: NicConfig, plan: ShardPlan,
                      rows: RowStore, pcie: PcieProfile, gpu: GpuProfile,
                      delivery: Delivery, gpu_tables: Sequence[int] = (),
                      optimizer: Optimizer | None = None) -> Node:
        """Return a node for training, with ``rows`` in GPU memory. Its GPU updates the rows of
        ``gpu_tables`` by ``optimizer``."""
        payload = config.host_payload_beats

        def training(events, send, awake, thread) -> TrainingHost:
            memory = GpuMemory(number, rows, lambda *key: plan.owner_of(*key, number) == number,
                               gpu, payload, events, send, awake, thread)
            updates = GpuUpdates(number, memory, plan, gpu_tables, optimizer or Optimizer(), gpu,
                                 thread, events, awake,
                                 delivery.gradient_wire) if gpu_tables else None
            return TrainingHost(number, memory, config.gradient_credits, gradient_payload(config),
                                events, send, updates)

        return Node(number, engine, config, store_answers(rows, number, payload),
                    rows.model.width, pcie, gpu, 1, training=training, delivery=delivery,
                    read=lambda tables, numbers: rows.read(tables << KEY_ROW_BITS | numbers)[0])

    def exchange_between(self, nodes: Sequence[ClusterNode], network: Network) -> FrameExchange:
        """Return the exchange that carries frames between ``nodes``."""
        engines = [node.engine for node in nodes]
        if self.exchange is not None:
            return self.exchange(engines, network)
        compiled = [engine for engine in engines if isinstance(engine, CompiledEngine)]
        if len(compiled) == len(engines):
            return CompiledExchange(compiled, network)
        return Exchange(engines, network)


def choose(options: RunOptions) -> Backend:
    """Return the fastest implementations that support ``options``."""
    return Backend(options, NUMPY if options.simulation.engine == "pysim" else COMPILED)
