"""Graphs whose middle waits for a word that the NIC writes: a node that waits, and no kernel."""

from collections.abc import Iterator
from statistics import median
from threading import Timer
from time import sleep

from host.calibrate.gpu.device import Device
from host.calibrate.gpu.driver import Driver, Word
from host.calibrate.gpu.items.loads import LOADS, products, slowed_us
from host.calibrate.reading import Absent, Missing, Reading, reading

__all__ = ["BRANCHES", "held"]

BRANCHES = (1, 2, 4, 8)
_LIMIT_S = 3.0
"""After this long all words are stored: whatever goes wrong, the GPU is free again."""
_SETTLED_S = 200e-6
"""After this long the GPU has come to where it waits."""


def held(device: Device) -> Iterator[Reading | Absent]:
    """Yield the time from the host's store of a word until it sees the store of the kernel behind.

    Of graphs of `BRANCHES` branches, each a kernel, a node that waits for a word of the branch's
    own, and a kernel. Words are stored in the order of the branches, and in the opposite order: a
    branch that waits must not hold the others. And what eight branches that wait take of a load.
    """
    driver = device.driver
    for count in BRANCHES:
        for name, order in (("in_order", range(count)), ("reversed", range(count - 1, -1, -1))):
            if count == 1 and name == "reversed":
                continue
            try:
                yield from _released(device, driver, count, name, list(order))
            except Missing as missing:
                yield Absent(f"held.{count}.{name}", str(missing))
    for kind, about in LOADS.items():
        try:
            yield from _loaded(device, driver, kind, about)
        except Missing as missing:
            yield Absent(f"held.beside_{kind}", str(missing))


class _Held:
    """A graph of ``count`` branches, each of which waits for its word."""

    def __init__(self, device: Device, driver: Driver, count: int):
        torch = device.torch
        self.driver, self.stream = driver, driver.stream()
        # 64 bytes apart, as words of a ring are; the GPU looks at the lower half of 64 bits.
        self.bells = device.pinned(8 * count, torch.int64)
        self.flags = device.pinned(16 * count, torch.int32)
        touch = [driver.launch(self.stream, "touch", "touch", 1, 32, self.flag(each), Word(1))
                 for each in range(count)]
        before = driver.launch(self.stream, "touch", "nothing", 1, 32)
        self.graph = driver.branches(self.stream, [
            [before, (self.bell(each), 1), touch[each]] for each in range(count)])

    def bell(self, number: int) -> int:
        return self.bells.data_ptr() + 64 * number

    def flag(self, number: int) -> int:
        return self.flags.data_ptr() + 64 * number

    def begin(self) -> None:
        self.bells.zero_()
        self.flags.zero_()
        self.driver.perform(self.graph)
        sleep(_SETTLED_S)

    def release(self) -> None:
        self.bells.fill_(1)

    def end(self) -> None:
        self.release()
        self.driver.synchronize(self.stream)


def _released(device: Device, driver: Driver, count: int, name: str,
              order: list[int]) -> Iterator[Reading]:
    each = _Held(device, driver, count)
    times: list[list[float]] = [[] for _ in order]
    for turn in range(4 * device.repeats + 2):
        each.begin()
        try:
            found = [driver.loops.ring(each.bell(at), 1, each.flag(at), 1) for at in order]
        finally:
            each.end()
        if turn >= 2:
            for kept, us in zip(times, found):
                kept.append(us)
    about = f"of {count} branches that wait, words stored {name.replace('_', ' ')}"
    yield reading(f"held.{count}.{name}.first_us", times[0], "from the host's store until it sees "
                  f"the kernel's behind it; the first {about}")
    if count > 1:
        yield reading(f"held.{count}.{name}.later_us", [us for kept in times[1:] for us in kept],
                      f"the same, the later ones {about}")


def _loaded(device: Device, driver: Driver, kind: str, about: str) -> Iterator[Reading]:
    if not device.cuda:
        raise Missing("nothing runs side by side without CUDA")
    load, each = products(device, kind), _Held(device, driver, BRANCHES[-1])
    alone = device.times(load, 4)
    each.begin()
    late = Timer(_LIMIT_S, each.release)
    late.start()
    try:
        slower = slowed_us(device, load, median(alone))
        if late.finished.is_set():
            raise Missing(f"branches that wait held {about}")
    finally:
        late.cancel()
        each.end()
    yield reading(f"held.beside_{kind}.load_us", [slower], f"{about}, beside a graph of "
                  f"{BRANCHES[-1]} branches that wait")
    yield reading(f"held.beside_{kind}.load_alone_us", alone, f"{about}, alone")

