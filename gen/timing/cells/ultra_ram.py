"""UltraRAM: URAM288 without ECC, and the owned memories that consist of it.

In a cycle, port A works before port B. To return the old word, a read must use port A and a write
port B, as in an ``ember_ram``.
"""

from collections.abc import Mapping

from gen.netlist.ram_cost import RamShape
from gen.timing.cells.model import Arc, Capture, CellTiming, Inner, Launch, Pin, pins, text
from gen.timing.delays import DELAYS

__all__ = ["ultra_ram", "ultra_ram_box"]

_PS = DELAYS["ultra_ram"]
_ORDERS = ("NONE", "FIRST", "MIDDLE", "LAST")
_KINDS = {"ADDR": "address", "BWE": "write_enable", "DIN": "data", "EN": "enable",
          "RDB_WR": "write_enable"}
_OUTPUT_ENABLES = ("OREG_CE", "OREG_ECC_CE")


def ultra_ram(parameters: Mapping[str, str | int], widths: Mapping[str, int]) -> CellTiming:
    """Return the timing of URAM288.

    It depends on ``CASCADE_ORDER_x``, ``IREG_PRE_x``, ``OREG_x``, ``OREG_ECC_x`` and ``REG_CAS_x``.
    Raises ``ValueError`` for unsupported values, and for ``EN_ECC_RD_x`` and ``EN_ECC_WR_x``.
    """
    arcs: list[Arc] = []
    launches: list[Launch] = []
    captures: list[Capture] = []
    for x in "AB":
        table = _PS[x]
        order = text(parameters, f"CASCADE_ORDER_{x}", "NONE", *_ORDERS)
        for name in (f"EN_ECC_RD_{x}", f"EN_ECC_WR_{x}"):
            text(parameters, name, "FALSE", "FALSE")
        early, first, second, cascade = (
            text(parameters, f"{name}_{x}", "FALSE", "FALSE", "TRUE") == "TRUE"
            for name in ("IREG_PRE", "OREG", "OREG_ECC", "REG_CAS"))
        for name, kind in _KINDS.items():
            captures += [Capture(pin, table["input"][name][early], kind)
                         for pin in pins(f"{name}_{x}", widths)]
            if order != "NONE":
                _cascade(name, x, order, cascade, widths, arcs, launches, captures)
        captures += [Capture(pin, table["output_enable"], "enable") for name in _OUTPUT_ENABLES
                     for pin in pins(f"{name}_{x}", widths)]
        captures += [Capture(pin, _PS["reset"]["setup"], "reset")
                     for pin in pins(f"RST_{x}", widths)]
        out = "clock_to_out" + _suffix(first, second)
        if second and order == "LAST":
            out = "clock_to_out_second_last"
        outputs = pins(f"DOUT_{x}", widths)
        launches += [Launch(pin, table[out]) for pin in outputs]
        come = pins(f"CAS_IN_DOUT_{x}", widths) if order in ("MIDDLE", "LAST") else []
        go = pins(f"CAS_OUT_DOUT_{x}", widths) if order in ("FIRST", "MIDDLE") else []
        launches += [Launch(pin, table["clock_to_cascade" + _suffix(first, second)])
                     for pin in go]
        if cascade:
            captures += [Capture(pin, table["cascade_setup"], "data") for pin in come]
        else:
            arcs += [Arc(a, b, table["cascade_to_cascade"]) for a, b in zip(come, go)]
            if order == "LAST":
                arcs += [Arc(a, b, table["cascade_to_out"]) for a, b in zip(come, outputs)]
    return CellTiming("uram", tuple(arcs), tuple(launches), tuple(captures), ("CLK",))


def _suffix(first: bool, second: bool) -> str:
    return "_second" if second else "_registered" if first else ""


def _cascade(name: str, x: str, order: str, registered: bool, widths: Mapping[str, int],
             arcs: list[Arc], launches: list[Launch], captures: list[Capture]) -> None:
    """Add the cascade timing of input ``name`` of port ``x``."""
    plain, early, clock_to_out, through = _PS[x]["cascade"][name]
    come = pins(f"CAS_IN_{name}_{x}", widths) if order in ("MIDDLE", "LAST") else []
    go = pins(f"CAS_OUT_{name}_{x}", widths) if order in ("FIRST", "MIDDLE") else []
    captures += [Capture(pin, early if registered else plain, _KINDS[name]) for pin in come]
    launches += [Launch(pin, clock_to_out) for pin in go]
    if not registered:
        arcs += [Arc(a, b, through) for a, b in zip(come, go)]


def ultra_ram_box(shape: RamShape, width: int, address_bits: int, latency: int) -> CellTiming:
    """Return the timing of an ``ember_ram`` of UltraRAMs, or of an ``ember_ram_piped``.

    The latter has ``latency`` 2, with the output register of each RAM, or 3, also with a cascade
    register. The words of ``shape.stages`` RAMs are cascaded. Each RAM compares the upper address
    bits, and the fabric drives its inputs, since a cascade of inputs requires registers.
    ``write_en`` is modelled as pin BWE, which is slower than RDB_WR and EN. The RAMs behind the
    cascade register, in the middle, delay their own words by OREG_ECC. The sources have no delay of
    the cascade register; the delay of OREG is used.
    """
    read, write = _PS["A"], _PS["B"]
    registered = "_registered" if latency > 1 else ""
    before = shape.stages // 2 if latency > 2 else 0
    chained, inner = shape.stages - before, ()
    out = read[f"clock_to_out{registered}"]
    if chained > 1:
        out = (read[f"clock_to_cascade{registered}"] + read["cascade_to_out"]
               + (chained - 2) * read["cascade_to_cascade"])
    if before:
        inner = (Inner(read["clock_to_cascade_registered"] + read["cascade_setup"]
                       + (before - 1) * read["cascade_to_cascade"]),)
    captures = [Capture(pin, write["input"]["DIN"][0], "data")
                for pin in pins("write_data", {"write_data": width})]
    captures.append(Capture(Pin("write_en"), write["input"]["BWE"][0], "write_enable"))
    captures.append(Capture(Pin("read_en"), read["input"]["EN"][0], "enable"))
    all_of = shape.stages * shape.columns
    loads = {Pin("write_en"): all_of, Pin("read_en"): all_of}
    for port, table in (("read_addr", read), ("write_addr", write)):
        for pin in pins(port, {port: address_bits}):
            captures.append(Capture(pin, table["input"]["ADDR"][0], "address"))
            loads[pin] = all_of
    for pin in pins("write_data", {"write_data": width}):
        loads[pin] = shape.stages
    if latency > 1:
        captures.append(Capture(Pin("output_en"), read["output_enable"], "enable"))
        loads[Pin("output_en")] = all_of
    return CellTiming("uram", (), tuple(Launch(pin, out) for pin in
                                        pins("read_data", {"read_data": width})),
                      tuple(captures), ("clk",), inner, loads)
