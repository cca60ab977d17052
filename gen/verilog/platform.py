"""Elaboration platform for Verilog: replaces memories, repeated units and synchronizers."""

from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from functools import partial

from amaranth.back import rtlil
from amaranth.hdl import (
    ClockDomain,
    ClockSignal,
    Const,
    Fragment,
    Instance,
    ResetSignal,
    Signal,
    Value,
)
from amaranth.hdl import Module as Elaborated
from amaranth.hdl._ir import PortDirection
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

import gen.verilog.names  # noqa: F401  names of signals follow from the source
from gen.verilog.collector import collect_later
from gen.verilog.module_names import RAM_MODULES, check_module_name
from gen.verilog.rtlil import Module, flat_name, parse_modules, rename_modules
from rtl.gateable import Gateable

__all__ = ["RAM_MODULES", "VerilogPlatform", "ram_instance", "ram_module"]

_DIRECTIONS = {In: PortDirection.Input, Out: PortDirection.Output}


def ram_module(ram) -> str:
    """Return the name of the owned memory module for ``ram``, a :class:`rtl.memory.Ram`."""
    return RAM_MODULES[min(2, ram.latency)]


def ram_instance(ram) -> Instance:
    """Return an instance of the owned memory module for ``ram``, a :class:`rtl.memory.Ram`."""
    style, enables = "distributed", {}
    if ram.latency:
        style = {"lutram": "distributed", "bram": "block", "uram": "ultra"}.get(ram.style,
                                                                               "auto")
        enables = {"i_read_en": ram.read_en}
    if ram.latency > 1:
        enables |= {"i_output_en": ram.output_en, "p_LATENCY": ram.latency}
    return Instance(
        ram_module(ram),
        p_WIDTH=ram.width, p_DEPTH=ram.depth, p_ADDR_BITS=len(ram.read_addr), p_STYLE=style,
        i_clk=ClockSignal(), i_write_en=ram.write_en, i_write_addr=ram.write_addr,
        i_write_data=ram.write_data, i_read_addr=ram.read_addr, o_read_data=ram.read_data,
        **enables)


class VerilogPlatform:
    """Collector of the modules of a design: memories by instance, repeated units once.

    Parameters
    ----------
    prefix: name of the top; the module of shared unit ``x`` is called ``<prefix>_x``.
    sources: whether to keep the file and line of each signal's declaration.

    Members
    -------
    texts: RTLIL of the converted shared units, in completion order.
    gateable: names of the converted modules that are :class:`rtl.gateable.Gateable`.
    """

    def __init__(self, prefix: str, *, sources: bool = False):
        check_module_name(prefix, "prefix")
        self.prefix, self.sources = prefix, sources
        self.texts: list[str] = []
        self.gateable: list[str] = []
        self._shared: dict[str, tuple[wiring.Component, Module]] = {}

    def ram_instance(self, ram) -> Instance:
        """Return the owned memory module that replaces `rtl.memory.Ram`'s behavioural one."""
        return ram_instance(ram)

    def get_ff_sync(self, crossing) -> Elaborated:
        """Return the flip-flops of an ``amaranth.lib.cdc.FFSynchronizer``, marked for the vendor's
        tools. They are called ``crossed0``, ``crossed1``, ..."""
        m = Elaborated()
        source = crossing.i
        for k in range(crossing._stages):
            stage = Signal(crossing.i.shape(), name=f"crossed{k}", init=crossing._init,
                           reset_less=crossing._reset_less, attrs={"ASYNC_REG": "TRUE"})
            m.d[crossing._o_domain] += stage.eq(source)
            source = stage
        m.d.comb += crossing.o.eq(source)
        return m

    def get_async_ff_sync(self, crossing) -> Elaborated:
        """Return the flip-flops of an ``amaranth.lib.cdc.AsyncFFSynchronizer``, marked likewise.
        They are called ``released0``, ``released1``, ..."""
        m = Elaborated()
        m.domains.released = released = ClockDomain(async_reset=True, local=True)
        source: Value = Const(0, 1)
        for k in range(crossing._stages):
            stage = Signal(name=f"released{k}", init=1, attrs={"ASYNC_REG": "TRUE"})
            m.d.released += stage.eq(source)
            source = stage
        # Assigned after the registers, which keep their names.
        m.d.comb += [
            crossing.o.eq(source), released.clk.eq(ClockSignal(crossing._o_domain)),
            released.rst.eq(crossing.i if crossing._edge == "pos" else ~crossing.i)]
        return m

    def shared_instance(self, unit: wiring.Component, name: str, ports) -> Instance:
        """Return an instance of ``unit``'s module, which is converted only on its first use.

        Raises ``ValueError`` if ``name`` belongs to a unit of another class, with other ports or
        with other settings (attributes that are numbers, strings, or tuples and dataclasses of
        them).
        """
        if name in self._shared:
            first, module = self._shared[name]
            if _identity(first) != _identity(unit):
                raise ValueError(f"name {name!r} must belong to equal units, not {first!r} and "
                                 f"{unit!r}")
        else:
            module = self._convert(unit, f"{self.prefix}_{name}", pipeline=not ports.has_reset)
            self._shared[name] = (unit, module)
        present = {port.name for port in module.ports}
        connections = {f"i_{port}": signal for port, signal in _clocks(present, ports)}
        for path, member, value in ports.signature.flatten(ports):
            port = "__".join(map(str, path))
            if port in present:
                direction = "i" if member.flow == In else "o"
                connections[f"{direction}_{port}"] = Value.cast(value)
        return Instance(module.name, **connections)

    def convert(self, component: wiring.Component, name: str, *, pipeline: bool = False) -> str:
        """Return the RTLIL of ``component`` as a module called ``name``.

        Clock and reset of domain ``sync`` become ports ``clk`` and ``rst``. A ``pipeline``, and a
        component with its own port ``rst``, has no reset of the domain.

        Raises ``ValueError`` if a :class:`rtl.gateable.Gateable` block has no port ``idle``.
        """
        with collect_later():
            # Equals `rtlil.convert`, which does not return the fragment of each block.
            ports = {"__".join(map(str, path)): (Value.cast(value), _DIRECTIONS[member.flow])
                     for path, member, value in component.signature.flatten(component)}
            design = Fragment.get(component, self).prepare(
                ports, hierarchy=(name,),
                missing_domain=partial(ClockDomain, reset_less=pipeline or "rst" in ports))
            text, _names = rtlil.convert_fragment(design, name=name, emit_src=self.sources)
        for block, fragment in design.elaboratables.items():
            if isinstance(block, Gateable):
                path = ".".join(design.fragments[fragment].name)
                if "idle" not in block.signature.members:
                    raise ValueError(f"gateable block {path} must have a port idle")
                self.gateable.append(flat_name(path))
        return rename_modules(text)

    def _convert(self, unit: wiring.Component, name: str, *, pipeline: bool) -> Module:
        # Elaborating the unit may convert further shared units: they are appended before it.
        text = self.convert(unit, name, pipeline=pipeline)
        self.texts.append(text)
        return parse_modules(text)[0]


def _clocks(present: Iterable[str], ports: wiring.Component) -> Iterator[tuple[str, Value]]:
    """Yield the clocks and resets among the ports ``present`` of a module, with their drivers.

    Those of domain ``x`` are called ``x_clk`` and ``x_rst``, those of ``sync`` ``clk`` and ``rst``.
    """
    own = {"__".join(map(str, path)) for path, _, _ in ports.signature.flatten(ports)}
    for port in sorted(set(present) - own):
        domain, _, kind = port.rpartition("_")
        if kind in ("clk", "rst"):
            yield port, (ClockSignal if kind == "clk" else ResetSignal)(domain or "sync")


def _identity(unit: wiring.Component) -> tuple:
    ports = [(path, member.flow, Value.cast(value).shape())
             for path, member, value in unit.signature.flatten(unit)]
    own = set(unit.signature.members)
    # Amaranth stores in the elaboratable whether it was used.
    settings = {key: value for key, value in vars(unit).items()
                if key not in own and not key.startswith("_MustUse") and _plain(value)}
    return type(unit), repr(ports), settings


def _plain(value: object) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_plain, value))
    if is_dataclass(value):
        return all(_plain(getattr(value, f.name)) for f in fields(value))
    return isinstance(value, (int, str, float, type(None)))
