"""Longest time of a correct run without a beat, and without a result."""

from math import ceil, isfinite
from typing import NamedTuple

from host.model import Model
from host.placement.shard import ShardPlan
from host.timing.clock import cycles_of_us
from host.timing.gpu import GpuProfile
from host.timing.network import Network
from host.timing.pcie import Pcie
from rtl.bags.pool import BagPool
from rtl.config import NicConfig
from rtl.formats import BEAT_BYTES, RECORDS_PER_BEAT
from sim.job.fault_plan import FaultPlan
from sim.job.settings import Runtime
from sim.node.dense_vectors import bottom_operations

__all__ = ["Waits", "honest_waits"]

_TIMEOUTS = ("request_timeout", "lookup_timeout", "vector_timeout", "result_timeout",
             "index_timeout", "gradient_timeout", "step_timeout")
_IN_A_ROW = 2
"""Consecutive packets that an answer needs: a lookup and its vector; in training, a partial sum and
the end of its step."""


class Waits(NamedTuple):
    """Bounds in cycles on waits outside the NICs.

    Members: ``still``, between two beats; ``result``, between two results.
    """

    still: int
    result: int


def honest_waits(config: NicConfig, runtime: Runtime, model: Model, mini_batch: int,
                 faults: FaultPlan, gpu: GpuProfile, pcie: Pcie, network: Network,
                 nodes: int, plan: ShardPlan) -> Waits:
    """Return the bounds for a configuration.

    A result is an answer, or queries or gradients that a NIC accepted. The time between two results
    therefore depends on the content of the NICs, not on the size of the mini-batch. It includes:

    - lookups in the buffers of an owner and lookups that wait for its GPU. They are served in
      rounds of the lookups that may wait for the GPU at once; a round takes a PCIe round trip, a
      launch and a kernel. Every row is read once, and crosses PCIe and the network of every node
      once;
    - with owner-pooled tables, the kernels that pool a share's own bags, and bags of other nodes in
      the buffers of an owner, in rounds of ``owner_bags``; every bag is as long as a packet;
    - the bottom MLP of a share, if NICs compute the interaction;
    - every packet of an answer, sent until its node would be given up, with a reliable link;
    - every timeout of the registers once, and the greatest age of a packet of bags;
    - silences that end, and delays of frames, each with its full length.
    """
    row_bytes = max(4 * model.width, BEAT_BYTES)
    launch = _launch(gpu)
    rows = config.misses_in_flight + RECORDS_PER_BEAT * (config.lookup_beats + config.query_beats)
    read = gpu.cycles_per_row(row_bytes)
    rounds = ceil(rows / config.misses_in_flight)
    gather = launch + config.misses_in_flight * read + pcie.lookahead
    wires = rows * row_bytes * (pcie.to_nic.cycles_per_byte + nodes * network.cycles_per_byte)
    mlp = (cycles_of_us(gpu.latency_us) + -(-mini_batch // nodes)
           * gpu.cycles_of_products(bottom_operations(model))) if runtime.interaction else 0.0
    # A retransmitted packet waits up to a quarter longer.
    resent = runtime.link_timeout_most * 5 / 4 if config.link else 0
    period = runtime.link_probe_after if config.link else 0
    bags, pooled = _pooling_waits(config, mini_batch, gpu, pcie, network, nodes, plan,
                                  4 * model.width)
    still = max(gather, mlp, resent, period, network.lookahead, bags)
    apart = sum(silence.length for silence in faults.silences if isfinite(silence.length))
    apart += _IN_A_ROW * sum(fault.time_us for fault in faults.frames)
    result = (rounds * (gather + 2 * network.lookahead) + wires + mlp
              # A node that dies just after it was heard is probed at the end of the next period.
              + _IN_A_ROW * runtime.link_tries * resent + 2 * period
              + sum(getattr(runtime, name) for name in _TIMEOUTS) + cycles_of_us(apart)
              + pooled + (BagPool.AGES * runtime.bag_timeout if pooled else 0))
    return Waits(ceil(still), ceil(result))


def _launch(gpu: GpuProfile) -> float:
    """Return the longest time from a list to the end of a kernel without work."""
    return cycles_of_us(gpu.pace_us) + cycles_of_us(gpu.latency_us) + cycles_of_us(gpu.kernel_us)


def _pooling_waits(config: NicConfig, mini_batch: int, gpu: GpuProfile, pcie: Pcie,
                   network: Network, nodes: int, plan: ShardPlan,
                   row_bytes: int) -> tuple[float, float]:
    """Return the longest kernels that pool bags, and the bound on the wait for pooled bags; 0 if
    GPUs pool no bags."""
    tables = int((plan.owner_pooled > 0).sum())
    if not plan.gpus_pool:
        return 0.0, 0.0
    launch, keys, share = _launch(gpu), 2 * config.bag_words, -(-mini_batch // nodes)

    def kernel(bags: int, rows: int) -> float:
        return launch + gpu.cycles_of_bags(rows, bags, row_bytes, rows * plan.weighted.any())

    rows = share * (tables * keys + plan.own_at_gpu * config.sample_slots)
    own = kernel(share * (len(plan.tables) if plan.own_at_gpu else tables), rows)
    if not tables:
        return own, 0.0
    foreign = kernel(config.owner_bags, config.owner_bags * keys)
    # A bag has at least two words.
    rounds = ceil(RECORDS_PER_BEAT // 2 * config.owner_bag_beats / config.owner_bags) + 1
    return own + foreign, own + rounds * (foreign + pcie.lookahead + 2 * network.lookahead)
