import gzip

import numpy as np
import pytest

from host.data.datasets import FORMATS, default_model, guess_format, input_files, open_samples
from host.errors import InputError
from host.model import MODELS
from host.samples import concatenate
from tests.host.data.readers.files import avazu_lines, npy_bytes, npz_arrays, npz_bytes, write

CRITEO = "\t".join(["1", *["2"] * 13, *["0a1b2c3d"] * 26]) + "\n"
FILES = {"criteo": CRITEO * 5, "trace": "\n0:3 1:7\n0:1\n0:0 0:0\n1:1\n",
         "movielens": "userId,movieId,rating,timestamp\n" + "1,2,4.0,5\n" * 5,
         "avazu": "\n".join(avazu_lines(5)), "dlrm-npz": npz_bytes(npz_arrays(5))}


@pytest.fixture
def files(tmp_path):
    for name, content in FILES.items():
        write(tmp_path / name, content)
    return tmp_path


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("limit", [None, 1, 4, 5, 9])
def test_opens_each_format_up_to_the_limit(files, name, limit):
    path = files / name
    assert guess_format(path) == name
    got = concatenate(open_samples(path, name, default_model(path, name), limit))
    assert len(got) == min(5, limit or 5)
    raw = concatenate(open_samples(path, name, None, limit))
    assert (raw.bag_lengths == got.bag_lengths).all() and (raw.dense == got.dense).all()


@pytest.mark.parametrize("name", ["criteo", "trace", "movielens", "avazu"])
def test_gzip_is_seen_through(files, tmp_path, name):
    path = write(tmp_path / "packed", gzip.compress((files / name).read_bytes()))
    assert guess_format(path) == name
    model = default_model(path, name)
    assert model == default_model(files / name, name)
    assert (concatenate(open_samples(path, name, model)).rows
            == concatenate(open_samples(files / name, name, model)).rows).all()


def test_files_are_known_by_content_not_by_name(tmp_path):
    path = write(tmp_path / "keys.csv", npy_bytes(np.array([[1, 2], [3, 0]])))
    assert guess_format(path) == "trace"
    assert default_model(path, "trace").rows == (4, 3)
    for content in (b"", b"hello\n", b"\x1f\x8bno", b"\x00" * 9, gzip.compress(npy_bytes(
            np.zeros((2, 2), int)))):
        assert guess_format(write(tmp_path / "train.txt", content)) is None


def test_the_file_brings_its_model(files, tmp_path):
    assert default_model(files / "trace", "trace").rows == (4, 8)
    for name, model in (("criteo", "kaggle"), ("avazu", "avazu"), ("movielens", "movielens")):
        assert default_model(files / name, name) is MODELS[model]
    path = write(tmp_path / "small.npz", npz_bytes(npz_arrays(5, dense=3, tables=4)))
    model = default_model(path, "dlrm-npz")
    assert model.rows == tuple(npz_arrays(5, dense=3, tables=4)["counts"].tolist())
    assert (model.dense, model.dimension, model.bottom) == (3, 16, MODELS["kaggle"].bottom)


def test_several_files_and_folders_are_run_through_in_order(tmp_path):
    days = tmp_path / "days"
    days.mkdir()
    for number in (10, 2, 0):
        write(days / f"day_{number}", f"0:{number}\n")
    write(days / ".hidden", "")
    write(days / "_SUCCESS", "")
    (days / "more").mkdir()
    last = write(tmp_path / "last", "1:5\n")
    paths = [days, str(last)]
    assert [path.name for path in input_files(paths)] == ["day_0", "day_2", "day_10", "last"]
    assert guess_format(paths) == "trace"
    model = default_model(paths, "trace")
    assert model.rows == (11, 6)
    assert concatenate(open_samples(paths, "trace", model)).rows.tolist() == [0, 2, 10, 5]
    assert concatenate(open_samples(paths, "trace", model, 3)).rows.tolist() == [0, 2, 10]
    write(days / "day_2", "0:x\n")
    with pytest.raises(InputError, match=r"days/day_2:1:1: a key must be table:row in decimal"):
        list(open_samples(paths, "trace", model))
    write(days / "1\u00b22", "0:1\n")  # a digit in Python, but not a number
    assert len(input_files(days)) == 4
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"empty: the folder contains no file$"):
        input_files(tmp_path / "empty")
    with pytest.raises(ValueError, match="data must name at least one file"):
        input_files([])


@pytest.mark.parametrize("actual", FILES)
@pytest.mark.parametrize("claimed", FORMATS)
def test_a_wrong_format_is_refused_and_the_likely_one_named(files, actual, claimed):
    if actual == claimed.removesuffix("-exact"):
        return
    path = files / actual
    with pytest.raises(InputError) as caught:
        list(open_samples(path, claimed, default_model(files / claimed, claimed)))
    array = claimed == "dlrm-npz" or (claimed, actual) == ("trace", "dlrm-npz")
    line = 2 if actual == "trace" else 1  # the trace begins with a blank line
    assert str(caught.value).startswith(f"{path}: " if array else f"{path}:{line}:")
    assert str(caught.value).endswith(f"; the file looks like format {actual}")


def test_errors_elsewhere_carry_no_guess(files, tmp_path):
    with pytest.raises(InputError, match=r"none: No such file or directory$"):
        list(open_samples(tmp_path / "none", "criteo", MODELS["kaggle"]))
    path = tmp_path / "bad"
    path.write_text(CRITEO + "1\n")
    with pytest.raises(InputError, match=r"bad:2:2: 1 column instead of 40 \([^;]*\)$"):
        list(open_samples(path, "criteo", MODELS["kaggle"]))
    with pytest.raises(ValueError, match="format must be one of criteo, avazu, movielens, "
                                         "dlrm-npz, trace, criteo-exact, not 'x'"):
        list(open_samples(path, "x", MODELS["kaggle"]))
    with pytest.raises(ValueError, match="limit must be at least 1, not 0"):
        list(open_samples(files / "criteo", "criteo", MODELS["kaggle"], 0))
