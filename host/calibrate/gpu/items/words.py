"""Graphs that wait for a word in host memory, by a polling kernel or by a wait node."""

from collections.abc import Iterator
from time import sleep
from typing import Any

from host.calibrate.gpu.device import Device
from host.calibrate.gpu.driver import Word
from host.calibrate.gpu.native import Action
from host.calibrate.reading import Reading, reading

__all__ = ["held", "release"]

_LIMIT_NS = 2_000_000_000
"""Nanoseconds after which a kernel stops waiting, so that an error cannot block the GPU."""

_SETTLED_S = 200e-6
"""Seconds after which the GPU has reached its wait."""


def release(device: Device) -> Iterator[Reading]:
    """Yield the time of a graph whose first node is a kernel that polls the word."""
    driver, (stream, bell, flag, touch) = device.driver, _parts(device)
    poll = driver.launch(stream, "released", "released", 1, 1, bell.data_ptr(), Word(1), _LIMIT_NS)
    whole = driver.graph(stream, [poll, touch])
    yield reading("release.poll_us", _released(device, whole, bell, flag, 8 * device.repeats),
                  "from the host's store until it sees the graph's; a first node that polls the "
                  "word")


def held(device: Device) -> Iterator[Reading]:
    """Yield the time of a graph with a kernel, a node that waits for the word, and another kernel.
    """
    driver, (stream, bell, flag, touch) = device.driver, _parts(device)
    before = driver.launch(stream, "touch", "nothing", 1, 32)
    whole = driver.branches(stream, [[before, (bell.data_ptr(), 1), touch]])
    yield reading("held.1.in_order.first_us",
                  _released(device, whole, bell, flag, 4 * device.repeats), "from the host's store "
                  "until it sees the kernel's behind it; a node that waits for the word")


def _parts(device: Device) -> tuple[int, Any, Any, Action]:
    """Return a stream, a word, a flag, and the launch of the kernel that sets the flag."""
    driver, torch = device.driver, device.torch
    stream = driver.stream()
    # The bell has 64 bits; the GPU reads the lower half.
    bell, flag = device.pinned(1, torch.int64), device.pinned(1, torch.int32)
    return stream, bell, flag, driver.launch(stream, "touch", "touch", 1, 32, flag.data_ptr(),
                                             Word(1))


def _released(device: Device, whole: Action, bell: Any, flag: Any, times: int) -> list[float]:
    """Return the microseconds from the store of the word to the flag, measured ``times`` times."""
    driver, found = device.driver, []
    for turn in range(times + 2):
        bell.zero_()
        flag.zero_()
        try:
            driver.perform(whole)
            sleep(_SETTLED_S)
            us = driver.loops.ring(bell.data_ptr(), 1, flag.data_ptr(), 1)
        finally:
            bell.fill_(1)
            driver.synchronize(whole.stream)
        if turn >= 2:  # the first warm up
            found.append(us)
    return found
