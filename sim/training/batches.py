"""Mini-batches of all epochs of a training, in order."""

from collections.abc import Callable, Iterator

from host.batching import Batcher, MiniBatch
from host.placement.shard import ShardPlan
from host.samples import Samples
from host.wire.gradients import longest_bag
from rtl.config import NicConfig
from sim.job.inputs import SampleSource
from sim.node.gradients import gradient_payload
from sim.training.options import TrainOptions

__all__ = ["epoch_batches"]


def epoch_batches(options: TrainOptions, source: SampleSource, config: NicConfig,
                  batcher: Batcher, done: int = 0,
                  left_out: Callable[[Samples], None] = lambda samples: None,
                  plan: ShardPlan | None = None) -> Iterator[tuple[int, MiniBatch]]:
    """Yield (epoch, mini-batch) for every mini-batch after the first ``done``.

    ``left_out`` gets the samples of the skipped mini-batches. ``plan``: as of
    :meth:`~sim.job.inputs.SampleSource.mini_batches`. Epochs count from 0. The last mini-batch of
    an epoch may be short.

    Raises ``ValueError`` if there are no mini-batches after ``done``, or if the gradient of a bag
    with its keys does not fit into a packet to the NIC; :class:`host.errors.InputError` at the end
    of an epoch if a file has changed and there are several epochs.
    """
    seen, most, epochs = 0, None, options.learning.epochs
    if options.method.fidelity == "rtl":
        most = longest_bag(gradient_payload(config), source.model.width)
    for epoch in range(epochs):
        before = seen
        for batch in source.mini_batches(config, batcher, again=epoch + 1 < epochs, plan=plan):
            if most is not None:
                _check_bags(batch, most, config)
            seen += 1
            if seen > done:
                yield epoch, batch
            else:
                left_out(batch.samples)
        if seen == before:
            raise ValueError("samples must be at least 1, but the input is empty")
        if epochs > 1:
            source.check_unchanged()
    if done and seen <= done:
        raise ValueError(f"epochs must be more than {epochs} to continue from "
                         f"{options.record.checkpoint}, which has {done} steps: "
                         f"{epochs} epochs have {seen}")


def _check_bags(batch: MiniBatch, most: int, config: NicConfig) -> None:
    longest = batch.samples.bag_lengths.max(axis=1, initial=0)
    if len(longest) and int(longest.max()) > most:
        at = int(longest.argmax())
        raise ValueError(f"bags must have at most {most} keys in training with "
                         f"host_payload_beats of {config.host_payload_beats}, "
                         f"not {longest[at]} as in sample {batch.numbers[at]}")
