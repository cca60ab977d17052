"""Attacks on the programs beside ``python -m sim``: the generator, and the programs of ``host``."""

import json
import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import typer
from amaranth.lib.wiring import Component

from gen import __main__ as gen
from gen.base.command import run_command
from gen.documents import __main__ as documents
from gen.documents.generate import build_nic, generate
from gen.verilog.convert import Verilog, to_verilog
from gen.verilog.platform import VerilogPlatform
from host.calibrate import __main__ as calibrate
from host.measurements import __main__ as measurements
from rtl.config import NicConfig, preset
from tests.fuzz.mutating import HOSTILE, mutated, mutated_text
from tests.fuzz.trying import command, reached
from tests.gen.designs import Unit
from tests.host.measurements.test_kineto import EXECUTION, TRACE
from tests.sim import inputs

__all__ = ["converted", "generator", "others"]


def generator(chance: random.Random, folder: Path) -> str:
    """Name the generator's files and their folder."""
    name = chance.choice(("tiny", chance.choice(HOSTILE)))
    output = folder / chance.choice(("out", "a/b", "in.txt", "o" * 300, "n\0l", "é"))
    inputs.criteo(folder / "in.txt", 1)
    shell = chance.choice(("none", "none", chance.choice(HOSTILE)))

    def run(_arguments: list[str]) -> int:
        made = typer.Typer(add_completion=False)

        @made.command()
        def _command() -> None:
            generate(preset("tiny").with_fields(name=name), output, shell=shell,
                     build=_small(shell != "none"))

        return run_command(made, [])

    with _without_yosys():
            return command([repr(name), str(output), shell], run=run, prefix="error: ")


@cache
def converted() -> Verilog:
    """Return the Verilog of a small design. Call it once before bounding memory: Yosys, which runs
    in a process of its own, reserves more."""
    return to_verilog(Unit(), "tiny", VerilogPlatform("tiny"))


def _without_yosys() -> mock._patch:
    def renamed(_nic: object, name: str, *_: object) -> Verilog:
        made = converted()
        modules = {name if each == made.name else each: module
                   for each, module in made.modules.items()}
        return replace(made, name=name, modules=modules)

    return mock.patch("gen.documents.generate.to_verilog", renamed)


def _small(shell: bool) -> Callable[[NicConfig], Component]:
    """Return a function that builds a small design. A shell, which wraps a whole NIC, gets no
    design."""
    return reached if shell else lambda _config: Unit()


def others(chance: random.Random, folder: Path) -> str:
    """Give a program options with values of other options, or mutated files."""
    return chance.choice((_gen, _documents, _cpu, _gpu, _trace))(chance, folder)


def _given(chance: random.Random, names: tuple[str, ...], right: dict[str, str]) -> list[str]:
    """Return ``right`` as arguments, with one to three of the options ``names`` changed."""
    values = dict(right)
    for _ in range(chance.choice((1, 1, 2, 3))):
        value = chance.choice(HOSTILE)
        if chance.random() < 0.2:
            value = mutated_text(value, chance)
        values[chance.choice(names)] = value
    return [f"--{name}={value}" for name, value in values.items()]


def _inside(folder: Path, arguments: list[str]) -> list[str]:
    """Return ``arguments`` with outputs that name no folder moved into ``folder``."""
    head = "--output="
    return [f"{head}{folder}/{word[len(head):]}" if word.startswith(head)
            and not word.startswith((f"{head}/", f"{head}-")) and word != head else word
            for word in arguments]


def _gen(chance: random.Random, folder: Path) -> str:
    arguments = _given(chance, ("output", "config", "set", "shell", "functions", "qdma", "macs"),
                       {"output": "out", "config": "tiny"})
    arguments += chance.choice(([], [], ["--no-such"], ["more"]))
    shell = any(word.startswith("--shell") for word in arguments)

    def made(*given: Any, progress: object, **named: Any) -> Any:
        return generate(*given, build=_small(shell), **named)

    with _without_yosys(), mock.patch.object(gen, "generate", made):
        return command(_inside(folder, arguments), run=gen.main, prefix="error: ")


@cache
def _built():
    return build_nic(preset("tiny"))


def _documents(chance: random.Random, folder: Path) -> str:
    block = dict(name="tiny__x", instances=1, lut=1, ff=2, bram36=0.5, uram=0, dsp=0, depth=3)
    end = {"signal": "a", "source": "b.py:1"}
    report = {"name": "tiny", "blocks": [block],
              "total": block | {"path": {"from": end, "to": end}},
              "available": dict(lut=9, ff=9, bram36=9, uram=9, dsp=9),
              "not_estimated": {"tool": "Vivado", "what": ["power"], "script": "x.tcl"}}
    arguments = _given(chance, ("output", "set", "report", "timing", "timing-training"), {
        "output": "out", "config": "tiny"})
    if chance.random() < 0.7:
        path = folder / "report.json"
        path.write_bytes(mutated(json.dumps(report).encode(), chance))
        arguments.append(f"--{chance.choice(('report', 'report', 'timing'))}={path}")
    with mock.patch("gen.documents.write.build_nic", lambda _config: _built()):
        return command(_inside(folder, arguments), run=documents.main, prefix="error: ")


def _cpu(chance: random.Random, folder: Path) -> str:
    with mock.patch.object(calibrate, "measure_cpu", reached):
        return _calibrated(["cpu", *_given(chance, ("output", "name", "repeats", "mebibytes"), {
            "output": "out"})], folder)


def _gpu(chance: random.Random, folder: Path) -> str:
    with mock.patch.object(calibrate, "run", reached):
        return _calibrated(["gpu", *_given(
            chance, ("output", "name", "only", "repeats", "scale", "budget"), {
                "output": "out", "device": "cpu"})], folder)


def _calibrated(arguments: list[str], folder: Path) -> str:
    (folder / "out").mkdir()
    return command(_inside(folder, arguments), run=calibrate.main, prefix="host.calibrate: ")


def _trace(chance: random.Random, folder: Path) -> str:
    for name, content in (("k", TRACE), ("e", EXECUTION)):
        (folder / name).mkdir()
        text = json.dumps(content).encode()
        (folder / name / "0.json").write_bytes(
            mutated(text, chance) if chance.random() < 0.6 else text)
    value = chance.choice(("out", "out", *HOSTILE))
    return command(["trace", str(folder / "k"), str(folder / "e"),
                    *_inside(folder, [f"--output={value}"])],
                   run=measurements.main, prefix="host.measurements: ")
