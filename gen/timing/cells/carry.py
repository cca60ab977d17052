"""Carry chains: CARRY8, and CARRY4, which Yosys emits for every family.

An UltraScale+ device has only CARRY8, with carry look-ahead: 23 ps from CI to CO[7], but 60 ps to
CO[3]. Two consecutive CARRY4 cells therefore become one CARRY8: :func:`merge_carries` rewrites the
netlist before the analysis. The hop between the halves is inside the arcs. The hop between two
CARRY8, 26 ps, is in the arcs from CI, whose net has 0 ps. A single CARRY4 is the lower half of a
CARRY8.

The arcs from S include the wire from the LUT of the same slice (15 ps). CYINIT is a carry input
that logic drives: pin AX of the slice.
"""

from collections.abc import Mapping
from typing import Any

from gen.timing.cells.model import Arc, CellTiming, Pin
from gen.timing.delays import DELAYS

__all__ = ["carry", "merge_carries"]

_HALF = 4


def carry(bits: int) -> CellTiming:
    """Return the timing of CARRY4 (``bits`` 4) or CARRY8 (``bits`` 8).

    Inputs are CI, CYINIT, DI and S; outputs are CO and O.
    """
    table, wires = DELAYS["carry"], DELAYS["in_slice"]
    arcs = [*_arcs(Pin("CI"), table["CI"], wires["carry_chain"], bits),
            *_arcs(Pin("CYINIT"), table["CYINIT"], 0, bits)]
    for bit in range(bits):
        arcs += _arcs(Pin("DI", bit), table["DI"][bit], 0, bits)
        arcs += _arcs(Pin("S", bit), table["S"][bit], wires["lut_to_carry_s"], bits)
    return CellTiming("carry", tuple(arcs))


def _arcs(source: Pin, rows: Mapping[str, list[int]], wire: int, bits: int) -> list[Arc]:
    return [Arc(source, Pin(port, bit), wire + ps) for port in ("CO", "O")
            for bit, ps in enumerate(rows[port][:bits]) if ps >= 0]


def merge_carries(cells: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return the cells of a module of Yosys's JSON, with pairs of consecutive CARRY4 merged into
    CARRY8.

    The CARRY8 has the name and attributes of the lower CARRY4. Pairs are formed from the start of a
    chain, where CI is not another CARRY4's CO[3]. Unconnected ports are constant "x".
    """
    carries = {name: cell for name, cell in cells.items() if cell["type"] == "CARRY4"}
    by_carry_out = {bits[-1]: name for name, cell in carries.items()
                    if len(bits := cell["connections"].get("CO", ())) == _HALF
                    and isinstance(bits[-1], int)}
    below = {name: by_carry_out[bit] for name, cell in carries.items()
             if (bit := _carry_in(cell)) in by_carry_out}
    above: dict[str, str] = {}
    for name, lower in below.items():
        above.setdefault(lower, name)
    merged = dict(cells)
    for start in carries:
        if above.get(below.get(start, "")) == start:
            continue
        lower: str | None = start
        while lower is not None and (upper := above.get(lower)) is not None:
            merged[lower] = _pair(carries[lower], carries[upper])
            del merged[upper]
            lower = above.get(upper)
    return merged


def _carry_in(cell: Mapping[str, Any]) -> Any:
    """Return the bit at CI if the chain continues there; CYINIT is then a constant."""
    connections = cell["connections"]
    begins = isinstance(connections.get("CYINIT", ["0"])[0], int)
    return None if begins else connections.get("CI", ["0"])[0]


def _pair(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> dict[str, Any]:
    first, second = lower["connections"], upper["connections"]
    unconnected = ["x"] * _HALF
    wide = {port: [*first.get(port, unconnected), *second.get(port, unconnected)]
            for port in ("DI", "S", "CO", "O")}
    return {**lower, "type": "CARRY8",
            "port_directions": {"CI": "input", "CYINIT": "input", "DI": "input", "S": "input",
                                "CO": "output", "O": "output"},
            "connections": {"CI": first.get("CI", ["0"]), "CYINIT": first.get("CYINIT", ["0"]),
                            **wide}}
