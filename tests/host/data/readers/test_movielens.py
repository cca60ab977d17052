import csv
import random

import pytest

from host.data.readers import lines
from host.data.readers.movielens import read
from host.errors import InputError
from host.model import MODELS
from host.samples import concatenate

MODEL = MODELS["movielens"]
HEADER = "userId,movieId,rating,timestamp\n"


def write(tmp_path, text):
    path = tmp_path / "ratings.csv"
    path.write_text(text)
    return path


@pytest.mark.parametrize("size", [300, 1 << 20])
def test_samples_are_what_the_file_says(tmp_path, monkeypatch, size):
    monkeypatch.setattr(lines.read_chunks, "__defaults__", (size,))
    rng = random.Random(3)
    path = write(tmp_path, HEADER + "".join(
        f"{rng.randint(1, 610)},{rng.randint(1, 193609)},{rng.randint(1, 10) / 2},"
        f"{rng.randint(8 * 10 ** 8, 15 * 10 ** 8)}\n" for _ in range(200)))
    with open(path, newline="") as file:
        expected = list(csv.DictReader(file))
    got = concatenate(read(path, MODEL))
    assert got.rows.tolist() == [int(x) for line in expected
                                 for x in (line["userId"], line["movieId"])]
    assert got.labels.tolist() == [float(float(line["rating"]) >= 4) for line in expected]
    times = [int(line["timestamp"]) for line in expected]
    low, high = min(times), max(times)
    assert got.dense[:, 0].tolist() == pytest.approx([(t - low) / (high - low) for t in times])
    assert (got.dense.min(), got.dense.max()) == (0, 1)


def test_one_rating(tmp_path):
    got = concatenate(read(write(tmp_path, HEADER + "1,2,4,5"), MODEL))
    assert (got.dense.tolist(), got.labels.tolist(), got.rows.tolist()) == ([[0]], [1], [1, 2])


@pytest.mark.parametrize("text, place, message", [
    (HEADER, "1:32", "no ratings follow"),
    ("1,2,4.0,5\n", "1:1", "the header must be userId,movieId,rating,timestamp, in any order, "
     "not '1,2,4.0,5'"),
    (HEADER + "1,2,4.0,5\n1,2,4.0\n", "3:8", "3 columns instead of 4 (userId,movieId"),
    (HEADER + "1,2,4.0,5\n1,b,4.0,5\n", "3:3", "movieId is not a number: 'b'"),
    (HEADER + "611,2,4.0,5\n", "2:1", "userId 611 is beyond the 611 rows of table 0"),
    (HEADER + "1,193610,4.0,5\n", "2:3", "movieId 193610 is beyond the 193610 rows of table 1"),
    (HEADER + "-1,2,4.0,5\n", "2:1", "userId is not a number: '-1'"),
    (HEADER + "1,2,5.5,5\n", "2:5", "rating must be 0 to 5 in steps of a half, not '5.5'"),
    (HEADER + "1,2,,5\n", "2:5", "rating must be 0 to 5 in steps of a half, not ''"),
    (HEADER + "1,2,4.25,5\n", "2:5", "rating must be 0 to 5 in steps of a half, not '4.25'"),
    (HEADER + "1,2,4.0,\n", "2:9", "timestamp is not a number: ''"),
])
def test_bad_files_are_refused_with_the_place(tmp_path, text, place, message):
    path = write(tmp_path, text)
    with pytest.raises(InputError) as caught:
        list(read(path, MODEL))
    assert str(caught.value).startswith(f"{path}:{place}: {message}")


def test_other_models_are_refused(tmp_path):
    with pytest.raises(ValueError, match="must have 1 dense feature and 2 tables, not 13 and 26"):
        list(read(write(tmp_path, HEADER + "1,2,4.0,5\n"), MODELS["kaggle"]))
