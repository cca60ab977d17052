"""docs/library.md: its code, run from top to bottom, prints what the page says."""

import contextlib
import io
import re
from pathlib import Path

from gen.lint import lint

PAGE = Path(__file__).parents[1] / "docs" / "library.md"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_page_is_true(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "library_page"}
    printed, shown = "", 0
    for number, (kind, text) in enumerate(BLOCK.findall(PAGE.read_text(encoding="utf-8"))):
        if kind == "python":
            assert printed == "", "what a block prints stands under it"
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(text, f"{PAGE.name}, block {number}", "exec"), names)
            printed = out.getvalue()
        else:
            assert (kind, printed) == ("text", text)
            printed, shown = "", shown + 1
    assert printed == "" and shown == 2
    lint([tmp_path / "squares.v"], "squares")
