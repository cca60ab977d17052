"""The evaluation's systems on other machines.

Everything that depends on the composition of these systems is in this module.
"""

from dataclasses import replace

import numpy as np

from host.devices.nccl import NcclCollectives, NcclProfile
from host.devices.topology import Topology
from host.model import Model
from host.placement.shard import ShardPlan
from host.systems.bl_paper import bl_paper
from host.systems.bl_tuned import Tuning, bl_tuned
from host.systems.devices import Devices
from host.systems.options import StepOptions
from host.systems.schedule import schedule
from host.systems.stage import Step
from host.systems.workload import Workload

__all__ = ["cross_model", "even_plan", "paper_step_us", "torchrec_step_us", "work_of"]


def cross_model(rows: tuple[int, ...], dimension: int, dense: int, bottom: tuple[int, ...],
                top: tuple[int, ...], layers: int, rank: int) -> Model:
    """Return a DLRM whose interaction is a low-rank cross network (DCNv2, Wang et al. 2021).

    A cross layer has two products, to ``rank`` values and back, and an elementwise kernel, like two
    layers of an MLP. The model represents them as layers of the top MLP above the concatenated
    vectors.
    """
    width = (len(rows) + 1) * dimension
    return Model(rows, dimension, dense, bottom, (rank, width) * layers + top, interaction="cat")


def even_plan(model: Model, nodes: int, hot: tuple[int, ...]) -> ShardPlan:
    """Return a placement of whole tables that balances the lookups of the nodes.

    Each table also sends a vector per sample, which counts as one lookup.
    """
    return ShardPlan.deal(model, nodes, "lookups", [keys + 1 for keys in hot])


def work_of(model: Model, plan: ShardPlan, samples: int, hot: tuple[int, ...]) -> Workload:
    """Return the work of ``samples`` samples on each node, with ``hot`` keys in each table's bag.

    Keys are assumed unique, except in tables with fewer rows than keys.
    """
    nodes = plan.nodes
    lookups, bags, requested = (np.zeros((nodes, nodes), np.int64) for _ in range(3))
    unique, tables = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
    for rows, table, keys in zip(model.rows, plan.tables, hot):
        lookups[:, table.owner] += samples * keys
        bags[:, table.owner] += samples
        requested[:, table.owner] += min(rows, samples * keys)
        unique[table.owner] += min(rows, nodes * samples * keys)
        tables[table.owner] += 1
    return Workload(model, plan, np.full(nodes, samples), lookups, bags, requested, unique, tables,
                    int(unique.sum()), bags.sum(axis=1), np.zeros_like(bags))


def paper_step_us(work: Workload, gpu: str, software: str = "eager",
                  link: str | None = None) -> float:
    """Return the time of an inference with eager operators, from and to host memory."""
    devices = Devices.load(work.nodes, software, gpu, link=link)
    return _alone_us(bl_paper(work, devices, StepOptions(training=False)))


def torchrec_step_us(work: Workload, gpu: str, nccl: NcclProfile, topology: Topology) -> float:
    """Return the time of a TorchRec training step: eager operators, fused embedding, NCCL, the
    bottom MLP parallel to the exchange, MLP gradients summed in buckets, no dedupe."""
    devices = replace(Devices.load(work.nodes, "eager", gpu), nccl=NcclCollectives(nccl, topology))
    devices = replace(devices, software=replace(devices.software, collective="nccl"))
    tuning = Tuning(dedupe=False, buckets=True, copied_rows=0)
    return _alone_us(bl_tuned(work, devices, StepOptions(training=True), tuning))


def _alone_us(step: Step) -> float:
    """Return the time of a step that runs alone."""
    return float(schedule([step]).finished[0])
