"""Formats of vectors and gradients between the nodes of a training."""

import numpy as np

from host.dlrm.formats import VectorFormat, longest
from host.model import Model
from host.placement.shard import ShardPlan
from host.systems import UPDATES
from rtl.config import NicConfig
from sim.training.options import TrainOptions

__all__ = ["gradient_words", "wires_of"]


def wires_of(options: TrainOptions, model: Model,
             plan: ShardPlan | None) -> tuple[VectorFormat, VectorFormat]:
    """Return the formats of the vectors and of the gradients of ``model``.

    Raises ``ValueError`` unless both are float32, or GPUs alone read vectors and gradients: all
    tables pool at their owner, and GPUs update their rows.
    """
    forward, backward = options.run.workload.wire, options.gradient_wire
    found = VectorFormat.of(model, forward), VectorFormat.of(model, backward)
    if forward == backward == "float32":
        return found
    field, name = ("wire", forward) if forward != "float32" else ("gradient_wire", backward)
    if options.learning.update != UPDATES[0]:
        raise ValueError(f"update must be {UPDATES[0]} with {field} {name}, not "
                         f"{options.learning.update!r}: NICs add float32 only")
    if plan is None or not plan.owner_pooled.all():
        table = 0 if plan is None else int(np.argmin(plan.owner_pooled > 0))
        raise ValueError(f"pool must be owner for all tables with {field} {name} in training: "
                         f"table {table} pools at the requester, whose NIC adds float32 only")
    return found


def gradient_words(config: NicConfig, model: Model, wire: VectorFormat) -> int:
    """Return the words of 8 bytes of the gradient of a bag in format ``wire``; ``ValueError`` if a
    gradient is longer than the longest vector of NICs of ``config``."""
    lanes = wire.lanes_for(model.width)
    if lanes > config.max_dimension:
        raise ValueError(f"dimension must be at most {longest(config.max_dimension, wire.name)} "
                         f"for gradients in {wire.name} and config {config.name}, not "
                         f"{max(model.table_dimensions)!r}")
    return lanes // 2
