"""Timing of each type of cell that Yosys emits for UltraScale+, and of the owned memories."""

from collections.abc import Mapping

from gen.netlist.ram_cost import ram_shape
from gen.timing.cells.block_ram import block_ram, block_ram_box
from gen.timing.cells.carry import carry, merge_carries
from gen.timing.cells.dsp import dsp
from gen.timing.cells.flipflop import FLIP_FLOPS, flip_flop
from gen.timing.cells.lut import LUT_PINS, lut
from gen.timing.cells.lutram import LUTRAMS, lutram, lutram_box
from gen.timing.cells.model import (
    KINDS,
    Arc,
    Capture,
    CellTiming,
    Inner,
    Launch,
    Pin,
    number,
    text,
)
from gen.timing.cells.mux import wide_mux
from gen.timing.cells.shift_register import SHIFT_REGISTERS, shift_register
from gen.timing.cells.ultra_ram import ultra_ram, ultra_ram_box
from gen.verilog.platform import RAM_MODULES

__all__ = ["KINDS", "LUT_PINS", "Arc", "Capture", "CellTiming", "Inner", "Launch", "Pin",
           "merge_carries", "timing_of"]

_LATENCY = {module: latency for latency, module in RAM_MODULES.items()}
_STYLES = ("auto", "distributed", "block", "ultra")
# Placement merges an inverter with its load. Clock buffers carry no data.
_BUFFERS = ("INV", "BUF", "BUFG")
# `$scopeinfo` is Yosys's record of the flattened hierarchy.
_CONSTANTS = ("GND", "VCC", "$scopeinfo")


def timing_of(kind: str, parameters: Mapping[str, str | int],
              widths: Mapping[str, int]) -> CellTiming:
    """Return the timing of a cell of type ``kind``.

    parameters: parameters of the cell, as in Yosys's JSON.
    widths: bits of its connected ports.

    Raises ``ValueError`` for an unknown type, or a setting without timing.
    """
    if kind.startswith("LUT") and kind[3:] in "123456" and len(kind) == 4:
        return lut(int(kind[3]))
    if kind in FLIP_FLOPS:
        return flip_flop(kind)
    if kind in ("CARRY4", "CARRY8"):
        return carry(int(kind[5]))
    if kind in ("MUXF7", "MUXF8", "MUXF9"):
        return wide_mux(kind)
    if kind in SHIFT_REGISTERS:
        return shift_register(kind, widths)
    if kind in LUTRAMS:
        return lutram(kind, widths)
    if kind in _BUFFERS:
        return CellTiming("buffer", (Arc(Pin("I"), Pin("O"), 0),))
    if kind in _CONSTANTS:
        return CellTiming("constant")
    try:
        if kind in ("RAMB18E2", "RAMB36E2"):
            return block_ram(parameters, widths)
        if kind == "URAM288":
            return ultra_ram(parameters, widths)
        if kind == "DSP48E2":
            return dsp(parameters, widths)
        if kind in _LATENCY:
            return _memory(kind, parameters, widths)
    except ValueError as error:
        raise ValueError(f"cell of type {kind}: {error}") from None
    raise ValueError(f"cells of type {kind} have no timing")


def _memory(module: str, parameters: Mapping[str, str | int],
            widths: Mapping[str, int]) -> CellTiming:
    """Return the timing of an owned memory, from its WIDTH, DEPTH, STYLE, ADDR_BITS and LATENCY."""
    width, depth = number(parameters, "WIDTH", 1), number(parameters, "DEPTH", 2)
    style = text(parameters, "STYLE", "auto", *_STYLES)
    address_bits = number(parameters, "ADDR_BITS", widths.get("read_addr", 1))
    latency = number(parameters, "LATENCY", _LATENCY[module])
    shape = ram_shape(width, depth, style if latency else "distributed")
    box = {"lutram": lutram_box, "uram": ultra_ram_box}.get(shape.kind, block_ram_box)
    return box(shape, width, address_bits, latency)
