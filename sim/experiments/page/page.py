"""The page of results as one HTML file with embedded pictures."""

import base64
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

import jinja2
from markupsafe import Markup

from sim.experiments.figures.section import Section

__all__ = ["embedded", "render"]


def embedded(picture: str | Path) -> str:
    """Return a PNG as a data URL."""
    return "data:image/png;base64," + base64.b64encode(Path(picture).read_bytes()).decode()


def render(content: Mapping) -> str:
    """Return the page as HTML.

    ``content``: fields of ``page.html``, see :func:`sim.experiments.page.content.content_of`.
    """
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True,
                                     undefined=jinja2.StrictUndefined)

    def html(section: Section) -> Markup:
        return Markup(environment.from_string(section.template).render(section.values).strip())

    environment.filters |= {"png": embedded, "html": html}
    template = files("sim.experiments.page") / "page.html"
    return environment.from_string(template.read_text(encoding="utf-8")).render(content)
