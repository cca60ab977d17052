"""Inputs without an end, or without a beginning."""

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from host.calibrate.reading import Book
from host.dlrm.mlp import MOST_WEIGHTS, initial_layers
from host.errors import InputError
from host.model import load_model
from host.reading import open_input, read_regular, read_whole
from host.sealed import open_sealed
from host.timing.cluster import cluster_files

pytestmark = pytest.mark.skipif(os.name != "posix", reason="devices and FIFOs of POSIX")


def test_a_device_without_an_end_is_read_up_to_the_bound():
    with pytest.raises(InputError, match="/dev/zero: must have at most 4,096 bytes, not more"):
        read_whole("/dev/zero", 4096)


def test_a_file_of_just_the_bound(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"x" * 4096)
    assert read_whole(path, 4096) == b"x" * 4096
    with pytest.raises(InputError):
        read_whole(path, 4095)


def test_a_fifo_without_a_writer_is_empty(tmp_path):
    """Opening it for reading would block forever."""
    fifo = tmp_path / "fifo.toml"
    os.mkfifo(fifo)
    assert read_whole(fifo, 4096) == b""
    trace = ["--data", str(fifo), "--format", "trace", "--model", "trace"]
    done = subprocess.run([sys.executable, "-m", "sim", "run", "--fidelity", "fast", *trace],
                          capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2 and done.stderr == f"sim: {fifo}:1:1: the file is empty\n"


def test_a_fifo_with_a_writer_is_read_whole(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)

    def write():
        with fifo.open("wb", buffering=0) as file:
            time.sleep(0.1)
            file.write(b"early ")
            time.sleep(0.1)
            file.write(b"late")

    writer = threading.Thread(target=write)
    writer.start()
    time.sleep(0.1)  # it has begun to open the FIFO
    with open_input(fifo) as file:
        assert b"".join(iter(lambda: file.read(3), b"")) == b"early late"
    writer.join()


@pytest.mark.parametrize(("name", "text", "said"), [
    ("dotted", ".".join(["a"] * 500) + " = 1\n", ":1:1: a key must have at most 64 parts"),
    ("table", "x = 1\n[" + ".".join(["a"] * 30_000) + "]\n", ":2:2: a key must have at most 64 p"),
    ("quoted", " . ".join(['"a b"'] * 70) + " = 1\n", ":1:1: a key must have at most 64 parts"),
    ("within", ".".join(["a"] * 60) + " = 1\n", "no such field: a"),
    ("long", "x = '" + "y" * (1 << 20) + "'\n", "must have at most 1,048,576 bytes, not more"),
    ("word", "x" * 1_000_000 + "= 1\n", "no such field"),
])
def test_toml_that_takes_all_memory(tmp_path, name, text, said):
    path = tmp_path / f"{name}.toml"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        load_model(str(path))
    assert said in str(error.value)


def test_layers_beyond_memory():
    with pytest.raises(ValueError, match="layers of an MLP must have at most 134,217,728 weights"):
        initial_layers(((65_536, 65_536),) * 4, 1)
    assert MOST_WEIGHTS == 134_217_728


def test_weights_do_not_depend_on_the_blocks_they_are_drawn_in(monkeypatch):
    whole = initial_layers(((100, 77),), 5)[0].weights
    monkeypatch.setattr("host.dlrm.mlp._BLOCK_DRAWN", 1000)
    assert np.array_equal(initial_layers(((100, 77),), 5)[0].weights, whole)


def _fifo(path):
    os.mkfifo(path)


def _sparse(path):
    with path.open("wb") as file:
        file.truncate(1 << 40)


LEFT = {"a FIFO": _fifo, "a device": lambda path: path.symlink_to("/dev/zero"),
        "a folder": lambda path: path.mkdir(), "a sparse file": _sparse,
        "a loop of links": lambda path: path.symlink_to(path.name)}


@pytest.mark.parametrize("kind", LEFT)
def test_what_an_earlier_run_left_is_a_regular_file_of_bounded_size(tmp_path, kind):
    """No input blocks, or takes the memory of the machine."""
    path = tmp_path / "left.json"
    with pytest.raises(FileNotFoundError):
        read_regular(path, 4096)
    LEFT[kind](path)
    with pytest.raises(InputError) as error:
        read_regular(path, 4096)
    assert str(error.value) == f"{path}: " + {
        "a sparse file": "must have at most 4,096 bytes, not more",
        "a loop of links": "Too many levels of symbolic links"}.get(
            kind, "is not a regular file: delete it, or name another file")
    with pytest.raises(InputError, match=f"^{path}: "), open_sealed(path, "a checkpoint"):
        pass


def test_a_regular_file_of_just_the_bound(tmp_path):
    path = tmp_path / "left.json"
    path.write_bytes(b"x" * 4096)
    assert read_regular(path, 4096) == b"x" * 4096
    with pytest.raises(InputError):
        read_regular(path, 4095)


@pytest.mark.parametrize("kind", LEFT)
def test_readings_and_clusters_are_bounded(tmp_path, kind):
    path = tmp_path / "left.toml"
    LEFT[kind](path)
    with pytest.raises(InputError, match=f"^{path}: "):
        Book.read(path)
    assert cluster_files(path)[0] == path
