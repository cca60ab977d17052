"""Small mapped circuits, and look-ups in their analysis."""

from gen.timing.cell_types import CellTypes
from gen.timing.cells import timing_of
from gen.timing.flatten import flat
from gen.timing.graph import Graph
from gen.timing.levels import levels_of
from gen.timing.netlist import read_unit
from gen.timing.nets import CASES
from gen.timing.propagate import Arrivals, arrivals, clock_of
from tests.gen.mapped import cell

OPTIMISTIC, MIDDLE, PESSIMISTIC = CASES


def ff(clock, d, q, *, enable="1", reset="0", kind="FDRE"):
    return cell(kind, {"C": [clock], "CE": [enable], "D": [d], "R": [reset]}, {"Q": [q]})


def lut(output, *inputs):
    return cell(f"LUT{len(inputs)}", {f"I{k}": [bit] for k, bit in enumerate(inputs)},
                {"O": [output]})


def join(netlists, top="top", registers=(), timing=timing_of) -> Graph:
    """Return the flat graph of netlists by unit; cells with these types are instances."""
    types = CellTypes(timing)
    return flat({name: read_unit(text, types, netlists, registers)
                 for name, text in netlists.items()}, top)


def analyse(graph: Graph, case=MIDDLE, clock="clk") -> Arrivals:
    return arrivals(levels_of(graph), case, clock_of(graph, clock))


def ends(arrived: Arrivals) -> dict[str, float]:
    """Return the arrival at each end with an arrival, by ``<cell>.<pin>[<bit>]``."""
    graph = arrived.graph
    found = {}
    for capture, ps in zip(arrived.captures, arrived.ends):
        if ps > float("-inf"):
            load = graph.captures.places[capture]
            name, type_ = int(graph.loads.cells[load]), graph.type_of(graph.loads.cells[load])
            pin = type_.pins[graph.loads.pins[load]]
            found[f"{graph.cell_name(name)}.{pin.port}[{pin.bit}]"] = float(ps)
    return found
