"""How the answers of a NIC reach its host, and its requests the GPU."""

from dataclasses import dataclass

from host.model import Model
from host.placement.shard import ShardPlan
from rtl.config import NicConfig
from sim.job.row_places import RowPlaces
from sim.job.settings import Runtime

__all__ = ["Delivery"]


@dataclass(frozen=True)
class Delivery:
    """How the answers of a NIC reach its host, and its requests the GPU.

    Members
    -------
    pooling: ``sum`` or ``mean``, as which the host pools bags where the NIC sends each different
        vector of a share once; None where it does not.
    completion_slots: slots of the ring to which the NIC writes the completions of steps; 0 where
        the host does without completions.
    gpu_rings: whether request lists and vectors go through rings in GPU memory.
    rows: where rows lie in GPU memory, if the NIC reads them itself.
    """

    pooling: str | None = None
    completion_slots: int = 0
    gpu_rings: bool = False
    rows: RowPlaces | None = None

    @classmethod
    def of(cls, config: NicConfig, runtime: Runtime, model: Model, plan: ShardPlan,
           node: int) -> "Delivery":
        """Return the delivery that ``runtime`` asks for of ``node``."""
        return cls(model.pooling if runtime.deliver == "unique" else None,
                   config.completion_slots if runtime.completions else 0, runtime.gpu_rings,
                   RowPlaces.of(plan, node, model.dimension) if runtime.row_reads else None)
