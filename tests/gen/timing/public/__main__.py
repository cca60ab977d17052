"""Command line ``python -m tests.gen.timing.public``: our three cases beside Vivado's figures.

Designs with an installed package are mapped and estimated; for other designs the recorded figures
are shown.
"""

import sys

from rich import box
from rich.console import Console
from rich.table import Table

from gen.timing.nets import CASE_NAMES
from tests.gen.timing.public.comparison import Comparison, Row, compare
from tests.gen.timing.public.designs import Design, read_designs
from tests.gen.timing.public.estimate import estimate
from tests.gen.timing.public.mapping import SourceError, map_design
from tests.gen.timing.public.routed import exceeded, read_routed_nets

__all__ = ["main"]


def main() -> int:
    """Print the comparison; return 0."""
    console, log = Console(), Console(stderr=True)
    designs = read_designs()
    estimates = {}
    for design in designs:
        mhz = _anew(design, log) or design.recorded
        if mhz:
            estimates[design.name] = mhz
    comparison = compare(designs, estimates)
    console.print(_table(comparison, "public designs, MHz: Vivado's figure, our three cases"))
    console.print(_summary(comparison), highlight=False)
    mapped = {design.name: design.recorded_on_vivados_netlist for design in designs
              if design.recorded_on_vivados_netlist}
    theirs = compare([design for design in designs if design.name in mapped], mapped)
    console.print(_table(theirs, "the same designs as Vivado mapped them, MHz"))
    console.print(_summary(theirs), highlight=False)
    shares = exceeded(read_routed_nets())
    console.print("nets between sites that Vivado routed slower than a case says: " + ", ".join(
        f"{case} {100 * share:.0f}%" for case, share in shares.items()), highlight=False)
    return 0


def _anew(design: Design, log: Console) -> tuple[float, float, float] | None:
    if design.package is None:
        return None
    try:
        return estimate(map_design(design), design.top, design.clocks)
    except SourceError as error:
        log.print(f"{error}; the recorded figures stand", highlight=False, markup=False,
                  soft_wrap=True)
        return None


def _table(comparison: Comparison, title: str) -> Table:
    table = Table(title=title, box=box.SIMPLE, padding=(0, 0, 0, 1), pad_edge=False)
    for column in ("design", "part", "kind"):
        table.add_column(column, no_wrap=True)
    for column in ("Vivado", *CASE_NAMES):
        table.add_column(column, justify="right", no_wrap=True)
    for row in comparison.rows:
        figure = row.published
        part = figure.device.split("-")[0] + str(figure.speed_grade)
        table.add_row(row.design, part, figure.kind,
                      f"{'≥ ' if row.bound else ''}{figure.mhz:.0f}", *_cells(row))
    return table


def _cells(row: Row) -> list[str]:
    return [f"{mhz:.0f} {'holds' if error is None else f'{100 * error:+.0f}%'}"
            for mhz, error in zip(row.mhz, row.errors)]


def _summary(comparison: Comparison) -> str:
    lines = [f"over {len(comparison.ranked)} designs of UltraScale+ that are no bounds:"]
    for case in CASE_NAMES:
        rank, error = comparison.rank[case], comparison.median_error[case]
        lines.append(
            f"  {case}: Spearman's rank correlation {'-' if rank is None else f'{rank:.2f}'}, "
            f"median error {'-' if error is None else f'{100 * error:+.0f}%'}, "
            f"bounds refuted by it {comparison.refuted[case]}")
    if comparison.missing:
        lines.append(f"not estimated: {', '.join(comparison.missing)}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
