"""Bytes and packets that systems without a SmartNIC, or GPUs beside one, exchange."""

from collections.abc import Sequence

import numpy as np

from host.systems import Workload
from host.systems.bl_tuned import Tuning
from host.systems.tables import INDEX, vector_bytes
from sim.evaluation.reductions import Reduction

__all__ = ["MTU_PAYLOAD", "all_reduce_traffic", "gradient_traffic", "software_traffic", "totalled"]

MTU_PAYLOAD = 1472
"""Bytes of a packet's payload: UDP in an MTU of 1,500."""

Traffic = dict[str, dict[str, float]]


def software_traffic(work: Sequence[Workload], training: bool,
                     tuning: Tuning | None = None) -> Traffic:
    """Return bytes and packets per mini-batch, all nodes, of what software exchanges."""
    dedupe = tuning is not None and tuning.dedupe
    kinds = {"lookups": [], "vectors": []} | ({"gradients": []} if training else {})
    for w in work:
        vectors = vector_bytes(w) * (w.requested if dedupe else w.bags)
        kinds["lookups"].append(INDEX * (w.requested if dedupe else w.lookups + w.bags))
        kinds["vectors"].append(vectors)
        if training:
            kinds["gradients"].append(vectors)
    return {kind: _count(np.array(messages)) for kind, messages in kinds.items()}


def gradient_traffic(work: Sequence[Workload],
                     reduced: Sequence[Reduction] | None = None) -> dict[str, float]:
    """Return bytes and packets of gradients: those of bags, or the partial sums of ``reduced``."""
    vectors = [w.bags for w in work] if reduced is None else [sums.partials for sums in reduced]
    return _count(np.array([vector_bytes(w) * of for w, of in zip(work, vectors)]))


def all_reduce_traffic(work: Sequence[Workload]) -> dict[str, float]:
    """Return bytes and packets of a ring over the MLPs' gradients."""
    w = work[0]
    size = 2 * (w.nodes - 1) * 4 * w.model.mlp_parameters
    return {"bytes": float(size), "packets": float(-(-size // MTU_PAYLOAD))}


def totalled(traffic: Traffic) -> Traffic:
    """Return ``traffic`` with the sum of all kinds as ``total``."""
    return traffic | {"total": {unit: sum(kind[unit] for kind in traffic.values())
                                for unit in ("bytes", "packets")}}


def _count(messages: np.ndarray) -> dict[str, float]:
    """Count messages, bytes ``[mini-batches, from, to]``, per mini-batch."""
    crossing = messages * (1 - np.eye(messages.shape[1], dtype=np.int64))
    return {"bytes": float(crossing.sum() / len(messages)),
            "packets": float((-(-crossing // MTU_PAYLOAD)).sum() / len(messages))}
