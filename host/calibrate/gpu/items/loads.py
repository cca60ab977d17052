"""Work that keeps a GPU busy while something else is measured."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from host.calibrate.gpu.device import Act, Device
from host.model import MODELS

__all__ = ["LOADS", "beside", "products", "slowed_us"]

LOADS = {"mlp": "Kaggle's top MLP at 2,048 samples, again and again",
         "large": "products of matrices 8,192 wide"}

_LONG_US = 250_000
"""How long a load lasts at least."""


def products(device: Device, kind: str) -> Act:
    """Return the load ``kind`` of `LOADS`: on a GPU one graph."""
    torch = device.torch
    if kind == "large":
        side = device.sizes.side
        left, right = device.floats(side, side), device.floats(side, side)
        return device.capture([lambda: torch.mm(left, left, out=right)])
    samples, actions = device.sizes.of(2048, 8), []
    for inputs, outputs in MODELS["kaggle"].top_layers:
        data, weight = device.floats(samples, inputs), device.floats(inputs, outputs)
        out = device.floats(samples, outputs)
        actions.append(lambda data=data, weight=weight, out=out: torch.mm(data, weight, out=out))
    return device.capture(actions * 8)


def slowed_us(device: Device, load: Act, alone: float) -> float:
    """Return the microseconds of the load in a stream of its own, beside what goes on meanwhile.

    ``alone``: what it takes by itself. Raises `Missing` where nothing runs side by side.
    """
    events = [device.torch.cuda.Event(enable_timing=True) for _ in range(2)]
    rounds = max(4, int(100_000 / alone))
    with device.beside(lambda: None, 1) as own:
        with device.torch.cuda.stream(own):
            events[0].record()
            for _ in range(rounds):
                load()
            events[1].record()
        own.synchronize()
    return events[0].elapsed_time(events[1]) * 1e3 / rounds


@contextmanager
def beside(device: Device, load: Act, us: float, least_us: float = _LONG_US) -> Iterator[Any]:
    """Run the load, which takes ``us``, for ``least_us`` beside the block.

    Raises `Missing` where nothing runs side by side.
    """
    with device.beside(load, max(2, int(least_us / max(us, 1.0)))) as stream:
        yield stream
