"""Gathers of many rows at random by a kernel of the project."""

from collections.abc import Iterator

from host.calibrate.gpu.device import Device
from host.calibrate.gpu.driver import Word
from host.calibrate.reading import Reading, reading

__all__ = ["BLOCK", "ROWS", "ROW_BYTES", "gather"]

ROWS = 65536
ROW_BYTES = (64, 256)
_SETS = 16
"""Sets of row numbers: each kernel of a series reads different rows."""
BLOCK = 256
_MOST_BLOCKS = 4096
"""Enough to fill any GPU."""


def gather(device: Device) -> Iterator[Reading]:
    """Yield the time of a gather as a kernel in a series; its rows are not in the cache."""
    for size in ROW_BYTES:
        width = size // 4
        table = device.floats(device.sizes.table_values // width, width)
        out = device.floats(ROWS, width)
        blocks = max(1, min(-(-ROWS * width // (4 * BLOCK)), _MOST_BLOCKS))
        sets = [device.indices(ROWS, len(table)) for _ in range(_SETS)]
        kernels = [device.kernel("gather", "gather", blocks, BLOCK, table.data_ptr(),
                                 where.data_ptr(), out.data_ptr(), Word(ROWS), Word(width // 4))
                   for where in sets]
        yield reading(f"gather.{ROWS}x{size}B.kernel.cold_us", device.gpu(kernels, cold=True),
                      f"kernel in a graph of {_SETS}, each with rows of its own, not read just "
                      "before")
