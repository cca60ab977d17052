"""Delivery of a NIC's answers to its host, and of its requests to the GPU."""

from dataclasses import dataclass

from host.dlrm.formats import FLOAT32, VectorFormat
from host.model import Model
from host.placement.shard import ShardPlan
from rtl.config import NicConfig
from sim.job.row_places import RowPlaces
from sim.job.settings import Runtime

__all__ = ["Delivery"]


@dataclass(frozen=True)
class Delivery:
    """Delivery of a NIC's answers to its host, and of its requests to the GPU.

    Members
    -------
    pooling: ``sum`` or ``mean`` if the NIC sends each distinct vector of a share once and the host
        pools the bags; else None.
    completion_slots: slots of the ring to which the NIC writes the completions of steps; 0 without
        completions.
    gpu_rings: whether request lists and vectors pass through rings in GPU memory.
    rows: location of the rows in GPU memory if the NIC reads them itself.
    plan: plan of the tables if GPUs pool bags; else None.
    own_pooling: ``sum`` or ``mean``, by which the GPU pools a node's own bags.
    own_timed: whether the kernel of the own bags takes time.
    wire, gradient_wire: formats of vectors and of gradients of bags, between which and float32 the
        GPU converts.
    """

    pooling: str | None = None
    completion_slots: int = 0
    gpu_rings: bool = False
    rows: RowPlaces | None = None
    plan: ShardPlan | None = None
    own_pooling: str = "sum"
    own_timed: bool = True
    wire: VectorFormat = FLOAT32
    gradient_wire: VectorFormat = FLOAT32

    @classmethod
    def of(cls, config: NicConfig, runtime: Runtime, model: Model, plan: ShardPlan,
           node: int, own_timed: bool = True, wire: str = "float32") -> "Delivery":
        """Return the delivery of ``node`` with the settings of ``runtime``."""
        return cls(model.nic_pooling if runtime.deliver == "unique" else None,
                   config.completion_slots if runtime.completions else 0, runtime.gpu_rings,
                   RowPlaces.of(plan, node, model.width) if runtime.row_reads else None,
                   plan if plan.gpus_pool else None, model.nic_pooling, own_timed,
                   VectorFormat.of(model, wire))
