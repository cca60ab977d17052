import pytest

from host.datasets import FORMATS, default_model, guess_format, open_samples
from host.errors import InputError
from host.model import MODELS
from host.samples import concatenate

CRITEO = "\t".join(["1", *["2"] * 13, *["0a1b2c3d"] * 26]) + "\n"
FILES = {"criteo": CRITEO * 5, "trace": "0:3 1:7\n\n0:1\n0:0 0:0\n1:1\n",
         "movielens": "userId,movieId,rating,timestamp\n" + "1,2,4.0,5\n" * 5}


@pytest.fixture
def files(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("limit", [None, 1, 4, 5, 9])
def test_opens_each_format_up_to_the_limit(files, name, limit):
    path = files / name
    assert guess_format(path) == name
    got = concatenate(open_samples(path, name, default_model(path, name), limit))
    assert len(got) == min(5, limit or 5)


def test_a_trace_brings_its_own_model(files):
    assert default_model(files / "trace", "trace").rows == (4, 8)
    assert default_model(files / "criteo", "criteo") is MODELS["kaggle"]


@pytest.mark.parametrize("actual", FILES)
@pytest.mark.parametrize("claimed", FORMATS)
def test_a_wrong_format_is_refused_and_the_likely_one_named(files, actual, claimed):
    if actual == claimed:
        return
    path = files / actual
    with pytest.raises(InputError) as caught:
        list(open_samples(path, claimed, default_model(files / claimed, claimed)))
    assert str(caught.value).startswith(f"{path}:1:")
    assert str(caught.value).endswith(f"; the file looks like format {actual}")


def test_errors_elsewhere_carry_no_guess(files, tmp_path):
    with pytest.raises(InputError, match=r"none: No such file or directory$"):
        list(open_samples(tmp_path / "none", "criteo", MODELS["kaggle"]))
    path = tmp_path / "bad"
    path.write_text(CRITEO + "1\n")
    with pytest.raises(InputError, match=r"bad:2:2: 1 column where 40 belong \([^;]*\)$"):
        list(open_samples(path, "criteo", MODELS["kaggle"]))
    with pytest.raises(ValueError, match="format must be one of criteo, movielens, trace, not 'x'"):
        list(open_samples(path, "x", MODELS["kaggle"]))
    with pytest.raises(ValueError, match="limit must be at least 1, not 0"):
        list(open_samples(files / "criteo", "criteo", MODELS["kaggle"], 0))
