"""An iteration of MLPerf's DLRM-DCNv2 in NVIDIA's HugeCTR, on the busiest GPU.

The model adds the operations and collectives of :mod:`host.devices` in the order of HugeCTR's
source. The submission's ``Dockerfile`` names the release: v23.04.00 for MLPerf v3.0 and v23.08.00
for v3.1. Sources in the folder ``HugeCTR`` of v23.04.00:

``src/pybind/model_pipeline.cpp``
    The order. Only the dense part (MLPs, cross network, loss) is a CUDA graph; all other
    operations are launched one by one. Keys of the next mini-batch are sent during the dense
    part; the host thread waits for their counts.
``embedding/hier_model_parallel_embedding.cpp``
    Several hosts: a GPU looks up all keys of the mini-batch whose rows it has. It writes a
    float16 sum for each sample and table to the GPU of its host that has the same number as the
    sample's GPU in its host. That GPU adds the eight sums and sends the result to the sample's
    GPU. Gradients return the same way (``embedding/operators/hier_model_backward.cu``), without
    bags that have no key on the GPU.
``embedding/model_parallel_embedding.cpp``
    One host: sums are sent directly to the sample's GPU.
``embedding/data_distributor/``
    A GPU sends each other GPU a key count for each sample and table, then the keys.
``src/data_readers/multi_hot/``, ``src/pybind/model.cpp``
    A GPU reads only its own samples, up to 16 mini-batches ahead. For each mini-batch, each
    GPU's thread creates tensor objects for the keys of all GPUs of its host. Release 23.08
    reuses them.
``embedding/operators/communication.cpp``, ``src/collectives/all_reduce_comm.cu``
    All collectives use one communicator, which NCCL runs in launch order.
``src/layers/multi_cross_layer.cu``
    A cross layer has two products and an elementwise kernel, which cuBLASLt does not absorb. The
    backward pass is similar.
``embedding_storage/``, ``src/optimizers/adagrad_optimizer.cu``
    Rows, weights and Adagrad's state (one for each value) are float32, gradients float16.

Work that overlaps longer work costs nothing here: the bottom MLP during the exchange of vectors,
float16 copies of weights during the lookups, and the sort of keys for the update and the lookups in
replicated tables during the dense part. The all-reduce is modelled as a ring; the submission adds
in the switches.
"""

from dataclasses import dataclass, replace

import numpy as np

from host.devices.dense_work import interaction, loss, mlp, mlp_backward
from host.devices.gpu_time import GpuTime
from host.devices.nccl import NcclCollectives, NcclProfile
from host.devices.operation import Operation
from host.devices.software import SoftwareProfile
from host.devices.topology import Topology, TopologyProfile
from host.measurements.published import Flattening, Run
from host.timing.gpu import GpuProfile
from host.toml.profile import load_profile
from sim.experiments.checks.composed import cross_model
from sim.experiments.checks.hugectr_shards import GPUS, Shard, shards_of

__all__ = ["COPIES", "GPU", "LAUNCHES", "Parts", "step_parts"]

GPU = "gpu_h100_mixed"
LAUNCHES = 46
"""Kernels and collectives per iteration that a thread launches outside the graph on several hosts:
reader 1, lookups 5, vectors 2, sorting of keys for the update 11, keys of the next mini-batch 15,
gradients of vectors 4, all-reduce and dense update 2, sums and update of rows 4, inputs 2. CUB's
radix sort counts as a histogram, its sum and a kernel per 8 bits; CUB's prefix sum as two kernels.
"""
COPIES = 13
"""Further copies and fills: reader 1, keys 3, keys of the next mini-batch 9."""
_LEVEL = 1
"""Level of :mod:`host.devices.dense_work`: HugeCTR's products add biases and apply ReLU (cuBLASLt's
epilogues)."""
_HALF, _FLOAT = 2, 4
"""Bytes of values."""
_INDEX = 4
"""Bytes of a key, an offset or a position."""
_POINTER = 8
"""Bytes of a pointer: lookups and gradient sums first write a pointer per row."""


@dataclass(frozen=True)
class Parts:
    """Microseconds of an iteration's parts.

    ``lookup``: copies of the keys, lookups, and sums within a host. ``exchange``: vectors one way,
    and their reordering. ``dense``: top MLP and cross network, and the backward pass of all MLPs.
    ``keys``: counts and keys of the next mini-batch. ``update``: gradients from the host's GPUs,
    their sums per row, and Adagrad. ``all_reduce``: gradients of the dense part, and Adagrad.
    ``host``: calls of a host thread.
    """

    lookup: float
    exchange: float
    dense: float
    keys: float
    update: float
    all_reduce: float
    host: float

    @property
    def us(self) -> float:
        """The iteration."""
        return max(self.host, self.lookup + 2 * self.exchange + max(self.dense, self.keys)
                   + max(self.update, self.all_reduce))


def step_parts(found: Flattening, run: Run) -> Parts:
    """Return the parts of an iteration of one configuration."""
    made = _Iteration(found, run)
    return Parts(made.lookup(), made.exchange(), made.dense(), made.keys(), made.update(),
                 made.all_reduce(), made.host())


class _Iteration:
    """The parts, one method each."""

    def __init__(self, found: Flattening, run: Run):
        self.found, self.run = found, run
        self.gpu = GpuTime(load_profile(GPU, GpuProfile),
                           load_profile("software_tuned", SoftwareProfile))
        self.across = NcclCollectives(load_profile("nccl_network", NcclProfile),
                                      Topology(_hosts(run.hosts)))
        self.inside = Topology(_level(0))
        self.model = cross_model(found.rows, found.dimension, found.dense, found.bottom, found.top,
                                 found.cross_layers, found.cross_rank)
        self.shards = shards_of(found, run)
        self.samples = run.mini_batch // run.gpus
        self.row, self.vector = _FLOAT * found.dimension, _HALF * found.dimension

    def lookup(self) -> float:
        """One kernel reads rows and writes sums to the host's GPUs; another adds eight sums each.
        """
        def of(shard: Shard) -> float:
            rows, bags = round(self.run.mini_batch * shard.lookups), self._bags(shard.tables)
            before = (Operation("copy", 2 * _INDEX * rows), Operation("copy", 2 * _INDEX * bags),
                      Operation("copy", 2 * _INDEX * self.samples * len(self.found.hot)),
                      Operation("offsets"), Operation("pointers", (_INDEX + _POINTER) * rows))
            read = Operation("gather", _POINTER * rows + (_INDEX + self.vector) * bags, rows,
                             self.row)
            if self.run.hosts == 1:
                return self._sum(*before, read)
            added = Operation("add", self.vector * bags * (1 + 1 / GPUS))
            return (self._sum(*before) + max(self._sum(read), self._nvlink(bags))
                    + self._sum(Operation("barrier"), added))
        return max(map(of, self.shards))

    def exchange(self) -> float:
        """Whole buffers, including empty bags; on several hosts only between GPUs of the same
        number."""
        sent = [self.samples * shard.tables * self.vector for shard in self.shards]
        # On one host a row of the matrix is one GPU; otherwise each bucket is eight GPUs.
        traffic = np.repeat(np.array(sent)[:, None], self.run.gpus, axis=1)
        if self.run.hosts > 1:
            same = np.tile(np.eye(GPUS), (self.run.hosts, self.run.hosts))
            traffic = same * np.repeat(traffic, GPUS, axis=0)
        vectors = (sum(shard.tables for shard in self.shards)
                   + len(self.found.hot) - len(self.run.replicated))
        return self._us(traffic) + self._sum(
            Operation("order", self.vector * self.samples * vectors))

    def dense(self) -> float:
        """Work after the exchange of vectors: the graph without the bottom MLP's forward pass."""
        samples, model, layers = self.samples, self.model, self.found.cross_layers
        # Float16 values that the cross network's elementwise kernels read and write per input
        # value: 4 for a layer (3 for the first one); backward 6, and 1 more that the product adds;
        # finally 4 for the sum of all layers' gradients.
        moved = layers * (4 + 6 + 1) - 1 + 4
        values = samples * (len(self.found.hot) + 1) * self.found.dimension
        cross = Operation("cross", _HALF * moved * values, kernels=2 * layers + 2)
        return self._sum(cross, *map(_half, (
            *interaction(samples, model), *mlp(samples, model.top_layers, _LEVEL), *loss(samples),
            *mlp_backward(samples, model.top_layers, level=_LEVEL),
            *mlp_backward(samples, model.bottom_layers, False, _LEVEL))))

    def keys(self) -> float:
        """Counts, their sums and a sort by GPU; then the host reads the number of keys to send."""
        software, keys = self.gpu.software, self.samples * sum(self.found.hot)
        counts = [float(self.samples * shard.tables * _INDEX) for shard in self.shards]
        sizes = [self.samples * shard.lookups * _INDEX for shard in self.shards]
        most = self._bags(max(shard.tables for shard in self.shards))
        waits = (2 * software.copy_us + software.synchronize_us + software.launch_call_us
                 + self.gpu.gpu.launch_us)
        return (self._us(self._to_all(counts)) + self._us(self._to_all(sizes)) + waits
                + self._sum(Operation("count", _INDEX * most),
                            Operation("sort", 2 * 2 * _INDEX * keys, kernels=3)))

    def update(self) -> float:
        """Gradients of bags with keys are read from the host's GPUs, then summed per row. All rows
        are assumed unique."""
        def of(shard: Shard) -> float:
            rows, bags = round(self.run.mini_batch * shard.lookups), self._bags(shard.filled)
            own = self._sum(
                Operation("pointers", (_INDEX + _POINTER) * rows),
                Operation("segment_sum", (self.vector + _POINTER + _INDEX) * rows, rows,
                          self.vector, kernels=2),
                Operation("adagrad", (self.vector + 2 * _INDEX) * rows, 4 * rows, self.row))
            if self.run.hosts == 1:
                return own
            read = Operation("copy", 2 * self.vector * bags)
            return self._sum(Operation("barrier")) + max(self._sum(read), self._nvlink(bags)) + own
        return max(map(of, self.shards))

    def all_reduce(self) -> float:
        """Float16 gradients of weights and of all rows of replicated tables."""
        values = self.model.mlp_parameters + self.found.dimension * sum(
            self.found.rows[table] for table in self.run.replicated)
        return self.across.all_reduce(_HALF * values).us + self._sum(
            Operation("adagrad", (_HALF + 4 * _FLOAT) * values))

    def host(self) -> float:
        """The calls that the software profile has a time for."""
        software = self.gpu.software
        return (LAUNCHES * software.launch_call_us + COPIES * software.copy_us + software.graph_us
                + software.synchronize_us)

    def _bags(self, each: float) -> float:
        return self.run.mini_batch * each

    def _nvlink(self, bags: float) -> float:
        """Return the time of one vector per bag of a GPU, to or from the host's GPUs."""
        return float(self.inside.link_us(self.inside.uniform(self.vector * bags / GPUS)).max())

    def _to_all(self, sizes: list[float]) -> np.ndarray:
        """Return the traffic between all pairs of GPUs, by the shard of the receiver."""
        each = 1 if self.run.hosts == 1 else GPUS
        return np.tile(np.repeat(sizes, each), (self.run.gpus, 1))

    def _us(self, traffic: np.ndarray) -> float:
        return self.across.all_to_all(traffic.astype(np.float64)).us

    def _sum(self, *operations: Operation) -> float:
        return sum(map(self.gpu.work_us, operations))


def _half(operation: Operation) -> Operation:
    """Return an operation with float16 streams."""
    return replace(operation, streamed_bytes=operation.streamed_bytes / 2)


def _level(number: int) -> TopologyProfile:
    profile = load_profile("topology_dgx_h100", TopologyProfile)
    return replace(profile, levels=(profile.levels[number],))


def _hosts(hosts: int) -> TopologyProfile:
    """Return the topology of that many hosts."""
    profile = load_profile("topology_dgx_h100", TopologyProfile)
    if hosts == 1:
        return _level(0)
    return replace(profile, levels=(profile.levels[0], replace(profile.levels[1], joins=hosts)))
