"""Checks of a plan: requirements of a model and its samples against the cluster."""

from __future__ import annotations

from collections.abc import Mapping

from host.dlrm.formats import longest
from host.model import Model
from host.timing.cluster import Cluster
from host.wire.indices import MOST_INDICES
from rtl.config import NicConfig
from sim.job.fit import format_inside
from sim.job.settings import Runtime
from sim.job.workload import Workload

__all__ = ["checks"]


def checks(workload: Workload, config: NicConfig, runtime: Runtime, cluster: Cluster, model: Model,
           most: Mapping[str, int], nodes: list[dict]) -> list[dict]:
    """Return the checks of needed against available quantities.

    most: maxima of :class:`sim.offline.plan_traffic.Traffic`.
    nodes: bytes of each GPU.
    """
    each = [gpu["bytes"] for gpu in nodes]
    largest = max(each)
    host = max(sum(each[first:first + cluster.gpus])
               for first in range(0, len(each), cluster.gpus))
    found = [
        ("nodes", workload.nodes, config.nodes, "NIC", True),
        ("tables", model.tables, config.tables, "NIC", True),
        ("dimension", max(model.table_dimensions), longest(
            config.max_dimension, format_inside(workload.wire, runtime)), "NIC", True),
        ("slots of a sample", most["sample_slots"], config.sample_slots,
         "half the hold buffer", True),
        ("bytes of a GPU", largest, cluster.gpu_memory_bytes, "GPU memory", True),
        ("bytes of a node", host, cluster.host_memory_bytes, "host memory", False),
        ("slots of a node's share", most["slots"], config.hold_vectors, "hold buffer", False),
        ("unique keys in flight", most["unique"] * workload.in_flight, config.dedupe_keys,
         "dedupe table", False),
    ]
    if runtime.deliver == "unique":
        found.insert(4, ("indices of a node's share", most["share_slots"], MOST_INDICES,
                         "their 16 bits", True))
    if runtime.interaction and model.interaction == "dot":
        found.insert(3, ("vectors of a sample's dots", model.tables + 1,
                         config.interaction_vectors, "NIC", True))
    return [{"what": what, "need": need, "have": have, "of": of, "required": required,
             "holds": need <= have} for what, need, have, of, required in found]
