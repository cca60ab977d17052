import math

import numpy as np
import pytest

from host.data.readers import lines
from host.data.readers.avazu import COLUMNS, HEADER, read
from host.hashing import GOLDEN, mix64
from host.model import MODELS
from host.samples import concatenate
from tests.host.data.readers.files import avazu_lines, write

MODEL = MODELS["avazu"]
MASK = (1 << 64) - 1


def plain_hash(text):
    data = text.encode()
    h = len(data)
    for at in range(0, max(1, len(data)), 8):
        word = int.from_bytes(data[at:at + 8].ljust(8, b"\0"), "little")
        h = int(mix64(np.array([(h + GOLDEN & MASK) ^ word], np.uint64))[0])
    return h


@pytest.mark.parametrize("size", [1500, 1 << 20])
def test_samples_are_what_the_lines_say(tmp_path, monkeypatch, size):
    monkeypatch.setattr(lines.read_chunks, "__defaults__", (size,))
    text = avazu_lines(60)
    path = write(tmp_path / "train.csv", "".join(line + "\n" for line in text))
    chunks = list(read(path, MODEL))
    assert (len(chunks) > 1) == (size == 1500)
    got = concatenate(chunks)
    expected = [line.split(",") for line in text[1:]]
    assert got.labels.tolist() == [float(line[1]) for line in expected]
    assert got.dense.tolist() == [[float(np.float32(math.log1p(int(line[2][-2:]))))]
                                  for line in expected]
    assert (got.bag_lengths == 1).all()
    assert got.rows.reshape(-1, 21).tolist() == [
        [plain_hash(text) % size for text, size in zip(line[3:], MODEL.rows)] for line in expected]
    raw = concatenate(read(path, None))
    assert raw.rows.reshape(-1, 21).tolist() == [
        [plain_hash(text) % ((1 << 36) - 1) for text in line[3:]] for line in expected]


def test_hashes_stay():
    """Results depend on the hashes."""
    assert [plain_hash(text) for text in ("", "0", "1fbe01fe", "a longer category")] == [
        0x9CA066F1A4AB2EEA, 0x6E315B3D1344BE43, 0xAE1322D9FEDD2739, 0x15E238E20CCB2992]


def test_texts_that_differ_only_in_zeros_or_length_are_apart(tmp_path):
    texts = ["", "0", "00", "1fbe01fe", "1fbe01fe0", "1fbe01fe1fbe01fe", "-1"]
    rows = [",".join(["7", "0", "14102100", text, *["x"] * (len(COLUMNS) - 1)]) for text in texts]
    path = write(tmp_path / "train.csv", "\n".join([HEADER, *rows]))
    got = concatenate(read(path, None)).rows.reshape(-1, 21)
    assert len(set(got[:, 0].tolist())) == len(texts)
    assert len(set(got[:, 1].tolist())) == 1


def test_other_models_are_refused(tmp_path):
    path = write(tmp_path / "train.csv", "\n".join(avazu_lines(1)))
    with pytest.raises(ValueError, match="a model for Avazu must have 1 dense feature and 21 "
                                         "tables, not 13 and 26"):
        list(read(path, MODELS["kaggle"]))
