"""The message about a malformed file names the place: line and column, or array and index."""

import gzip
import random
from collections import Counter

import numpy as np
import pytest

from host.data.datasets import FORMATS, default_model, open_samples
from host.errors import InputError
from tests.host.data.readers.files import (
    avazu_lines,
    criteo_lines,
    npy_bytes,
    npz_arrays,
    npz_bytes,
    write,
)
from tests.host.data.readers.malformed import CASES


@pytest.mark.parametrize("case", CASES, ids=str)
def test_malformed_file(tmp_path, case):
    path = write(tmp_path / "file", case.content)
    with pytest.raises(InputError) as caught:
        for _ in open_samples(path, case.format, default_model(path, case.format)):
            pass
    assert str(caught.value).startswith(f"{path}{case.said}")
    assert "\n" not in str(caught.value)


def test_every_format_is_malformed_in_five_ways():
    count = Counter(case.format for case in CASES)
    assert set(count) == set(FORMATS) and min(count.values()) >= 5


GOOD = {
    "criteo": "\n".join(criteo_lines(20)).encode(), "avazu": "\n".join(avazu_lines(20)).encode(),
    "movielens": b"userId,movieId,rating,timestamp\n" + b"1,31,2.5,1260759144\n" * 20,
    "trace": b"0:1 1:5\n\n1:3 1:3\n" * 10, "dlrm-npz": npz_bytes(npz_arrays(60)),
    "dlrm-npz stored": npz_bytes(npz_arrays(20), compressed=False),
    "trace array": npy_bytes(np.asfortranarray(np.arange(60).reshape(20, 3))),
    "criteo gzip": gzip.compress("\n".join(criteo_lines(20)).encode(), mtime=0)}


@pytest.mark.parametrize("name", GOOD)
def test_damaged_at_random(tmp_path, name):
    """Change, remove, insert or cut bytes: the result is samples or an `InputError`."""
    rng, format = random.Random(name), name.split(" ")[0]
    outcomes = Counter()
    for _ in range(150):
        content = bytearray(GOOD[name])
        for _ in range(rng.choice([1, 1, 2, 5])):
            at = rng.randrange(rng.choice([len(content), min(len(content), 150)]))
            kind = rng.randrange(4)
            if kind == 0:
                content[at] ^= 1 << rng.randrange(8)
            elif kind == 1:
                del content[at + 1:at + rng.randrange(2, 20)]
            elif kind == 2:
                content[at:at] = rng.choice([b"-", b"\t", b",", b"\n", b"9" * 20, b"\0", b":"])
            else:
                del content[at + 1:]
        path = write(tmp_path / "file", bytes(content))
        try:
            count = sum(map(len, open_samples(path, format, default_model(path, format))))
            outcomes[count > 0] += 1
        except InputError as error:
            assert str(error).startswith(f"{path}:") and "\n" not in str(error)
            outcomes["refused"] += 1
    assert outcomes["refused"] > 20 and not outcomes[False]
