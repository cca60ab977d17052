"""Compile a component with Verilator into a shared library, once for each content."""

import json
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path

from amaranth.lib import wiring

from gen.cache import cached, digest
from gen.tools import run_verilator, verilator_root
from sim.engines.compiled import CompiledModel
from sim.engines.design import describe
from sim.engines.gating import gate_blocks
from sim.engines.glue import WRAPPER, traceable, verilator_glue, verilog_wrapper
from sim.engines.toolchain import CXX_FLAGS, LEVEL, announce, compile_files, compiler_id, link
from sim.engines.translate import translated
from sim.engines.units import SHARED_FLAGS, share_units

__all__ = ["load_verilator"]

FLAGS = ("--cc", "-O3", "--x-assign", "fast", "--x-initial", "unique", "--no-assert",
         "--no-timing", "--output-split", "20000", "--no-trace-top", "-Wno-fatal", "-Wno-lint",
         "-Wno-style")
DEFINES = ("-DVM_COVERAGE=0", "-DVM_SC=0", "-DVM_TIMING=0", "-DVM_TRACE=0", "-DVM_TRACE_FST=0",
           "-DVM_TRACE_VCD=0", "-DVM_TRACE_SAIF=0", "-DVL_TIME_CONTEXT")
RUNTIME = ("verilated.cpp", "verilated_threads.cpp", "verilated_random.cpp")
PREFIX = "Vember"
_UNIT_BYTES = 2_500_000
_HERE = Path(__file__).parent


@dataclass(frozen=True)
class _Flow:
    """How a design is compiled: flags of Verilator, of the compiler, and what of its runtime."""

    flags: tuple[str, ...] = FLAGS
    defines: tuple[str, ...] = DEFINES
    runtime: tuple[str, ...] = RUNTIME


# A design that can be traced is a build of its own, harness included: the others pay nothing.
_FLOWS = {False: _Flow(), True: _Flow(
    (*FLAGS, "--trace-vcd", "--trace-max-width", "0"),  # 0: signals of any width
    (*DEFINES, "-UVM_TRACE", "-UVM_TRACE_VCD", "-DVM_TRACE=1", "-DVM_TRACE_VCD=1",
     "-DEMBER_TRACE"),
    (*RUNTIME, "verilated_vcd_c.cpp"))}


def load_verilator(component: wiring.Component, name: str,
                   recipe: str | None = None, traced: bool = False) -> CompiledModel:
    """Return ``component`` compiled; taken from the cache where nothing has changed."""
    design = describe(component)
    flow = _FLOWS[traced]
    text, ports = translated(component, name, recipe)
    if not traced:  # a trace shows each instance as it was written
        text, shared = share_units(gate_blocks(text, name), name)
        if shared:
            flow = replace(flow, flags=(*flow.flags, *SHARED_FLAGS))
    glue = verilator_glue(name, PREFIX, ports, traced)
    source = (traceable(text) if traced else text) + "\n" + verilog_wrapper(name, ports, traced)
    runtime = _runtime_key(flow)
    key = digest(["verilator", source, version("verilator"), compiler_id(), *CXX_FLAGS,
                  LEVEL, *flow.defines, *flow.flags])
    objects = f"{name}-objects-{key}"

    def build(folder: Path) -> None:
        # Only who links needs the objects, which are as large again as the model.
        _link(glue, flow, cached(objects, partial(_build, name, source, flow)),
              cached(runtime, partial(_build_runtime, flow)), folder)

    entry = cached(f"{name}-{digest([objects, glue, runtime])}", build)
    positions = {port.name: i for i, port in enumerate(ports)}
    return CompiledModel(name, design, entry / "model.so", positions, traced)


def _runtime_key(flow: _Flow) -> str:
    """Return the cache key of what :func:`_build_runtime` makes."""
    sources = [_HERE / "harness.cpp", _HERE / "harness.h"]
    return "runtime-" + digest([
        "runtime", version("verilator"), compiler_id(), *CXX_FLAGS, *flow.defines,
        *(source.read_text(encoding="utf-8") for source in sources)])


def _build_runtime(flow: _Flow, folder: Path) -> None:
    """Compile what every design shares, the harness and Verilator's own runtime, once."""
    include = verilator_root() / "include"
    with announce("compiling the simulation runtime"):
        compile_files([_HERE / "harness.cpp", *(include / name for name in flow.runtime)],
                      folder, flow.defines, _includes())


def _includes() -> list[Path]:
    include = verilator_root() / "include"
    return [_HERE, include, include / "vltstd"]


def _build(name: str, source: str, flow: _Flow, folder: Path) -> None:
    """Compile the design itself. The harness is linked to it afterwards, so that a change of one
    does not compile the other again."""
    (folder / "design.v").write_text(source, encoding="utf-8")
    started = time.monotonic()
    with announce(f"compiling {name}"):
        run_verilator([*flow.flags, "--top-module", WRAPPER, "--prefix", PREFIX, "--Mdir", ".",
                       "design.v"], cwd=folder)
        translated = time.monotonic()
        sources = sorted(folder.glob("*.cpp"))
        compile_files(_unite(sources, folder), folder, flow.defines, [folder, *_includes()], LEVEL)
    size = sum(path.stat().st_size for path in sources)
    seconds = {"translate": round(translated - started, 2),
               "compile": round(time.monotonic() - translated, 2)}
    (folder / "build.json").write_text(json.dumps(
        {"name": name, "cpp_bytes": size, "seconds": seconds}, indent=2) + "\n")
    for path in sorted(folder.iterdir()):
        if path.suffix not in (".v", ".o", ".h", ".json"):
            path.unlink()


def _unite(sources: list[Path], folder: Path) -> list[Path]:
    """Return files that include ``sources`` by the megabyte, those that run once apart.

    Verilator writes some twenty files a design, most of them small, and its headers take the
    compiler three seconds in each: two thirds of a build.
    """
    units, sizes = defaultdict(list), Counter()
    for source in sources:
        kind = "__Slow" if source.stem.endswith("__Slow") else ""
        units[folder / f"unit{sizes[kind] // _UNIT_BYTES}{kind}.cpp"].append(source.name)
        sizes[kind] += source.stat().st_size
    for unit, names in units.items():
        unit.write_text("".join(f'#include "{name}"\n' for name in names), encoding="utf-8")
    return list(units)


def _link(glue: str, flow: _Flow, objects: Path, runtime: Path, folder: Path) -> None:
    """Compile the glue and link design, glue and runtime."""
    source = folder / "glue.cpp"
    source.write_text(glue, encoding="utf-8")
    compiled = compile_files([source], folder, flow.defines, [objects, *_includes()])
    link([*compiled, *sorted(objects.glob("*.o")), *sorted(runtime.glob("*.o"))],
         folder / "model.so")
    compiled[0].unlink()
