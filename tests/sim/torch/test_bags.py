"""Bags of embedding bag calls, and calls that NICs do not support."""

import numpy as np
import pytest

from tests.optional import absent

pytest.importorskip("torch", reason=absent("torch"))
import torch

from host.model import padded
from sim.torch.lookups.bags import Bags, bags_of, pooled
from sim.torch.lookups.mini_batch import one_key_columns, samples_of

TABLE = torch.arange(40, dtype=torch.float32).view(10, 4)


def bags(indices=(1, 2, 3), offsets=(0, 1), *, table=TABLE, index=torch.int64, **more):
    found = bags_of((table, torch.tensor(indices, dtype=index),
                     torch.tensor(offsets, dtype=index)), more)
    assert isinstance(found, Bags)
    return found


@pytest.mark.parametrize("index", [torch.int32, torch.int64])
def test_bags_and_their_keys(index):
    found = bags((7, 2, 3), (0, 1, 1), index=index)
    assert found.rows.tolist() == [7, 2, 3] and found.lengths.tolist() == [1, 0, 2]
    assert found.pooling == "sum" and found.weights is None and not found.single
    assert bags((4, 4), (0, 1), mode=1).pooling == "mean"
    assert bags((4, 4), (0, 1)).single


def test_the_last_offset_may_be_there_and_padding_is_no_key():
    assert bags((1, 2, 3), (0, 2, 3), include_last_offset=True).lengths.tolist() == [2, 1]
    found = bags((3, 1, 3, 3), (0, 2, 3), padding_idx=3,
                 per_sample_weights=torch.tensor([1.0, 2.0, 3.0, 4.0]))
    assert found.rows.tolist() == [1] and found.lengths.tolist() == [1, 0, 0]
    assert found.weights is not None and found.weights.tolist() == [2.0]


def test_keys_are_those_of_the_call():
    indices = torch.tensor([1, 2, 3])
    found = bags_of((TABLE, indices, torch.tensor([0, 1])), {})
    indices.zero_()
    assert isinstance(found, Bags) and found.rows.tolist() == [1, 2, 3]


@pytest.mark.parametrize(("arguments", "options", "why"), [
    ((TABLE, [1, 10], [0]), {}, "its indices are not all rows of its table"),
    ((TABLE, [1, 2, -1], [0]), {}, "its indices are not all rows of its table"),
    *(((TABLE, [1, 2, 3], offsets), {}, "its offsets do not divide all of its indices into bags")
      for offsets in ([0, 2, 1], [1, 2], [])),
    ((TABLE, [1, 2, 3], [0, 2]), {"include_last_offset": True},
     "its offsets do not divide all of its indices into bags"),
    ((TABLE.double(), [1], [0]), {}, "its rows are float64, and the NIC's are float32"),
    ((torch.zeros(2, 257), [1], [0]), {},
     "its vectors have 257 values, and the NIC's between 1 and 256"),
    ((TABLE, [1], [0]), {"widest": 3},
     "its vectors have 4 values, and the NIC's between 1 and 3"),
    ((TABLE[:, :0], [1], [0]), {}, "its vectors have 0 values, and the NIC's between 1 and 256"),
    ((TABLE[:0], [], [0]), {}, "its table has 0 rows, and the NIC's between 1 and 68719476735"),
    # A table without memory: all its rows share the same values.
    ((torch.zeros(1, 4).expand(1 << 36, 4), [1], [0]), {},
     "its table has 68719476736 rows, and the NIC's between 1 and 68719476735"),
])
def test_what_no_nic_serves(arguments, options, why):
    table, *others = arguments
    widest = {name: options.pop(name) for name in ("widest",) if name in options}
    assert bags_of((table, *(torch.tensor(each, dtype=torch.int64) for each in others)), options,
                   **widest) == why


def test_what_stays_with_pytorch():
    arguments = (TABLE, torch.tensor([1]), torch.tensor([0]))
    assert bags_of(arguments, {"mode": 2}) == "the NIC pools as sum or mean, not max"
    assert "must be plain tensors" in str(bags_of((TABLE.to("meta"), *arguments[1:]), {}))


def test_pooling_is_in_the_order_of_keys_and_weights_come_first():
    vectors = np.array([[1], [2], [4]], np.float32)
    found = bags((1, 2, 3), (0, 2, 2), per_sample_weights=torch.tensor([1.0, 10.0, 100.0]))
    assert pooled(found, vectors).tolist() == [[21], [0], [400]]
    assert pooled(bags((1, 2, 3), (0, 2, 2), mode=1), vectors).tolist() == [[1.5], [0], [4]]


def test_samples_have_a_column_for_each_call():
    found = samples_of([bags((1, 2, 3), (0, 2)), bags((9, 8), (0, 2))], [5, 0])
    assert found.bag_lengths.tolist() == [[2, 2], [1, 0]]
    assert found.rows.tolist() == [1, 2, 9, 8, 3] and found.tables.tolist() == [5, 5, 0, 0, 5]


def test_keys_by_themselves():
    columns = one_key_columns(bags((1, 2, 3), (0, 0, 2)))
    assert [each.lengths.tolist() for each in columns] == [[0, 1, 1], [0, 1, 0]]
    assert [each.rows.tolist() for each in columns] == [[1, 3], [2]]


def test_dimensions_of_the_nic():
    assert [padded(each) for each in (1, 4, 5, 8, 9, 16, 17, 100, 256)] == [
        4, 4, 8, 8, 16, 16, 32, 112, 256]
