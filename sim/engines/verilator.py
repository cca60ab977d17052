"""Compile a component with Verilator into a shared library, once for each content."""

import json
import sys
import time
from importlib.metadata import version
from pathlib import Path

from amaranth.lib import wiring
from rich.console import Console

from gen.tools import run_verilator, verilator_root
from sim.engines.cache import cached, digest
from sim.engines.compiled import CompiledModel
from sim.engines.design import describe
from sim.engines.glue import WRAPPER, verilator_glue, verilog_wrapper
from sim.engines.toolchain import CXX_FLAGS, compile_files, compiler_id, link
from sim.engines.translate import translated

__all__ = ["load_verilator"]

FLAGS = ("--cc", "-O3", "--x-assign", "fast", "--x-initial", "unique", "--no-assert",
         "--no-timing", "--output-split", "20000", "--no-trace-top", "-Wno-fatal", "-Wno-lint",
         "-Wno-style")
DEFINES = ("-DVM_COVERAGE=0", "-DVM_SC=0", "-DVM_TIMING=0", "-DVM_TRACE=0", "-DVM_TRACE_FST=0",
           "-DVM_TRACE_VCD=0", "-DVM_TRACE_SAIF=0", "-DVL_TIME_CONTEXT")
PREFIX = "Vember"
_HERE = Path(__file__).parent


def load_verilator(component: wiring.Component, name: str,
                   recipe: str | None = None) -> CompiledModel:
    """Return ``component`` compiled; taken from the cache where nothing has changed."""
    design = describe(component)
    text, ports = translated(component, name, recipe)
    glue = verilator_glue(name, PREFIX, ports)
    source = text + "\n" + verilog_wrapper(name, ports)
    runtime = _runtime()
    key = digest(["verilator", source, version("verilator"), compiler_id(), *CXX_FLAGS, *DEFINES,
                  *FLAGS])
    objects = cached(f"{name}-objects-{key}", lambda folder: _build(name, source, folder))
    whole = digest([objects.name, glue, runtime.name])
    entry = cached(f"{name}-{whole}",
                   lambda folder: _link(name, glue, objects, runtime, folder))
    positions = {port.name: i for i, port in enumerate(ports)}
    return CompiledModel(name, design, entry / "model.so", positions)


def _runtime() -> Path:
    """Compile what every design shares, the harness and Verilator's own runtime, once."""
    sources = [_HERE / "harness.cpp", _HERE / "harness.h"]
    key = digest(["runtime", version("verilator"), compiler_id(), *CXX_FLAGS, *DEFINES,
                  *(source.read_text(encoding="utf-8") for source in sources)])

    def build(folder: Path) -> None:
        include = verilator_root() / "include"
        names = ("verilated.cpp", "verilated_threads.cpp", "verilated_random.cpp")
        with _announce("compiling the simulation runtime"):
            compile_files([_HERE / "harness.cpp", *(include / name for name in names)], folder,
                          DEFINES, _includes())

    return cached(f"runtime-{key}", build)


def _includes() -> list[Path]:
    include = verilator_root() / "include"
    return [_HERE, include, include / "vltstd"]


def _build(name: str, source: str, folder: Path) -> None:
    """Compile the design itself. The harness is linked to it afterwards, so that a change of one
    does not compile the other again."""
    (folder / "design.v").write_text(source, encoding="utf-8")
    started = time.monotonic()
    with _announce(f"compiling {name}"):
        run_verilator([*FLAGS, "--top-module", WRAPPER, "--prefix", PREFIX, "--Mdir", ".",
                       "design.v"], cwd=folder)
        translated = time.monotonic()
        sources = sorted(folder.glob("*.cpp"))
        compile_files(sources, folder, DEFINES, [folder, *_includes()])
    size = sum(path.stat().st_size for path in sources)
    seconds = {"translate": round(translated - started, 2),
               "compile": round(time.monotonic() - translated, 2)}
    (folder / "build.json").write_text(json.dumps(
        {"name": name, "cpp_bytes": size, "seconds": seconds}, indent=2) + "\n")
    for path in sorted(folder.iterdir()):
        if path.suffix not in (".v", ".o", ".h", ".json"):
            path.unlink()


def _link(name: str, glue: str, objects: Path, runtime: Path, folder: Path) -> None:
    """Compile the glue and link design, glue and runtime."""
    source = folder / "glue.cpp"
    source.write_text(glue, encoding="utf-8")
    compiled = compile_files([source], folder, DEFINES, [objects, *_includes()])
    link([*compiled, *sorted(objects.glob("*.o")), *sorted(runtime.glob("*.o"))],
         folder / "model.so")
    compiled[0].unlink()


def _announce(what: str):
    console = Console(stderr=True)
    if console.is_terminal:
        return console.status(f"{what} ...")
    print(f"{what} ...", file=sys.stderr, flush=True)
    return _Quiet()


class _Quiet:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None
