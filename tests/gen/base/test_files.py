"""A written file has either its old or its new contents at every moment."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gen.base.files import open_output, write_whole, written_whole

pytestmark = pytest.mark.skipif(os.name != "posix", reason="FIFOs and links of POSIX")


def test_a_block_that_fails_leaves_the_old_file(tmp_path):
    path = tmp_path / "a"
    write_whole(path, "old")
    with pytest.raises(KeyError):
        with written_whole(path) as file:
            file.write(b"new")
            raise KeyError
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_an_error_names_the_file(tmp_path):
    path = tmp_path / "a"
    with pytest.raises(OSError, match="No space left") as error:
        with written_whole(path):
            raise OSError(errno.ENOSPC, "No space left on device")
    assert error.value.filename == str(path) and not list(tmp_path.iterdir())


def test_what_a_killed_process_left_is_removed_by_the_next_write(tmp_path):
    path = tmp_path / "a[1]"
    killed = subprocess.run([sys.executable, "-c", f"""
import os, signal
from gen.base.files import written_whole
with written_whole({str(path)!r}) as file:
    file.write(b"half"); file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""], check=False)
    assert killed.returncode < 0
    left, = tmp_path.iterdir()
    alive = left.with_name(".".join([*left.name.split(".")[:2], "1", "part"]))  # alive
    alive.touch()
    write_whole(path, "whole")
    assert sorted(tmp_path.iterdir()) == [alive, path] and path.read_text() == "whole"


@pytest.mark.parametrize("name", ["x" * 230, "x" * 231, "x" * 255, "\u00fc" * 127, "\udcff" * 255])
def test_names_as_long_as_any(tmp_path, name):
    path = tmp_path / name
    with pytest.raises(KeyError), written_whole(path):
        part, = tmp_path.iterdir()
        raise KeyError
    left = part.with_name(part.name.replace(str(os.getpid()), "4194305"))
    other = part.with_name(part.name.replace(str(os.getpid()), "1"))
    for there in (left, other):
        there.touch()
    write_whole(path, "new")
    assert sorted(tmp_path.iterdir()) == sorted([path, other]) and path.read_text() == "new"


def test_a_fifo_without_a_reader_is_refused(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for write in (lambda: write_whole(fifo, "x"), lambda: open_output(fifo)):
        with pytest.raises(OSError, match="FIFO has no reader"):
            write()


def test_a_fifo_with_a_reader_and_a_device(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with open(os.open(fifo, os.O_RDONLY | os.O_NONBLOCK), "rb") as reader:
        write_whole(fifo, "through")
        assert reader.read() == b"through"
    write_whole("/dev/null", "x")
    assert Path("/dev/null").is_char_device()


def test_a_link_in_the_place_of_the_temporary_file_is_not_followed(tmp_path):
    """In a folder that all users may write, another user may guess the name of the temporary
    file."""
    other, path = tmp_path / "other", tmp_path / "out.json"
    other.write_text("kept")
    with written_whole(path) as file:
        part = Path(file.name) if isinstance(file.name, str) else next(tmp_path.glob("*.part"))
    part.symlink_to(other)
    write_whole(path, "new")
    assert other.read_text() == "kept" and path.read_text() == "new" and not path.is_symlink()
