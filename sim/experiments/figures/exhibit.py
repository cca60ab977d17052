"""Base classes of figures and tables: points to measure, rows, and sections of the page.

To add a figure or table, write a module in this folder with an `EXHIBIT`, and add its name to
:mod:`sim.experiments.figures.registry`.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sim.evaluation.point import Point, Task
from sim.evaluation.setting import Setting
from sim.evaluation.store import Results
from sim.experiments.figures.section import Section, section_of_rows
from sim.page.chart import Chart
from sim.page.png import write_png
from sim.page.rows import Row

__all__ = ["Exhibit", "Figure", "Table"]


@dataclass(frozen=True)
class Exhibit(ABC):
    """A figure or a table of the evaluation.

    Members
    -------
    name: name of the module, on the command line, and of the files, such as ``fig22.csv``.
    title: displayed title. about: one or two sentences for the page.
    demo: whether ``--demo`` includes it.
    """

    name: str
    title: str
    about: str = field(default="", kw_only=True)
    demo: bool = field(default=False, kw_only=True)

    def points(self, setting: Setting) -> Sequence[Point | Task]:
        """Return the points that must be measured; empty if it only describes data sets."""
        return []

    def over_seeds(self, setting: Setting) -> bool:
        """Return whether its values are means over all seeds of the setting."""
        return False

    @abstractmethod
    def rows(self, setting: Setting, results: Results) -> list[Row]:
        """Return the rows of the CSV file; rows of a failed point have no value."""

    def sections(self, setting: Setting, results: Results, rows: Sequence[Row]) -> list[Section]:
        """Return the sections of the page below the figures."""
        return []

    def chart(self, setting: Setting, results: Results, rows: Sequence[Row]) -> Chart | None:
        """Return the chart that the page draws; None for the PNG of its pictures."""
        return None

    def pictures(self, setting: Setting, results: Results, rows: Sequence[Row],
                 folder: Path) -> list[Path]:
        """Draw the pictures into ``folder``, and return their paths."""
        return []


class Figure(Exhibit):
    """An exhibit with a picture, under the heading ``Figures`` of the page.

    A subclass has :meth:`chart`, which the page draws, or :meth:`draw`, whose PNG is on the page.
    """

    def draw(self, setting: Setting, results: Results, rows: Sequence[Row],
             path: str | Path) -> None:
        """Draw to ``path``, a PNG."""
        chart = self.chart(setting, results, rows)
        assert chart is not None
        write_png(chart, path)

    def pictures(self, setting: Setting, results: Results, rows: Sequence[Row],
                 folder: Path) -> list[Path]:
        """Draw its picture, named like the figure."""
        path = folder / f"{self.name}.png"
        self.draw(setting, results, rows, path)
        return [path]

    @property
    def heading(self) -> str:
        """The first line of the picture."""
        return f"{self.name}: {self.title}"


class Table(Exhibit):
    """An exhibit without a picture; its rows are a section of the page."""

    def notes(self) -> list[tuple[str, str]]:
        """Return names and explanations below the table."""
        return []

    def sections(self, setting: Setting, results: Results, rows: Sequence[Row]) -> list[Section]:
        """Return a section with all rows."""
        return [section_of_rows(self.title, rows, self.notes())]
