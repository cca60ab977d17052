"""Gathers of rows by a kernel: from a few to many, of 64 and 256 bytes."""

from collections.abc import Iterator

from host.calibrate.gpu.device import Act, Device
from host.calibrate.gpu.driver import Word
from host.calibrate.reading import Absent, Missing, Reading, reading

__all__ = ["ROWS", "ROW_BYTES", "gather", "grid_of"]

ROWS = (64, 256, 1024, 4096, 16384, 65536)
ROW_BYTES = (64, 256)
_SETS = 16
"""Sets of row numbers, so that each kernel of a series reads others."""
BLOCK = 256


def grid_of(threads: int) -> int:
    """Return the blocks of a kernel that has work for ``threads``: enough to fill any GPU."""
    return max(1, min(-(-threads // BLOCK), 4096))


def gather(device: Device) -> Iterator[Reading | Absent]:
    """Yield a gather's time as a kernel in a series: its rows read before, and not.

    By the project's own kernel and by PyTorch's ``index_select``.
    """
    for size in ROW_BYTES:
        width = size // 4
        table = device.floats(device.sizes.table_values // width, width)
        for rows in ROWS:
            sets = [device.indices(rows, len(table)) for _ in range(_SETS)]
            out = device.floats(rows, width)
            series: dict[str, list[Act]] = {"index_select": [
                lambda where=where: device.torch.index_select(table, 0, where, out=out)
                for where in sets]}
            try:
                series["kernel"] = [device.kernel(
                    "gather", "gather", grid_of(rows * width // 4), BLOCK,
                    table.data_ptr(), where.data_ptr(), out.data_ptr(), Word(rows),
                    Word(width // 4)) for where in sets]
            except Missing as missing:
                yield Absent("gather.kernel", str(missing))
            for by, actions in series.items():
                for cold in (False, True):
                    yield reading(
                        f"gather.{rows}x{size}B.{by}.{'cold' if cold else 'warm'}_us",
                        device.gpu(actions, cold), f"{by} in a graph of {_SETS}, each with rows "
                        f"of its own, {'not ' if cold else ''}read just before")
