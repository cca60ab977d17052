"""The Verilator engine: compiles a component into a shared library, with a cache."""

import json
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path

from amaranth.lib import wiring

from gen.base.cache import cached, digest
from gen.base.tools import announce, run_verilator, verilator_root
from sim.engines.compiled import CompiledModel
from sim.engines.design import describe
from sim.engines.gating import gate_blocks
from sim.engines.glue import WRAPPER, traceable, verilator_glue, verilog_wrapper
from sim.engines.toolchain import CXX_FLAGS, LEVEL, compile_files, compiler_id, link
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
_SECONDS = 7.5e-6
"""Expected time to compile a byte of Verilog on two cores, beside 4 seconds for a design."""
_HERE = Path(__file__).parent


@dataclass(frozen=True)
class _Flow:
    """Build options of a design: Verilator's flags, the compiler's, and the runtime's sources."""

    flags: tuple[str, ...] = FLAGS
    defines: tuple[str, ...] = DEFINES
    runtime: tuple[str, ...] = RUNTIME


# A traceable design is a separate build, including the harness: tracing slows a model down.
_FLOWS = {False: _Flow(), True: _Flow(
    (*FLAGS, "--trace-vcd", "--trace-max-width", "0"),  # 0: signals of any width
    (*DEFINES, "-UVM_TRACE", "-UVM_TRACE_VCD", "-DVM_TRACE=1", "-DVM_TRACE_VCD=1",
     "-DEMBER_TRACE"),
    (*RUNTIME, "verilated_vcd_c.cpp"))}


def load_verilator(component: wiring.Component, name: str, recipe: str | None = None, *,
                   traced: bool = False, clock_gating: bool = True) -> CompiledModel:
    """Return ``component`` compiled; a cached library is used if nothing has changed.

    docs/fidelity.md describes the effect of ``traced`` and ``clock_gating`` on its Verilog.
    """
    design = describe(component)
    flow = _FLOWS[traced]
    translation = translated(component, name, recipe)
    text, ports = translation.text, translation.ports
    if not traced:  # a trace shows each instance as in the RTL
        if clock_gating:
            text = gate_blocks(text, translation.gateable)
        text, shared = share_units(text, name)
        if shared:
            flow = replace(flow, flags=(*flow.flags, *SHARED_FLAGS))
    glue = verilator_glue(name, PREFIX, ports, traced)
    source = (traceable(text) if traced else text) + "\n" + verilog_wrapper(name, ports, traced)
    runtime = _runtime_key(flow)
    key = digest(["verilator", source, version("verilator"), compiler_id(), *CXX_FLAGS,
                  LEVEL, *flow.defines, *flow.flags])
    objects = f"{name}-objects-{key}"

    def build(folder: Path) -> None:
        # The objects have a cache entry of their own: only linking needs them, and they double the
        # size.
        _link(glue, flow, cached(objects, partial(_build, name, source, flow)),
              cached(runtime, partial(_build_runtime, flow)), folder)

    entry = cached(f"{name}-{digest([objects, glue, runtime])}", build)
    positions = {port.name: i for i, port in enumerate(ports)}
    return CompiledModel(name, design, entry / "model.so", positions, traced)


def _runtime_key(flow: _Flow) -> str:
    """Return the cache key of :func:`_build_runtime`'s result."""
    sources = [_HERE / "harness.cpp", _HERE / "harness.h"]
    return "runtime-" + digest([
        "runtime", version("verilator"), compiler_id(), *CXX_FLAGS, *flow.defines,
        *(source.read_text(encoding="utf-8") for source in sources)])


def _build_runtime(flow: _Flow, folder: Path) -> None:
    """Compile the parts that all designs share: the harness and Verilator's runtime."""
    include = verilator_root() / "include"
    with announce("compiling the simulation runtime", "20 s"):
        compile_files([_HERE / "harness.cpp", *(include / name for name in flow.runtime)],
                      folder, flow.defines, _includes())


def _includes() -> list[Path]:
    include = verilator_root() / "include"
    return [_HERE, include, include / "vltstd"]


def _build(name: str, source: str, flow: _Flow, folder: Path) -> None:
    """Compile the design itself. The harness is linked to it afterwards: changing the harness does
    not recompile the design, nor the reverse."""
    (folder / "design.v").write_text(source, encoding="utf-8")
    started = time.monotonic()
    with announce(f"compiling {name}", f"{4 + _SECONDS * len(source):.0f} s"):
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
    """Return files that each include some megabytes of ``sources``. Sources that run once are in
    separate files.

    Verilator writes some twenty files per design, most of them small, and compiling its headers for
    each of them would take most of a build.
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
    with announce("compiling and linking the model", "5 s, 100 s the first time"):
        compiled = compile_files([source], folder, flow.defines, [objects, *_includes()])
        link([*compiled, *sorted(objects.glob("*.o")), *sorted(runtime.glob("*.o"))],
             folder / "model.so")
    compiled[0].unlink()
