"""GPU memory of each node for the rows of a model and its MLPs."""

from collections.abc import Sequence

from host.model import Model
from host.placement.shard import ShardPlan
from host.timing.cluster import load_cluster, row_bytes
from sim.job.workload import Workload, check_cluster

__all__ = ["STATE_BYTES", "check_memory", "node_bytes"]

STATE_BYTES = {"none": 0, "sgd": 0, "rowwise-adagrad": 4}
"""Bytes of optimizer state per row: row-wise Adagrad keeps one float32, the mean of the squares
of its gradients (Naumov et al. 2019; FBGEMM)."""


def node_bytes(model: Model, plan: ShardPlan, optimizer: str,
               dimensions: Sequence[int] = ()) -> list[dict]:
    """Return ``rows``, ``row_bytes``, ``optimizer_bytes``, ``mlp_bytes`` (weights of both MLPs,
    which every node has) and the sum ``bytes``, for each node.

    For a node's part of a hashed table, the hash is taken as even.

    dimensions: values of a stored row of each table; empty means without padding.
    """
    found = []
    each = [row_bytes(dimension) for dimension in dimensions or model.table_dimensions]
    for rows, size in zip(plan.rows_held(), plan.rows_held(each)):
        parts = {"row_bytes": size,
                 "optimizer_bytes": rows * STATE_BYTES[optimizer],
                 "mlp_bytes": 4 * model.mlp_parameters}
        found.append({"rows": rows, **parts, "bytes": sum(parts.values())})
    return found


def check_memory(workload: Workload, model: Model, plan: ShardPlan,
                 optimizer: str = "none", dimensions: Sequence[int] = ()) -> None:
    """Raise ``ValueError`` if a node's rows and MLPs exceed the GPU memory of the cluster.

    Without a ``cluster``, the size of the memory is unknown. ``dimensions``: as of
    `node_bytes`.
    """
    if workload.cluster is None:
        return
    memory = load_cluster(workload.cluster, check_cluster).gpu_memory_bytes
    found = [node["bytes"] for node in node_bytes(model, plan, optimizer, dimensions)]
    if (most := max(found)) > memory:
        raise ValueError(
            f"bytes of a node must be at most the {memory:,} of GPU memory of cluster "
            f"{workload.cluster}, not {most:,} at node {found.index(most)} for model "
            f"{model.name}: use more nodes, another placement or a smaller model")
