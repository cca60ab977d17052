"""Rates of large operators and copies, and what a small operator of the framework costs."""

from collections.abc import Iterator

from host.calibrate.gpu.device import ROUNDS, Device
from host.calibrate.reading import Reading, reading
from host.devices import dense_work, embedding_work

__all__ = ["DIMENSION", "rates"]

DIMENSION = 16
"""Dimension of the rows that are gathered for their rate."""

_SMALL = 16
"""Values of an operator so small that only its call takes time."""

_LEAST = 0.05
"""Least share of a time that noise may leave after what is beside it is subtracted."""


def rates(device: Device) -> Iterator[Reading]:
    """Yield the times of one small operator's parts, then GB/s and TFLOP/s of large operators.

    A small operator's time is that of its call, its launch, its kernel and the wait for it; all but
    the kernel's is subtracted from the large ones'.
    """
    torch = device.torch
    small = device.floats(_SMALL)

    def add() -> None:
        torch.add(small, small, out=small)

    call = reading("rates.call_us", device.queued(add), "host time of calls of a small operator, "
                   "without waiting")
    wait = reading("rates.wait_us", device.times(lambda: None), "a wait for an idle device")
    node = reading("rates.node_us", device.gpu([add] * ROUNDS), f"a kernel of a graph of {ROUNDS}")
    single = reading("rates.single_us", device.times(add), "a small operator and the wait for it")
    yield from (call, wait, node, single)
    launch = max(0.1, single.value - call.value - node.value - wait.value)
    yield reading("rates.launch_us", [launch],
                  "a small operator and its wait, less call, kernel and wait; at least 0.1")
    beside = single.value - node.value
    stream = _stream(device, beside)
    yield stream
    yield _gathered(device, beside, stream.value)
    yield _product(device, beside)
    little, place = device.pinned(_SMALL), device.floats(_SMALL)
    copy = reading("rates.copy_us", device.queued(
        lambda: place.copy_(little, non_blocking=True)), "host time of calls of small copies to "
        "the device, without waiting")
    yield copy
    yield from _copied(device, copy.value + wait.value)


def _rest(times: list[float], beside: float) -> list[float]:
    return [max(us - beside, _LEAST * us) for us in times]


def _stream(device: Device, beside: float) -> Reading:
    count = device.sizes.values
    values = device.floats(count)
    moved = dense_work.elementwise(count).streamed_bytes
    times = device.times(lambda: device.torch.relu_(values))
    return reading("rates.stream_gb_s", [moved / us / 1e3 for us in _rest(times, beside)],
                   f"element-wise operators of {count} values", "GB/s")


def _gathered(device: Device, beside: float, stream_gb_s: float) -> Reading:
    rows = device.sizes.rows
    table = device.floats(device.sizes.table_values // DIMENSION, DIMENSION)
    where, taken = device.indices(rows, len(table)), device.floats(rows, DIMENSION)
    work = embedding_work.gather(rows, rows, DIMENSION)
    times = device.times(lambda: device.torch.index_select(table, 0, where, out=taken))
    return reading("rates.gather_gb_s", [
        work.row_traffic(64) / us / 1e3
        for us in _rest(times, beside + work.streamed_bytes / (stream_gb_s * 1e3))],
        f"{rows} rows of {4 * DIMENSION} B, without what is read and written in order", "GB/s")


def _product(device: Device, beside: float) -> Reading:
    side = device.sizes.side
    left, right = device.floats(side, side), device.floats(side, side)
    times = device.times(lambda: device.torch.mm(left, left, out=right))
    return reading("rates.product_tflops", [2 * side**3 / us / 1e6 for us in _rest(times, beside)],
                   f"products of matrices {side} wide, float32 without TF32", "TFLOP/s")


def _copied(device: Device, beside: float) -> Iterator[Reading]:
    size = device.sizes.copied
    host, here = device.pinned(size // 4), device.floats(size // 4)
    for way, target, source in (("to", here, host), ("from", host, here)):
        times = device.times(
            lambda to=target, of=source: to.copy_(of, non_blocking=True))
        yield reading(f"rates.{way}_device_gb_s", [size / us / 1e3 for us in _rest(times, beside)],
                      f"copies of {size} B {way} the device", "GB/s")
