"""What the machine says of itself."""

from collections.abc import Iterator

from host.calibrate.gpu.device import Device
from host.calibrate.reading import Missing, Reading, number

__all__ = ["machine"]


def machine(device: Device) -> Iterator[Reading]:
    """Yield properties of the GPU."""
    if not device.cuda:
        raise Missing("a CPU has none of a GPU's properties")
    said = device.torch.cuda.get_device_properties(0)
    about = "what the driver says"
    yield number("device.multiprocessors", said.multi_processor_count, about)
    yield number("device.memory_gib", round(said.total_memory / 2**30, 2), about, "GiB")
    yield number("device.capability", said.major + said.minor / 10, about)
    cache = getattr(said, "L2_cache_size", None)
    if cache:
        yield number("device.cache_mib", cache / 2**20, about, "MiB")
