"""What a run computes beside its NICs: by numpy or, with the same results, compiled."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from host.dlrm.dlrm import pooled_reference
from host.dlrm.interaction import interaction
from host.dlrm.mlp import Layer, linear_fixed
from host.model import Model
from host.placement.shard import ShardPlan, foreign_keys
from host.samples import Samples
from host.wire.packets import query_records
from host.wire.rows import Answer, row_answers
from sim.native.interaction import interaction_compiled
from sim.native.keys import foreign_keys_compiled, query_records_compiled
from sim.native.linear import linear_compiled
from sim.native.rows import pooled_compiled, row_answers_compiled

__all__ = ["COMPILED", "NUMPY", "Numerics"]


@dataclass(frozen=True)
class Numerics:
    """Functions of :mod:`host` by what they are for; see those of `NUMPY`."""

    linear: Callable[[np.ndarray, Layer], np.ndarray]
    interaction: Callable[[Model, np.ndarray, np.ndarray], np.ndarray]
    pooled: Callable[[Samples, Model, int], np.ndarray]
    row_answers: Callable[[Model, int, int, int], Answer]
    query_records: Callable[[Samples, int], np.ndarray]
    foreign_keys: Callable[[ShardPlan, Samples, Sequence[int]], int]


NUMPY = Numerics(linear_fixed, interaction, pooled_reference, row_answers, query_records,
                 foreign_keys)
"""Needs no compiler: the reference."""
COMPILED = Numerics(linear_compiled, interaction_compiled, pooled_compiled, row_answers_compiled,
                    query_records_compiled, foreign_keys_compiled)
