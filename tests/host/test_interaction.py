import numpy as np
import pytest

from host.interaction import dot_interaction


def plain_dot(a, b):
    total = None
    for low in range(0, len(a), 16):
        level = [x * y for x, y in zip(a[low:low + 16], b[low:low + 16])]
        level += [np.float32(0)] * (16 - len(level))
        while len(level) > 1:
            level = [level[i] + level[i + 1] for i in range(0, len(level), 2)]
        total = level[0] if total is None else total + level[0]
    return total


@pytest.mark.parametrize("itself", [False, True], ids=["apart", "itself"])
@pytest.mark.parametrize("tables, dimension", [
    (0, 16), (1, 16), (3, 64), (26, 16), (5, 48), (3, 4), (26, 8), (2, 256)])
def test_pairs_and_orders_are_the_pinned_ones(tables, dimension, itself):
    rng = np.random.default_rng(tables)
    dense = rng.standard_normal((3, dimension)).astype(np.float32)
    pooled = rng.standard_normal((3, tables, dimension)).astype(np.float32)
    got = dot_interaction(dense, pooled, itself=itself)
    for n in range(3):
        z = [dense[n], *pooled[n]]
        expected = [*dense[n], *(plain_dot(z[i], z[j]) for i in range(len(z))
                                 for j in range(i + itself))]
        assert got[n].tolist() == expected


def test_batches_do_not_matter_and_floats_are_near():
    rng = np.random.default_rng(0)
    dense = rng.standard_normal((300, 32)).astype(np.float32)
    pooled = rng.standard_normal((300, 4, 32)).astype(np.float32)
    whole = dot_interaction(dense, pooled)
    for batch in (1, 50, 299):
        parts = [dot_interaction(dense[i:i + batch], pooled[i:i + batch])
                 for i in range(0, 300, batch)]
        assert np.array_equal(np.concatenate(parts), whole)
    z = np.concatenate([dense[:, None], pooled], axis=1).astype(np.float64)
    exact = np.einsum("nid,njd->nij", z, z)[:, *np.tril_indices(5, -1)]
    np.testing.assert_allclose(whole[:, 32:], exact, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dimension", [4, 8, 20])
def test_free_lanes_go_through_the_tree(dimension):
    """The sum of products that are -0 is +0 as soon as a free lane joins it."""
    dense, pooled = np.full((1, dimension), -1, np.float32), np.zeros((1, 1, dimension), np.float32)
    assert not np.signbit(dot_interaction(dense, pooled)[0, dimension])
    full = dot_interaction(np.full((1, 16), -1, np.float32), np.zeros((1, 1, 16), np.float32))
    assert np.signbit(full[0, 16])
