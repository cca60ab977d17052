"""Mini-batches of all epochs, one behind the other."""

from collections.abc import Iterator

from host.model import Model
from host.samples import Samples
from rtl.config import NicConfig
from sim.source import mini_batches
from sim.training.options import TrainOptions

__all__ = ["epoch_batches"]


def epoch_batches(options: TrainOptions, model: Model, kind: str | None, config: NicConfig,
                  done: int = 0) -> Iterator[tuple[int, Samples]]:
    """Yield the epoch, counted from 0, and the samples of every mini-batch but the first ``done``.

    The last mini-batch of an epoch may be short; the next epoch begins a new one. ``ValueError``
    when there are none, or no more than ``done``.
    """
    seen = 0
    for epoch in range(options.epochs):
        before = seen
        for samples in mini_batches(options.run, model, kind, config):
            seen += 1
            if seen > done:
                yield epoch, samples
        if seen == before:
            raise ValueError("samples must be at least 1, but the input holds none")
    if done and seen <= done:
        raise ValueError(f"epochs must be more for checkpoint {options.checkpoint}, which has "
                         f"{done} steps: {options.epochs} have {seen}")
