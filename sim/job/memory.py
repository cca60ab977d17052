"""GPU memory for the rows of a model and its MLPs."""

from collections.abc import Sequence

from host.model import Model
from host.placement.shard import ShardPlan
from host.timing.cluster import load_cluster, row_bytes
from sim.job.workload import Workload, check_cluster

__all__ = ["STATE_BYTES", "check_memory", "node_bytes", "too_large"]

STATE_BYTES = {"none": 0, "sgd": 0, "rowwise-adagrad": 4}
"""Bytes of optimizer state per row: row-wise Adagrad keeps one float32, the mean of the squares
of its gradients (Naumov et al. 2019; FBGEMM)."""


def node_bytes(model: Model, plan: ShardPlan, optimizer: str,
               dimensions: Sequence[int] = ()) -> list[dict]:
    """Return ``rows``, ``row_bytes``, ``optimizer_bytes``, ``mlp_bytes`` (weights of both MLPs,
    which every GPU has) and the sum ``bytes``, for each node of ``plan``, a GPU.

    For a GPU's part of a hashed table, the hash is taken as even.

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


def too_large(model: Model, held: Sequence[int], memory: int, cluster: str = "") -> str | None:
    """Return the reason why ``held``, the bytes of each GPU for rows and MLPs of ``model``, do not
    fit in ``memory`` bytes; None if they fit. ``cluster``: its name, if known."""
    if (most := max(held)) <= memory:
        return None
    return (f"bytes of a GPU must be at most the {memory:,} of GPU memory"
            f"{f' of cluster {cluster}' * bool(cluster)}, not {most:,} at GPU {held.index(most)} "
            f"for model {model.name}: use more nodes, another placement or a smaller model")


def check_memory(workload: Workload, model: Model, plan: ShardPlan,
                 optimizer: str = "none", dimensions: Sequence[int] = ()) -> None:
    """Raise ``ValueError`` if rows and MLPs exceed the memory of a GPU of the cluster.

    plan: placement over the GPUs. Without a ``cluster``, the size of the memory is unknown.
    dimensions: as of `node_bytes`.
    """
    if workload.cluster is None:
        return
    memory = load_cluster(workload.cluster, check_cluster).gpu_memory_bytes
    held = [node["bytes"] for node in node_bytes(model, plan, optimizer, dimensions)]
    if why := too_large(model, held, memory, str(workload.cluster)):
        raise ValueError(why)
