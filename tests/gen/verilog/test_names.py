"""Names of signals depend on the source only, and are the same in every version of Python."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import amaranth
import pytest
from amaranth import tracer
from amaranth.hdl import Signal
from amaranth.lib import stream

from gen.verilog.names import variable_name

ROOT = Path(__file__).parents[3]
PYTHONS = [path for minor in range(11, 16) if minor != sys.version_info.minor
           for path in (shutil.which(f"python3.{minor}"), *map(str, Path.home().glob(
               f".pyenv/versions/3.{minor}.*/bin/python3")))
           if path and "shims" not in path]  # a shim of pyenv may have no version to start
EMIT = """
import sys
from gen.verilog.platform import VerilogPlatform
from gen.shells import OpenNicPlugin
from tests.gen.shells.designs import Storing
platform = VerilogPlatform("top")
top = platform.convert(OpenNicPlugin(Storing(())), "top")
sys.stdout.write("".join([top, *platform.texts]))
"""
"""Writes a shell's RTLIL; Amaranth is its only requirement."""


def test_the_tracer_is_replaced():
    assert tracer.get_var_name is variable_name


def test_names():
    class Holder:
        pass

    held = Holder()
    plain = Signal(8)
    held.member = Signal()
    held.typed: Signal = Signal()
    first, last = Signal(), Signal()
    one, two, three = Signal(), Signal(), Signal()
    chained = again = Signal()
    listed = [Signal(), plain]
    table = {}
    table["key"] = Signal()
    several = [Signal() for _ in range(2)]
    given = Signal(name="explicit")
    like = Signal.like(
        plain)
    ports = stream.Signature(8).create()
    assert (walrus := Signal()).name == "walrus"
    assert [signal.name for signal in (
        plain, held.member, held.typed, chained, again, given, like, walrus)] == [
        "plain", "member", "typed", "chained", "chained", "explicit", "like", "walrus"]
    assert [signal.name for signal in (first, last, one, two, three)] == [
        "$signal", "last", "$signal", "$signal", "three"]
    assert listed[0].name == "$signal" and table["key"].name == several[0].name == "$signal"
    assert ports.valid.name == "ports__valid"


def test_a_variable_of_an_inner_function_names_no_signal_of_a_tuple():
    first, captured = Signal(), Signal()
    assert all(captured.name == "$signal" for _ in range(1)) and first.name == "$signal"
    second, iterated = Signal(2), Signal(2)
    assert [bit for bit in iterated] and iterated.name == "iterated" and second.name == "$signal"


def test_a_call_without_source():
    names = {"Signal": Signal}
    exec("made = Signal()", names)
    assert names["made"].name == "$signal"
    with pytest.raises(tracer.NameNotFound):
        exec("made = named(1)", {"named": variable_name})


def _emit(python: str) -> str:
    packages = Path(amaranth.__file__).parents[1]
    return subprocess.run(
        [python, "-c", EMIT], cwd=ROOT, check=True, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{packages}"}).stdout


@pytest.mark.thorough
@pytest.mark.skipif(not PYTHONS, reason="no other version of Python is installed")
def test_another_python_gives_the_same_bytes():
    assert _emit(PYTHONS[-1]) == _emit(sys.executable)
