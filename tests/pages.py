"""Pages whose code is run: each block of Python, and the output that the page shows for it."""

import contextlib
import io
import re
from pathlib import Path

__all__ = ["DOCS", "run_page", "script_of"]

DOCS = Path(__file__).parents[1] / "docs"

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def script_of(name: str) -> str:
    """Return the first block of Python of a page."""
    blocks = _BLOCK.findall((DOCS / name).read_text(encoding="utf-8"))
    return next(text for kind, text in blocks if kind == "python")


def run_page(name: str) -> int:
    """Run the Python of a page from top to bottom; return how many outputs the page shows.

    Blocks without a language are shell commands, and are not run. Raises ``AssertionError`` if a
    block prints another output than the page shows.
    """
    page = DOCS / name
    names: dict[str, object] = {"__name__": page.stem}
    printed, shown = "", 0
    for number, (kind, text) in enumerate(_BLOCK.findall(page.read_text(encoding="utf-8"))):
        if kind == "python":
            assert printed == "", "what a block prints stands under it"
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(text, f"{name}, block {number}", "exec"), names)
            printed = out.getvalue()
        elif kind or printed:
            assert (kind, printed) == ("text", text)
            printed, shown = "", shown + 1
    assert printed == ""
    return shown
