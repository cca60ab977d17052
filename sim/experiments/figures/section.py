"""Sections of the page: content of a figure or table besides its picture."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from sim.page.html import filled
from sim.page.rows import Row

__all__ = ["Section", "section_of_rows"]

_ROWS = """\
<h2>{{ title }}</h2>
<table>
<tr><th>system</th><th>data set</th><th>cluster</th><th>mini-batch</th><th>software</th>
<th>metric</th><th>value</th></tr>
{% for row in rows %}
<tr><td>{{ row.system }}</td><td>{{ row.workload }}</td><td>{{ row.cluster }}</td>
<td>{{ "{:,}".format(row.mini_batch) }}</td><td>{{ row.profile }}</td><td>{{ row.metric }}</td>
<td class="n">{{ "n/a" if row.value is none else "%.3f" | format(row.value) }}</td></tr>
{% endfor %}
</table>
{% for name, text in notes %}
<p class="about"><b>{{ name }}</b>: {{ text }}.</p>
{% endfor %}
"""


@dataclass(frozen=True)
class Section:
    """A section of the page, below the figures.

    Members
    -------
    template: HTML with Jinja's fields. values: values of the fields.
    """

    template: str
    values: Mapping

    @property
    def html(self) -> Markup:
        """The section as HTML."""
        return filled(self.template, self.values)


def section_of_rows(title: str, rows: Sequence[Row],
                    notes: Sequence[tuple[str, str]] = ()) -> Section:
    """Return a section with a table of rows and, below it, ``notes``: names and explanations."""
    return Section(_ROWS, {"title": title, "rows": rows, "notes": notes})
