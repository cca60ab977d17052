"""EN's GPU work as a whole: graphs that wait for a NIC's word, beside the graphs of ``bl-tuned``.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from time import sleep
from typing import Any

from host.calibrate.gpu.device import Device
from host.calibrate.gpu.halves import Half
from host.calibrate.gpu.inference import Inference, mini_batches
from host.calibrate.gpu.items.launch import first_seen
from host.calibrate.reading import Absent, Missing, Reading, reading
from host.model import MODELS

__all__ = ["ANSWER_US", "CASES", "HALVES", "IN_FLIGHT", "PER_GRAPH", "en"]

CASES = (("kaggle", 32, 1.0), ("terabyte", 512, 1 / 16))
"""Model, samples per share on four nodes, and maximum fraction of the tables that is kept."""
HALVES = {"en": "EN's half of a mini-batch, words stored 8 us after the launch",
          "tuned": "bl-tuned's half of a mini-batch, without its exchanges"}
PER_GRAPH = (1, 2, 4, 8)
IN_FLIGHT = 16
"""Mini-batches in flight."""
ANSWER_US = 8.0
"""Microseconds from a graph's launch to the NIC's words: about a NIC's time for Kaggle's
mini-batches.
"""
_MINI_BATCHES = 512
"""Mini-batches of a series, without its first and last ones."""
_REPLAYS = 20
_SETTLED_S = 200e-6
"""Seconds after which the GPU has reached its wait."""
_PRODUCTS = {"": 1e-5, "tf32.": 2e-4}
"""Maximum difference of predictions from the float32 reference, for float32 and TF32 products.

Differences come from the order of sums and from rounding. Wrong vectors change predictions by
thousandths.
"""


def en(device: Device) -> Iterator[Reading | Absent]:
    """Yield times of graphs with `PER_GRAPH` mini-batches of GPU work in EN and ``bl-tuned``.

    A loop in C plays host thread and NIC: it launches graphs, stores a word per mini-batch, and
    polls their done words. Each time is measured with float32 and with TF32 products (``tf32``).
    The data that a NIC would write before its words are in GPU memory beforehand. Graphs with wrong
    predictions yield no times.

    - Latency: from the store of the word to the sight of the done word; the graph of the mini-batch
      is already waiting.
    - Interval: time per mini-batch with `IN_FLIGHT` mini-batches in flight.
    - Replay: graphs in sequence with all words present.
    """
    torch = device.torch
    device.driver  # noqa: B018 - raises Missing without a driver
    kept: list[Any] = []  # page-locked memory must stay allocated during capture
    for name, samples, most in CASES:
        made = mini_batches(MODELS[name], samples, IN_FLIGHT, min(most, device.sizes.scale))
        whole, wanted = Inference(device, MODELS[name], made), []
        for nth in range(IN_FLIGHT):
            whole.eager(nth)
            device.wait()
            wanted.append(torch.clone(whole.output))
        for (form, most_apart), kind in product(_PRODUCTS.items(), HALVES):
            torch.backends.cuda.matmul.allow_tf32 = bool(form)
            try:
                half = Half(device, whole, made, kind == "en")
                kept += [whole, half]
                for each in PER_GRAPH:
                    yield from _checked(device, half, each, kind, wanted, most_apart,
                                        f"en.{name}.{samples}.{form}{kind}.{each}")
            finally:
                torch.backends.cuda.matmul.allow_tf32 = False


def _checked(device: Device, half: Half, each: int, kind: str, wanted: Sequence[Any],
             most_apart: float, about: str) -> Iterator[Reading | Absent]:
    """Yield the times of graphs of ``each`` mini-batches if their predictions equal ``wanted``."""
    try:
        found = list(_times(device, half, each, kind, about))
        apart = half.apart(wanted)
        if not apart < most_apart:
            raise Missing(f"predictions differ by {apart:.2g} from those of separate operators")
        yield from found
    except Missing as missing:
        yield Absent(about, str(missing))


def _times(device: Device, half: Half, each: int, kind: str, name: str) -> Iterator[Reading]:
    driver, graphs = device.driver, half.graphs(each)
    for place in half.predictions:
        place.zero_()
    whole, stream = graphs[0], graphs[0].stream
    what = f"{HALVES[kind]}, in graphs of {each}"
    with half.ready(1):
        calls = driver.series(whole, 8, 4 * device.repeats)
        replays = [driver.loops.row([whole] * _REPLAYS + [driver.wait(stream)]) / _REPLAYS
                   for _ in range(2 * device.repeats)]
    yield reading(f"{name}.call_us", calls, f"host time of a graph's launch, in a series; {what}")
    yield reading(f"{name}.replay_us", [us / each for us in replays], f"{what}, {_REPLAYS} back to "
                  "back, words are there; per mini-batch")
    answer = ANSWER_US if kind == "en" else -1.0
    intervals = []
    for _ in range(4 * device.repeats):
        with half.ready(0 if kind == "en" else 1):
            intervals.append(driver.loops.turns(
                graphs, half.words.data_ptr(), half.dones.data_ptr(), each,
                2 * len(graphs) + max(1, _MINI_BATCHES // each), answer) / each)
    yield reading(f"{name}.interval_us", intervals, f"from one mini-batch to the next, {IN_FLIGHT} "
                  f"under way; {what}")
    if each > 1:
        return
    with half.ready(1):
        _, alone = first_seen(device, driver, whole, half.dones, 8 * device.repeats)
    yield reading(f"{name}.alone_us", alone, f"from the launch until the host sees the done word, "
                  f"words are there, idle GPU; {what}")
    if kind == "en":
        yield reading(f"{name}.latency_us", _latencies(device, half, graphs[0]), "from the store "
                      "of the word until the host sees the done word, the graph waits already")


def _latencies(device: Device, half: Half, graph: Any) -> list[float]:
    times = []
    for turn in range(8 * device.repeats + 2):
        with half.ready(0):
            device.driver.perform(graph)
            sleep(_SETTLED_S)
            if int(half.dones[0]):
                raise Missing("the graph did not wait for its word")
            us = device.driver.loops.ring(half.words.data_ptr(), 1, half.dones.data_ptr(), 1)
        if turn >= 2:
            times.append(us)
    return times
