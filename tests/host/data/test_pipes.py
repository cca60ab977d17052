"""Data sets from a pipe: each sample once, errors with their place, and no second pass."""

import gzip
import os
import threading
from contextlib import contextmanager

import numpy as np
import pytest

from host.data.datasets import (
    check_files,
    default_model,
    known_format,
    open_samples,
)
from host.errors import InputError
from host.model import MODELS
from host.samples import concatenate
from tests.host.data.readers.files import (
    avazu_lines,
    criteo_lines,
    npy_bytes,
    npz_arrays,
    npz_bytes,
    write,
)

COUNT = 3000
CONTENT = {
    "criteo": "\n".join(criteo_lines(COUNT)).encode(),
    "avazu": "\n".join(avazu_lines(COUNT)).encode(),
    "movielens": b"userId,movieId,rating,timestamp\n" + b"".join(
        b"%d,%d,4.0,5\n" % (1 + n % 600, 1 + n % 9000) for n in range(COUNT)),
    "trace": b"".join(b"0:%d 1:%d 1:7\n" % (n, n % 11) for n in range(COUNT)),
    "npy": npy_bytes(np.arange(2 * COUNT).reshape(COUNT, 2)),
    "dlrm-npz": npz_bytes(npz_arrays(COUNT)),
}


@contextmanager
def piped(content: bytes):
    """Yield a path at which ``content`` can be read once, like a shell's ``<(...)``."""
    out, into = os.pipe()

    def write_all() -> None:
        with os.fdopen(into, "wb", buffering=0) as file:
            view = memoryview(content)
            try:
                while view:
                    view = view[file.write(view[:5000]):]
            except BrokenPipeError:
                pass  # the reader has stopped

    writer = threading.Thread(target=write_all)
    writer.start()
    try:
        yield f"/dev/fd/{out}"
    finally:
        os.close(out)
        writer.join(10)
        assert not writer.is_alive()


def _equal(one, other) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name))
               for name in ("dense", "labels", "bag_lengths", "tables", "rows"))


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", ["criteo", "avazu", "trace"])
def test_all_samples_come(tmp_path, name, packed):
    content = gzip.compress(CONTENT[name]) if packed else CONTENT[name]
    path = write(tmp_path / "file", content)
    model = default_model(path, name)
    wanted = concatenate(open_samples(path, name, model))
    assert len(wanted) == COUNT
    with piped(content) as pipe:
        assert known_format(pipe, name) == name
        assert _equal(concatenate(open_samples(pipe, name, model)), wanted)


def test_a_limit_ends_reading():
    with piped(CONTENT["criteo"]) as pipe:
        assert len(concatenate(open_samples(pipe, "criteo", MODELS["kaggle"], 5))) == 5


def test_mistakes_have_their_place():
    lines = criteo_lines(COUNT)
    lines[1999] = "1\t2"
    bad = "\n".join(lines).encode()
    with piped(bad) as pipe, pytest.raises(InputError, match=f"^{pipe}:2000:4: 2 columns inst"):
        list(open_samples(pipe, "criteo", MODELS["kaggle"]))
    with piped(b"") as pipe, pytest.raises(InputError, match=":1:1: the file is empty"):
        list(open_samples(pipe, "criteo", MODELS["kaggle"]))
    with piped(b"0:1\n") as pipe, pytest.raises(InputError, match=":1:1: the file is empty"):
        list(open_samples([pipe, pipe], "trace", MODELS["trace"]))


TWICE = "is a pipe, which can be read only once: write it to a file first"


@pytest.mark.parametrize(("name", "remedy"), [
    ("criteo", ", or name the format with --format"), ("trace", ", or name a model"),
    ("npy", ", or name a model"), ("movielens", ""), ("dlrm-npz", "")])
def test_a_second_pass_is_refused(name, remedy):
    """The message is one line, and the pipe is not read."""
    with piped(CONTENT[name]) as pipe:
        with pytest.raises(InputError) as error:
            if name == "criteo":
                known_format(pipe)
            list(open_samples(pipe, "trace" if name == "npy" else name, None))
        assert str(error.value) == f"{pipe}: {TWICE}{remedy}"
        with pytest.raises(InputError, match=f"^{pipe}: {TWICE} for 2 epochs$"):
            check_files(pipe, "for 2 epochs")
        with open(pipe, "rb") as file:
            assert file.read() == CONTENT[name]
