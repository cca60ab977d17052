"""Samples kept for several passes: the same chunks, from memory or a file."""

from dataclasses import astuple, replace
from tempfile import gettempdir

import numpy as np
import pytest

import host.data.kept
from host.data.generator import generate
from host.data.kept import KeptSamples
from host.model import MODELS, load_model
from host.samples import Samples, first_samples


def _chunks(name: str = "kaggle", chunk: int = 100) -> list[Samples]:
    model = load_model(name.removesuffix(" weighted"))
    if name.endswith("weighted"):
        model = replace(model, weighted_tables=(2, 5))
    return list(generate(model, 350, 1, chunk=chunk))


def _equal(found, wanted) -> bool:
    return len(found) == len(wanted) and all(
        one is other is None or (one.dtype == other.dtype and np.array_equal(one, other))
        for pair in zip(found, wanted) for one, other in zip(*map(astuple, pair)))


@pytest.mark.parametrize("memory", [1 << 28, 1000])
@pytest.mark.parametrize("name", ["kaggle", "multi_hot", "multi_hot weighted"])
def test_each_pass_has_the_same_samples(monkeypatch, name, memory):
    monkeypatch.setattr(host.data.kept, "MEMORY", memory)
    wanted, read = _chunks(name), []
    kept = KeptSamples(read.append(chunk) or chunk for chunk in wanted)
    assert sum(map(len, first_samples(kept.chunks(True), 120))) == 120
    assert len(read) == 2
    for again in (True, True, False):
        assert _equal(list(kept.chunks(again)), wanted)
    assert len(read) == len(wanted)


def test_passes_side_by_side():
    wanted = _chunks()
    kept = KeptSamples(iter(wanted))
    pairs = list(zip(kept.chunks(True), kept.chunks(True), strict=True))
    assert all(_equal(list(each), wanted) for each in zip(*pairs))


def test_the_last_pass_keeps_nothing():
    kept = KeptSamples(iter(_chunks()))
    assert len(list(kept.chunks(False))) == 4
    assert list(kept.chunks(False)) == []


def test_a_large_row_and_an_empty_bag_are_kept():
    samples = Samples(np.ones((2, 1), np.float32), np.array([0, 1], np.float32),
                      np.array([[0, 2], [1, 0]], np.int32), np.array([1, 1, 0], np.int32),
                      np.array([1 << 35, 7, 300], np.int64))
    kept = KeptSamples(iter([samples]))
    for _ in range(2):
        assert _equal(list(kept.chunks(True)), [samples])


def test_a_full_disk_is_one_error(monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", full)
    kept = KeptSamples(generate(MODELS["kaggle"], 10))
    with pytest.raises(OSError, match="No space left on device: set TMPDIR to a folder with more "
                                      f"space: '{gettempdir()}'"):
        list(kept.chunks(True))
