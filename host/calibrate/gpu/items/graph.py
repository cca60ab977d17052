"""Graphs of small kernels: their launch, the gap per node, and replays back to back."""

from collections.abc import Iterator

from host.calibrate.gpu.device import ROUNDS, Device
from host.calibrate.gpu.driver import Word
from host.calibrate.gpu.items.launch import first_seen
from host.calibrate.reading import Absent, Missing, Reading, reading

__all__ = ["NODES", "graph"]

NODES = (1, 7, 14, 40)
_REPLAYS = 50


def graph(device: Device) -> Iterator[Reading | Absent]:
    """Yield times of graphs of `NODES` kernels, by PyTorch, and by the driver from C."""
    torch = device.torch
    small = device.floats(16)
    for nodes in NODES:
        replay = device.capture([lambda: torch.add(small, small, out=small)] * nodes)
        yield reading(f"graph.{nodes}.python_us", device.single(replay), "host time of PyTorch's "
                      "replay on an idle GPU")
        yield reading(f"graph.{nodes}.replay_us", device.times(replay, _REPLAYS),
                      f"a graph of {nodes} small operators, {_REPLAYS} back to back")
    try:
        yield from _driven(device)
    except Missing as missing:
        yield Absent("graph.driver", str(missing))


def _driven(device: Device) -> Iterator[Reading]:
    """Yield what the driver takes: ``nothing`` kernels, of which one says that it has begun."""
    driver = device.driver
    stream = driver.stream()
    flag = device.pinned(1, device.torch.int32)
    empty = driver.launch(stream, "touch", "nothing", 1, 32)
    touch = driver.launch(stream, "touch", "touch", 1, 32, flag.data_ptr(), Word(1))
    for nodes in NODES:
        rest = [empty] * (nodes - 1)
        begins, ends = driver.graph(stream, [touch, *rest]), driver.graph(stream, [*rest, touch])
        calls, first = first_seen(device, driver, begins, flag, 8 * device.repeats)
        _, last = first_seen(device, driver, ends, flag, 8 * device.repeats)
        rows = driver.series(begins, ROUNDS // 2, 4 * device.repeats)
        yield reading(f"graph.{nodes}.launch_us", calls, "host time of a graph's launch on an "
                      "idle GPU, from C")
        yield reading(f"graph.{nodes}.call_us", rows, "the same in a series, without waiting")
        yield reading(f"graph.{nodes}.first_us", first, "from the call until the host sees the "
                      "first node's store; idle GPU")
        if nodes > 1:
            earlier = sorted(first)[len(first) // 2]
            yield reading(f"graph.{nodes}.node_us", [
                (us - earlier) / (nodes - 1) for us in last], "from one node's start to the "
                "next's: until the last node's store, less until the first's")
        wait = driver.wait(stream)
        yield reading(f"graph.{nodes}.driver_replay_us", [
            (driver.loops.row([begins] * _REPLAYS + [wait])) / _REPLAYS
            for _ in range(device.repeats)], f"{_REPLAYS} empty graphs back to back, from C")
