"""Base classes of figures and tables: points to measure, rows, and sections of the page.

To add a figure or table, write a module in this folder with an `EXHIBIT`, and add its name to
:mod:`sim.experiments.figures.registry`.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

from sim.evaluation.point import Point, Task
from sim.evaluation.setting import Setting
from sim.evaluation.store import Results
from sim.page.chart import Chart
from sim.page.content import Column, Section, Text
from sim.page.content import Table as PageTable
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

    def answer(self, setting: Setting, results: Results, rows: Sequence[Row]) -> str:
        """Return the result in a sentence for a page without claims; empty for the title."""
        return ""

    def sections(self, setting: Setting, results: Results, rows: Sequence[Row]) -> list[Section]:
        """Return the sections of the page below the figures."""
        return []

    def charts(self, setting: Setting, results: Results, rows: Sequence[Row]) -> list[Chart]:
        """Return the charts, under the heading ``Figures`` of the page."""
        return []


class Figure(Exhibit):
    """An exhibit with a chart, named like the exhibit."""

    @abstractmethod
    def chart(self, setting: Setting, results: Results, rows: Sequence[Row]) -> Chart:
        """Return the chart."""

    def charts(self, setting: Setting, results: Results, rows: Sequence[Row]) -> list[Chart]:
        """Return its chart."""
        return [self.chart(setting, results, rows)]

    @property
    def heading(self) -> str:
        """The first line of the picture."""
        return f"{self.name}: {self.title}"


_COLUMNS = ("system", "workload", "cluster", Column("mini-batch", ",d"), "software",
            "metric", Column("value", ".3f"))


class Table(Exhibit):
    """An exhibit without a picture; its rows are a section of the page."""

    def notes(self) -> list[tuple[str, str]]:
        """Return names and explanations below the table."""
        return []

    def sections(self, setting: Setting, results: Results, rows: Sequence[Row]) -> list[Section]:
        """Return a section with all rows."""
        return [Section(self.title, [
            PageTable(_COLUMNS, [[row.system, row.workload, row.cluster, row.mini_batch,
                                  row.profile, row.metric, row.value] for row in rows]),
            Text([f"{name}: {text}." for name, text in self.notes()])])]
