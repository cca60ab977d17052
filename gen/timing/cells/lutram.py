"""Distributed memories: primitives that Yosys infers, and owned memories.

A read is combinational, from the address through the LUTs. The clock launches the outputs too,
because a write changes the contents. Unlike LUT pins, address pins are fixed: bit 0 is A1.
"""

from collections.abc import Iterator, Mapping

from gen.netlist.ram_cost import RamShape
from gen.timing.cells.lut import lut_pin
from gen.timing.cells.model import Arc, Capture, CellTiming, Inner, Launch, Pin, pins
from gen.timing.delays import DELAYS

__all__ = ["LUTRAMS", "lutram", "lutram_box"]

# Words, and the address port of each output.
LUTRAMS: dict[str, tuple[int, dict[str, str]]] = {
    "RAM32M": (32, {f"DO{x}": f"ADDR{x}" for x in "ABCD"}),
    "RAM64M": (64, {f"DO{x}": f"ADDR{x}" for x in "ABCD"}),
    "RAM32M16": (32, {f"DO{x}": f"ADDR{x}" for x in "ABCDEFGH"}),
    "RAM64M8": (64, {f"DO{x}": f"ADDR{x}" for x in "ABCDEFGH"}),
    "RAM32X16DR8": (64, {f"DO{x}": f"ADDR{x}" for x in "ABCDEFGH"}),
    "RAM64X8SW": (64, {"O": "A"}),
    "RAM32X1S": (32, {"O": "A"}), "RAM64X1S": (64, {"O": "A"}),
    "RAM128X1S": (128, {"O": "A"}), "RAM256X1S": (256, {"O": "A"}),
    "RAM512X1S": (512, {"O": "A"}),
    "RAM32X1D": (32, {"SPO": "A", "DPO": "DPRA"}),
    "RAM64X1D": (64, {"SPO": "A", "DPO": "DPRA"}),
    "RAM128X1D": (128, {"SPO": "A", "DPO": "DPRA"}),
    "RAM256X1D": (256, {"SPO": "A", "DPO": "DPRA"}),
}
"""Primitives: their words, and the address port of each output."""

_PS = DELAYS["lutram"]


def lutram(kind: str, widths: Mapping[str, int]) -> CellTiming:
    """Return the timing of primitive ``kind``, one of :data:`LUTRAMS`.

    Above 64 words, the F7 to F9 multiplexers of the slice select a word; the arcs include their
    delays.
    """
    words, outputs = LUTRAMS[kind]
    muxes = max(0, (words - 1).bit_length() - 6)
    first, onward = _mux_delays(muxes)
    read = _PS["read_32"] if words == 32 else _PS["read_64"]
    arcs, launches = [], []
    for port, address in outputs.items():
        for out in pins(port, widths):
            launches.append(Launch(out, _PS["clock_to_out"] + first + sum(onward)))
            for bit, pin in enumerate(_address(address, widths)):
                ps = (read[bit] + first + sum(onward) if bit < len(read)
                      else DELAYS["mux"]["select"] + sum(onward[bit - 6:]))
                arcs.append(Arc(pin, out, ps))
    write_port = "ADDRD" if kind in ("RAM32M", "RAM64M") else "ADDRH" if "M" in kind[3:] or \
        kind == "RAM32X16DR8" else "A"
    captures = [Capture(pin, _write_address(bit), "address")
                for bit, pin in enumerate(_address(write_port, widths))]
    captures += [Capture(pin, _PS["write_enable"], "address") for pin in pins("WSEL", widths)]
    data = _PS["data_32"] if words == 32 else _PS["data_64"]
    captures += [Capture(pin, data, "data") for port in widths
                 if port == "D" or (len(port) == 3 and port.startswith("DI"))
                 for pin in pins(port, widths)]
    captures.append(Capture(Pin("WE"), _PS["write_enable"], "write_enable"))
    return CellTiming("lutram", tuple(arcs), tuple(launches), tuple(captures), ("WCLK",))


def _address(port: str, widths: Mapping[str, int]) -> list[Pin]:
    """Return the bits of an address, which is one port, or a port for each bit."""
    if port in widths:
        return pins(port, widths)
    return [Pin(f"{port}{bit}") for bit in range(9) if f"{port}{bit}" in widths]


def _mux_delays(muxes: int) -> tuple[int, list[int]]:
    """Return the delay of an F7 multiplexer from a LUT, and of the F8 and F9 multiplexers behind
    it."""
    if not muxes:
        return 0, []
    ps = DELAYS["mux"]["data"]
    return DELAYS["in_slice"]["lut_to_mux"][0] + ps, [ps] * (muxes - 1)


def _write_address(bit: int) -> int:
    # Bits above WA6 gate the write enable. The sources have no separate delay for them.
    return _PS["write_address"][bit] if bit < 6 else _PS["write_enable"]


def lutram_box(shape: RamShape, width: int, address_bits: int, latency: int) -> CellTiming:
    """Return the timing of an ``ember_ram_async``.

    With ``latency``, return the timing of a distributed ``ember_ram``, whose word goes to
    flip-flops with enable ``read_en``, or of an ``ember_ram_piped``, which has more flip-flops.

    Above 64 words there are banks, and behind them a tree of LUTs that select one of four
    (:func:`gen.netlist.ram_cost.ram_cost`), with a net in front of each LUT. The data arrive last
    and get the fastest pins, the address gets the next pins. A LUT decodes the bank of a write.
    """
    levels = list(_tree(shape.stages))
    through = [lut_pin(inputs) for inputs, _ in levels]
    read = _PS["read_32"] if shape.words == 32 else _PS["read_64"]
    reading: list[tuple[Pin, float, int]] = []
    for bit, pin in enumerate(pins("read_addr", {"read_addr": address_bits})):
        if bit < len(read):
            reading.append((pin, read[bit] + sum(through), len(levels)))
        elif levels:
            level = min((bit - 6) // 2, len(levels) - 1)
            inputs, selects = levels[level]
            reading.append((pin, lut_pin(inputs + selects) + sum(through[level + 1:]),
                            len(levels) - level - 1))
    contents = _PS["clock_to_out"] + sum(through)
    outputs = pins("read_data", {"read_data": width})
    captures = _writing(shape, width, address_bits)
    loads = _loads(shape, width, address_bits, latency)
    if not latency:
        return CellTiming(
            "lutram", tuple(Arc(pin, out, ps, nets) for pin, ps, nets in reading
                            for out in outputs),
            tuple(Launch(out, contents, len(levels)) for out in outputs), tuple(captures),
            ("clk",), loads=loads)
    ff, wire = DELAYS["ff"], DELAYS["in_slice"]["lut_to_ff"]
    captures += [Capture(pin, ps + wire + ff["data"], "address", nets)
                 for pin, ps, nets in reading]
    captures.append(Capture(Pin("read_en"), ff["enable"], "enable"))
    if latency > 1:
        captures.append(Capture(Pin("output_en"), ff["enable"], "enable"))
    return CellTiming("lutram", (), tuple(Launch(out, ff["clock_to_q"]) for out in outputs),
                      tuple(captures), ("clk",),
                      (Inner(contents + wire + ff["data"], len(levels)),), loads)


def _tree(banks: int) -> Iterator[tuple[int, int]]:
    """Yield the data inputs and the select inputs of each level of the tree of LUTs."""
    while banks > 1:
        inputs = min(4, banks)
        yield inputs, (inputs - 1).bit_length()
        banks = -(-banks // 4)


def _writing(shape: RamShape, width: int, address_bits: int) -> list[Capture]:
    data = _PS["data_32"] if shape.words == 32 else _PS["data_64"]
    captures = [Capture(pin, data, "data") for pin in pins("write_data", {"write_data": width})]
    low = (shape.words - 1).bit_length()
    above = max(0, address_bits - low)
    decode = lut_pin(min(6, above + 1)) if shape.stages > 1 else 0
    nets = int(shape.stages > 1)
    for bit, pin in enumerate(pins("write_addr", {"write_addr": address_bits})):
        if bit < low:
            captures.append(Capture(pin, _PS["write_address"][bit], "address"))
        else:
            captures.append(Capture(pin, _PS["write_enable"] + decode, "address", nets))
    captures.append(Capture(Pin("write_en"), _PS["write_enable"] + decode, "write_enable", nets))
    return captures


def _loads(shape: RamShape, width: int, address_bits: int, latency: int) -> dict[Pin, int]:
    slices = shape.stages * shape.columns
    # Each LUT has its own read pins; write address, enable and clock belong to the slice.
    cells = -(-width // 2 if shape.words == 32 else -width) * shape.stages
    low = (shape.words - 1).bit_length()
    loads = {Pin("write_en"): shape.stages if shape.stages > 1 else slices}
    for bit in range(address_bits):
        loads[Pin("write_addr", bit)] = slices if bit < low else shape.stages
        level = (bit - low) // 2
        loads[Pin("read_addr", bit)] = (
            cells if bit < low else width * -(-shape.stages // 4 ** (level + 1)))
    for bit in range(width):
        loads[Pin("write_data", bit)] = shape.stages
    for enable in ("read_en", "output_en")[:latency]:
        loads[Pin(enable)] = width
    return loads
