"""Separates launches from kernels: one or two threads that launch, by mini-batches in flight."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from threading import Barrier

from host.calibrate.gpu.device import Device
from host.calibrate.gpu.halves import Half
from host.calibrate.gpu.inference import Inference
from host.calibrate.gpu.native import Action
from host.calibrate.gpu.traffic import mini_batches
from host.calibrate.reading import Absent, Reading, reading
from host.model import MODELS

__all__ = ["CASES", "IN_FLIGHT", "THREADS", "threads"]

CASES = (("kaggle", 32, 1.0), ("kaggle", 128, 1.0), ("terabyte", 512, 1 / 16))
"""Models, samples of a mini-batch, and the largest share of the tables' rows that exists."""
IN_FLIGHT = (4, 8, 16)
"""Mini-batches in flight. More than 16 graphs at a time did not end on an H100."""
THREADS = (1, 2, 4)
_ROUNDS = 1024
"""Mini-batches of a series, over all threads."""
_PRODUCTS = ("", "tf32.")
_APART = 16
"""Words of 32 bits from one mini-batch's word to the next, as in ``loops.c``."""


def threads(device: Device) -> Iterator[Reading | Absent]:
    """Yield the interval of ``bl-tuned``'s half of a mini-batch, a graph each.

    Threads share the mini-batches in flight. If a second thread shortens the interval, launches
    are the bottleneck; if only more mini-batches in flight do, the latency of a graph is; otherwise
    the kernels are.
    """
    torch, kept = device.torch, []
    device.driver  # noqa: B018 - without one, nothing is generated
    for name, samples, most in CASES:
        made = mini_batches(MODELS[name], samples, max(IN_FLIGHT), min(most, device.sizes.scale))
        whole = Inference(device, MODELS[name], made)
        for form in _PRODUCTS:
            torch.backends.cuda.matmul.allow_tf32 = bool(form)
            try:
                half = Half(device, whole, made, False)
                kept += [whole, half]
                graphs = half.graphs(1)
                with half.ready(1):
                    device.driver.loops.row(graphs)  # a graph's first launch takes longer
                for in_flight, count in product(IN_FLIGHT, THREADS):
                    if count > in_flight:
                        continue
                    yield reading(
                        f"threads.{name}.{samples}.{form}{in_flight}.{count}_us",
                        [_interval(device, half, graphs[:in_flight], count)
                         for _ in range(2 * device.repeats)],
                        f"from one mini-batch to the next, {in_flight} in flight, launched by "
                        f"{count} threads, a graph each")
            finally:
                torch.backends.cuda.matmul.allow_tf32 = False


def _interval(device: Device, half: Half, graphs: Sequence[Action], count: int) -> float:
    """Return microseconds per mini-batch, of ``count`` threads with equal parts of ``graphs``."""
    share, barrier = len(graphs) // count, Barrier(count)

    def turns(first: int) -> float:
        device.wait()  # binds the GPU's context to this thread
        barrier.wait()
        return device.driver.loops.turns(
            graphs[first:first + share], half.words[_APART * first // 2:].data_ptr(),
            half.dones[_APART * first // 2:].data_ptr(), 1, 2 * share + _ROUNDS // count, -1.0)

    with half.ready(1), ThreadPoolExecutor(count) as pool:
        times = list(pool.map(turns, range(0, share * count, share)))
    return 1 / sum(1 / us for us in times)
