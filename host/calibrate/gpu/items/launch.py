"""Launches of a kernel by the driver: host time, and how soon the kernel begins."""

from collections.abc import Iterator
from contextlib import ExitStack
from statistics import median
from typing import Any

from host.calibrate.gpu.device import ROUNDS, Device
from host.calibrate.gpu.driver import Driver, Word
from host.calibrate.gpu.items.loads import LOADS, beside, products
from host.calibrate.gpu.native import Action
from host.calibrate.reading import Absent, Missing, Reading, reading

__all__ = ["first_seen", "launch"]

_ONE = 1
"""What a flag is set to."""


def launch(device: Device) -> Iterator[Reading | Absent]:
    """Yield the host's time of a launch, and the time until the kernel's first instruction.

    The first instruction stores to page-locked host memory, where the host waits for it: the time
    until then includes that store's way back, about a microsecond. Idle: nothing else runs; loaded:
    beside `LOADS`, in a stream of the same and of a higher priority.
    """
    driver = device.driver
    stream, urgent = driver.stream(), driver.stream(urgent=True)
    empty = driver.launch(stream, "touch", "nothing", 1, 32)
    yield reading("launch.call_us", driver.series(empty, ROUNDS, 4 * device.repeats), "host time "
                  "of a launch from C, in a series, without waiting")
    flag = device.pinned(1, device.torch.int32)
    touch = {where: driver.launch(where, "touch", "touch", 1, 32, flag.data_ptr(), Word(_ONE))
             for where in (stream, urgent)}
    calls, seen = first_seen(device, driver, touch[stream], flag, 16 * device.repeats)
    yield reading("launch.single_us", calls, "host time of one launch to an idle GPU, from C")
    yield reading("launch.first_idle_us", seen, "from the call until the host sees the kernel's "
                  "first store; idle GPU")
    for kind, about in LOADS.items():
        try:
            load = products(device, kind)
            us = median(device.times(load))
            for where, name in ((stream, "first"), (urgent, "urgent")):
                with beside(device, load, us):
                    _, seen = first_seen(device, driver, touch[where], flag, 4 * device.repeats)
                how = "" if where == stream else ", in a stream of higher priority"
                yield reading(f"launch.{name}_beside_{kind}_us", seen, "from the call until the "
                              f"host sees the kernel's first store{how}; beside {about}")
        except Missing as missing:
            yield Absent(f"launch.beside_{kind}", str(missing))


def first_seen(device: Device, driver: Driver, action: Action, flag: Any,
               times: int) -> tuple[list[float], list[float]]:
    """Perform ``action``, which sets ``flag`` to 1, ``times`` times, each after the one before.

    Returns the microseconds until each call returned, and until the host saw the flag.
    """
    calls, seen = [], []
    with ExitStack() as after:
        after.callback(lambda: driver.synchronize(action.stream))
        for turn in range(times + 2):
            flag.zero_()
            call, saw = driver.loops.until(action, flag.data_ptr(), _ONE)
            driver.synchronize(action.stream)
            if turn >= 2:  # the first load code and warm up
                calls.append(call)
                seen.append(saw)
    return calls, seen
