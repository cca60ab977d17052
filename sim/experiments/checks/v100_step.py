"""Kernels of a training step of Criteo Kaggle's shape on eight V100s, each timed by our model.

Each kernel of the trace becomes a :class:`host.devices.operation.Operation` with its shapes.
Elementwise kernels read all full-size inputs of their operator and write one array. A product's
second kernel (the sum of its parts) reads and writes the product's result. FBGEMM's kernels read in
sequence: a lookup the rows of a bag, ``linearize_index_kernel`` the bags of a warp.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from math import prod

from host.devices.dense_work import concat, elementwise, product
from host.devices.embedding_work import gather, row_state, scatter_update, segment_sum
from host.devices.gpu_time import GpuTime
from host.devices.operation import Operation
from host.devices.software import SoftwareProfile
from host.measurements.step import StepKernel, step_kernels
from host.timing.gpu import GpuProfile
from host.toml.profile import load_profile
from sim.experiments.checks.check import Check, Comparison, percent

__all__ = ["comparison", "operation"]

_DIMENSION = 16
"""Dimension of the model's embedding vectors."""
_INDEX = 8
_BOUND = 0.15
_PRODUCTS = ("addmm", "mm", "bmm")
_PARTS = ("splitKreduce_kernel", "reduce_1Block_kernel", "elementwise_kernel")
"""Kernels of a product's operator that only sum parts of its result or start with the bias."""


def comparison() -> Comparison:
    """Return the sum of the step's kernels, and its parts by kind."""
    gpu = GpuTime(load_profile("gpu_v100", GpuProfile),
                  load_profile("software_eager", SoftwareProfile))
    ours: dict[str, float] = {}
    theirs: dict[str, float] = {}
    count: dict[str, int] = {}
    for kernel in step_kernels():
        if not kernel.computes:
            continue
        kind, work = operation(kernel)
        ours[kind] = ours.get(kind, 0.0) + sum(kernel.calls) * gpu.work_us(work)
        theirs[kind] = theirs.get(kind, 0.0) + sum(kernel.us)
        count[kind] = count.get(kind, 0) + sum(kernel.calls)
    ranks = len(step_kernels()[0].calls)
    checks = [Check("all compute kernels of a rank", sum(ours.values()) / ranks,
                    sum(theirs.values()) / ranks, "us", _BOUND, ranks, 128)]
    checks += [Check(f"of these {kind} ({count[kind] / ranks:.0f} kernels)", ours[kind] / ranks,
                     theirs[kind] / ranks, "us", None, ranks, 128)
               for kind in sorted(theirs, key=lambda kind: -theirs[kind])]
    return Comparison.of(
        "V100 step, kernels", "Compute kernels of a training step, TorchRec on 8 V100s, 128 "
        "samples",
        "V100 step",
        "The mean of the eight ranks, because every rank's kernels are part of the step. The sum "
        "averages out the trace's rounding to 1 us. Kernels of the previous step, copies, memsets "
        "and collectives are excluded.",
        checks, _conclusion(checks, gpu, sum(count.values()) / ranks))


def operation(kernel: StepKernel) -> tuple[str, Operation]:
    """Return a kernel's kind, for the report, and its work."""
    name, tensors = kernel.operator.removeprefix("aten::"), kernel.tensors
    largest = max((prod(shape) for shape in tensors), default=1)
    if name in _PRODUCTS:
        return _product(kernel)
    if "lookup" in name:
        # The offsets follow the indices; there is one more offset than bags.
        bags = next(shape[0] for before, shape in pairwise(tensors)
                    if before == (kernel.rows,)) - 1
        work = gather(kernel.rows, bags, _DIMENSION, fused=True)
        # The table's place, the bag's bounds, an index, then row after row.
        return "lookup", replace(work, reads=3 + -(-kernel.rows // bags))
    if "SplitLookupFunction" in name:
        return _update(kernel)
    for word, make in _KINDS.items():
        if name.startswith(word):
            return make(largest, kernel)
    full = sum(prod(shape) == largest for shape in tensors)
    # The last array of a product of gradients and a number is its result.
    inputs = 1 if name == "mul" else max(1, full)
    return "elementwise", elementwise(largest, inputs)


def _product(kernel: StepKernel) -> tuple[str, Operation]:
    first, second = kernel.tensors[-2:]
    rows, inner, columns = first[-2], first[-1], second[-1]
    batch = first[0] if len(first) > 2 else 1
    if kernel.name in _PARTS:
        return "products", elementwise(batch * rows * columns, name="parts")
    return "products", product(rows, inner, columns, batch)


def _update(kernel: StepKernel) -> tuple[str, Operation]:
    """Return a kernel of an embedding's backward pass; few of its rows are duplicates."""
    rows, name = kernel.rows, kernel.name
    if "warp_per_row" in name:
        work = segment_sum(rows, rows, _DIMENSION)
        for more in (scatter_update(rows, _DIMENSION), row_state(rows, _DIMENSION)):
            work = replace(work, streamed_bytes=work.streamed_bytes + more.streamed_bytes,
                           rows=work.rows + more.rows, flops=work.flops + more.flops)
        # The run, its first position, the table's place, a gradient's bag, the gradient, the row.
        return "row updates", replace(work, reads=6)
    if "per_row" in name or "find_long" in name:
        return "row updates", Operation(name, 2 * _INDEX * rows, reads=2)
    if "linearize" in name:  # a warp reads the indices of its 32 bags in turn, 32 at a time
        bags = prod(kernel.tensors[0]) // _DIMENSION
        return "row updates", Operation(name, 2 * _INDEX * rows,
                                        reads=1 + 32 * -(-rows // (32 * bags)))
    return "sorts and scans", _sorted(rows, name)


def _sorted(values: int, name: str) -> Operation:
    """Return a pass of a sort or scan, which reads and writes keys and positions."""
    if "Init" in name:
        return Operation(name)
    return Operation(name, 4 * _INDEX * values, reads=2)  # a position or count, then the key


def _pairs(kernel: StepKernel) -> int:
    """Return the pairs below the diagonals of a batch of square matrices."""
    batch, side, _ = kernel.tensors[0]
    return batch * side * (side - 1) // 2


_KINDS: dict[str, Callable[[int, StepKernel], tuple[str, Operation]]] = {
    "cat": lambda values, _: ("copies and fills", concat(values)),
    "copy_": lambda values, _: ("copies and fills", elementwise(values, name="copy")),
    "fill_": lambda values, _: ("copies and fills", Operation("fill", 4 * values)),
    "arange": lambda values, _: ("copies and fills", Operation("fill", _INDEX * values)),
    "sum": lambda values, _: ("reductions", Operation("sum", 4 * values, flops=values)),
    "mean": lambda values, _: ("reductions", Operation("mean", 4 * values, flops=values)),
    "index": lambda _, kernel: ("copies and fills", Operation("index", 16 * _pairs(kernel))),
    "_index_put": lambda _, kernel: (
        ("sorts and scans", _sorted(kernel.tensors[-1][-1], kernel.name)) if "Sort" in kernel.name
        else ("copies and fills", Operation("index_put", 16 * _pairs(kernel)))),
    "fbgemm::": lambda _, kernel: (
        "sorts and scans", _sorted(max(shape[-1] for shape in kernel.tensors), kernel.name)),
}
"""Work of operators that are not elementwise, by the beginning of their names."""


def _conclusion(checks: list[Check], gpu: GpuTime, kernels: float) -> str:
    whole = checks[0]
    least = kernels * gpu.gpu.kernel_us
    by_kind = ", ".join(f"{check.name.split('of these ')[1].split(' (')[0]} "
                        f"{percent(check.error)}" for check in checks[1:])
    return (f"{kernels:.0f} kernels per rank. The time of a kernel without work in our model "
            f"({gpu.gpu.kernel_us:g} us) contributes {least:.0f} us of our {whole.ours:.0f}. The "
            f"errors by kind are {by_kind}. Cause: the model omits the steps inside sorts, scans "
            "and reductions, which wait at barriers, and blocks of an update that find no long "
            "row. A fill of one value takes 2.3 us under the profiler, which rounds to 1 us.")
