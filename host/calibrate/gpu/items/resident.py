"""A kernel that stays on the GPU and polls for lists of rows: round trip, rows per second."""

from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

from host.calibrate.gpu.device import Device
from host.calibrate.gpu.driver import Word
from host.calibrate.gpu.items.gather import BLOCK
from host.calibrate.gpu.items.loads import LOADS, beside, products, slowed_us
from host.calibrate.reading import Absent, Missing, Reading, reading

__all__ = ["BLOCK", "BLOCKS", "COUNTS", "Mailbox", "resident"]

BLOCKS = (1, 4, 16)
"""Blocks of the kernel, which take as many multiprocessors at most."""
COUNTS = (1, 64, 1024, 16384)
"""Rows of a list."""
_BYTES = 64
_TURNS = 16
"""Lists in memory, so that each gathers other rows than the one before."""
_LIMIT_NS = 2_000_000_000
"""After this long without a list the kernel ends: whatever goes wrong, the GPU is free again."""
_LAST = 0xFFFFFFFF


class Mailbox:
    """The resident kernel's side of memory, and the host's.

    Parameters: ``device``; ``table`` of rows; ``over_link``: whether lists come from, and rows go
    to, page-locked host memory, as they would to a NIC, or both are in the GPU's memory.
    """

    def __init__(self, device: Device, table: Any, over_link: bool):
        torch = device.torch
        self._device, self._driver = device, device.driver
        self._mail, self._reply = device.pinned(1, torch.int64), device.pinned(1, torch.int32)
        self._bell, self._ended = device.zeros(1), device.zeros(1, torch.int32)
        self.table, most, width = table, max(COUNTS), _BYTES // 4
        lists = device.indices(most * _TURNS, len(table))
        if over_link:
            self.lists = device.pinned(len(lists), torch.int64)
            self.lists.copy_(lists)
            self.out = device.pinned(most * width)
        else:
            self.lists, self.out = lists, device.floats(most * width)
        device.wait()
        self._number = 0

    @contextmanager
    def served(self, stream: int, blocks: int) -> Iterator[None]:
        """Keep the kernel on the GPU with ``blocks`` blocks of `BLOCK` threads, meanwhile the
        body of ``with``."""
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


def resident(device: Device) -> Iterator[Reading | Absent]:
    """Yield the round trip of a list of no rows, of lists of `COUNTS`, and rows per second.

    From the host's store to page-locked memory until it sees the reply there. With lists and rows
    in the GPU's memory, and both in the host's; alone, and beside products, which it may slow down.
    """
    driver = device.driver
    stream = driver.stream()
    table = device.floats(device.sizes.table_values // 16, 16)
    mailboxes = {"": Mailbox(device, table, False), "link_": Mailbox(device, table, True)}
    for blocks in BLOCKS:
        for where, mailbox in mailboxes.items():
            with mailbox.served(stream, blocks):
                yield from _asked(device, mailbox, blocks, where)
    for kind, about in LOADS.items():
        try:
            yield from _loaded(device, mailboxes[""], driver.stream(urgent=True), kind, about)
        except Missing as missing:
            yield Absent(f"resident.beside_{kind}", str(missing))


def _asked(device: Device, mailbox: Mailbox, blocks: int, where: str) -> list[Reading]:
    """Return the readings of one kernel: a list, so that nothing else runs while it stays."""
    found = []
    memory = "host memory, over the link" if where else "the GPU's memory"
    name = f"resident.{blocks}.{where}"
    for count in (0, *COUNTS):
        mailbox.ask(count)
        times = [mailbox.ask(count) for _ in range(16 * device.repeats)]
        if count:
            found.append(reading(f"{name}{count}_rows_us", times, f"a list of {count} rows of "
                                 f"{_BYTES} B, {blocks} blocks, lists and rows in {memory}"))
        elif not where:
            found.append(reading(f"{name}round_trip_us", times, "a list of no rows, from the "
                                 f"host's store to its sight of the reply; {blocks} blocks"))
        if count == max(COUNTS):
            found.append(reading(f"{name}rows_per_us", [count / us for us in times],
                                 f"lists of {count} rows of {_BYTES} B, one at a time, {blocks} "
                                 f"blocks, lists and rows in {memory}", "rows/us"))
    return found


def _loaded(device: Device, mailbox: Mailbox, stream: int, kind: str,
            about: str) -> Iterator[Reading]:
    """Yield the round trip beside a load, and how much longer the load takes beside it."""
    if not device.cuda:
        raise Missing("nothing runs side by side without CUDA")
    load = products(device, kind)
    alone = median(device.times(load, 4))
    blocks = BLOCKS[-1]
    with mailbox.served(stream, blocks):
        mailbox.ask(1)
        with beside(device, load, alone):
            trips = [mailbox.ask(0) for _ in range(16 * device.repeats)]
            times = [mailbox.ask(1024) for _ in range(16 * device.repeats)]
        # The kernel polls on while the load runs by itself.
        slower = slowed_us(device, load, alone)
    yield reading(f"resident.beside_{kind}.round_trip_us", trips, f"a list of no rows, {blocks} "
                  f"blocks of high priority; beside {about}")
    yield reading(f"resident.beside_{kind}.1024_rows_us", times, f"a list of 1,024 rows of "
                  f"{_BYTES} B, {blocks} blocks of high priority; beside {about}")
    yield reading(f"resident.beside_{kind}.load_us", [slower], f"{about}, beside a kernel of "
                  f"{blocks} blocks that polls")
    yield reading(f"resident.beside_{kind}.load_alone_us", [alone], f"{about}, alone")
