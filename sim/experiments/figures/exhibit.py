"""What every figure and table of the evaluation has: points to measure, rows, a place on the page.

To add one, write a file in this folder that has an `EXHIBIT`, and add the file's name to
:mod:`sim.experiments.figures.registry`.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sim.evaluation.point import Point, Task
from sim.evaluation.setting import Setting
from sim.evaluation.store import Results
from sim.experiments.figures.row import Row
from sim.experiments.figures.section import Section, section_of_rows

__all__ = ["Exhibit", "Figure", "Table"]


@dataclass(frozen=True)
class Exhibit(ABC):
    """A figure or a table of the evaluation.

    Members
    -------
    name: its file in this folder, its name on the command line and that of its files, such as
        ``fig22.csv``. title: what it shows. about: how it is made, a sentence or two for the page.
    demo: whether ``--demo`` makes it too.
    """

    name: str
    title: str
    about: str = field(default="", kw_only=True)
    demo: bool = field(default=False, kw_only=True)

    def points(self, setting: Setting) -> Sequence[Point | Task]:
        """Return the points that must be measured; none where data sets alone are described."""
        return []

    def with_intervals(self, setting: Setting) -> bool:
        """Return whether its values are means over all seeds of the setting, with intervals."""
        return False

    @abstractmethod
    def rows(self, setting: Setting, results: Results) -> list[Row]:
        """Return the rows of the CSV file; a point that failed gives rows without value."""

    def sections(self, setting: Setting, results: Results, rows: Sequence[Row]) -> list[Section]:
        """Return the sections of the page above the pictures."""
        return []

    def pictures(self, setting: Setting, results: Results, rows: Sequence[Row],
                 folder: Path) -> list[Path]:
        """Draw the pictures to ``folder``, and return where they are."""
        return []


class Figure(Exhibit):
    """An exhibit with a picture, which lies under the heading ``Figures`` of the page."""

    @abstractmethod
    def draw(self, setting: Setting, results: Results, rows: Sequence[Row],
             path: str | Path) -> None:
        """Draw to ``path``, a PNG."""

    def pictures(self, setting: Setting, results: Results, rows: Sequence[Row],
                 folder: Path) -> list[Path]:
        """Draw its one picture, which has its name."""
        path = folder / f"{self.name}.png"
        self.draw(setting, results, rows, path)
        return [path]

    @property
    def heading(self) -> str:
        """The first line of the picture."""
        return f"{self.name}: {self.title}"


class Table(Exhibit):
    """An exhibit without a picture, whose rows are a section of the page."""

    def notes(self) -> list[tuple[str, str]]:
        """Return names and explanations to put below the table."""
        return []

    def sections(self, setting: Setting, results: Results, rows: Sequence[Row]) -> list[Section]:
        """Return a section with all rows."""
        return [section_of_rows(self.title, rows, self.notes())]
