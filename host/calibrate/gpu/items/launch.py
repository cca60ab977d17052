"""Launches by the driver: a kernel, a graph of kernels, and a graph of several mini-batches."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from host.calibrate.gpu.device import ROUNDS, Device
from host.calibrate.gpu.driver import Driver, Word
from host.calibrate.gpu.native import Action
from host.calibrate.reading import Absent, Missing, Reading, reading

__all__ = ["KERNELS", "branches", "first_seen", "graph", "launch"]

KERNELS = 14
"""Kernels of a mini-batch."""
_BRANCHES = (1, 4)
"""Mini-batches per graph: the difference is the cost of a further mini-batch."""
_ONE = 1
"""Value that a kernel stores to its flag."""


def launch(device: Device) -> Iterator[Reading]:
    """Yield the host time of a launch, and the time until the kernel's first instruction.

    The first instruction stores to page-locked host memory, which the host polls. The time includes
    the way of that store to the host, about a microsecond.
    """
    driver = device.driver
    stream, flag = driver.stream(), device.pinned(1, device.torch.int32)
    empty = driver.launch(stream, "touch", "nothing", 1, 32)
    yield reading("launch.call_us", driver.series(empty, ROUNDS, 4 * device.repeats), "host time "
                  "of a launch from C, in a series, without waiting")
    touch = driver.launch(stream, "touch", "touch", 1, 32, flag.data_ptr(), Word(_ONE))
    calls, seen = first_seen(device, driver, touch, flag, 16 * device.repeats)
    yield reading("launch.single_us", calls, "host time of one launch to an idle GPU, from C")
    yield reading("launch.first_idle_us", seen, "from the call until the host sees the kernel's "
                  "first store; idle GPU")


def graph(device: Device) -> Iterator[Reading | Absent]:
    """Yield the host time of a graph of `KERNELS` kernels, from PyTorch and from C."""
    torch, small, name = device.torch, device.floats(16), f"graph.{KERNELS}"
    replay = device.capture([lambda: torch.add(small, small, out=small)] * KERNELS)
    yield reading(f"{name}.python_us", device.single(replay), "host time of PyTorch's replay on "
                  "an idle GPU")
    try:
        driver = device.driver
        stream = driver.stream()
        empty = driver.launch(stream, "touch", "nothing", 1, 32)
        yield reading(f"{name}.call_us", driver.series(
            driver.graph(stream, [empty] * KERNELS), ROUNDS // 2, 4 * device.repeats),
            "host time of a graph's launch from C, in a series, without waiting")
    except Missing as missing:
        yield Absent("graph.driver", str(missing))


def branches(device: Device) -> Iterator[Reading]:
    """Yield the host time of graphs of several mini-batches, with a branch of `KERNELS` kernels
    each.
    """
    driver = device.driver
    stream = driver.stream()
    empty = driver.launch(stream, "touch", "nothing", 1, 32)
    alone = 0.0
    for count in _BRANCHES:
        whole = driver.branches(stream, [[empty] * KERNELS] * count)
        series = driver.series(whole, ROUNDS // 2, 4 * device.repeats)
        found = reading(f"branches.{count}.call_us", series, f"host time of the launch of a graph "
                        f"of {count} branches of {KERNELS} kernels, in a series, from C")
        yield found
        if count == 1:
            alone = found.value
        else:
            yield reading(f"branches.{count}.node_us", [
                (us - alone) / (KERNELS * (count - 1)) for us in series], "launch time per kernel "
                f"of a further branch; {count} branches")


def first_seen(device: Device, driver: Driver, action: Action, flag: Any,
               times: int) -> tuple[list[float], list[float]]:
    """Run ``action``, which sets ``flag`` to 1, ``times`` times in sequence.

    Return the microseconds until each call returned, and until the host saw the flag.
    """
    calls, seen = [], []
    with ExitStack() as after:
        after.callback(lambda: driver.synchronize(action.stream))
        for turn in range(times + 2):
            flag.zero_()
            call, saw = driver.loops.until(action, flag.data_ptr(), _ONE)
            driver.synchronize(action.stream)
            if turn >= 2:  # the first turns load code and warm up
                calls.append(call)
                seen.append(saw)
    return calls, seen
