"""Samples of vectors as a stream of beats, and their dot interactions by the host's model."""

import numpy as np

from host.dlrm.interaction import dot_interaction
from tests.rtl.float.cases import canonical, random_vectors

__all__ = ["random_dot_samples", "result_beats", "vector_beats"]

LANES = 16


def random_dot_samples(seed: int, sizes: list[int], dimension: int) -> list:
    """Return samples: number, step, and their vectors, uint32 ``[vectors, dimension]``.

    Vectors are like embeddings, cancel, have products among the subnormals or around infinity, or
    any bits at all.
    """
    rng = np.random.default_rng(seed)
    pool = np.concatenate(random_vectors(max(64, sum(sizes)), dimension, seed))
    kinds = len(pool) // 64
    samples = []
    for vectors in sizes:
        # Mostly vectors of one kind: wild vectors spoil every dot with them.
        first = int(rng.integers(0, len(pool) - vectors))
        chosen = (first + np.arange(vectors)) % len(pool) if rng.random() < 0.7 else (
            rng.permutation(kinds * 16)[:vectors])
        samples.append((int(rng.integers(0, 1 << 32)), int(rng.integers(0, 1 << 16)),
                        pool[np.resize(chosen, vectors)]))
    return samples


def _beats(values: np.ndarray) -> list[int]:
    """Return 16 values per beat as integers, lane 0 lowest, zeros behind the last."""
    padded = np.zeros(-(-len(values) // LANES) * LANES, dtype=np.uint32)
    padded[:len(values)] = values
    return [int.from_bytes(beat.tobytes(), "little") for beat in padded.reshape(-1, LANES)]


def vector_beats(samples: list) -> list[dict]:
    """Return the input of the dot interaction for ``samples``."""
    items = []
    for sample, step, vectors in samples:
        for k, vector in enumerate(vectors):
            beats = _beats(vector)
            items += [{"data": beat, "vector_last": int(n == len(beats) - 1),
                       "sample_last": int(k == len(vectors) - 1), "sample": sample, "step": step}
                      for n, beat in enumerate(beats)]
    return items


def result_beats(samples: list, *, itself: bool = False, most: int = 64) -> list[dict]:
    """Return its output: the dense vector bit for bit, and the dots, NaN as 0x7FC00000.

    Vectors after the first ``most`` of a sample are ignored.
    """
    items = []
    for sample, step, vectors in samples:
        z = vectors[:most].view(np.float32)
        with np.errstate(all="ignore"):
            whole = dot_interaction(z[:1], z[None, 1:], itself=itself)[0]
        dots = canonical(np.ascontiguousarray(whole[vectors.shape[1]:]))
        beats = _beats(vectors[0]) + _beats(dots)
        items += [{"data": beat, "last": int(n == len(beats) - 1), "sample": sample, "step": step,
                   "lost": 0}
                  for n, beat in enumerate(beats)]
    return items
