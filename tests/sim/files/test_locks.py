"""Two processes and one output file."""

import os
import subprocess
import sys

import pytest

from sim.files.locks import locked

pytestmark = pytest.mark.skipif(os.name != "posix", reason="locks of POSIX")

_HOLDER = """
import sys
from sim.files.locks import locked
with locked({"json": sys.argv[1]}):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def other(tmp_path):
    """Start another process that writes ``tmp_path / "out"``."""
    with subprocess.Popen([sys.executable, "-c", _HOLDER, str(tmp_path / "out")],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_file_of_another_process_is_refused_until_it_is_gone(tmp_path, other):
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "out")
    for path in (tmp_path / "out", link, tmp_path / "." / "out"):
        with pytest.raises(ValueError, match=r"^checkpoint .* is being written by another process"):
            with locked({"picture": str(tmp_path / "free"), "checkpoint": str(path)}):
                pass
    other.kill()
    other.wait()
    with locked({"checkpoint": str(tmp_path / "out")}):
        pass
    assert [file.name for file in tmp_path.iterdir()] == ["link"]


def test_what_is_shared_needs_no_lock(other):
    with locked({"json": "-", "pcap": None, "predictions": "/dev/null"}):
        pass


def test_any_name_of_the_system_may_be_locked(tmp_path):
    with locked({"json": os.fsdecode(bytes(tmp_path) + b"/\xff\n")}):
        pass


def test_a_process_locks_its_own_files_again(tmp_path):
    path = str(tmp_path / "out")
    with locked({"json": path}), locked({"json": path}):
        assert subprocess.run([sys.executable, "-c", _HOLDER, path], stdin=subprocess.DEVNULL,
                              capture_output=True, check=False).returncode
    assert not subprocess.run([sys.executable, "-c", _HOLDER, path], stdin=subprocess.DEVNULL,
                              capture_output=True, check=False).returncode


def test_without_a_cache_there_are_no_locks(tmp_path):
    work = "from sim.files.locks import locked\nwith locked({'json': 'a'}): pass"
    done = subprocess.run([sys.executable, "-c", work], check=False, capture_output=True, text=True,
                          env={**os.environ, "EMBERNIC_CACHE": "/proc/none/cache"})
    assert done.returncode == 0, done.stderr
