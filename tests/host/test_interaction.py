import numpy as np
import pytest

from host.interaction import dot_interaction


def plain_dot(a, b):
    total = None
    for low in range(0, len(a), 16):
        level = [x * y for x, y in zip(a[low:low + 16], b[low:low + 16])]
        while len(level) > 1:
            level = [level[i] + level[i + 1] for i in range(0, len(level), 2)]
        total = level[0] if total is None else total + level[0]
    return total


@pytest.mark.parametrize("tables, dimension", [(1, 16), (3, 64), (26, 16), (5, 48)])
def test_pairs_and_orders_are_the_pinned_ones(tables, dimension):
    rng = np.random.default_rng(tables)
    dense = rng.standard_normal((3, dimension)).astype(np.float32)
    pooled = rng.standard_normal((3, tables, dimension)).astype(np.float32)
    got = dot_interaction(dense, pooled)
    for n in range(3):
        z = [dense[n], *pooled[n]]
        expected = [*dense[n], *(plain_dot(z[i], z[j]) for i in range(len(z)) for j in range(i))]
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


def test_dimension_must_fill_its_slices():
    with pytest.raises(ValueError, match="dimension must be a multiple of 16, not 20"):
        dot_interaction(np.zeros((1, 20), np.float32), np.zeros((1, 2, 20), np.float32))
