"""Delays of nets that Vivado routed, beside our three cases of nets.

``routed_nets.csv`` has the nets between sites on the worst setup paths of 21 small designs, from
the reports ``*-timing-route.v`` and ``*-timing-summary-route.v`` of gussmith23/lakeroad-evaluation
at 4efb342 (MIT), folder runs/2022-07-06-1704-full/vivado-eval/xilinx-ultrascale-plus-vivado-eval/
vivado-synth-opt-place-route: Vivado 2021.2, xczu3eg-sbva484-1-e, 5 ns. Carry chains, the insides of
DSPs and nets within a site are left out. Each design is alone on the chip: its nets are shorter
than nets in a full device, but at speed grade -1 slower than at -2.
"""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from gen.timing.nets import CASES, Case

__all__ = ["RoutedNet", "exceeded", "read_routed_nets"]

SHIPPED = Path(__file__).parent / "routed_nets.csv"


class RoutedNet(NamedTuple):
    """A net of ``design``: its loads, and the delay in ps to the load on the path."""

    design: str
    net: str
    fan_out: int
    ps: int


def read_routed_nets(path: Path = SHIPPED) -> list[RoutedNet]:
    """Return the nets of the file ``path``; ``ValueError`` names the line, the field, its value."""
    found = []
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        for row in rows:
            numbers = []
            for field in ("fan_out", "ps"):
                value = row.get(field)
                if value is None or not value.isdecimal() or int(value) == 0:
                    raise ValueError(f"{path.name}, line {rows.line_num}: {field} must be a whole "
                                     f"number above 0, not {value!r}")
                numbers.append(int(value))
            found.append(RoutedNet(row["design"], row["net"], *numbers))
    return found


def exceeded(nets: Iterable[RoutedNet], cases: Sequence[Case] = CASES) -> dict[str, float]:
    """Return, for each case, the share of ``nets`` that are slower than the case."""
    nets = list(nets)
    return {case.name: sum(net.ps > float(case.delay(net.fan_out)) for net in nets) / len(nets)
            for case in cases}
