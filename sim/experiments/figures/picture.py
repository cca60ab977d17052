"""Pictures that Matplotlib alone draws: a grid of panels below a title."""

from collections.abc import Callable, Sequence

from matplotlib.figure import Figure as Canvas

from sim.experiments.figures.captions import titled
from sim.page import png
from sim.page.chart import COLOURS
from sim.page.png import save

__all__ = ["COLOURS", "grid", "save"]


def grid(columns: Sequence[str], rows: Sequence[str], title: str, setting: str,
         draw: Callable, height: float = 2.6, width: float = 3.6) -> Canvas:
    """Return a canvas of panels; ``draw(axes, column, row)`` fills each.

    Values that all panels share are in ``title`` and, below it, in ``setting``.
    """
    def fill(axes, column: str, row: str) -> None:
        draw(axes, column, row)
        axes.set_title(titled(column, row), fontsize=10)

    return png.grid(len(columns), len(rows), title, setting, [
        lambda axes, column=column, row=row: fill(axes, column, row)
        for row in rows for column in columns], height, width)
