"""Our estimate of a public design: the fastest clock of its registers, in three cases of nets."""

from collections.abc import Iterable

from gen.netlist.netlists import Netlist
from gen.timing.boundary import registers_only
from gen.timing.cell_types import CellTypes
from gen.timing.cells import timing_of
from gen.timing.classes import end_delays
from gen.timing.flatten import flat
from gen.timing.levels import levels_of
from gen.timing.netlist import read_unit
from gen.timing.nets import CASES
from gen.timing.propagate import arrivals, clock_of

__all__ = ["estimate"]


def estimate(netlist: Netlist, top: str, clocks: Iterable[str]) -> tuple[float, float, float]:
    """Return the MHz at which the slowest path of ``netlist`` meets each of the three cases.

    Only paths from register to register within one of ``clocks`` count. Paths of ports do not
    count: Vivado has no times for ports of a design that is alone on a chip. ``ValueError`` if no
    path between registers is left.
    """
    unit = read_unit(netlist, CellTypes(timing_of), ())
    levels = levels_of(registers_only(flat({top: unit}, top)))
    found = []
    for case in CASES:
        worst = 0.0
        for clock in clocks:
            arrived = arrivals(levels, case, clock_of(levels.graph, clock))
            worst = max(worst, float(end_delays(arrived).max(initial=0)))
        if worst <= 0:
            raise ValueError(f"design {top!r} has no path between registers of {tuple(clocks)!r}")
        found.append(1e6 / worst)
    return found[0], found[1], found[2]
