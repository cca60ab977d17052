"""Updates of rows by the NICs' optimizer, in place of an optimizer that FBGEMM fuses."""

from collections import defaultdict
from functools import partial
from typing import Any

import numpy as np

from sim.torch.lookups.bags import Bags
from sim.torch.lookups.fused import features_of, states_of
from sim.torch.lookups.memory import array_of
from sim.torch.lookups.tables import Tables
from sim.torch.numerics import own_numerics
from sim.torch.values.rows import Part, Update
from sim.torch.values.rules import rule_of_fused

__all__ = ["fused_updates"]


@own_numerics()
def fused_updates(name: str, given: dict[str, Any], tables: Tables, widest: int) -> list[Update]:
    """Return the updates by NICs in place of FBGEMM's, one for each table dimension.

    name: name of an operator for which :func:`sim.torch.lookups.fused.is_update` holds.
    given: its arguments by name.
    tables: tables of the program.
    widest: the most values of a vector of the NICs.

    Raises ``ValueError`` for an optimizer that NICs do not support.
    """
    rule, gradients = rule_of_fused(name, given), array_of(given["grad_output"])
    found: defaultdict[int, list[tuple[Bags, np.ndarray]]] = defaultdict(list)
    states = {}
    for number, looked in enumerate(features_of(given, widest)):
        if isinstance(looked.bags, str):  # its rows and lookups stay with FBGEMM
            continue
        table = tables.number_of(looked.bags)
        found[table].append((looked.bags, gradients[:, looked.columns]))
        if rule.keeps:
            states[table] = partial(states_of, given, number, len(looked.bags.weight))
    alike: defaultdict[int, list[Part]] = defaultdict(list)
    for table, own in found.items():
        values = array_of(own[0][0].weight)
        alike[values.shape[1]].append(Part(table, values, states.get(table), own))
    return [Update(rule, parts, tables.dimension) for parts in alike.values()]
