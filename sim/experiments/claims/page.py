"""The page of results: claims, figures, what they hang on; one file with its pictures inside."""

import base64
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

import jinja2

__all__ = ["embedded", "render"]


def embedded(picture: str | Path) -> str:
    """Return a PNG as an address that holds it."""
    return "data:image/png;base64," + base64.b64encode(Path(picture).read_bytes()).decode()


def render(content: Mapping) -> str:
    """Return the page as HTML.

    ``content`` holds what ``page.html`` names, see :func:`sim.experiments.reproduce.content_of`.
    """
    template = files("sim.experiments.claims") / "page.html"
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True,
                                     undefined=jinja2.StrictUndefined)
    environment.filters["png"] = embedded
    return environment.from_string(template.read_text(encoding="utf-8")).render(content)
