"""The placement of tables in the form for C++."""

from collections.abc import Sequence

import numpy as np

from host.placement.shard import ShardPlan, hash_tables
from sim.host_cpp.structures import Plan

__all__ = ["plan_of"]


def plan_of(plan: ShardPlan, bases: Sequence[int] = ()) -> Plan:
    """Return the C++ ``Plan`` of ``plan``. The result keeps the arrays that it refers to alive.

    ``bases``: addresses of tables in GPU memory, if the NIC reads rows there.
    """
    columns = [np.array([getattr(table, name) for table in plan.tables], np.int64)
               for name in ("kind", "owner", "owners", "beats")]
    hashes = np.ascontiguousarray(hash_tables(), np.uint32)
    starts = np.array(bases, np.uint64)
    placed = Plan(*(column.ctypes.data for column in columns), hashes.ctypes.data,
                  starts.ctypes.data, len(plan.tables), len(hashes))
    placed.arrays = columns, hashes, starts
    return placed
