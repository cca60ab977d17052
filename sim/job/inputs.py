"""Samples of a file or of the generator, formed into mini-batches that the NIC can hold."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from host.batching import Batcher, MiniBatch, algorithm_of
from host.data.datasets import EXACT, default_model, known_format, open_samples
from host.data.generator import generate
from host.model import MODELS, Model, load_model
from host.samples import Samples
from rtl.config import NicConfig
from sim.job.workload import Workload

__all__ = [
    "GENERATED", "batcher_of", "check_warmup", "choose_model", "mini_batches",
    "most_mini_batches", "sample_chunks", "skip_samples",
]

GENERATED = 1024
"""Number of samples that the generator makes by default."""

_BY_PRESET = {"avazu": "avazu", "terabyte": "terabyte"}


def choose_model(workload: Workload) -> tuple[Model, str | None]:
    """Return the model of a run and the format of its file, None for the generator."""
    if workload.data is None:
        named = _BY_PRESET.get(workload.config, "kaggle")
        return load_model(named if workload.model is None else workload.model), None
    kind = known_format(workload.data, workload.format)
    if workload.model is not None:
        return load_model(workload.model), kind
    if kind.removesuffix(EXACT) == "criteo" and workload.config == "terabyte":
        return MODELS["terabyte"], kind
    found = default_model(workload.data, kind)
    if kind == "dlrm-npz" and workload.config == "terabyte":
        return replace(MODELS["terabyte"], rows=found.rows, dense=found.dense), kind
    return found, kind


def sample_chunks(workload: Workload, model: Model, kind: str | None) -> Iterator[Samples]:
    """Yield the samples of a file of format ``kind``, or of the generator, in chunks."""
    if kind is None:
        return generate(model, workload.samples or GENERATED, workload.seed)
    return open_samples(workload.data or "", kind, model, workload.samples)


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


def most_mini_batches(workload: Workload) -> int | None:
    """Return an upper bound on a run's mini-batches; None where a file's length decides.

    The run has fewer only if its file holds fewer samples than were requested.
    """
    samples = workload.samples or (GENERATED if workload.data is None else None)
    if samples is None:
        return None
    left, size = samples - workload.first_sample, workload.mini_batch
    window = workload.window_samples or size
    whole, rest = divmod(left, window)
    return max(0, whole * -(-window // size) + -(-rest // size))


def check_warmup(workload: Workload) -> None:
    """Raise ``ValueError`` where all mini-batches of a run are known to be warm-up."""
    most = most_mini_batches(workload)
    if workload.warmup and most is not None and workload.warmup >= most:
        raise ValueError(f"warmup must be below the {most:,} mini-batches of the run, "
                         f"not {workload.warmup!r}")


def batcher_of(workload: Workload) -> Batcher:
    """Return the `Batcher` that forms the mini-batches of a run."""
    # In file order, windows do not affect the mini-batches.
    return Batcher(algorithm_of(workload.batching), workload.mini_batch,
                   workload.window_samples or workload.mini_batch)


def mini_batches(workload: Workload, model: Model, kind: str | None, config: NicConfig,
                 batcher: Batcher, before: Callable[[Samples], None] = lambda sample: None,
                 ) -> Iterator[MiniBatch]:
    """Yield mini-batches; their samples keep the numbers that they have in the input.

    ``before`` is called with the last sample left out, if there is one. ``ValueError`` for a sample
    that is larger than half the hold buffer.
    """
    first = workload.first_sample
    chunks = skip_samples(sample_chunks(workload, model, kind), first, before)
    for batch in batcher.form(chunks, first):
        slots = batch.samples.slots
        if int(slots.max(initial=0)) > config.sample_slots:
            at = int(slots.argmax())
            raise ValueError(f"hold_vectors must be at least {2 * slots[at]}, twice the slots of "
                             f"sample {batch.numbers[at]}, not {config.hold_vectors!r}")
        yield batch
