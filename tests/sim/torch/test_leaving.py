"""Scripts whose processes end, fork or are replaced behave the same as without NICs."""

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("torch", reason="torch is not installed (extra `torch`)")

from sim.torch.processes.leaving import command_before, leaving
from tests.sim.torch.test_children import installed  # noqa: F401

HEAD = """
import os, subprocess, sys, torch
bag = torch.nn.EmbeddingBag(100, 16, mode="sum")
def look():
    print(tuple(bag(torch.arange(8), torch.arange(8)).shape), flush=True)
"""
HELPER = """
helper = subprocess.Popen([sys.executable, "-c", "import torch, sys; torch.nn.EmbeddingBag(9, 4)("
    "torch.arange(4), torch.arange(4)).sum().item(); print(1, flush=True); sys.stdin.read()"],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
helper.stdout.readline()
"""

CASES = {
    "os_exit": ("look(); print('lost'); os._exit(3)", 8, "ended its process by os._exit(3)"),
    "again": ("if sys.argv[1:] != ['again']: os.execv(sys.executable, [sys.executable, __file__, "
              "'again'])\nlook()", 8, None),
    "fork": ("look()\npid = os.fork()\nif not pid: sys.exit(5)\n"
             "print(os.waitpid(pid, 0)[1] >> 8); look()", 16, None),
    "killed": ("look()" + HELPER + "helper.kill(); helper.wait(); look()", 16, None),
    "closerange": ("look(); os.closerange(3, 512); files = [open(os.devnull) for _ in range(40)]\n"
                   "look(); print(sum(len(file.read()) for file in files))", 16, None),
    "other": ("look(); os.execlp('echo', 'echo', 'other')", 8, "which runs without NICs"),
    "abort": ("look(); os.abort()", 8, "ended its process by os.abort()"),
    "falls through": ("look(); os.fork() and os.wait(); print('both', flush=True)", 8, None),
    "raises": ("look(); pid = os.fork()\nif not pid: raise KeyError(1)\n"
               "print(os.waitpid(pid, 0)[1] >> 8)", 8, None),
    "daemon": ("look()\nif os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)", 8,
               "ended its process by os._exit(0)"),
    "outlives": ("look()" + HELPER, 8, None),
    "multiprocessing": ("import multiprocessing\nfor name in ('fork', 'spawn', 'forkserver'):\n"
                        " if __name__ == '__main__':\n"
                        "  each = multiprocessing.get_context(name).Process(target=look)\n"
                        "  each.start(); each.join(); print(each.exitcode)\n", 24, None),
}


@pytest.mark.thorough
@pytest.mark.few(3)
@pytest.mark.parametrize("fidelity", ["model", "rtl"])
@pytest.mark.parametrize("case", CASES)
def test_a_script_does_what_it_does_alone(installed, tmp_path, case, fidelity):  # noqa: F811
    text, lookups, said = CASES[case]
    script, out = tmp_path / "script.py", tmp_path / "out.json"
    script.write_text(HEAD + text)
    installed.pop("PYTHONUNBUFFERED", None)  # a script that ends its process may lose its output
    alone = subprocess.run([sys.executable, script], env=installed, capture_output=True, text=True,
                           timeout=300)
    done = subprocess.run(
        [sys.executable, "-m", "sim", "torch", "--fidelity", fidelity, "--config", "tiny",
         "--nodes", "2", "--threads", "1", "--json", out, script], env=installed,
        capture_output=True, text=True, timeout=300)
    assert done.returncode == alone.returncode, done.stderr[-2000:]
    rest = iter(done.stdout.splitlines())  # after exec, the report is in between
    assert all(line in rest for line in alone.stdout.splitlines()) and "lost" not in done.stdout
    assert done.stdout.count("Embedding bags of") == 1
    result = json.loads(out.read_text())
    assert sum(step["lookups"] for step in result["steps"]) + sum(
        each["count"] for each in result["not_caught"]) >= lookups
    assert said is None or said in done.stderr + str(result["ended"])


@pytest.fixture
def calls(monkeypatch):
    """Return calls that would have ended this process."""
    found = []
    for name in ("_exit", "abort", "execv", "execve"):
        monkeypatch.setattr(os, name, lambda *given, name=name: found.append((name, *given)))
    return found


def test_what_ends_a_process_is_told_first(calls):
    def leave(*said):
        calls.append(said)
        return 7

    script, command = __file__, ["python", "-m", "sim", "torch", "--nodes", "2"]
    with leaving(leave, command):
        os._exit(3)
        os.abort()
        os.execl(sys.executable, "python", script, "1")
        os.execve(sys.executable, ["python", "-c", "0"], {})
        os.execv("/no/such/program", ["program"])
    os._exit(4)
    assert calls == [
        ("os._exit(3)", 3, False), ("_exit", 7), ("os.abort()", 134, False), ("abort",),
        (f"exec of {sys.executable}", 0, True),
        ("execv", sys.executable, [*command, script, "1"]),
        (f"exec of {sys.executable}", 0, False), ("execve", sys.executable, ["python", "-c", "0"],
                                                  {}),
        ("execv", "/no/such/program", ["program"]), ("_exit", 4)]


def test_a_forked_process_tells_nothing(calls, monkeypatch):
    with leaving(lambda *said: calls.append(said), ["python"]):
        monkeypatch.setattr(os, "getpid", lambda: -1)
        os._exit(3)
        os.execv(sys.executable, ["python", __file__])
    assert calls == [("_exit", 3), ("execv", sys.executable, ["python", __file__])]


def test_the_command_of_a_script_is_what_stands_before_it(monkeypatch):
    monkeypatch.setattr(sys, "orig_argv", ["python", "-m", "sim", "torch", "a.py", "a.py", "1"])
    assert command_before("a.py", ["a.py", "1"]) == ["python", "-m", "sim", "torch"]
    assert command_before("b.py", ["1"]) is None
