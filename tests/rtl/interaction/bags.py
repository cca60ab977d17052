"""Samples of bags as a stream of slot beats, and their pooled vectors."""

import random

import numpy as np

from rtl.formats import RecordKind
from tests.rtl.float.cases import numpy_add

__all__ = ["pooled_beats", "random_samples", "slot_beats"]


def random_samples(seed: int, sizes: list[list[int]], beats: int, *, bits: bool = False) -> list:
    """Return samples: number, step, and for each bag its vectors, uint32 ``[keys, 16 * beats]``.

    sizes: bag sizes of each sample.
    bits: any bits, infinities and NaN included.
    """
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    samples = []
    for bags in sizes:
        vectors = []
        for keys in bags:
            shape = (keys, 16 * beats)
            vectors.append(numbers.integers(0, 1 << 32, shape, dtype=np.uint32) if bits else
                           numbers.standard_normal(shape).astype(np.float32).view(np.uint32))
        samples.append((rng.getrandbits(32), rng.getrandbits(16), vectors))
    return samples


def _beats(vector: np.ndarray) -> list[int]:
    return [int.from_bytes(beat.tobytes(), "little") for beat in vector.reshape(-1, 16)]


def slot_beats(samples: list, beats: int) -> list[dict]:
    """Return the output of the hold buffer for ``samples``."""
    items = []
    for sample, step, bags in samples:
        for b, vectors in enumerate(bags):
            slots = [(RecordKind.EMPTY, np.zeros(16 * beats, dtype=np.uint32))] if not len(
                vectors) else [
                (RecordKind.KEY_END if k == len(vectors) - 1 else RecordKind.KEY, vector)
                for k, vector in enumerate(vectors)]
            for s, (kind, vector) in enumerate(slots):
                ends = b == len(bags) - 1 and s == len(slots) - 1
                for n, beat in enumerate(_beats(vector)):
                    items.append({"data": beat, "kind": int(kind), "sample": sample, "step": step,
                                  "beat_last": int(n == beats - 1), "sample_last": int(ends)})
    return items


def _divided(total: np.ndarray, keys: int) -> np.ndarray:
    """Return float32 ``total / keys`` as bits; NaN is 0x7FC00000."""
    with np.errstate(all="ignore"):
        mean = total.view(np.float32) / np.float32(keys)
    return np.where(np.isnan(mean), np.uint32(0x7FC00000), mean.view(np.uint32))


def pooled_beats(samples: list, beats: int, *, mean: bool = False) -> list[dict]:
    """Return the pooled vectors of ``samples``: added one by one, beginning with the first.

    mean: divided by their number; an empty bag is +0 too.
    """
    items = []
    for sample, step, bags in samples:
        for b, vectors in enumerate(bags):
            total = vectors[0] if len(vectors) else np.zeros(16 * beats, dtype=np.uint32)
            for vector in vectors[1:]:
                total = numpy_add(np.stack([total, vector], axis=1))
            if mean and len(vectors):
                total = _divided(total, len(vectors))
            for n, beat in enumerate(_beats(total)):
                items.append({"data": beat, "beat_last": int(n == beats - 1), "sample": sample,
                              "bag_last_of_sample": int(b == len(bags) - 1), "step": step,
                              "lost": 0})
    return items
