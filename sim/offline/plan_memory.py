"""Memory of a plan: bytes of the model on each node, capacity of caches, and fit."""

from __future__ import annotations

from host.model import Model
from host.placement.deal import Rule, given_owners
from host.placement.shard import ShardPlan
from host.timing.cluster import CACHES, Cluster, row_bytes
from rtl.config import NicConfig
from rtl.formats import NODE_BITS
from sim.job.memory import STATE_BYTES
from sim.job.settings import Runtime

__all__ = ["balance", "caches", "nodes_needed"]

def balance(values: list[float]) -> float:
    """Return the largest value divided by the mean; 1 if all are 0."""
    return max(values) * len(values) / sum(values) if sum(values) else 1.0


def nodes_needed(model: Model, rule: Rule, optimizer: str, memory: int) -> dict:
    """Return the fewest ``nodes`` with ``memory`` bytes each that hold the model, or None if the
    NIC cannot address them, and ``why``, the reason for None.

    ``rule``: placement of the tables. If it names the node of each table, the result is the number
    of the named nodes, or None.
    """
    mlp = 4 * model.mlp_parameters
    each = [row_bytes(dimension) + STATE_BYTES[optimizer] for dimension in model.table_dimensions]
    sizes = [rows * size for rows, size in zip(model.rows, each)]
    room = memory - mlp
    if room < max(each):
        return {"nodes": None, "why": f"the MLPs alone take {mlp:,} of {memory:,} B"}
    given = given_owners(rule.placement)
    if given is not None:
        dealt = ShardPlan.deal(model, max(given) + 1, rule.placement)
        held, node = max((held, -node) for node, held in enumerate(dealt.rows_held(each)))
        if held <= room:
            return {"nodes": max(given) + 1, "why": None}
        return {"nodes": None, "why": f"node {-node} has {held:,} of {room:,} B"}
    most = (1 << NODE_BITS) - 1
    first, why = max(1, -(-sum(sizes) // room)), None
    if rule.placement != "row" and max(sizes) > room:
        # Tables are split only if there are more nodes than tables.
        table = max(range(model.tables), key=lambda t: sizes[t])
        first, why = max(first, model.tables + 1), (
            f"table {table} alone takes {sizes[table]:,} of {room:,} B: rows are "
            f"hashed where nodes exceed tables")
    for nodes in range(first, most + 1):
        dealt = ShardPlan.deal(model, nodes, rule.placement, rule.lookups)
        if max(dealt.rows_held(each)) <= room:
            return {"nodes": nodes, "why": why}
    return {"nodes": None, "why": f"more than {most} nodes"}


def caches(model: Model, cluster: Cluster, config: NicConfig, runtime: Runtime) -> list[dict]:
    """Return a node's stores that are nearer than its GPU: the NIC's caches and the card's HBM.

    Each has ``name``, ``built`` (whether this NIC uses it), ``rows``, and ``bytes``, the size of
    that many vectors of the model, which is in lanes. The remote cache holds rows of other nodes.
    """
    each = row_bytes(model.width)
    found = []
    for name in CACHES:
        held = getattr(config, f"{name}_rows", 0)
        if not getattr(runtime, name, True):
            held = 0
        elif getattr(runtime, f"{name}_sets", 0):
            held = getattr(runtime, f"{name}_sets") * getattr(config, f"{name}_ways")
        found.append((name, hasattr(config, f"{name}_rows"), held))
    found.append(("card_memory", False, cluster.card_memory_bytes // each))
    return [{"name": name, "built": built, "rows": held, "bytes": held * each}
            for name, built, held in found]
