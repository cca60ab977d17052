"""Files that a command writes: checked before the work begins, written when it ends."""

import json
import os
import sys
from pathlib import Path

__all__ = ["check_picture", "check_writable", "write_json"]


def check_writable(path: str | None, field: str) -> None:
    """Raise ``ValueError`` unless a file can be written at ``path`` (``-`` is standard output)."""
    if path in (None, "-"):
        return
    target = Path(path)
    if target.is_dir():
        raise ValueError(f"{field} must be a file, not the folder {path!r}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"{field} cannot be written: {path}: {error.strerror}") from None
    where = target if target.exists() else target.parent
    if not os.access(where, os.W_OK):
        raise ValueError(f"{field} cannot be written: {path}: permission denied")


def check_picture(path: str | None) -> None:
    """Raise ``ValueError`` unless a picture can be written at ``path``, or it is None."""
    check_writable(path, "picture")
    if path and Path(path).suffix not in (".png", ".svg", ".pdf"):
        raise ValueError(f"picture must end in .png, .svg or .pdf, not {path!r}")


def write_json(result: dict, path: str | None) -> None:
    """Write ``result`` to a file, to standard output for ``-``, or nowhere for None."""
    if not path:
        return
    text = json.dumps(result, indent=1) + "\n"
    if path == "-":
        sys.stdout.write(text)
    else:
        Path(path).write_text(text)
