"""One DLRM end to end, eager and as a graph, from host memory to host memory."""

from collections.abc import Callable, Iterator
from itertools import count

from host.calibrate.gpu.device import Act, Device
from host.calibrate.gpu.inference import Inference
from host.calibrate.gpu.traffic import mini_batches
from host.calibrate.reading import Absent, Missing, Reading, reading
from host.model import MODELS, Model

__all__ = ["IN_FLIGHT", "SAMPLES", "dlrm"]

SAMPLES = (128, 2048)
IN_FLIGHT = 4
_SETS = 4
"""Mini-batches, which take turns."""
_MOST_APART = 1e-4
"""Predictions of two ways to compute them differ by less: they add up in other orders."""


def dlrm(device: Device) -> Iterator[Reading | Absent]:
    """Yield the time of a mini-batch of Kaggle's model by itself, and its parts.

    Eager: an operator at a time, one lookup for each table. Graphed: one graph of one copy to the
    device, one lookup for all tables, the rest, and one copy back; fused: with activations in the
    products.
    """
    model, shared = MODELS["kaggle"], None
    for samples in device.sizes.batches(SAMPLES):
        whole = Inference(device, model, mini_batches(model, samples, _SETS, device.sizes.scale),
                          shared)
        shared = shared or whole
        name, turns = f"dlrm.kaggle.{samples}", count()
        eager = lambda: whole.eager(next(turns))  # noqa: E731
        yield reading(f"{name}.eager_us", _alone(device, eager), "from inputs in host memory to "
                      "predictions there, operator by operator, two copies in")
        yield reading(f"{name}.eager_call_us", device.single(eager), "of these, until the host "
                      "has called the last operator")
        for kind in ("graphed", "fused"):
            try:
                yield _checked(device, whole, kind == "fused", f"{name}.{kind}_us", turns)
            except Missing as missing:
                yield Absent(f"{name}.{kind}_us", str(missing))
        yield from _parts(device, whole, name)
        if device.cuda:
            yield _in_flight(device, model, samples, whole, name)


def _alone(device: Device, act: Act) -> list[float]:
    """Return the time of each of several mini-batches, one after the other."""
    return [us for _ in range(4) for us in device.times(act)]


def _checked(device: Device, whole: Inference, fused: bool, name: str,
             turns: Iterator[int]) -> Reading:
    """Return the time of graphs, if they predict what the operators do one by one."""
    if fused and not hasattr(device.torch, "_addmm_activation"):
        raise Missing("this PyTorch has no product with an activation")
    act = _graphed(device, whole, fused)
    apart = _apart(device, whole, act)
    if not apart < _MOST_APART:
        raise Missing(f"its predictions differ by {apart:.2g} from those of the operators one by "
                      f"one")
    about = "; activations fused into products" if fused else ""
    return reading(name, _alone(device, lambda: act(next(turns))), "the same as one graph, one "
                   f"copy in, one lookup for all tables{about}")


def _graphed(device: Device, whole: Inference, fused: bool) -> Callable[[int], object]:
    """Return what predicts a mini-batch: a graph for each, since each has inputs of its own."""

    def graph(nth: int) -> Act:
        def act() -> None:
            whole.copy_in(nth)
            whole.output.copy_(whole.compute(fused).view(-1), non_blocking=True)

        return device.capture([act])

    graphs = [graph(nth) for nth in range(len(whole.inputs))]
    return lambda nth: graphs[nth % len(graphs)]()


def _apart(device: Device, whole: Inference, act: Callable[[int], object]) -> float:
    """Return how far predictions of ``act`` are from those of the operators one by one."""
    found = []
    for predict in (whole.eager, act):
        predict(0)
        device.wait()
        found.append(whole.output.clone())
    return float((found[0] - found[1]).abs().max())


def _parts(device: Device, whole: Inference, name: str) -> Iterator[Reading]:
    """Yield the GPU's time of each part, as a graph of the part four times over."""
    keys, dense = whole.unpacked()
    whole.copy_in(0)
    vector, pooled = whole.bottom(dense), whole.lookup(keys)
    joined = whole.interaction(vector, pooled)
    for part, act in (("lookups", lambda: whole.lookups(keys)),
                      ("lookup", lambda: whole.lookup(keys)),
                      ("bottom", lambda: whole.bottom(dense)),
                      ("interaction", lambda: whole.interaction(vector, pooled)),
                      ("top", lambda: whole.top(joined))):
        yield reading(f"{name}.{part}_us", device.gpu([act] * 4), f"the GPU's time of the {part}, "
                      "in a graph")


def _in_flight(device: Device, model: Model, samples: int, whole: Inference, name: str) -> Reading:
    """Return the time per mini-batch with several in flight, each in its own stream."""
    torch, lanes = device.torch, []
    for seed in range(IN_FLIGHT):
        made = mini_batches(model, samples, 2, device.sizes.scale, seed)
        lanes.append((torch.cuda.Stream(), _graphed(device, Inference(device, model, made, whole),
                                                    False)))
    turns = count()

    def act() -> None:
        for stream, predict in lanes:
            with torch.cuda.stream(stream):
                predict(next(turns))

    return reading(f"{name}.interval_us", [us / IN_FLIGHT for us in device.times(act, 50)],
                   f"time per mini-batch with {IN_FLIGHT} in flight, graphed")
