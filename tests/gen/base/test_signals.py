"""A signal ends a command at any point of its Python code."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from gen.base.signals import Interrupted, interruptible

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


class _Deaf:
    """Receives a signal where Python ignores exceptions."""

    def __del__(self):
        signal.raise_signal(signal.SIGTERM)
        sum(range(10))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("slow", [False, True], ids=["", "busy machine"])
def test_a_signal_that_is_dropped_comes_again(slow, capsys, monkeypatch):
    start = threading.Thread.start

    def start_slowly(thread: threading.Thread) -> None:
        start(thread)
        time.sleep(0.1)

    if slow:
        monkeypatch.setattr(threading.Thread, "start", start_slowly)
    began = time.monotonic()
    with pytest.raises(Interrupted) as ended:
        with interruptible():
            _Deaf()
            while time.monotonic() < began + 10:
                pass
    assert ended.value.signal == "SIGTERM" and ended.value.status == 143
    assert capsys.readouterr().err == ""


def test_other_errors_that_are_dropped_are_still_shown(monkeypatch):
    class Clumsy:
        def __del__(self):
            raise KeyError("here")

    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda found: seen.append(found.exc_type))
    with interruptible():
        Clumsy()
    assert seen == [KeyError]


@pytest.mark.parametrize("moment", [
    pytest.param(moment, marks=() if moment == 1.5 else pytest.mark.slow)
    for moment in (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0, 15.0)])
def test_gen_ends_in_a_line_at_any_moment(tmp_path, moment):
    with subprocess.Popen(
            [sys.executable, "-X", "faulthandler", "-m", "gen", "--config", "tiny", "--output",
             str(tmp_path / "out")], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True) as process:
        time.sleep(moment)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=120)
    assert "Traceback" not in said and "__del__" not in said and "Unused" not in said
    if process.returncode == -signal.SIGTERM:  # before there were temporary files to remove
        assert said == ""
    elif process.returncode:
        assert process.returncode == 143 and said.endswith("error: stopped by SIGTERM\n")
        assert not (tmp_path / "out").exists()
