"""Block RAM: RAMB18E2 and RAMB36E2, and the owned memories that consist of them.

The clock launches a primitive's read. In a cascade, the first RAM's word passes all later RAMs to
the output of the last RAM.
"""

from collections.abc import Mapping

from gen.netlist.ram_cost import RamShape
from gen.timing.cells.lut import lut_pin
from gen.timing.cells.model import (
    Arc,
    Capture,
    CellTiming,
    Inner,
    Launch,
    Pin,
    number,
    pins,
    text,
)
from gen.timing.delays import DELAYS

__all__ = ["block_ram", "block_ram_box"]

_PS = DELAYS["block_ram"]
# Inputs by clock: port, key of the table, kind.
_INPUTS = {
    "A": (("ADDRARDADDR", "address", "address"), ("ADDRENA", "address_enable", "enable"),
          ("DINADIN", "data", "data"), ("DINPADINP", "data", "data"),
          ("WEA", "write_enable", "write_enable"), ("ENARDEN", "enable", "enable"),
          ("REGCEAREGCE", "register_enable", "enable"),
          ("RSTREGARSTREG", "register_reset", "reset"),
          ("RSTRAMARSTRAM", "latch_reset", "reset")),
    "B": (("ADDRBWRADDR", "address", "address"), ("ADDRENB", "address_enable", "enable"),
          ("DINBDIN", "data", "data"), ("DINPBDINP", "data", "data"),
          ("WEBWE", "write_enable", "write_enable"), ("ENBWREN", "enable", "enable"),
          ("REGCEB", "register_enable", "enable"), ("RSTREGB", "register_reset", "reset"),
          ("RSTRAMB", "latch_reset", "reset")),
}
_CASCADE_CONTROLS = (("CASDOMUX{}", "cascade_select"), ("CASDOMUXEN_{}", "cascade_select"),
                     ("CASOREGIMUX{}", "cascade_register_select"),
                     ("CASOREGIMUXEN_{}", "cascade_register_select"))
_OUTPUTS = {"A": ("DOUTADOUT", "DOUTPADOUTP"), "B": ("DOUTBDOUT", "DOUTPBDOUTP")}
_ORDERS = ("NONE", "FIRST", "MIDDLE", "LAST")


def block_ram(parameters: Mapping[str, str | int], widths: Mapping[str, int]) -> CellTiming:
    """Return the timing of RAMB36E2, which is also used for RAMB18E2.

    It depends on ``DOA_REG``, ``DOB_REG``, ``CASCADE_ORDER_A`` and ``CASCADE_ORDER_B``. Raises
    ``ValueError`` for unsupported values.
    """
    arcs: list[Arc] = []
    launches: list[Launch] = []
    captures: list[Capture] = []
    for port in "AB":
        registered = number(parameters, f"DO{port}_REG", 0)
        order = text(parameters, f"CASCADE_ORDER_{port}", "NONE", *_ORDERS)
        clock_to_out = _PS["clock_to_out_registered" if registered else "clock_to_out"]
        launches += [Launch(pin, clock_to_out) for name in _OUTPUTS[port]
                     for pin in pins(name, widths)]
        captures += [Capture(pin, _PS[key], kind) for name, key, kind in _INPUTS[port]
                     for pin in pins(name, widths)]
        if order == "NONE":
            continue
        captures += [Capture(pin, _PS[key], "control") for name, key in _CASCADE_CONTROLS
                     for pin in pins(name.format(port), widths)]
        for parity, name in zip(("", "P"), _OUTPUTS[port]):
            come = pins(f"CASDIN{parity}{port}", widths) if order != "FIRST" else []
            go = pins(f"CASDOUT{parity}{port}", widths) if order != "LAST" else []
            launches += [Launch(pin, _PS["clock_to_cascade"]) for pin in go]
            arcs += [Arc(a, b, _PS["cascade_to_cascade"]) for a, b in zip(come, go)]
            if order == "LAST" and registered:
                captures += [Capture(pin, _PS["cascade_setup"], "data") for pin in come]
            elif order == "LAST":
                arcs += [Arc(a, b, _PS["cascade_to_out"])
                         for a, b in zip(come, pins(name, widths))]
    return CellTiming("bram", tuple(arcs), tuple(launches), tuple(captures),
                      ("CLKARDCLK", "CLKBWRCLK"))


def block_ram_box(shape: RamShape, width: int, address_bits: int, latency: int) -> CellTiming:
    """Return the timing of an ``ember_ram`` of block RAMs, or of an ``ember_ram_piped`` with
    ``latency`` 2, which uses their output register.

    ``shape.stages`` RAMs are cascaded. For each RAM, a LUT and a net decode the enables from the
    upper address bits. ``write_en`` is modelled as pin WE, which is slower than EN.
    """
    chain = (_PS["clock_to_cascade"] + max(0, shape.stages - 2) * _PS["cascade_to_cascade"]
             if shape.stages > 1 else 0)
    if latency > 1:
        out = _PS["clock_to_out_registered"]
        inner = (Inner(chain + _PS["cascade_setup"]),) if chain else ()
    else:
        out = chain + _PS["cascade_to_out"] if chain else _PS["clock_to_out"]
        inner = ()
    low = (shape.words - 1).bit_length()
    decode = lut_pin(min(6, max(0, address_bits - low) + 1)) if chain else 0
    nets = int(shape.stages > 1)
    all_of = shape.stages * shape.columns
    captures = [Capture(pin, _PS["data"], "data")
                for pin in pins("write_data", {"write_data": width})]
    captures.append(Capture(Pin("write_en"), _PS["write_enable"] + decode, "write_enable", nets))
    captures.append(Capture(Pin("read_en"), _PS["enable"] + decode, "enable", nets))
    enables = shape.stages if chain else all_of
    loads = {Pin("write_en"): enables, Pin("read_en"): enables}
    for port, enable in (("read_addr", "enable"), ("write_addr", "write_enable")):
        for pin in pins(port, {port: address_bits}):
            upper = pin.bit >= low
            captures.append(Capture(pin, _PS[enable] + decode, "address", nets) if upper
                            else Capture(pin, _PS["address"], "address"))
            loads[pin] = shape.stages if upper else all_of
    for pin in pins("write_data", {"write_data": width}):
        loads[pin] = shape.stages
    if latency > 1:
        captures.append(Capture(Pin("output_en"), _PS["register_enable"], "enable"))
        loads[Pin("output_en")] = shape.columns
    return CellTiming("bram", (), tuple(Launch(pin, out) for pin in
                                        pins("read_data", {"read_data": width})),
                      tuple(captures), ("clk",), inner, loads)
