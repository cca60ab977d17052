"""Sharing of Verilator's C++ between the instances of a module that a design repeats often.

Verilator writes C++ for every instance. It uses one function for all instances if their code is
identical. But first it inlines the driver of each input into the code that reads the input, and
every instance has another driver. Modules with many instances therefore get a boundary that
Verilator does not optimise across: their inputs become elements of arrays inside, which the
surrounding module assigns by path. For 13 dot units (403 float units) the C++ shrinks from 27 to
5.9 MB, and the model runs 1.6 times as fast.
"""

import re
from collections import Counter
from functools import cache

__all__ = ["LEAST_BYTES", "MANY", "SHARED_FLAGS", "share_units"]

MANY = 64
"""Least number of instances of a module with shared code. With fewer instances, the calls and the
copies of inputs cost more than sharing saves."""

LEAST_BYTES = 2_000_000
"""Least bytes of Verilog in all instances of a shared module together. With fewer bytes, the flags
below cost more than sharing saves."""

SHARED_FLAGS = ("-fno-dfg",)
"""Flags of Verilator that sharing needs: its data-flow optimiser names common subexpressions
differently in each instance."""

_MODULE = re.compile(r"^module (\w+)\((.*?)\);(.*?)^endmodule", re.MULTILINE | re.DOTALL)
_CELL = r"^  {} (\w+|\\\S+ ) \(\n(.*?)^  \);\n"
_ANY_CELL = re.compile(_CELL.format(r"(\w+)"), re.MULTILINE | re.DOTALL)
_INPUT = re.compile(r"^  input (\[\d+:0\] )?(?!clk;|rst;)(\w+);\n  wire (?:\[\d+:0\] )?\2;\n",
                    re.MULTILINE)
_PIN = re.compile(r"^    \.(\w+|\\\S+ )\((.*)\),?\n", re.MULTILINE)


def share_units(verilog: str, top: str) -> tuple[str, list[str]]:
    """Return ``verilog`` with the code of repeated modules shared, and their names.

    ``verilog``: output of :func:`gen.verilog.convert.to_verilog`, with top module ``top``. A module
    inside a shared module stays a part of it.
    """
    modules = list(_MODULE.finditer(verilog))
    cells = {match[1]: Counter(cell[1] for cell in _ANY_CELL.finditer(match[3]))
             for match in modules}
    shared = _repeated(cells, {match[1]: len(match[0]) for match in modules}, top)
    for name in shared:
        verilog = _share(verilog, name)
    return verilog, shared


def _repeated(cells: dict[str, Counter], sizes: dict[str, int], top: str) -> list[str]:
    """Return the outermost modules with at least ``MANY`` instances and ``LEAST_BYTES``, sorted by
    name."""
    instances, found, level = Counter(), [], Counter({top: 1})
    while level:
        instances.update(level)
        inner = Counter()
        for name, count in level.items():
            for cell, each in cells[name].items():
                if cell.startswith(f"{top}_"):  # neither a memory nor a primitive
                    inner[cell] += count * each
        level = inner
    @cache
    def size(name: str) -> int:
        return sizes[name] + sum(each * size(cell) for cell, each in cells[name].items()
                                 if cell in sizes)

    often = {name for name, count in instances.items()
             if count >= MANY and count * size(name) >= LEAST_BYTES}
    for name in sorted(often):
        parents = {parent for parent, inside in cells.items() if name in inside}
        if not parents <= often:
            found.append(name)
    return found


def _share(verilog: str, name: str) -> str:
    """Give module ``name`` its boundary, and assign its inputs where it is instantiated."""
    module = next(match for match in _MODULE.finditer(verilog) if match[1] == name)
    inputs = {match[2] for match in _INPUT.finditer(module[3])}
    ports = [port for port in re.split(r"\s*,\s*", module[2]) if port not in inputs]
    body = _INPUT.sub(r"  wire \1\2_in [0:0];\n  wire \1\2 = \2_in[0];\n", module[3])
    verilog = (f"{verilog[:module.start()]}module {name}({' , '.join(ports)} ); "
               f"/*verilator no_inline_module*/{body}endmodule{verilog[module.end():]}")

    def cell(match: re.Match) -> str:
        pins = _PIN.findall(match[2])
        kept = ",\n".join(f"    .{port}({value})" for port, value in pins if port not in inputs)
        given = "".join(f"  assign {match[1]}.{port}_in[0] = {value};\n"
                        for port, value in pins if port in inputs)
        return f"  {name} {match[1]} (\n{kept}\n  );\n{given}"

    return re.sub(_CELL.format(name), cell, verilog, flags=re.MULTILINE | re.DOTALL)
