"""Pages as HTML: one file that a browser opens from disk, without a network."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import jinja2
from markupsafe import Markup

from sim.page.content import Cell, Column, Figure, Page, Table, Text
from sim.page.traces import figure_of

__all__ = ["filled", "render"]


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True,
                                     undefined=jinja2.StrictUndefined)
    environment.filters |= {"columns": _columns, "cell": _cell, "sort_key": _sort_key,
                            "plotly": figure_of}
    environment.tests |= {"table": lambda part: isinstance(part, Table),
                          "figure": lambda part: isinstance(part, Figure),
                          "text": lambda part: isinstance(part, Text)}
    return environment


def filled(template: str, values: Mapping[str, Any]) -> Markup:
    """Return a Jinja template with its fields; values that are not ``Markup`` are escaped."""
    return Markup(_environment().from_string(template).render(values).strip())


def render(page: Page) -> str:
    """Return the page as HTML. Plotly's script, 5 MB, is included once if there are charts."""
    template = (files("sim.page") / "page.html").read_text(encoding="utf-8")
    script = Markup(_script()) if _has_charts(page) else ""
    return _environment().from_string(template).render(page=page, plotly_js=script) + "\n"


def _has_charts(page: Page) -> bool:
    return page.picture is not None or any(
        isinstance(part, Figure) for section in page.sections for part in section.parts)


def _script() -> str:
    from plotly.offline import get_plotlyjs  # slow to load

    return get_plotlyjs()


def _columns(table: Table) -> list[Column]:
    return [each if isinstance(each, Column) else Column(each) for each in table.columns]


def _cell(value: Cell, column: Column) -> str | Markup:
    """Return a cell as it is shown."""
    if value is None:
        return Markup('<span class="none">n/a</span>')
    if isinstance(value, bool):
        return Markup('<span class="yes">yes</span>' if value else '<span class="no">no</span>')
    return value if isinstance(value, str) else format(value, column.form)


def _sort_key(value: Cell) -> str:
    """Return the number by which a cell is sorted; empty for texts and missing values."""
    return "" if value is None or isinstance(value, str) else repr(float(value))
