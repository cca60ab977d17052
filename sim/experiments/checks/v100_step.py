"""The kernels of a training step of Criteo Kaggle's shape on eight V100s, each timed by our model.

Each kernel of the trace becomes a :class:`host.devices.operation.Operation` with the shapes that it
had. Elementwise kernels read as many arrays as their operator has inputs of full size and write
one; a product's second kernel (the sum of its parts) reads and writes the product's result.
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
"""Of the model's embedding vectors."""
_INDEX = 8
_BOUND = 0.15
_PRODUCTS = ("addmm", "mm", "bmm")
_PARTS = ("splitKreduce_kernel", "reduce_1Block_kernel", "elementwise_kernel")
"""Kernels of a product's operator that only sum parts of its result or begin with the bias."""


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
        "The mean of the eight ranks: every rank's kernels are part of the step, none is more "
        "typical than another, and sums even out times that the trace rounds to 1 us. Kernels that "
        "the step before launched, copies, memsets and collectives are left out.",
        checks, _conclusion(checks, gpu, sum(count.values()) / ranks))


def operation(kernel: StepKernel) -> tuple[str, Operation]:
    """Return a kernel's kind, for the report, and its work."""
    name, tensors = kernel.operator.removeprefix("aten::"), kernel.tensors
    largest = max((prod(shape) for shape in tensors), default=1)
    if name in _PRODUCTS:
        return _product(kernel)
    if "lookup" in name:
        # The offsets follow the indices and are one more than the bags.
        bags = next(shape[0] for before, shape in pairwise(tensors)
                    if before == (kernel.rows,)) - 1
        return "lookup", gather(kernel.rows, bags, _DIMENSION, fused=True)
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
    """Return a kernel of an embedding's backward pass; few of its rows occur twice."""
    rows, name = kernel.rows, kernel.name
    if "warp_per_row" in name:
        work = segment_sum(rows, rows, _DIMENSION)
        for more in (scatter_update(rows, _DIMENSION), row_state(rows, _DIMENSION)):
            work = replace(work, streamed_bytes=work.streamed_bytes + more.streamed_bytes,
                           rows=work.rows + more.rows, flops=work.flops + more.flops)
        return "row updates", work
    if "per_row" in name or "find_long" in name or "linearize" in name:
        return "row updates", Operation(name, 2 * _INDEX * rows)
    return "sorts and scans", _sorted(rows, name)


def _sorted(values: int, name: str) -> Operation:
    """Return a pass of a sort or scan: keys and positions are read and written."""
    return Operation(name, 0 if "Init" in name else 4 * _INDEX * values)


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
"""How operators that are not elementwise become work, by the beginning of their names."""


def _conclusion(checks: list[Check], gpu: GpuTime, kernels: float) -> str:
    whole = checks[0]
    least = kernels * gpu.gpu.kernel_us
    by_kind = ", ".join(f"{check.name.split('of these ')[1].split(' (')[0]} "
                        f"{percent(check.error)}" for check in checks[1:])
    return (f"{kernels:.0f} kernels a rank; the shortest time that our model gives a kernel "
            f"({gpu.gpu.kernel_us:g} us) alone is {least:.0f} us of our {whole.ours:.0f}, so that "
            f"the sum checks this constant more than any rate. By kind the errors are "
            f"{by_kind}: what is within the bound in sum is not so kernel by kind.")
