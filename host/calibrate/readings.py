"""Conversion of raw GPU times to profiles of the GPU, its PCIe link and its software."""

from dataclasses import dataclass, replace

from host.devices import dense_work, embedding_work
from host.devices.software import SoftwareProfile
from host.timing.gpu import GpuProfile
from host.timing.pcie import PcieProfile
from host.toml.profile import load_profile

__all__ = ["DIMENSION", "Readings", "derive_profiles"]

DIMENSION = 16
"""Dimension of the rows that `Readings` gathers."""


@dataclass(frozen=True)
class Readings:
    """Measured microseconds, and the sizes of what was measured.

    Members
    -------
    call_us: host time per call of a small operator, in a series without waiting.
    single_us: one small operator and the wait for it.
    idle_us: a wait for an idle GPU.
    node_us: one kernel of a graph of many small ones. graph_us: host time of a graph launch.
    values, elementwise_us: size and time of a large element-wise operator of one input.
    rows, gather_us: number and time of a large gather of rows of `DIMENSION`.
    side, product_us: width of the matrices and time of a large square matrix product.
    copy_us: host time per small copy to the GPU, in a series.
    copied_bytes, moved_us: size and time of a large copy to the GPU.
    repeats: measurements per value, of which the median counts.
    """

    call_us: float
    single_us: float
    idle_us: float
    node_us: float
    graph_us: float
    values: int
    elementwise_us: float
    rows: int
    gather_us: float
    side: int
    product_us: float
    copy_us: float
    copied_bytes: int
    moved_us: float
    repeats: int


def derive_profiles(name: str, readings: Readings) -> tuple[
        GpuProfile, PcieProfile, SoftwareProfile, SoftwareProfile]:
    """Return the profiles derived from ``readings``: GPU, PCIe link, eager and tuned software.

    The memory rate is that of streams, so the stream fraction is 1; likewise the arithmetic rate is
    that of matrix products. The peaks are unknown here. The overhead of a single small operation is
    subtracted from each large one. Constants that cannot be measured from a framework keep the
    value and status of the profiles that ship.

    ``name`` of the GPU's profile begins with ``gpu_``; the others are named after it.
    """
    source = f"[M] median of {readings.repeats}: "
    model, pcie = load_profile("gpu_rtx8000", GpuProfile), load_profile("pcie_gen3x16", PcieProfile)
    # A small operator's time is its call, its launch, its kernel and the wait.
    launch = readings.single_us - readings.call_us - readings.node_us - readings.idle_us
    beside = readings.single_us - readings.node_us
    stream = dense_work.elementwise(readings.values).streamed_bytes / (
        _remainder(readings.elementwise_us, beside) * 1e3)
    gather = embedding_work.gather(readings.rows, readings.rows, DIMENSION)
    traffic = gather.row_traffic(model.access_bytes) / (
        _remainder(readings.gather_us, beside + gather.streamed_bytes / (stream * 1e3)) * 1e3)
    gpu = replace(
        model, name=name, launch_us=max(launch, 0.1), memory_bandwidth_gb_s=stream,
        float32_tflops=2 * readings.side**3 / _remainder(readings.product_us, beside) / 1e6,
        kernel_us=readings.node_us, gather_fraction=min(1.0, traffic / stream), source={
            "launch_us": f"{source}a small operator and its wait, less its parts; at least 0.1",
            "memory_bandwidth_gb_s": f"{source}element-wise operators of {readings.values} values",
            "access_bytes": f"{_text(model, 'access_bytes')}; not measured",
            "streams": _text(model, "streams"),
            "float32_tflops": f"{source}products of matrices {readings.side} wide, no TF32",
            "kernel_us": f"{source}small kernels of a graph",
            "gather_fraction": f"{source}{readings.rows} rows of {4 * DIMENSION} B, of the rate "
                               "of streams",
            "stream_fraction": "[D] 1: the memory rate was measured on streams",
            "gemm_fraction": "[D] 1: the rate was measured on large products",
            "call_us": _text(model, "call_us")})
    bus = name.replace("gpu_", "pcie_", 1)
    link = replace(pcie, name=bus, bandwidth_gb_s=readings.copied_bytes / (
        _remainder(readings.moved_us, readings.copy_us) * 1e3), source={
            "one_way_us": f"{_text(pcie, 'one_way_us')}; not measured",
            "bandwidth_gb_s": f"{source}copies of {readings.copied_bytes} B to the GPU"})
    return (gpu, link, _software("eager", name, readings, source),
            _software("tuned", name, readings, source))


def _software(kind: str, name: str, readings: Readings, source: str) -> SoftwareProfile:
    shipped = load_profile(f"software_{kind}", SoftwareProfile)
    return replace(
        shipped, name=name.replace("gpu_", f"software_{kind}_", 1), operator_us=readings.call_us,
        copy_us=readings.copy_us, synchronize_us=readings.idle_us,
        graph_us=readings.graph_us if shipped.graphs else shipped.graph_us, source={
            "operator_us": f"{source}calls of small operators of PyTorch",
            "fused_embedding_us": f"{_text(shipped, 'fused_embedding_us')}; not measured",
            "copy_us": f"{source}small copies to the GPU",
            "synchronize_us": f"{source}waits for an idle GPU",
            "graph_us": f"{source}launches of a graph" if shipped.graphs
                        else _text(shipped, "graph_us")})


def _text(profile: GpuProfile | PcieProfile | SoftwareProfile, field: str) -> str:
    return profile.source[field]


def _remainder(whole: float, part: float) -> float:
    """Return ``whole`` less ``part``, kept positive in spite of noise."""
    return max(whole - part, 0.05 * whole)
