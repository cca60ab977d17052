"""An iteration of MLPerf's DLRM-DCNv2 in NVIDIA's HugeCTR, on the busiest GPU.

It is put together from the operations and collectives of :mod:`host.devices`, in the order in which
HugeCTR's source starts them and lets one wait for the other. The submission's ``Dockerfile`` names
the release, v23.04.00 for MLPerf v3.0 and v23.08.00 for v3.1. These files, in the former's folder
``HugeCTR``, say:

``src/pybind/model_pipeline.cpp``
    The order. Only the dense part (MLPs, cross network, loss) is a CUDA graph; all else is launched
    one by one. Keys of the next mini-batch are sent beside the dense part; the host's thread waits
    for their counts.
``embedding/hier_model_parallel_embedding.cpp``
    Several hosts: a GPU looks up the keys of the whole mini-batch that it has the rows of. It
    writes a float16 sum for each sample and table to that GPU of its host which has the number of
    the sample's GPU in its own host. That GPU adds the eight sums and sends the result to the
    sample's GPU. Gradients take the same way back (``embedding/operators/hier_model_backward.cu``),
    without bags that have no key on the GPU.
``embedding/model_parallel_embedding.cpp``
    One host: sums go straight to the sample's GPU.
``embedding/data_distributor/``
    A GPU sends each other one a count of keys for each sample and table, then the keys.
``src/data_readers/multi_hot/``, ``src/pybind/model.cpp``
    A GPU reads its own samples only, up to 16 mini-batches ahead. For each mini-batch each GPU's
    thread makes tensor objects for the keys of all GPUs of its host. Release 23.08 keeps them.
``embedding/operators/communication.cpp``, ``src/collectives/all_reduce_comm.cu``
    All collectives are on one communicator, which NCCL runs in the order of their launches.
``src/layers/multi_cross_layer.cu``
    A cross layer is two products and an elementwise kernel, which cuBLASLt does not absorb, and so
    is its way back.
``embedding_storage/``, ``src/optimizers/adagrad_optimizer.cu``
    Rows, weights and Adagrad's state (one for each value) are float32, gradients float16.

What runs beside something longer costs nothing here: the bottom MLP beside the exchange of vectors,
float16 copies of weights beside the lookups, the sort of keys for the update and the lookups in
replicated tables beside the dense part. The all-reduce is a ring; the submission lets switches add.
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
"""Kernels and collectives that a thread launches outside of the graph on several hosts: reader 1,
lookups 5, vectors 2, sorting of keys for the update 11, keys of the next mini-batch 15, gradients
of vectors 4, all-reduce and dense update 2, sums and update of rows 4, inputs 2. CUB's radix sort
is counted as a histogram, its sum and a kernel for 8 bits, CUB's prefix sum as two kernels."""
COPIES = 13
"""Copies and fills beside them: reader 1, keys 3, keys of the next mini-batch 9."""
_LEVEL = 1
"""Of :mod:`host.devices.dense_work`: HugeCTR's products add biases and apply ReLU
(cuBLASLt's epilogues)."""
_HALF, _FLOAT = 2, 4
"""Bytes of values."""
_INDEX = 4
"""Bytes of a key, an offset or a position."""
_POINTER = 8
"""Bytes of a pointer: lookups and sums of gradients first write one for each row."""


@dataclass(frozen=True)
class Parts:
    """Microseconds of an iteration's parts.

    ``lookup``: copies of the keys, lookups, and sums inside a host. ``exchange``: of vectors one
    way, and their order in the sample. ``dense``: top MLP and cross network, and all MLPs' way
    back. ``keys``: counts and keys of the next mini-batch. ``update``: gradients from the host's
    GPUs, their sums for each row, and Adagrad. ``all_reduce``: of the dense part's gradients, and
    Adagrad. ``host``: calls of a host's thread.
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
    """The parts, one method for each."""

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
        """A kernel reads rows and writes sums to the host's GPUs; another adds eight of each."""
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
        """Whole buffers, whether bags have keys or not; on several hosts only between GPUs of the
        same number."""
        sent = [self.samples * shard.tables * self.vector for shard in self.shards]
        # On one host a row of the matrix is a GPU's, otherwise each bucket is that of eight GPUs.
        traffic = np.repeat(np.array(sent)[:, None], self.run.gpus, axis=1)
        if self.run.hosts > 1:
            same = np.tile(np.eye(GPUS), (self.run.hosts, self.run.hosts))
            traffic = same * np.repeat(traffic, GPUS, axis=0)
        vectors = (sum(shard.tables for shard in self.shards)
                   + len(self.found.hot) - len(self.run.replicated))
        return self._us(traffic) + self._sum(
            Operation("order", self.vector * self.samples * vectors))

    def dense(self) -> float:
        """What follows the exchange of vectors: all of the graph but the bottom MLP's way there."""
        samples, model, layers = self.samples, self.model, self.found.cross_layers
        # Elementwise kernels of the cross network read and write so many float16 of each value that
        # enters it: 4 for a layer (3 for the first one); back 6, and 1 more that the product adds;
        # in the end 4 for the sum of all layers' gradients.
        moved = layers * (4 + 6 + 1) - 1 + 4
        values = samples * (len(self.found.hot) + 1) * self.found.dimension
        cross = Operation("cross", _HALF * moved * values, kernels=2 * layers + 2)
        return self._sum(cross, *map(_half, (
            *interaction(samples, model), *mlp(samples, model.top_layers, _LEVEL), *loss(samples),
            *mlp_backward(samples, model.top_layers, level=_LEVEL),
            *mlp_backward(samples, model.bottom_layers, False, _LEVEL))))

    def keys(self) -> float:
        """Counts, their sums and a sort by GPU; then the host reads how much it has to send."""
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
        """Gradients of bags with keys are read from the host's GPUs, then summed for each row; all
        rows are taken as different."""
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
        """Of float16 gradients of weights and of all rows of replicated tables."""
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
        """Return the time of a vector for each of a GPU's bags, to or from the host's GPUs."""
        return float(self.inside.link_us(self.inside.uniform(self.vector * bags / GPUS)).max())

    def _to_all(self, sizes: list[float]) -> np.ndarray:
        """Return traffic from every GPU to every other one, by the shard of the latter."""
        each = 1 if self.run.hosts == 1 else GPUS
        return np.tile(np.repeat(sizes, each), (self.run.gpus, 1))

    def _us(self, traffic: np.ndarray) -> float:
        return self.across.all_to_all(traffic.astype(np.float64)).us

    def _sum(self, *operations: Operation) -> float:
        return sum(map(self.gpu.work_us, operations))


def _half(operation: Operation) -> Operation:
    """Return an operation whose streamed values are float16."""
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
