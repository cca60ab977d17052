"""DotProduct, bit for bit against the host's model of the interaction."""

import numpy as np
import pytest

from host.dlrm.interaction import dot_interaction
from rtl.float import DOT_LATENCY, DOT_TREE_LATENCY, RECODED, RECODER_LATENCY, DotProduct, Recoder
from tests.rtl.float.cases import canonical, numpy_add, random_vectors
from tests.rtl.float.drive import drive
from tests.support import made

LANES = 16


def recoded_slices(vectors):
    """Return slices of 16 recoded lanes as integers, by the recoder itself."""
    lanes = drive(made(Recoder), RECODER_LATENCY, {"i": vectors.ravel().tolist()})
    width = RECODED.size
    return [sum(lane << (width * k) for k, lane in enumerate(lanes[low:low + LANES]))
            for low in range(0, len(lanes), LANES)]


def trees(a, b):
    with np.errstate(all="ignore"):
        whole = dot_interaction(a.view(np.float32), b.view(np.float32)[:, None])
    return canonical(np.ascontiguousarray(whole[:, a.shape[1]]))


def test_one_slice_without_accumulation():
    a, b = random_vectors(100, LANES, 1)
    dots = drive(made(DotProduct, accumulate=False), DOT_TREE_LATENCY,
                 {"a": recoded_slices(a), "b": recoded_slices(b)})
    np.testing.assert_array_equal(np.array(dots, dtype=np.uint32), trees(a, b))


def test_previous_and_first_belong_to_the_cycle_of_the_tree():
    a, b = random_vectors(100, LANES, 2)
    rng = np.random.default_rng(2)
    previous = rng.standard_normal(100).astype(np.float32).view(np.uint32)
    first = rng.integers(0, 2, 100)
    dots = drive(made(DotProduct), DOT_LATENCY, {
        "a": recoded_slices(a), "b": recoded_slices(b), "previous": previous.tolist(),
        "first": first.tolist()}, late=dict.fromkeys(("previous", "first"), DOT_TREE_LATENCY))
    sums = trees(a, b)
    expected = np.where(first, sums, numpy_add(np.stack([previous, sums], axis=1)))
    np.testing.assert_array_equal(np.array(dots, dtype=np.uint32), expected)


@pytest.mark.parametrize("step", [1, -1], ids=["ascending", "descending"])
def test_order_of_the_tree(step):
    # Neighbours that cancel, and small values that large ones swallow.
    a = np.zeros((4, LANES), dtype=np.float32)
    a[0] = ([1e8, 1, -1e8, 1, 3e7, -1, 1, -3e7] + [2.0 ** k for k in range(8)])[::step]
    a[1] = a[0][[0, 2, 1, 3, *range(4, 16)]]
    a[2] = a[0][[*range(8, 16), *range(8)]]
    a[3] = a[0][::2].repeat(2)
    b = np.full((4, LANES), 1.5, dtype=np.float32)
    one_by_one = np.cumsum(a * b, axis=1, dtype=np.float32)[:, -1]
    a, b = a.view(np.uint32), b.view(np.uint32)
    expected = trees(a, b)
    assert (one_by_one.view(np.uint32) != expected).any(), "the order matters"
    dots = drive(made(DotProduct, accumulate=False), DOT_TREE_LATENCY,
                 {"a": recoded_slices(a), "b": recoded_slices(b)})
    np.testing.assert_array_equal(np.array(dots, dtype=np.uint32), expected)
