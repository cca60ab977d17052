"""A GPU as NICs see it: what of its profile a run of NICs depends on."""

from dataclasses import replace

from host.timing.gpu import GpuProfile

__all__ = ["SEEN_GIB", "as_nics_see"]

SEEN_GIB = 16384.0
"""As much as addresses reach."""


def as_nics_see(gpu: GpuProfile, row_bytes: int) -> GpuProfile:
    """Return a profile with which runs of NICs take the same time, the same one for all such GPUs.

    Runs with equal options are done once, so what they never read must not differ: how much of the
    GPU a kernel fills, the rate of streams, and by which of its constants the memory reads rows of
    ``row_bytes`` at the rate that it does. Here that is its bandwidth alone, and the rate of
    products that of single precision. A resident kernel's ``poll_us`` is its ``launch_us`` by then.
    Whether NICs see all tables that they read is asked of the profile itself.
    """
    rate = (gpu.memory_bandwidth_gb_s * gpu.gather_fraction
            * (row_bytes / max(row_bytes, gpu.access_bytes)))
    return replace(gpu, memory_bandwidth_gb_s=rate, gather_fraction=1.0, access_bytes=1,
                   float32_tflops=gpu.float32_tflops * gpu.gemm_fraction, gemm_fraction=1.0,
                   stream_fraction=1.0, multiprocessors=1, block_bytes=1, poll_us=1.0, word_us=1.0,
                   resident_multiprocessors=1, flush_reads=0, bar_gib=SEEN_GIB, source={})
