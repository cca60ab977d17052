"""Translation of a component to Verilog, cached if a recipe determines the component."""

import inspect
import json
import sys
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from amaranth.lib import wiring

from gen.base.cache import cached, digest
from gen.base.tools import announce
from gen.base.yosys import yosys_id
from gen.verilog.convert import to_verilog
from gen.verilog.rtlil import Port
from sim.files.identity import sources_hash

__all__ = ["Translation", "translated"]


@dataclass(frozen=True)
class Translation:
    """The Verilog ``text`` of a component, its ``ports``, and the names of its ``gateable`` modules
    (:class:`rtl.gateable.Gateable`), which are not marked in the text."""

    text: str
    ports: tuple[Port, ...]
    gateable: tuple[str, ...]


def translated(component: wiring.Component, name: str, recipe: str | None) -> Translation:
    """Return the translation of ``component`` as module ``name``.

    Translating a whole NIC takes many seconds. With a ``recipe`` the result is cached. A recipe is
    a text that determines the component, together with the sources of ``rtl`` and ``gen`` and of
    the module that defines the component's class.
    """
    if recipe is None:
        verilog = to_verilog(component, name)
        return Translation(verilog.text, verilog.ports, verilog.gateable)

    def build(folder: Path) -> None:
        with announce(f"compiling {name} to Verilog", "10 s"):
            verilog = to_verilog(component, name)
        (folder / "design.v").write_text(verilog.text, encoding="utf-8")
        (folder / "ports.json").write_text(json.dumps([asdict(port) for port in verilog.ports]))
        (folder / "gateable.json").write_text(json.dumps(verilog.gateable))

    key = digest([recipe, name, *_own_source(type(component)), yosys_id(),
                  sources_hash(only=("rtl/", "gen/"))])
    entry = cached(f"{name}-verilog-{key}", build)
    ports = json.loads((entry / "ports.json").read_text())
    return Translation((entry / "design.v").read_text(encoding="utf-8"),
                       tuple(Port(**port) for port in ports),
                       tuple(json.loads((entry / "gateable.json").read_text())))


@cache
def _own_source(kind: type) -> tuple[str, ...]:
    """Return the source of the module that defines a component class, if it is outside ``rtl``."""
    if kind.__module__.startswith("rtl."):
        return ()
    return (inspect.getsource(sys.modules[kind.__module__]),)
