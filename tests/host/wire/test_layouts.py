import random

import numpy as np
import pytest
from amaranth.lib import data

from host.wire.layouts import field_bits, pack, unpack, word_count
from rtl.formats import Beat, HeaderBeat, LookupRecord, TableDescriptor

NESTED = data.StructLayout({"a": 5, "inner": data.StructLayout({"b": 40, "c": 33}), "d": 1})


@pytest.mark.parametrize("layout", [LookupRecord, TableDescriptor, HeaderBeat, NESTED])
def test_words_equal_amaranths_own_constants(layout):
    rng = random.Random(1)
    names = field_bits(layout)
    values = {name: [rng.getrandbits(width) for _ in range(20)]
              for name, (_, width) in names.items()}
    words = pack(layout, **{name.replace(".", "__"): np.array(column, np.uint64)
                            for name, column in values.items()})
    assert words.shape == (20, word_count(layout)) and words.dtype == np.uint32
    for i in range(20):
        record = {}
        for name, column in values.items():
            *path, last = name.split(".")
            inner = record
            for part in path:
                inner = inner.setdefault(part, {})
            inner[last] = column[i]
        expected = layout.const(record).as_value().value
        assert int.from_bytes(words[i].astype("<u4").tobytes(), "little") == expected
    for name, column in values.items():
        assert unpack(layout, words, name).tolist() == column


def test_values_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="table must be between 0 and 4095, not 3 to 4096"):
        pack(LookupRecord, table=np.array([3, 4096]))
    with pytest.raises(ValueError, match="row must be between 0 and 68719476735, not -1 to -1"):
        pack(LookupRecord, row=-1)
    with pytest.raises(ValueError, match="field must be one of row, table, landing, not 'rows'"):
        pack(LookupRecord, rows=1)
    with pytest.raises(ValueError, match="data has 512 bits, at most 64"):
        pack(Beat, data=1)
    with pytest.raises(ValueError, match="data has 512 bits, at most 64"):
        unpack(Beat, np.zeros((1, 19), np.uint32), "data")


def test_scalars_and_empty_arrays():
    assert pack(LookupRecord, table=1).shape == (1, 2)
    assert pack(LookupRecord, 5, table=1).tolist() == [[0, 1 << 4]] * 5
    assert pack(LookupRecord, table=np.zeros(0, int)).shape == (0, 2)
