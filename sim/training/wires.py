"""Formats of vectors and gradients between the nodes of a training."""

import numpy as np

from host.dlrm.codecs import CODECS
from host.dlrm.formats import VectorFormat
from host.model import Model
from host.placement.shard import ShardPlan
from host.systems import UPDATES
from sim.training.options import TrainOptions

__all__ = ["wires_of"]


def wires_of(options: TrainOptions, model: Model,
             plan: ShardPlan | None) -> tuple[VectorFormat, VectorFormat]:
    """Return the formats of the vectors and of the gradients of ``model``.

    Raises ``ValueError`` unless both are float32, or GPUs alone read vectors and gradients: all
    tables pool at their owner, and GPUs update their rows. NICs have a width for each table, which
    both formats must share.
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
    if options.method.fidelity == "rtl" and CODECS[forward].bits != CODECS[backward].bits:
        raise ValueError(f"gradient_wire must have the bits of wire {forward} on NICs, which have "
                         f"a width for each table, not {backward!r}")
    return found
