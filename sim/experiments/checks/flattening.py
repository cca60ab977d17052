"""Training of MLPerf's DLRM-DCNv2 on 8, 64 and 128 H100s: how throughput flattens.

The step of the busiest GPU, put together from the operations and collectives of
:mod:`host.devices`. What the submission does and the evaluation's systems do not: float16
activations, exchanges and gradients of MLPs (half the bytes of :mod:`host.devices.dense_work`),
rows of a table spread over the GPUs of a host, exchanges in two levels (partial sums inside a host,
then between hosts among GPUs of the same number), Adagrad with a state for each value, and one CUDA
graph for everything.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from host.devices.dense_work import elementwise, interaction, loss, mlp, mlp_backward
from host.devices.embedding_work import gather, scatter_update, segment_sum, unique
from host.devices.gpu_time import GpuTime
from host.devices.nccl import NcclCollectives, NcclProfile
from host.devices.operation import Operation
from host.devices.software import SoftwareProfile
from host.devices.topology import Topology, TopologyProfile
from host.measurements.published import Flattening, Run, flattening
from host.timing.gpu import GpuProfile
from host.toml.profile import load_profile
from sim.experiments.checks.check import Check, Comparison, percent
from sim.experiments.checks.composed import cross_model

__all__ = ["comparison", "step_parts"]

_BOUND = 0.2
_GPU = "gpu_h100_mixed"
_GPUS = 8
"""GPUs of a host."""
_LEVEL = 1
"""Of :mod:`host.devices.dense_work`: HugeCTR's products add biases and apply ReLU
(cuBLASLt's epilogues)."""
_HALF = 2
"""Bytes of a float16."""
_INDEX = 4
"""Bytes of an index: the submission's keys are int32 on the way."""


def comparison() -> Comparison:
    """Return the ratio of the throughputs on the most and the fewest GPUs, and the iterations."""
    found = flattening()
    ours = {run.gpus: step_parts(found, run) for run in found.runs}
    few, many = found.runs[0], found.runs[-1]
    ratio = (many.mini_batch / ours[many.gpus].us) / (few.mini_batch / ours[few.gpus].us)
    checks = [Check(f"throughput of {many.gpus} GPUs over that of {few.gpus}", ratio,
                    many.rate / few.rate, "x", _BOUND, many.gpus, many.mini_batch, _GPU)]
    checks += [Check(f"iteration on {run.gpus} GPUs", ours[run.gpus].us / 1e3, run.ms, "ms", None,
                     run.gpus, run.mini_batch, _GPU) for run in found.runs]
    return Comparison.of(
        "8 to 128 H100", "MLPerf DLRM-DCNv2 on 8 to 128 H100s",
        "MLPerf Training v3.0, DLRM-DCNv2",
        "The ratio of throughputs between evaluations: logged throughputs count evaluations as "
        f"training time, which makes the ratio {many.throughput_m / few.throughput_m:.2f} in place "
        f"of {many.rate / few.rate:.2f}. Tables lie as the submission's own planner deals them.",
        checks, _conclusion(found, ours, checks))


@dataclass(frozen=True)
class Parts:
    """Microseconds of an iteration's parts on the busiest GPU.

    ``dense``: MLPs and cross network, forward and backward. ``embedding``: lookups, sums and
    updates. ``exchange``: of indices, vectors and their gradients. ``all_reduce``: of the dense
    part's gradients, beside the embeddings' way back.
    """

    dense: float
    embedding: float
    exchange: float
    all_reduce: float

    @property
    def us(self) -> float:
        """The iteration: the all-reduce hides behind the embeddings' half of the way back."""
        return self.dense + max(self.embedding + self.exchange,
                                (self.embedding + self.exchange) / 2 + self.all_reduce)


def step_parts(found: Flattening, run: Run) -> Parts:
    """Return the parts of an iteration of one configuration."""
    model = cross_model(found.rows, found.dimension, found.dense, found.bottom, found.top,
                        found.cross_layers, found.cross_rank)
    gpu = GpuTime(load_profile(_GPU, GpuProfile), load_profile("software_tuned", SoftwareProfile))
    nccl = load_profile("nccl_network", NcclProfile)
    samples = run.mini_batch // run.gpus
    dense = [*mlp(samples, model.bottom_layers, _LEVEL), *interaction(samples, model),
             *mlp(samples, model.top_layers, _LEVEL), *loss(samples),
             *mlp_backward(samples, model.top_layers, level=_LEVEL),
             *mlp_backward(samples, model.bottom_layers, False, _LEVEL),
             elementwise(model.mlp_parameters, 3, "adagrad")]
    shards = [_shard(found, run, tables) for tables in run.shards]
    embedding = max(_sum(gpu, _embedding(found, run, *shard)) for shard in shards)
    inside = NcclCollectives(nccl, Topology(_level(0)))
    exchange = _exchange(found, run, shards, inside, nccl)
    whole = NcclCollectives(nccl, Topology(_hosts(run.hosts)))
    return Parts(_sum(gpu, (_half(each) for each in dense)), embedding, exchange,
                 whole.all_reduce(_HALF * model.mlp_parameters).us)


def _shard(found: Flattening, run: Run, tables: Iterable[int]) -> tuple[int, float]:
    """Return how many tables a GPU has a part of, and its lookups for each sample."""
    tables = list(tables)
    buckets = {table: sum(table in other for other in run.shards) for table in tables}
    share = 1 if run.hosts == 1 else _GPUS
    return len(tables), sum(found.hot[table] / buckets[table] for table in tables) / share


def _embedding(found: Flattening, run: Run, tables: int, lookups: float) -> list[Operation]:
    """Return the lookup and the update of a GPU's rows for all samples, all of them different."""
    rows, bags = round(run.mini_batch * lookups), run.mini_batch * tables
    dimension = found.dimension
    state = scatter_update(rows, dimension)
    return [_half(gather(rows, min(rows, bags), dimension, fused=True)), unique(rows, _INDEX),
            segment_sum(rows, rows, dimension), scatter_update(rows, dimension),
            replace(state, streamed_bytes=0, name="state")]


def _exchange(found: Flattening, run: Run, shards: list[tuple[int, float]],
              inside: NcclCollectives, nccl: NcclProfile) -> float:
    """Return the exchanges of indices, of vectors and of their gradients."""
    vector, samples = _HALF * found.dimension, run.mini_batch // run.gpus
    if run.hosts == 1:
        # A GPU sends each other one the vectors of its tables, or of its part of a table.
        traffic = np.array([[samples * tables * vector] * _GPUS for tables, _ in shards])
        indices = np.array([[samples * lookups * _INDEX for _, lookups in shards]] * _GPUS)
        return _us(inside, indices) + 2 * _us(inside, traffic)
    across = NcclCollectives(nccl, Topology(_hosts(run.hosts)))
    size, hosts = run.gpus, run.hosts
    tables = np.array([tables for tables, _ in shards])
    lookups = np.array([lookups for _, lookups in shards])
    # Indices go to the GPU that has the row; vectors first to the GPU of the same host whose number
    # is the requester's, which adds the parts of the host, then to the requester.
    indices = np.tile(np.repeat(samples * lookups * _INDEX, _GPUS), (size, 1))
    same = np.tile(np.eye(_GPUS), (hosts, hosts))
    vectors = same * np.repeat(np.repeat(samples * tables * vector, _GPUS)[:, None], size, axis=1)
    parts = np.full((_GPUS, _GPUS), float(tables.max() * run.mini_batch // _GPUS * vector))
    return _us(across, indices) + 2 * (_us(inside, parts) + _us(across, vectors))


def _us(collectives: NcclCollectives, traffic: np.ndarray) -> float:
    """Return an exchange's time."""
    return collectives.all_to_all(traffic.astype(np.float64)).us


def _sum(gpu: GpuTime, operations: Iterable[Operation]) -> float:
    return sum(gpu.work_us(operation) for operation in operations)


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


def _conclusion(found: Flattening, ours: dict[int, Parts], checks: list[Check]) -> str:
    few, middle, many = found.runs
    named = "; ".join(
        f"{gpus} GPUs: dense {part.dense / 1e3:.2f}, embeddings {part.embedding / 1e3:.2f}, "
        f"exchanges {part.exchange / 1e3:.2f}, all-reduce {part.all_reduce / 1e3:.2f} ms"
        for gpus, part in ours.items())
    verdict = "within the bound" if checks[0].good else "outside of the bound"
    first = ((middle.mini_batch / ours[middle.gpus].us) / (few.mini_batch / ours[few.gpus].us)
             / (middle.rate / few.rate) - 1)
    second = (middle.ms / many.ms) / (ours[middle.gpus].us / ours[many.gpus].us)
    # An iteration of a part that stays and a part that is inverse to the GPUs.
    stays = (many.gpus * many.ms - middle.gpus * middle.ms) / (many.gpus - middle.gpus)
    size = 4 * (1 + found.dense + sum(found.hot))  # label, dense features and keys of a sample
    lookups = [max(_shard(found, run, tables)[1] for tables in run.shards)
               for run in (middle, many)]
    return (f"The ratio is {verdict} ({percent(checks[0].error)}). Ours: {named}. Cause: the "
            f"error from {few.gpus} to {middle.gpus} GPUs is {percent(first)}, that from "
            f"{middle.gpus} to {many.gpus} {percent(1 / second - 1)}. There the global mini-batch "
            f"is the same, each GPU has half the samples, the busiest one {lookups[1]:.2f} "
            f"lookups a sample in place of {lookups[0]:.2f}, and a host at most "
            f"{max(map(len, many.shards))} tables in place of {max(map(len, middle.shards))}; "
            f"their iteration goes from {middle.ms:.2f} to {many.ms:.2f} ms, so that {stays:.2f} "
            f"ms ({stays / many.ms:.0%}) of it do not depend on the number of GPUs. In our model "
            f"only the all-reduce and fixed times stay. What both have in common is the rate at "
            f"which samples are read, {middle.rate * size / 1e9:.0f} and "
            f"{many.rate * size / 1e9:.0f} GB/s from storage, caches emptied before each run "
            f"({few.gpus} GPUs: {few.rate * size / 1e9:.0f}); whether that is the reason the logs "
            "do not say.")
