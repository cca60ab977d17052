import hashlib
import struct

import numpy as np
import pytest

from host.dlrm.key_index import KeyIndex
from host.dlrm.row_store import RowStore
from host.dlrm.rows import row_values
from host.model import Model

MODEL = Model((1000, (1 << 36) - 1, 50), 16, 1, (16,), (1,))
F = np.float32


def keys_of(count, seed, repeats=False):
    rng = np.random.default_rng(seed)
    tables = rng.integers(0, 3, count)
    rows = (rng.random(count) * np.minimum(MODEL.rows, 2000)[tables]).astype(np.int64)
    keys = rows | tables << 36
    return keys if repeats else rng.permutation(np.unique(keys))


def test_an_index_numbers_keys_as_a_dict_does():
    index, plain = KeyIndex(), {}
    for turn in range(30):
        keys = keys_of(5 * turn * turn, turn)
        old = index.find(keys)
        assert old.tolist() == [plain.get(key, -1) for key in keys.tolist()]
        for key in keys.tolist():
            plain.setdefault(key, len(plain))
        assert index.add(keys).tolist() == [plain[key] for key in keys.tolist()]
        assert len(index) == len(plain) and index.keys.tolist() == list(plain)


def test_keys_that_want_the_same_place(monkeypatch):
    monkeypatch.setattr("host.dlrm.key_index.mix64",
                        lambda keys: np.full(len(keys), 1022, np.uint64))
    index = KeyIndex()
    assert index.add(np.arange(40) * 3).tolist() == list(range(40))
    assert index.find(np.arange(120)).tolist() == [n // 3 if n % 3 == 0 else -1
                                                   for n in range(120)]


def test_rows_are_initial_until_written():
    store, plain = RowStore(MODEL, 3), {}
    rng = np.random.default_rng(0)
    for turn in range(20):
        keys = keys_of(300, turn, repeats=True)
        vectors, states = store.read(keys)
        initial = row_values(MODEL, 3, keys >> 36, keys & (1 << 36) - 1)
        for n, key in enumerate(keys.tolist()):
            vector, state = plain.get(key, (initial[n], F(0)))
            assert vectors[n].tolist() == vector.tolist() and states[n] == state
        keys = keys_of(200, 100 + turn)
        vectors, states = rng.random((len(keys), 16), F), rng.random(len(keys), F)
        store.write(keys, vectors, states)
        plain |= dict(zip(keys.tolist(), zip(vectors, states)))
    assert len(store) == len(plain) > 1500
    keys, vectors, states = store.written()
    assert keys.tolist() == sorted(plain)
    for key, vector, state in zip(keys.tolist(), vectors, states):
        assert vector.tolist() == plain[key][0].tolist() and state == plain[key][1]


def test_the_digest_is_of_tables_rows_and_bits_in_order(monkeypatch):
    monkeypatch.setattr("host.dlrm.row_store._BLOCK", 100)
    store = RowStore(MODEL, 3)
    assert store.digest() == hashlib.sha256().digest()
    keys = keys_of(700, 1)
    vectors = np.random.default_rng(2).random((len(keys), 16), F)
    store.write(keys, vectors, np.zeros(len(keys), F))
    text = b"".join(struct.pack("<IQ16f", key >> 36, key & (1 << 36) - 1, *vector)
                    for key, vector in sorted(zip(keys.tolist(), vectors.tolist())))
    assert store.digest() == hashlib.sha256(text).digest()
    # In any order of writes, and repeatedly; the sign of a zero counts.
    other = RowStore(MODEL, 3)
    for part in (slice(300, None), slice(0, 400)):
        other.write(keys[part], vectors[part], np.ones(len(keys[part]), F))
    assert other.digest() == store.digest()
    other.write(keys[:1], np.zeros((1, 16), F), np.zeros(1, F))
    zero = other.digest()
    other.write(keys[:1], -np.zeros((1, 16), F), np.zeros(1, F))
    assert store.digest() != zero != other.digest()


def test_keys_outside_the_model_are_refused():
    with pytest.raises(ValueError, match="rows of table 2 must be below 50, not 50"):
        RowStore(MODEL, 0).read(np.array([50 | 2 << 36]))
