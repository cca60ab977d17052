import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from host.batching.repeats import REPEATS, first_bags, sent_bags
from host.dlrm.embedding import EmbeddingTables, added_repeats, key_gradients, row_gradients
from host.dlrm.exact import exact_sums, nearest
from host.dlrm.optimizer import Optimizer
from host.model import Model
from host.samples import Samples, share_sizes
from tests.host.batching.test_repeats import few_bags
from tests.host.test_samples import bags, random_samples

F = np.float32
MODEL = Model((100,) * 4, 16, 3, (16,), (1,))


def gradients_of(samples, seed=0):
    rng = np.random.default_rng(seed)
    shape = (len(samples), samples.table_count, 16)
    return (rng.standard_normal(shape) * 10.0 ** rng.integers(-20, 3, shape)).astype(F)


def plain_rows(samples, gradients, pooling, share):
    """Return the terms of each key, from the samples of ``share``."""
    rows = {}
    for n in share:
        for table, bag in enumerate(bags(samples)[n]):
            for _, row in bag:
                gradient = gradients[n, table]
                if pooling == "mean":
                    gradient = gradient / F(len(bag))
                rows.setdefault(row | table << 36, []).append(gradient)
    return {key: np.array([nearest(total) for total in exact_sums(np.array(terms, F))],
                          np.uint32).view(F) for key, terms in rows.items()}


@pytest.mark.parametrize("pooling", ["sum", "mean"])
@pytest.mark.parametrize("nodes", [1, 3])
def test_a_row_gets_what_its_keys_have(nodes, pooling):
    samples = random_samples(20, 4, seed=3)  # bags of 0 to 4 keys, repeated rows
    samples.rows[:] = samples.rows % 12
    bag_gradients = gradients_of(samples)
    each = key_gradients(samples, bag_gradients, pooling)
    expected = plain_rows(samples, bag_gradients, pooling, range(20))
    keys, sums = row_gradients(samples, each, nodes)
    assert keys.tolist() == sorted(expected)
    assert sums.tolist() == [expected[key].tolist() for key in keys.tolist()]
    # Partial sums of nodes: 7, 7 and 6 samples.
    ends = {1: [0, 20], 3: [0, 7, 14, 20]}[nodes]
    parts = [plain_rows(samples, bag_gradients, pooling, range(*share))
             for share in pairwise(ends)]
    got, rounded = row_gradients(samples, each, nodes, "rounded")
    assert got.tolist() == keys.tolist()
    for key, values in zip(got.tolist(), rounded):
        terms = np.array([part[key] for part in parts if key in part])
        assert values.view(np.uint32).tolist() == [nearest(total) for total in exact_sums(terms)]
    assert (nodes == 1) == np.array_equal(sums, rounded)


@pytest.mark.parametrize("nodes", [1, 3])
def test_tables_that_sum_in_the_order_of_the_mini_batch(nodes):
    """Each of their sums begins with its first gradient and adds in float32; the sums of other
    tables are exact."""
    samples = random_samples(20, 4, seed=4)
    samples.rows[:] = samples.rows % 6
    gradients = gradients_of(samples)
    each = key_gradients(samples, gradients, "sum")
    exact = dict(zip(*(part.tolist() for part in row_gradients(samples, each))))
    expected = {}
    for key, gradient in zip(samples.keys.tolist(), each):
        ordered = key >> 36 in (1, 2)
        expected[key] = expected[key] + gradient if key in expected and ordered else (
            gradient if ordered else np.array(exact[key], F))
    keys, sums = row_gradients(samples, each, nodes, in_order=(1, 2))
    assert keys.tolist() == sorted(expected)
    assert sums.tolist() == [expected[key].tolist() for key in keys.tolist()]
    assert any(expected[key].tolist() != exact[key] for key in expected)
    tables = EmbeddingTables(MODEL, 0, nodes=nodes, in_order=(1, 2))
    before, states = tables.rows.read(keys)
    tables.update(samples, gradients)
    assert np.array_equal(tables.rows.read(keys)[0], tables.optimizer.apply(
        before, states, sums)[0])


def test_a_key_twice_in_a_bag_counts_twice_and_more_nodes_than_samples_do_not_matter():
    samples = Samples(np.zeros((1, 3), F), np.zeros(1, F), np.array([[3, 0]], np.int32),
                      np.zeros(3, np.int32), np.array([5, 9, 5]))
    gradient = np.full((1, 2, 16), 3, F)
    for pooling, value in (("sum", 3), ("mean", 1)):
        keys, sums = row_gradients(samples, key_gradients(samples, gradient, pooling), 4, "rounded")
        assert keys.tolist() == [5, 9]
        assert sums[:, 0].tolist() == [2 * value, value]


@pytest.mark.parametrize("pooling", ["sum", "mean"])
def test_all_samples_on_one_key(pooling):
    n = 2000
    samples = Samples.one_hot(np.zeros((n, 3)), np.zeros(n), np.full((n, 4), 7))
    gradients = gradients_of(samples)
    keys, sums = row_gradients(samples, key_gradients(samples, gradients, pooling))
    assert keys.tolist() == [7 | table << 36 for table in range(4)]
    for table in range(4):
        for lane in range(16):
            # fsum rounds once to float64, whose neighbour is a float32.
            assert sums[table, lane] == F(math.fsum(gradients[:, table, lane].tolist()))


def test_a_lane_that_is_not_finite_stays_alone_and_empty_bags_touch_nothing():
    samples = Samples(np.zeros((2, 3), F), np.zeros(2, F), np.array([[1, 0], [1, 0]], np.int32),
                      np.zeros(2, np.int32), np.array([4, 4]))
    gradients = np.ones((2, 2, 16), F)
    gradients[:, 0, 3] = np.inf, -np.inf
    gradients[0, 0, 5] = -np.inf
    keys, sums = row_gradients(samples, key_gradients(samples, gradients, "mean"))
    assert keys.tolist() == [4]
    assert sums.view(np.uint32)[0].tolist() == [
        {3: 0x7FC00000, 5: 0xFF800000}.get(lane, 0x40000000) for lane in range(16)]
    nothing = Samples(np.zeros((2, 3), F), np.zeros(2, F), np.zeros((2, 4), np.int32),
                      np.zeros(0, np.int32), np.zeros(0, np.int64))
    tables = EmbeddingTables(MODEL, 0, nodes=2, partials="rounded")
    assert not tables.pooled(nothing).any()
    tables.update(nothing, np.ones((2, 4, 16), F))
    assert len(tables.rows) == 0


@pytest.mark.parametrize("partials", ["exact", "rounded"])
@pytest.mark.parametrize("pooling", ["sum", "mean"])
def test_no_samples_have_no_gradients(pooling, partials):
    none = Samples(np.zeros((0, 3), F), np.zeros(0, F), np.zeros((0, 4), np.int32),
                   np.zeros(0, np.int32), np.zeros(0, np.int64))
    each = key_gradients(none, np.zeros((0, 4, 16), F), pooling)
    assert each.shape == (0, 16) and each.dtype == F
    tables = EmbeddingTables(replace(MODEL, pooling=pooling), 0, nodes=2, partials=partials)
    tables.update(none, np.zeros((0, 4, 16), F))
    assert len(tables.rows) == 0


@pytest.mark.parametrize("name", ["sgd", "rowwise-adagrad"])
def test_lookups_see_what_updates_wrote(name):
    optimizer = Optimizer(name, 0.25)
    tables = EmbeddingTables(replace(MODEL, pooling="mean"), 5, optimizer)
    samples = random_samples(30, 4, seed=1)
    gradients = gradients_of(samples) * F(0.01)
    keys, sums = row_gradients(samples, key_gradients(samples, gradients, "mean"))
    vectors, states = tables.rows.read(keys)
    for _ in range(2):
        tables.update(samples, gradients)
        vectors, states = optimizer.apply(vectors, states, sums)
    got, after = tables.rows.read(keys)
    assert got.tobytes() == vectors.tobytes() and after.tobytes() == states.tobytes()
    assert states.any() == (name == "rowwise-adagrad")
    of = dict(zip(keys.tolist(), vectors))
    joined = [bag for one in bags(samples) for bag in one]
    for bag, pooled in zip(joined, tables.pooled(samples).reshape(-1, 16)):
        total = np.zeros(16, F)
        for number, (table, row) in enumerate(bag):
            vector = of[row | table << 36]
            total = total + vector if number else vector
        assert pooled.tolist() == (total / F(max(1, len(bag)))).tolist()


@pytest.mark.parametrize("found", REPEATS)
@pytest.mark.parametrize("nodes", [1, 3])
def test_gradients_of_repeats_are_added_in_sample_order(nodes, found):
    """The sum begins with the gradient of the first of equal bags of a share."""
    samples = few_bags(90, 3, seed=7, rows=1, longest=2)
    gradients, every, expected = gradients_of(samples), bags(samples), {}
    first = 0
    for size in share_sizes(90, nodes):
        for table in range(3):
            stands: dict[str, int] = {}
            for at in range(first, first + size):
                bag = repr(every[at][table])
                if found == "send" or (found == "neighbours" and (
                        at == first or bag != repr(every[at - 1][table]))):
                    stands.pop(bag, None)
                if every[at][table] and bag in stands:
                    expected[stands[bag], table] = expected[stands[bag], table] + gradients[
                        at, table]
                elif every[at][table]:
                    stands[bag] = at
                    expected[at, table] = gradients[at, table]
        first += size
    once, sums = added_repeats(samples, gradients, first_bags(samples, nodes, found))
    assert bags(once) == bags(sent_bags(samples, nodes, found))
    full = np.argwhere(once.bag_lengths)
    assert sorted(expected) == [tuple(each) for each in full.tolist()]
    assert (len(full) < np.count_nonzero(samples.bag_lengths)) == (found != "send")
    for sample, table in full:
        assert sums[sample, table].tobytes() == expected[sample, table].tobytes()
    assert not sums[first_bags(samples, nodes, found) != np.arange(90)[:, None]].any()


@pytest.mark.parametrize("pooling", ["sum", "mean"])
@pytest.mark.parametrize("in_order", [(), (1,)])
def test_tables_add_the_gradients_of_repeats(pooling, in_order):
    """A mean is divided before the sum, by the host."""
    model = replace(MODEL, rows=((1 << 36) - 1,) * 3, pooling=pooling).with_host_means()
    assert model.nic_pooling == "sum"
    samples = few_bags(90, 3, seed=7)
    gradients = gradients_of(samples)
    if pooling == "mean":
        gradients /= np.maximum(samples.bag_lengths, 1)[..., None].astype(F)
    once, sums = added_repeats(samples, gradients, first_bags(samples, 3, "neighbours"))
    found = []
    for tables, given in ((EmbeddingTables(
            model, 0, nodes=3, in_order=in_order,
            first=lambda batch: first_bags(batch, 3, "neighbours")), (samples, gradients)),
                          (EmbeddingTables(model, 0, in_order=in_order), (once, sums)),
                          (EmbeddingTables(model, 0, in_order=in_order), (samples, gradients))):
        tables.update(*given)
        found.append(tables.rows.digest())
    assert found[0] == found[1] != found[2]


def test_bad_arguments():
    with pytest.raises(ValueError, match="nodes must be at least 1, not 0"):
        EmbeddingTables(MODEL, 0, nodes=0)
    with pytest.raises(ValueError, match="partials must be exact or rounded, not 'float'"):
        EmbeddingTables(MODEL, 0, partials="float")
    with pytest.raises(ValueError, match="pooling must be sum, or left to hosts, where gradients"):
        EmbeddingTables(replace(MODEL, pooling="mean"), 0, first=lambda samples: np.empty(0))
    with pytest.raises(ValueError, match=r"gradients must have shape \(3, 4, 16\), not \(3, 16\)"):
        key_gradients(random_samples(3, 4), np.zeros((3, 16), F), "sum")
