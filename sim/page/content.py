"""Content of a page: an answer, sections of tables, charts and text, and the setting."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from sim.page.chart import Chart

__all__ = ["Column", "Figure", "Page", "Section", "Table", "Text"]

Cell = str | float | bool | None | Markup
"""A value of a table: None is shown as n/a, a bool as yes or no."""


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Members
    -------
    name: header. form: format of its numbers, such as ``,.1f``; empty for texts, to the left.
    about: explanation, shown on hover and in the caption.
    """

    name: str
    form: str = ""
    about: str = ""


@dataclass(frozen=True)
class Table:
    """A table; a click on a header sorts the rows.

    Members
    -------
    columns: columns; a text is the name of a column of texts. rows: cells, in the order of columns.
    caption: text below the table. The explanations of the columns follow the caption.
    """

    columns: Sequence[Column | str]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"row must have {len(self.columns)} cells, not {len(row)}")


@dataclass(frozen=True)
class Figure:
    """A chart on a page. Plotly draws it.

    Members
    -------
    chart: the chart. caption: text below it, which explains every abbreviation.
    command: command that makes the figure again; empty without one.
    """

    chart: Chart
    caption: str = ""
    command: str = ""


@dataclass(frozen=True)
class Text:
    """Paragraphs; with ``bullets``, a list."""

    lines: Sequence[str | Markup]
    bullets: bool = False


@dataclass(frozen=True)
class Section:
    """A part of a page below a heading.

    Members
    -------
    title: heading; empty without a heading. parts: content; ``Markup`` is HTML.
    """

    title: str
    parts: Sequence[Table | Figure | Text | Markup]


@dataclass(frozen=True)
class Page:
    """A page.

    Members
    -------
    title: title. answer: one sentence, the first text of the page.
    picture: figure below the answer, or None.
    sections: sections. setting: names and values, the end of the page.
    """

    title: str
    answer: str
    picture: Figure | None
    sections: Sequence[Section]
    setting: Sequence[tuple[str, str]]
