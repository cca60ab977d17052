"""Charts of the phase map: heat maps of cells, and claims by cell."""

from collections.abc import Mapping
from math import log2

from sim.experiments.maps.cells import LINKS, MINI_BATCHES, OPERATORS, Cell
from sim.experiments.maps.verdicts import JUDGED, RATIOS, agreeing
from sim.page.chart import Axis, Chart, Panel, Series, Shade

__all__ = ["claims_chart", "heat_chart"]

_WIDEST = 3.0
"""Speedup with the deepest colour; its inverse has the deepest colour of slowdowns."""

_SPEEDUPS = Shade(Axis(bounds=(-log2(_WIDEST), log2(_WIDEST))), bar=False)
_COUNTS = Shade(Axis(bounds=(0, 1)), ("#F7FBFF", "#08519C"), bar=False)
_VERDICTS = Shade(Axis(bounds=(0, 1)), ("#F4D9C8", "#0072B2"), bar=False)


def heat_chart(name: str, setting: str, found: Mapping[Cell, Mapping[str, bool | None]],
               ratios: Mapping[Cell, Mapping[str, float | None]]) -> Chart:
    """Return the cells of a data set: a row of panels for each operator time shows the share of
    agreeing claims and each speedup.

    Parameters: ``name``, of the chart; ``setting``, values that all cells share; ``found``,
    verdicts by claim; ``ratios``, speedups by name.
    """
    panels = []
    for operator in OPERATORS:
        cells = [cell for cell in found if cell.operator == operator]
        at = f"\noperator {operator} us"
        counts = {cell: agreeing(found[cell]) for cell in cells}
        panels.append(_panel(f"claims that agree,{at}", {
            cell: (agree / judged, f"{agree}/{judged}")
            for cell, (agree, judged) in counts.items() if judged}, _COUNTS))
        for ratio in RATIOS:
            values = {cell: value for cell in cells
                      if (value := ratios[cell][ratio.name]) is not None}
            panels.append(_panel(f"{ratio.name},{at}", {
                cell: (log2(value), f"{value:.2f}x") for cell, value in values.items()},
                _SPEEDUPS))
    return Chart(name=name, title=name.replace("_", " "), setting=setting, panels=panels,
                 columns=1 + len(RATIOS), height=3.0)


def _panel(title: str, values: Mapping[Cell, tuple[float, str]], shade: Shade) -> Panel:
    """Return a column for each link and a row for each mini-batch; cells without a value are
    empty."""
    cells = sorted(values, key=lambda cell: (MINI_BATCHES.index(cell.mini_batch),
                                             LINKS.index(cell.link)))
    return Panel(title=title, shade=shade, x=Axis("link, Gb/s"), y=Axis("mini-batch"), series=[
        Series(name=title, kind="cell", legend=False, x=[f"{cell.link}" for cell in cells],
               y=[f"{cell.mini_batch:,}" for cell in cells],
               shades=[values[cell][0] for cell in cells],
               labels=[values[cell][1] for cell in cells])])


def claims_chart(name: str, setting: str,
                 found: Mapping[Cell, Mapping[str, bool | None]]) -> Chart:
    """Return every claim in every cell of a data set; the parameters are those of
    :func:`heat_chart`."""
    panels = []
    for operator in OPERATORS:
        judged = [(claim, cell, verdict) for claim in JUDGED for cell in found
                  if cell.operator == operator and (verdict := found[cell].get(claim)) is not None]
        panels.append(Panel(
            title=f"operator {operator} us: yes, the claim agrees; no, it does not",
            shade=_VERDICTS, height=1.5 + 0.26 * len(JUDGED), series=[Series(
                name="claims", kind="cell", legend=False,
                x=[f"{cell.mini_batch:,}, {cell.link} Gb/s" for _, cell, _ in judged],
                y=[claim for claim, *_ in judged], shades=[float(each) for *_, each in judged],
                labels=["yes" if each else "no" for *_, each in judged])],
            x=Axis("mini-batch, link"), y=Axis("claim, eager software, against bl-paper")))
    return Chart(name=name, title=name.replace("_", " "), setting=setting, panels=panels)
