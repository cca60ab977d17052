"""From raw times of a GPU to the profiles of it, of its PCIe link and of the software on it."""

from dataclasses import dataclass, replace

from host.devices import dense_work, embedding_work
from host.devices.software import SoftwareProfile
from host.timing.gpu import GpuProfile
from host.timing.pcie import PcieProfile
from host.toml.profile import load_profile

__all__ = ["DIMENSION", "Readings", "profiles"]

DIMENSION = 16
"""Of the rows that `Readings` gathers."""


@dataclass(frozen=True)
class Readings:
    """Microseconds of what was measured, and how large it was.

    Members
    -------
    call_us: host time of one call of a small operator of many, none of them waited for.
    single_us: one small operator, waited for.
    idle_us: waiting for a GPU that has nothing to do.
    node_us: one kernel of a graph of many small ones. graph_us: host time of launching a graph.
    values, elementwise_us: a large element-wise operator of one input, and its values.
    rows, gather_us: a large gather of rows of `DIMENSION`, and their number.
    side, product_us: a large square matrix product, and the width of its matrices.
    copy_us: one small copy of many to the GPU.
    copied_bytes, moved_us: a large copy to the GPU.
    repeats: of each measurement, whose median it is.
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


def profiles(name: str, readings: Readings) -> tuple[
        GpuProfile, PcieProfile, SoftwareProfile, SoftwareProfile]:
    """Return what a machine's readings say: its GPU, its PCIe link, and both kinds of software.

    The memory's rate is that of streams, so that the fraction of streams is 1, and likewise the
    rate of arithmetic that of products; peaks are not known here. From each large operation goes
    what a single small one takes beside its work. What cannot be measured from a framework keeps
    the value and the status of the profiles that ship.

    ``name`` of the GPU's profile begins with ``gpu_``; the others' names follow it.
    """
    source = f"[M] median of {readings.repeats}: "
    model, pcie = load_profile("gpu_rtx8000", GpuProfile), load_profile("pcie_gen3x16", PcieProfile)
    # A small operator waited for is its call, its launch, its kernel and the waiting.
    launch = readings.single_us - readings.call_us - readings.node_us - readings.idle_us
    beside = readings.single_us - readings.node_us
    stream = dense_work.elementwise(readings.values).streamed_bytes / (
        _rest(readings.elementwise_us, beside) * 1e3)
    gather = embedding_work.gather(readings.rows, readings.rows, DIMENSION)
    traffic = gather.row_traffic(model.access_bytes) / (
        _rest(readings.gather_us, beside + gather.streamed_bytes / (stream * 1e3)) * 1e3)
    gpu = replace(
        model, name=name, launch_us=max(launch, 0.1), memory_bandwidth_gb_s=stream,
        float32_tflops=2 * readings.side**3 / _rest(readings.product_us, beside) / 1e6,
        kernel_us=readings.node_us, gather_fraction=min(1.0, traffic / stream), source={
            "launch_us": f"{source}a small operator waited for, less its parts; at least 0.1",
            "memory_bandwidth_gb_s": f"{source}element-wise operators of {readings.values} values",
            "access_bytes": f"{_text(model, 'access_bytes')}; not measured",
            "streams": _text(model, "streams"),
            "float32_tflops": f"{source}products of matrices {readings.side} wide, no TF32",
            "kernel_us": f"{source}small kernels of a graph",
            "gather_fraction": f"{source}{readings.rows} rows of {4 * DIMENSION} B, of the rate "
                               "of streams",
            "stream_fraction": "[D] 1: the memory's rate is that of streams",
            "gemm_fraction": "[D] 1: the rate is that of large products",
            "call_us": _text(model, "call_us")})
    bus = name.replace("gpu_", "pcie_", 1)
    link = replace(pcie, name=bus, bandwidth_gb_s=readings.copied_bytes / (
        _rest(readings.moved_us, readings.copy_us) * 1e3), source={
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
            "synchronize_us": f"{source}waiting for a GPU that has nothing to do",
            "graph_us": f"{source}launches of a graph" if shipped.graphs
                        else _text(shipped, "graph_us")})


def _text(profile: GpuProfile | PcieProfile | SoftwareProfile, field: str) -> str:
    return profile.source[field]


def _rest(whole: float, part: float) -> float:
    """Return ``whole`` less ``part``; noise must not make it nothing."""
    return max(whole - part, 0.05 * whole)
