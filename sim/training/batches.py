"""Mini-batches of all epochs of a training, in order."""

from collections.abc import Callable, Iterator, Sequence

from host.batching import Batcher, MiniBatch
from host.model import Model
from host.placement.pooling import bag_bound
from host.placement.shard import ShardPlan
from host.samples import Samples
from host.wire.bags import NARROW_ROWS
from host.wire.gradients import longest_bag
from rtl.config import NicConfig
from sim.job.inputs import SampleSource
from sim.node.gradients import gradient_payload
from sim.training.options import TrainOptions

__all__ = ["epoch_batches"]


def epoch_batches(options: TrainOptions, source: SampleSource, config: NicConfig,
                  batcher: Batcher, done: int = 0,
                  left_out: Callable[[Samples], None] = lambda samples: None,
                  plan: ShardPlan | None = None, in_order: Sequence[int] = (),
                  ) -> Iterator[tuple[int, MiniBatch]]:
    """Yield (epoch, mini-batch) for every mini-batch after the first ``done``.

    ``left_out`` gets the samples of the skipped mini-batches. ``plan``: as of
    :meth:`~sim.job.inputs.SampleSource.mini_batches`. Epochs count from 0. The last mini-batch of
    an epoch may be short.

    ``in_order``: numbers of the tables whose bags travel to their owners with their gradients.

    Raises ``ValueError`` if there are no mini-batches after ``done``, or if the gradient of a bag
    with its keys does not fit into a packet; :class:`host.errors.InputError` at the end
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
                _check_gradients(batch, source.model, config, in_order)
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


def _check_gradients(batch: MiniBatch, model: Model, config: NicConfig,
                     in_order: Sequence[int]) -> None:
    """Raise ``ValueError`` if a bag of a table in ``in_order`` does not fit a packet with its
    gradient. The keys of weighted bags travel one by one."""
    left = config.bag_words - 1 - model.width // 2
    for table in set(in_order) - set(model.weighted_tables):
        keys = int(batch.samples.bag_lengths[:, table].max(initial=0))
        most = max(0, left) * (1 if model.rows[table] > NARROW_ROWS else 2)
        if keys > most:
            raise ValueError(f"bags of table {table}, which pools at its owner, must have at most "
                             f"{most} keys in training {bag_bound(config)} and vectors of "
                             f"{model.width} values, not {keys}: use update nic, or pool it at "
                             f"the requester")


def _check_bags(batch: MiniBatch, most: int, config: NicConfig) -> None:
    longest = batch.samples.bag_lengths.max(axis=1, initial=0)
    if len(longest) and int(longest.max()) > most:
        at = int(longest.argmax())
        raise ValueError(f"bags must have at most {most} keys in training with "
                         f"host_payload_beats of {config.host_payload_beats}, "
                         f"not {longest[at]} as in sample {batch.numbers[at]}")
