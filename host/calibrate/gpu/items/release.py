"""A graph that has been launched and is released by a flag in memory."""

from collections.abc import Callable, Iterator
from time import sleep
from typing import Any

from host.calibrate.gpu.device import Device
from host.calibrate.gpu.driver import Driver, Word
from host.calibrate.gpu.native import Action
from host.calibrate.reading import Absent, Missing, Reading, reading

__all__ = ["release"]

_LIMIT_NS = 2_000_000_000
"""After this long a kernel gives up waiting: whatever goes wrong, the GPU is free again."""

_SETTLED_S = 200e-6
"""After this long the GPU has come to where it waits."""


def release(device: Device) -> Iterator[Reading | Absent]:
    """Yield the time from a store to page-locked memory until the host sees a graph's first store.

    By a stream that waits for the value (the driver's memory operation), and by a first node that
    polls. Beside it: a launch of the same graph when it is wanted is ``graph.1.first_us``.
    """
    driver, torch = device.driver, device.torch
    stream = driver.stream()
    # The bell is 64 bits wide, of which the GPU looks at the lower half.
    bell, flag = device.pinned(1, torch.int64), device.pinned(1, torch.int32)
    touch = driver.launch(stream, "touch", "touch", 1, 32, flag.data_ptr(), Word(1))
    poll = driver.launch(stream, "released", "released", 1, 1, bell.data_ptr(), Word(1), _LIMIT_NS)
    alone, polling = driver.graph(stream, [touch]), driver.graph(stream, [poll, touch])

    def held() -> None:
        driver.wait_value(stream, bell.data_ptr(), 1)
        driver.perform(alone)

    for name, about, arm in (
            ("wait", "a stream that waits for the word", held),
            ("poll", "a first node that polls the word", lambda: driver.perform(polling))):
        try:
            yield reading(f"release.{name}_us", _released(device, driver, arm, bell, flag, touch),
                          f"from the host's store until it sees the graph's; {about}")
        except Missing as missing:
            yield Absent(f"release.{name}", str(missing))


def _released(device: Device, driver: Driver, arm: Callable[[], None], bell: Any, flag: Any,
              touch: Action) -> list[float]:
    times = []
    for turn in range(8 * device.repeats + 2):
        bell.zero_()
        flag.zero_()
        try:
            arm()
            sleep(_SETTLED_S)
            us = driver.loops.ring(bell.data_ptr(), 1, flag.data_ptr(), 1)
        finally:
            bell.fill_(1)
            driver.synchronize(touch.stream)
        if turn >= 2:
            times.append(us)
    return times
