"""Samples of a file or of the generator, formed into mini-batches that the NIC can hold."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from host.batching import Batcher, MiniBatch, algorithm_of
from host.data.contents import check_contents, states
from host.data.datasets import EXACT, default_model, known_format, open_samples
from host.data.generator import generate
from host.data.kept import KeptSamples
from host.model import (
    MODELS,
    Model,
    load_model,
    sliced,
    table_names,
    without_blocks,
    without_columns,
)
from host.placement.shard import ShardPlan
from host.samples import Samples, first_samples, rechunk
from rtl.config import NicConfig
from sim.job.columns import with_slices
from sim.job.fit import check_slots
from sim.job.pools import check_bags, pool_slots
from sim.job.workload import GENERATED, MEASURED, Workload

__all__ = ["SampleSource", "batcher_of", "check_warmup", "holdable", "most_mini_batches",
           "skip_samples"]

_BY_PRESET = {"avazu": "avazu", "terabyte": "terabyte"}


@dataclass(frozen=True)
class SampleSource:
    """The samples of a workload, opened once for a command.

    The count of lookups and all passes of :meth:`chunks` except the last keep what they read, see
    :mod:`host.data.kept`. A pass after the last opens the input again.

    Members: ``workload``; ``model``, of the samples; ``kind``, format of the files, None for the
    generator.
    """

    workload: Workload
    model: Model
    kind: str | None = None

    @classmethod
    def of(cls, workload: Workload) -> "SampleSource":
        """Find the format of the files, and the model if the workload names none."""
        whole, kind = _found(workload)
        cuts = workload.columns, workload.blocks
        names = () if cuts == (None, None) or workload.model is None else (
            table_names(workload.model))
        return cls(workload, with_slices(whole, *cuts, workload.wire, names), kind)

    def with_model(self, model: Model) -> "SampleSource":
        """Return this source for another ``model``."""
        return replace(self, model=model)

    @cached_property
    def _states(self) -> tuple[tuple[int, ...], ...]:
        return states(self.workload.data or ())

    @cached_property
    def _opened(self) -> KeptSamples:
        workload = self.workload
        model = without_columns(without_blocks(self.model))
        _ = self._states  # of the files before they are opened
        return KeptSamples(
            generate(model, workload.samples or GENERATED, workload.seed)
            if self.kind is None else
            open_samples(workload.data or "", self.kind, model, workload.samples))

    def chunks(self, again: bool = False) -> Iterator[Samples]:
        """Return the samples from the first on, in chunks; ``again`` if another pass follows."""
        opened = self._opened
        if not again:
            del self.__dict__["_opened"]
        return (sliced(chunk, self.model) for chunk in opened.chunks(again))

    def check_unchanged(self) -> None:
        """Raise :class:`host.errors.InputError` if a file has changed since it was opened."""
        check_contents(self.workload.data or (), self._states, states)

    def mini_batches(self, config: NicConfig, batcher: Batcher,
                     before: Callable[[Samples], None] = lambda sample: None,
                     again: bool = False, plan: ShardPlan | None = None) -> Iterator[MiniBatch]:
        """Return mini-batches; their samples keep the numbers that they have in the input.

        ``before`` is called with the last sample left out, if there is one; ``again`` as in
        :meth:`chunks`. Raises as :func:`holdable`, with ``plan``.
        """
        first = self.workload.first_sample
        return holdable(batcher.form(skip_samples(self.chunks(again), first, before), first),
                        config, plan, self.model)

    def plan(self, placement: str | None = None) -> ShardPlan:
        """Return the plan of the tables, by the workload's ``placement`` or the given one.

        Placement ``lookups`` reads the first samples, unless the workload brings the lookups.
        """
        return self.gpu_plan(placement).joined(self.workload.gpus)

    def gpu_plan(self, placement: str | None = None) -> ShardPlan:
        """Return :meth:`plan` over GPUs, of which a node has several if its NIC serves several."""
        workload = self.workload
        placement, lookups = placement or workload.placement, workload.lookups
        if placement == "lookups" and lookups is None:
            lookups = self.lookups
        plan = ShardPlan.deal(self.model, workload.nodes * workload.gpus, placement,
                              lookups, workload.gpus,
                              wire=workload.wire).with_copies(workload.copied_rows)
        return replace(plan, own_at_gpu=workload.own_bags == "gpu")

    @cached_property
    def lookups(self) -> tuple[int, ...]:
        """Lookups of each table over the first `MEASURED` samples of the input, or all.

        They are counted from the start of the input, not from ``first_sample``: a resumed run
        must place every row on the same node.
        """
        first = first_samples(self.chunks(again=True), MEASURED)
        return tuple(sum((chunk.bag_lengths.sum(axis=0, dtype=np.int64) for chunk in first),
                         np.zeros(self.model.tables, np.int64)).tolist())


    def measured(self) -> Iterator[Samples]:
        """Yield mini-batches of the first `MEASURED` samples of the input, at least one, in the
        order of the input.

        They are counted as for :attr:`lookups`.
        """
        size = self.workload.mini_batch
        yield from rechunk(first_samples(self.chunks(again=True), max(MEASURED, size)), size)


def _found(workload: Workload) -> tuple[Model, str | None]:
    """Return the model of a workload and the format of its files; None for the generator."""
    if workload.data is None:
        named = _BY_PRESET.get(workload.config, "kaggle")
        return load_model(named if workload.model is None else workload.model), None
    kind = known_format(workload.data, workload.format)
    if workload.model is not None:
        model = load_model(workload.model)
        if model.weighted_tables:
            raise ValueError(f"weighted of table {model.weighted_tables[0]} must be false with "
                             f"data, not true: files have no weights of keys")
        return model, kind
    if kind.removesuffix(EXACT) == "criteo" and workload.config == "terabyte":
        return MODELS["terabyte"], kind
    found = default_model(workload.data, kind)
    if kind == "dlrm-npz" and workload.config == "terabyte":
        return replace(MODELS["terabyte"], rows=found.rows, dense=found.dense), kind
    return found, kind


def skip_samples(chunks: Iterator[Samples], count: int,
                 last: Callable[[Samples], None] = lambda sample: None) -> Iterator[Samples]:
    """Yield ``chunks`` without their first ``count`` samples.

    ``last`` is called with the last sample left out. ``ValueError`` when no sample is left.
    """
    seen = 0
    for chunk in chunks:
        left = max(0, count - seen)
        seen += len(chunk)
        if 0 < left <= len(chunk):
            last(chunk.slice(left - 1, left))
        if left < len(chunk):
            yield chunk.slice(left, len(chunk)) if left else chunk
    if count and seen <= count:
        raise ValueError(f"first_sample must be below the {seen} samples of the input, "
                         f"not {count!r}")


def holdable(batches: Iterable[MiniBatch], config: NicConfig,
             plan: ShardPlan | None = None, model: Model | None = None) -> Iterator[MiniBatch]:
    """Yield mini-batches; ``ValueError`` for a sample that exceeds half the hold buffer, or whose
    bags of owner-pooled tables exceed the NIC, see `check_bags`."""
    pools = plan is not None and plan.pools_at_owner
    for batch in batches:
        slots = batch.samples.slots
        if plan is not None and pools:
            check_bags(batch.samples, batch.numbers, plan, config, model)
            slots = pool_slots(batch.samples, plan)
        most = int(slots.max(initial=0))
        if most > config.sample_slots:
            check_slots(most)
            raise ValueError(f"hold_vectors must be at least {2 * most}, twice the slots of "
                             f"sample {batch.numbers[int(slots.argmax())]}, "
                             f"not {config.hold_vectors!r}")
        yield batch


def most_mini_batches(workload: Workload) -> int | None:
    """Return an upper bound on a run's mini-batches; None if it depends on a file's length.

    The run has fewer only if its file holds fewer samples than were requested.
    """
    samples = workload.sample_count
    if samples is None:
        return None
    left, size = samples - workload.first_sample, workload.mini_batch
    window = workload.window_samples or size
    whole, rest = divmod(left, window)
    return max(0, whole * -(-window // size) + -(-rest // size))


def check_warmup(workload: Workload) -> None:
    """Raise ``ValueError`` if all mini-batches of a run are known to be warm-up."""
    most = most_mini_batches(workload)
    if workload.warmup and most is not None and workload.warmup >= most:
        raise ValueError(f"warmup must be below the {most:,} mini-batches of the run, "
                         f"not {workload.warmup!r}")


def batcher_of(workload: Workload) -> Batcher:
    """Return the `Batcher` that forms the mini-batches of a run."""
    # In file order, windows do not affect the mini-batches.
    return Batcher(algorithm_of(workload.batching), workload.mini_batch,
                   workload.window_samples or workload.mini_batch)
