"""Clock gating of a compiled model: the clock of an idle block stops.

At every edge of a clock, Verilator evaluates all logic on it, whether it changes or not, and most
blocks of a NIC are idle most of the time. Every :class:`~rtl.gateable.Gateable` block gets its own
clock. The clock runs while the block is not ``idle``, while an input stream is valid, when any
other input changes, and :data:`LINGER` cycles longer, until even invalid data in the block's
pipelines have settled. Beats, cycles and counters are the same as without gating. The clock of a
block inside another block is derived from the outer block's clock.

The gate decides to wake a block while the main clock is low, in time for the edge. Logic that
depends on an input is evaluated whenever the block that drives the input is evaluated. Settings
reach nearly all blocks, and would keep them awake. Settings therefore pass through a copy that is
updated, in the same instant, when they change. The clock runs in a reset, and for :data:`LINGER`
cycles after it, in which a reset tree inside the block ends.
"""

import re
from collections.abc import Collection

from rtl.gateable import LINGER

__all__ = ["gate_blocks"]

WIDEST = 64
"""Most bits of an input that counts as a setting. A wider input is a payload, whatever its name."""

_MODULE = re.compile(r"^module (\w+)\((.*?)\);(.*?)^endmodule", re.MULTILINE | re.DOTALL)
_CELL = re.compile(r"^  (\w+) (\w+) \(\n(.*?)^  \);\n", re.MULTILINE | re.DOTALL)
_PIN = re.compile(r"^    \.(\w+|\\\S+ )\((.*)\),?\n", re.MULTILINE)
_INPUT = re.compile(r"^  input (?:\[(\d+):0\] )?(\w+|\\\S+ );$", re.MULTILINE)
_RESET = re.compile(r"rst\d*|reset")
"""Resets of a block, or the root of the reset tree inside it (:class:`rtl.reset.ResetBranch`)."""
_NUMBER = re.compile(r"\$\d+ $")

_GATE = f"""
module ember_gate(input clk, input rst, input wake, output gated);
  reg [7:0] left = 0;
  reg open = 0;  // a latch: what the low half of the cycle brings is in it
  always @(posedge clk) left <= wake | rst ? 8'd{LINGER} : left - {{7'b0, |left}};
  always @* if (~clk) open = rst | wake | |left;
  assign gated = clk & open;
endmodule

module ember_changed #(parameter WIDTH = 1) (
    input clk, input [WIDTH - 1:0] value, output changed);
  reg [WIDTH - 1:0] last = 0;
  always @(posedge clk) last <= value;
  assign changed = last != value;
endmodule

module ember_still #(parameter WIDTH = 1) (
    input clk, input [WIDTH - 1:0] value, output reg [WIDTH - 1:0] still);
  initial still = 0;
  wire renew = ~clk & (still != value);
  always @(posedge renew) still <= value;
endmodule
"""


def gate_blocks(verilog: str, gateable: Collection[str]) -> str:
    """Return ``verilog``, made by :func:`gen.verilog.convert.to_verilog`, with the modules
    ``gateable`` on gated clocks. Text without these modules is returned unchanged."""
    inputs = {match[1]: {pin: int(high or 0) + 1 for high, pin in _INPUT.findall(match[3])}
              for match in _MODULE.finditer(verilog) if match[1] in gateable}
    if not inputs:
        return verilog

    def module(outer: re.Match) -> str:
        def cell(match: re.Match) -> str:
            if match[1] not in inputs:
                return match[0]
            return _gate(match, inputs[match[1]], still=outer[1] not in inputs)

        return _CELL.sub(cell, outer[0])

    return _MODULE.sub(module, verilog) + _GATE


def _gate(match: re.Match, inputs: dict[str, int], *, still: bool) -> str:
    """Return a cell with its clock gate. ``still``: whether ungated logic drives its settings."""
    module, name, pins = match[1], match[2], dict(_PIN.findall(match[3]))
    plain = {pin: _NUMBER.sub("", pin.strip("\\")).strip() for pin in pins}
    idle = next((pins[pin] for pin, short in plain.items() if short == "idle"), None)
    if idle is None:  # nothing reads the signal: it is not in the Verilog
        return match[0]
    wake, watched, settings = [f"~{idle}"], [], []
    for pin, width in inputs.items():
        short = plain[pin]
        if (short in ("clk", "time") or _RESET.fullmatch(short) or short.endswith("payload")
                or width > WIDEST):
            continue
        if short.endswith("valid"):
            wake.append(pins[pin])
            continue
        watched.append((pins[pin], width))
        if still and not short.endswith("ready"):
            settings.append((pin, width))
    lines = [f"  wire {name}_clk, {name}_wake;\n"]
    if watched:
        total = sum(width for _value, width in watched)
        values = " , ".join(value for value, _width in watched)
        lines += [f"  wire {name}_changed;\n",
                  f"  ember_changed #(.WIDTH({total})) {name}_watch (.clk({pins['clk']}), "
                  f".value({{ {values} }}), .changed({name}_changed));\n"]
        wake.append(f"{name}_changed")
    if settings:
        total = sum(width for _pin, width in settings)
        values = " , ".join(pins[pin] for pin, _width in settings)
        lines += [f"  wire [{total - 1}:0] {name}_still;\n",
                  f"  ember_still #(.WIDTH({total})) {name}_hold (.clk({pins['clk']}), "
                  f".value({{ {values} }}), .still({name}_still));\n"]
        for pin, width in settings:
            total -= width
            pins[pin] = f"{name}_still[{total + width - 1}:{total}]"
    resets = [pin for pin, short in plain.items() if _RESET.fullmatch(short)]
    lines += [f"  assign {name}_wake = {' | '.join(wake)};\n",
              f"  ember_gate {name}_gate (.clk({pins['clk']}), .rst({pins[resets[0]]}), "
              f".wake({name}_wake), .gated({name}_clk));\n"]
    pins["clk"] = f"{name}_clk"
    given = ",\n".join(f"    .{pin}({value})" for pin, value in pins.items())
    return f"{''.join(lines)}  {module} {name} (\n{given}\n  );\n"
