"""Data sets from a pipe: every sample once, mistakes in their place, and nothing read twice."""

import gzip
import os
import threading
from contextlib import contextmanager

import numpy as np
import pytest

from host.data.datasets import (
    check_files,
    default_model,
    guess_format,
    known_format,
    open_samples,
)
from host.data.readers import pipes
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
    """A path at which ``content`` can be read once, as a shell's ``<(...)`` makes it."""
    out, into = os.pipe()

    def write_all() -> None:
        with os.fdopen(into, "wb", buffering=0) as file:
            view = memoryview(content)
            try:
                while view:
                    view = view[file.write(view[:5000]):]
            except BrokenPipeError:
                pass  # nobody reads on

    writer = threading.Thread(target=write_all)
    writer.start()
    try:
        yield f"/dev/fd/{out}"
    finally:
        os.close(out)
        writer.join(10)
        assert not writer.is_alive() and not pipes._known


def _equal(one, other) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name))
               for name in ("dense", "labels", "bag_lengths", "tables", "rows"))


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("guessed", [False, True])
@pytest.mark.parametrize("modelled", [False, True])
@pytest.mark.parametrize("name", CONTENT)
def test_all_samples_come(tmp_path, name, guessed, modelled, packed):
    format = "trace" if name == "npy" else name
    if packed and name in ("npy", "dlrm-npz"):
        return
    content = gzip.compress(CONTENT[name]) if packed else CONTENT[name]
    path = write(tmp_path / "file", content)
    model = default_model(path, format) if modelled else None
    wanted = concatenate(open_samples(path, format, model))
    assert len(wanted) == COUNT
    with piped(content) as pipe:
        if guessed:
            assert guess_format(pipe) == format and known_format(pipe) == format
        if modelled:
            assert default_model(pipe, format) == model
        assert _equal(concatenate(open_samples(pipe, format, model)), wanted)


def test_a_limit_ends_reading(tmp_path):
    with piped(CONTENT["criteo"]) as pipe:
        assert known_format(pipe) == "criteo"
        assert len(concatenate(open_samples(pipe, "criteo", MODELS["kaggle"], 5))) == 5


def test_a_named_pipe_is_read_anew(tmp_path):
    """What an earlier reading left is not taken for what comes now."""
    path = tmp_path / "fifo"
    os.mkfifo(path)
    for text in (CONTENT["trace"], b"0:1 1:2\n", b"0:9\n0:8\n1:1\n"):
        writer = threading.Thread(target=path.write_bytes, args=(text,))
        writer.start()
        assert known_format(path) == "trace"
        model = default_model(path, "trace")
        found = concatenate(open_samples(path, "trace", model))
        assert len(found) == text.count(b"\n")
        writer.join(10)


def test_mistakes_have_their_place():
    lines = criteo_lines(COUNT)
    lines[1999] = "1\t2"
    bad = "\n".join(lines).encode()
    with piped(bad) as pipe, pytest.raises(InputError, match=f"^{pipe}:2000:4: 2 columns inst"):
        assert known_format(pipe) == "criteo"
        list(open_samples(pipe, "criteo", MODELS["kaggle"]))
    trace = CONTENT["trace"] + b"0:1 x\n"
    said = f":{COUNT + 1}:5: a key must be table:row, not 'x'$"
    with piped(trace) as pipe, pytest.raises(InputError, match=f"^{pipe}{said}"):
        default_model(pipe, "trace")
    with piped(trace) as pipe, pytest.raises(InputError, match=f"^{pipe}{said}"):
        list(open_samples(pipe, "trace", None))
    with piped(CONTENT["movielens"]) as pipe, pytest.raises(
            InputError, match=f"^{pipe}:1:.*; the file looks like format movielens$"):
        list(open_samples(pipe, "criteo", MODELS["kaggle"]))
    with piped(CONTENT["criteo"]) as pipe, pytest.raises(
            InputError, match=f"^{pipe}:1:.*; the file looks like format criteo$"):
        default_model(pipe, "trace")
    with piped(b"hello\n") as pipe, pytest.raises(InputError, match="the format is unknown"):
        known_format(pipe)
    with piped(b"") as pipe, pytest.raises(InputError, match=":1:1: the file is empty"):
        list(open_samples(pipe, "criteo", MODELS["kaggle"]))


def test_what_cannot_be_kept_is_refused(monkeypatch):
    monkeypatch.setattr(pipes, "SPOOL_BYTES", 20_000)
    for kind, content in (("trace", CONTENT["trace"]), ("dlrm-npz", CONTENT["dlrm-npz"])):
        with piped(content) as pipe, pytest.raises(InputError, match=(
                f"^{pipe}: is a pipe, which can be read only once, of more than 20,000 bytes, .*; "
                f"write it to a file first$")):
            default_model(pipe, kind)
    # What is read once is not kept.
    with piped(CONTENT["criteo"]) as pipe:
        assert len(concatenate(open_samples(pipe, "criteo", None))) == COUNT


def test_twice():
    with piped(b"0:1\n") as pipe, pytest.raises(InputError, match="only once, and named twice"):
        list(open_samples([pipe, pipe], "trace", None))
    with piped(b"0:1\n") as pipe, pytest.raises(ValueError, match=(
            f"^data is a pipe, which can be read only once; write '{pipe}' to a file first for 2")):
        check_files(pipe, "for 2 epochs")
