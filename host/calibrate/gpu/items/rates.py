"""Properties of the GPU, host times of operators, and rates of large operators and copies."""

from collections.abc import Iterator

from host.calibrate.gpu.device import ROUNDS, Device
from host.calibrate.reading import Missing, Reading, number, reading
from host.devices import dense_work, embedding_work
from host.model import MODELS

__all__ = ["DIMENSION", "OPERATORS", "machine", "operators", "rates"]

OPERATORS = ("addmm", "relu", "embedding_bag", "bmm")

_SAMPLES = 128
"""Samples of the operators whose calls are timed."""

DIMENSION = 16
"""Dimension of the rows whose gather rate is measured."""

_SMALL = 16
"""Values of an operator that is so small that only its call takes time."""

_LEAST = 0.05
"""Minimum fraction of a time that remains after overhead is subtracted; guards against noise."""


def machine(device: Device) -> Iterator[Reading]:
    """Yield properties of the GPU."""
    if not device.cuda:
        raise Missing("a CPU has no GPU properties")
    said = device.torch.cuda.get_device_properties(0)
    about = "reported by the driver"
    yield number("device.multiprocessors", said.multi_processor_count, about)
    yield number("device.memory_gib", round(said.total_memory / 2**30, 2), about, "GiB")
    yield number("device.capability", said.major + said.minor / 10, about)
    cache = getattr(said, "L2_cache_size", None)
    if cache:
        yield number("device.cache_mib", cache / 2**20, about, "MiB")


def operators(device: Device) -> Iterator[Reading]:
    """Yield the host time of each of `OPERATORS`, in Kaggle's shape at 128 samples.

    The time ends when the call returns; it does not include the device.
    """
    torch, model = device.torch, MODELS["kaggle"]
    inputs, outputs = model.top_layers[1]
    bias, data, weight = (device.floats(*shape) for shape in (
        (outputs,), (_SAMPLES, inputs), (inputs, outputs)))
    table = device.floats(device.sizes.of(1 << 20, 16), model.dimension)
    keys = device.indices(_SAMPLES, len(table))
    offsets = torch.arange(0, _SAMPLES, device=device.kind)
    joined = device.floats(_SAMPLES, model.tables + 1, model.dimension)
    turned = joined.transpose(1, 2)
    calls = {"addmm": lambda: torch.addmm(bias, data, weight), "relu": lambda: torch.relu(data),
             "embedding_bag": lambda: torch.nn.functional.embedding_bag(keys, table, offsets,
                                                                        mode="sum"),
             "bmm": lambda: torch.bmm(joined, turned)}
    for name in OPERATORS:
        yield reading(f"operators.{name}.python_us", device.queued(calls[name]),
                      "host time of a call from Python, without waiting")


def rates(device: Device) -> Iterator[Reading]:
    """Yield the times of a small operator's parts, then GB/s and TFLOP/s of large operators.

    The time of a small operator consists of call, launch, kernel and wait. Everything except the
    kernel is subtracted from the times of large operators.
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
        f"{rows} rows of {4 * DIMENSION} B, without sequential reads and writes", "GB/s")


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
