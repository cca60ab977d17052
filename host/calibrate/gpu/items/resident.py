"""A resident kernel that polls for lists of rows: the round trip of a list."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from host.calibrate.gpu.device import Device
from host.calibrate.gpu.driver import Word
from host.calibrate.reading import Reading, reading

__all__ = ["BLOCK", "BLOCKS", "Mailbox", "resident"]

BLOCK = 256
"""Threads of a block."""
BLOCKS = (1, 4)
"""Blocks of the kernel; each occupies at most one multiprocessor."""
_MOST_ROWS = 8
"""Maximum rows of a list."""
_BYTES = 64
_TURNS = 16
"""Lists in memory; consecutive lists gather different rows."""
_LIMIT_NS = 2_000_000_000
"""Nanoseconds without a list after which the kernel ends, so that an error cannot block the GPU."""
_LAST = 0xFFFFFFFF


class Mailbox:
    """Shared memory of the resident kernel and the host.

    Parameters: ``device``; ``table`` of rows. Lists and rows are in GPU memory.
    """

    def __init__(self, device: Device, table: Any):
        torch = device.torch
        self._device, self._driver, self.table = device, device.driver, table
        self._mail, self._reply = device.pinned(1, torch.int64), device.pinned(1, torch.int32)
        self._bell, self._ended = device.zeros(1), device.zeros(1, torch.int32)
        self.lists = device.indices(_MOST_ROWS * _TURNS, len(table))
        self.out = device.floats(_MOST_ROWS * _BYTES // 4)
        device.wait()
        self._number = 0

    @contextmanager
    def served(self, stream: int, blocks: int) -> Iterator[None]:
        """Keep the kernel running with ``blocks`` blocks of `BLOCK` threads during the ``with``
        body.
        """
        driver, width = self._driver, _BYTES // 16
        for word in (self._mail, self._reply, self._bell, self._ended):
            word.zero_()
        self._device.wait()
        self._number = 0
        kernel = driver.launch(
            stream, "resident", "resident", blocks, BLOCK, self._mail.data_ptr(),
            self._reply.data_ptr(), self.lists.data_ptr(), self.table.data_ptr(),
            self.out.data_ptr(), Word(_TURNS), Word(width), self._bell.data_ptr(),
            self._ended.data_ptr(), _LIMIT_NS)
        driver.perform(kernel)
        try:
            yield
        finally:
            self._mail.fill_(_LAST)
            driver.synchronize(stream)

    def ask(self, count: int) -> float:
        """Send a list of ``count`` rows; return the microseconds until the reply."""
        self._number += 1
        return self._driver.loops.ring(self._mail.data_ptr(), count << 32 | self._number,
                                       self._reply.data_ptr(), self._number)


def resident(device: Device) -> Iterator[Reading]:
    """Yield the round trip of an empty list and of a list with a single row.

    The time starts with the host's store to page-locked memory and ends when the host sees the
    reply.
    """
    stream = device.driver.stream()
    mailbox = Mailbox(device, device.floats(device.sizes.table_values // 16, 16))
    for blocks in BLOCKS:
        found = []
        with mailbox.served(stream, blocks):  # nothing else runs while the kernel stays
            for count in (0, 1):
                mailbox.ask(count)
                found.append([mailbox.ask(count) for _ in range(16 * device.repeats)])
        yield reading(f"resident.{blocks}.round_trip_us", found[0], "a list of no rows, from the "
                      f"host's store to its sight of the reply; {blocks} blocks")
        yield reading(f"resident.{blocks}.1_rows_us", found[1], f"a list of 1 row of {_BYTES} B, "
                      f"{blocks} blocks, lists and rows in the GPU's memory")
