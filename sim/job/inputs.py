"""Where samples come from: a file, or the generator; checked against what the NIC holds."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from host.batching import Batcher, MiniBatch, algorithm_of
from host.data.datasets import default_model, known_format, open_samples
from host.data.generator import generate
from host.model import MODELS, Model, load_model
from host.samples import Samples
from rtl.config import NicConfig
from sim.job.options import RunOptions

__all__ = [
    "GENERATED", "batcher_of", "check_warmup", "choose_model", "mini_batches",
    "most_mini_batches", "sample_chunks", "skip_samples",
]

GENERATED = 1024
"""Samples that the generator makes when no number is given."""

_BY_PRESET = {"avazu": "avazu", "terabyte": "terabyte"}


def choose_model(options: RunOptions) -> tuple[Model, str | None]:
    """Return the model of a run and the format of its file, None for the generator."""
    if options.data is None:
        return load_model(options.model or _BY_PRESET.get(options.config, "kaggle")), None
    kind = known_format(options.data, options.format)
    if options.model is not None:
        return load_model(options.model), kind
    if kind == "criteo" and options.config == "terabyte":
        return MODELS["terabyte"], kind
    found = default_model(options.data, kind)
    if kind == "dlrm-npz" and options.config == "terabyte":
        return replace(MODELS["terabyte"], rows=found.rows, dense=found.dense), kind
    return found, kind


def sample_chunks(options: RunOptions, model: Model, kind: str | None) -> Iterator[Samples]:
    """Yield the samples of a file of format ``kind``, or of the generator, in chunks."""
    if kind is None:
        return generate(model, options.samples or GENERATED, options.seed)
    return open_samples(options.data or "", kind, model, options.samples)


def skip_samples(chunks: Iterator[Samples], count: int,
                 last: Callable[[Samples], None] = lambda sample: None) -> Iterator[Samples]:
    """Yield ``chunks`` without their first ``count`` samples; ``last`` is given the last of those.

    ``ValueError`` when there are no more samples than that.
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


def most_mini_batches(options: RunOptions) -> int | None:
    """Return the mini-batches that a run has at most; None where a file's length decides.

    Samples that are asked for are more than there are only where a file has fewer.
    """
    samples = options.samples or (GENERATED if options.data is None else None)
    if samples is None:
        return None
    left, size = samples - options.first_sample, options.mini_batch
    window = options.window_samples or size
    whole, rest = divmod(left, window)
    return max(0, whole * -(-window // size) + -(-rest // size))


def check_warmup(options: RunOptions) -> None:
    """Raise ``ValueError`` where it is known that all mini-batches of a run are warm-up."""
    most = most_mini_batches(options)
    if options.warmup and most is not None and options.warmup >= most:
        raise ValueError(f"warmup must be below the {most:,} mini-batches of the run, "
                         f"not {options.warmup!r}")


def batcher_of(options: RunOptions) -> Batcher:
    """Return what forms the mini-batches of a run."""
    # In the order of the file, mini-batches do not depend on windows.
    return Batcher(algorithm_of(options.batching), options.mini_batch,
                   options.window_samples or options.mini_batch)


def mini_batches(options: RunOptions, model: Model, kind: str | None, config: NicConfig,
                 batcher: Batcher, before: Callable[[Samples], None] = lambda sample: None,
                 ) -> Iterator[MiniBatch]:
    """Yield mini-batches, whose samples have the numbers that they have in the input.

    ``before`` is given the sample before the first, where one is left out. ``ValueError`` for a
    sample that is larger than half the hold buffer.
    """
    first = options.first_sample
    chunks = skip_samples(sample_chunks(options, model, kind), first, before)
    for batch in batcher.form(chunks, first):
        slots = batch.samples.slots
        if int(slots.max(initial=0)) > config.sample_slots:
            at = int(slots.argmax())
            raise ValueError(f"hold_vectors must be at least {2 * slots[at]}, twice the slots of "
                             f"sample {batch.numbers[at]}, not {config.hold_vectors!r}")
        yield batch
