"""Single kernels on a V100, by kind: geometric means of ours over theirs."""

from dataclasses import replace

from host.devices.dense_work import product
from host.devices.embedding_work import gather, scatter_update, segment_sum
from host.devices.gpu_time import GpuTime
from host.devices.operation import Operation
from host.devices.software import SoftwareProfile
from host.measurements.published import Looked, Multiplied, kernel_rows
from host.timing.gpu import GpuProfile
from host.timing.pcie import PcieProfile
from host.toml.profile import load_profile
from sim.experiments.checks.check import Check, Comparison, geometric_mean, percent

__all__ = ["comparison"]

_L2_BYTES = 6 << 20
"""Second-level cache of a V100, data sheet."""
_MULTIPROCESSORS, _TILE = 80, 64
"""Multiprocessors of a V100, data sheet; rows and columns of a product's tile. Used for the cause
of errors."""


def comparison() -> Comparison:
    """Return the geometric mean over all kernels, and each kernel."""
    found = kernel_rows()
    gpu = GpuTime(load_profile("gpu_v100", GpuProfile),
                  load_profile("software_eager", SoftwareProfile))
    pcie = load_profile("pcie_gen3x16", PcieProfile)
    kinds = {
        "lookups": [(_name(row), gpu.work_us(_lookup(row)), row.us) for row in found.lookup],
        "updates": [(_name(row), gpu.work_us(_update(row)), row.us) for row in found.update],
        "products": [(f"{row.batch} x " * (row.batch > 1)
                      + f"{row.rows} x {row.inner} x {row.columns}",
                      gpu.work_us(product(row.rows, row.inner, row.columns, row.batch)), row.us)
                     for row in found.product],
        "copies to the GPU": [(f"{row.bytes / 1e6:g} MB", row.bytes / (pcie.bandwidth_gb_s * 1e3),
                               row.us) for row in found.copy]}
    rows = [row for each in kinds.values() for row in each]
    checks = [_mean(f"all {len(rows)} kernels and copies", rows)]
    checks += [_mean(f"{len(each)} {kind}", each) for kind, each in kinds.items()]
    checks += [Check(f"{kind[:-1] if kind[-1] == 's' else 'copy'} {name}", ours, theirs, "us")
               for kind, each in kinds.items() for name, ours, theirs in each]
    return Comparison.of(
        "V100 kernels", "Single kernels on a V100", "V100 kernel rows",
        "The geometric mean of ours over theirs, reported without a bound: the rows are all "
        "outputs of published notebooks, not a selection.", checks,
        _conclusion(gpu, found.lookup, found.product, checks))


def _name(row: Looked) -> str:
    return f"{row.samples} x {row.tables} bags of {row.hot}, dimension {row.dimension}"


def _lookup(row: Looked) -> Operation:
    bags = row.samples * row.tables
    return gather(bags * row.hot, bags, row.dimension, fused=True)


def _update(row: Looked) -> Operation:
    """Return the kernel that sums the gradients of each row and applies them, without its sort."""
    lookups = row.samples * row.hot
    distinct = round(row.rows * (1 - (1 - 1 / row.rows) ** lookups)) * row.tables
    sums = segment_sum(lookups * row.tables, distinct, row.dimension)
    apply = scatter_update(distinct, row.dimension)
    # One kernel: the sums remain on the chip.
    return replace(sums, streamed_bytes=_positions(lookups * row.tables),
                   rows=sums.rows + apply.rows, flops=sums.flops + apply.flops)


def _positions(lookups: int) -> int:
    return 8 * lookups


def _mean(name: str, rows: list[tuple[str, float, float]]) -> Check:
    return Check(f"{name}, geometric means", geometric_mean(ours for _, ours, _ in rows),
                 geometric_mean(theirs for _, _, theirs in rows), "us")


def _tiled_us(gpu: GpuTime, row: Multiplied) -> float:
    """Return the time of a product whose multiprocessors compute whole tiles in sequence."""
    tiles = row.batch * -(-row.rows // _TILE) * -(-row.columns // _TILE)
    rate = gpu.gpu.float32_tflops * gpu.gpu.gemm_fraction * 1e6 / _MULTIPROCESSORS
    each = 2 * _TILE * _TILE * row.inner / rate
    return max(gpu.gpu.kernel_us, -(-tiles // _MULTIPROCESSORS) * each)


def _conclusion(gpu: GpuTime, lookups: tuple[Looked, ...], products: tuple[Multiplied, ...],
                checks: list[Check]) -> str:
    cached = sum(4 * row.tables * row.rows * row.dimension <= _L2_BYTES for row in lookups)
    by_kind = ", ".join(f"{check.name.split(' ', 1)[1].split(',')[0]} {percent(check.error)}"
                        for check in checks[1:5])
    tiled = geometric_mean(_tiled_us(gpu, row) / row.us for row in products) - 1
    return (f"By kind {by_kind}. Products: if each multiprocessor computed whole tiles of {_TILE} "
            f"by {_TILE} results in sequence, the error would be {percent(tiled)}: products are "
            "slow if their results do not fill the tiles or the GPU. Lookups: the tables of "
            f"{cached} of {len(lookups)} fit into the V100's second-level cache of 6 MiB. The "
            "model has no cache and charges the bytes to the memory. Updates: the model reads and "
            "writes random rows at the rate of sequential bytes, which is too fast.")
