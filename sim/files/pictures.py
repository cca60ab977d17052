"""Pictures, written atomically."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gen.base.files import written_whole

if TYPE_CHECKING:  # slow to load
    from matplotlib.figure import Figure

__all__ = ["write_picture"]


def write_picture(figure: Figure, path: str | PathLike[str], **given: Any) -> None:
    """Write ``figure`` to ``path`` atomically, in the format of its suffix.

    ``given``: further arguments of :meth:`matplotlib.figure.Figure.savefig`. ``OSError`` names
    ``path``.
    """
    with written_whole(path) as file:
        figure.savefig(file, format=Path(path).suffix[1:], **given)
