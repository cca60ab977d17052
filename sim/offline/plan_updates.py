"""Time of the row updates of a training step, by GPUs and by NICs, of tables pooled at owners."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from host.devices.gpu_time import GpuTime
from host.devices.software import SoftwareProfile
from host.devices.topology import Topology, TopologyProfile
from host.model import Model
from host.placement.reduction import reduction
from host.placement.shard import ShardPlan
from host.samples import Samples
from host.systems import UPDATES, Devices, workload_of
from host.timing.gpu import GpuProfile
from host.timing.network import NetworkProfile
from host.timing.pcie import PcieProfile
from rtl.config import NicConfig
from sim.job.settings import Runtime
from sim.offline.bag_gradients import BagTraffic
from sim.offline.gradient_path import GradientPath

__all__ = ["UpdateTimes", "planned_devices"]


def planned_devices(nodes: int, software: str, gpu: GpuProfile, pcie: PcieProfile,
                    network: NetworkProfile) -> Devices:
    """Return the devices of ``nodes`` nodes with given profiles; ``software``: name."""
    found = Devices.load(nodes, software)
    profile: SoftwareProfile = found.software
    return replace(found, gpu=GpuTime(gpu, profile), pcie=pcie, network=network,
                   nic_links=Topology(TopologyProfile.of(network, nodes)))


class UpdateTimes:
    """Mean times of the updates of mini-batches, of `sim.offline.gradient_path.GradientPath`.

    By GPUs, NICs still sum the gradients of tables that pool at their requester. No local cache has
    the rows of the other tables; those of tables that pool at their requester count as hits.

    Parameters: ``plan``; ``model``; ``config``, ``runtime``, of the NICs; ``devices`` of a node.
    """

    def __init__(self, plan: ShardPlan, model: Model, config: NicConfig, runtime: Runtime,
                 devices: Devices):
        self._plan, self._model, self._config, self._runtime = plan, model, config, runtime
        self._devices = devices
        gpu = replace(devices.gpu.gpu, call_us=devices.software.launch_call_us)
        self._path = GradientPath(config, devices, gpu, runtime.gradient_timeout)
        self._us: list[tuple[float, float]] = []

    def add(self, batch: Samples) -> None:
        """Add a mini-batch."""
        owner = self._plan.owner_pooled > 0
        requester, pooled, every = (workload_of(batch, self._model, self._plan, counted=counted)
                                    for counted in (~owner, owner, owner | ~owner))
        bags = BagTraffic.of(batch, self._plan, self._config, self._runtime, self._model.width)
        gpu = self._path.of_gpus(pooled, bags).alone_us(self._devices)
        if requester.accesses:
            sums = reduction(batch.of_tables(~owner), self._plan, self._config)
            gpu = max(gpu, self._path.us_and_launches(
                requester, sums, np.zeros(self._plan.nodes, np.int64).tolist(), bags)[0])
        sums = reduction(batch, self._plan, self._config)
        self._us.append((gpu, self._path.us(every, sums, pooled.unique.tolist())))

    def to_json(self) -> dict:
        """Return the number of ``tables`` that pool at their owner, the microseconds of a
        mini-batch by place, such as ``gpu_us``, and the faster ``place``."""
        means = dict(zip(UPDATES, np.mean(self._us, axis=0).tolist()))
        return {"tables": int((self._plan.owner_pooled > 0).sum()),
                **{f"{place}_us": us for place, us in means.items()},
                "place": min(means, key=means.__getitem__)}
