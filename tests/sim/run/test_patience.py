"""Longest waits of correct runs with owner-pooled tables."""

from host.model import Model
from host.placement.shard import ShardPlan
from host.timing.gpu import GpuProfile
from host.timing.network import Network, NetworkProfile
from host.timing.pcie import Pcie, PcieProfile
from host.toml.profile import load_profile
from rtl.bags import BagPool
from rtl.config import preset
from rtl.formats import PoolPlace
from sim.job.fault_plan import FaultPlan
from sim.job.settings import Runtime
from sim.run.patience import Waits, honest_waits

MODEL = Model((9, 9, 9), 16, 1, (16,), (1,))
CONFIG = preset("tiny").with_fields(owner_bags=64)
# 256 bytes of rows, and of vectors, a cycle; a launch and a kernel take 1,000 cycles.
GPU = GpuProfile("g", 2.0, 64.0, 64, 4, kernel_us=2.0)


def _waits(mini_batch: int, *pools: PoolPlace) -> Waits:
    network = Network(load_profile("ethernet_100g_switch", NetworkProfile), 2)
    plan = ShardPlan.deal(MODEL, 2).with_pools(pools)
    return honest_waits(CONFIG, Runtime(), MODEL, mini_batch, FaultPlan.of(None, 2, 1), GPU,
                        Pcie(load_profile("pcie_gen3x16", PcieProfile)), network, 2, plan)


def test_kernels_of_bags_as_long_as_a_packet():
    requester, owner = PoolPlace.REQUESTER, PoolPlace.OWNER
    none = _waits(4000, requester, requester, requester)
    assert none == _waits(4, requester, requester, requester)
    # A bag of 16 beats has 256 rows at most: 256 vectors of 64 bytes, 256 indices, its own vector.
    bag = (256 * 64 + 256 * 4 + 64) / 256
    some = _waits(4000, requester, owner, owner)
    assert some.still == -(-(2 * 1000 + bag * (2000 * 2 + 64)) // 1)
    # 4,096 bags may wait in the buffers: 64 rounds, and one under way.
    more = 1000 + bag * 4000 + 65 * (1000 + bag * 64 + 210 + 2 * 344)
    more += BagPool.AGES * Runtime().bag_timeout
    assert abs(some.result - none.result - more) <= 1
