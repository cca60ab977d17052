"""The figures of the evaluation, by their names in the paper."""

from sim.experiments.figures.bars import FIG17, FIG22, FIG25, FIG27
from sim.experiments.figures.caches import FIG16, FIG18, FIG19, FIG20, FIG21, FIG23, FIG24
from sim.experiments.figures.figure import Entry, Figure, Metric
from sim.experiments.figures.scaling import FIG14, FIG15, FIG26

__all__ = ["FIGURES", "Entry", "Figure", "Metric"]

FIGURES: dict[str, Figure] = {figure.name: figure for figure in (
    FIG14, FIG15, FIG16, FIG17, FIG18, FIG19, FIG20, FIG21, FIG22, FIG23, FIG24, FIG25, FIG26,
    FIG27)}
"""Those made of points; figures 6 and 8 describe data sets, see ``similarity``."""
