"""docs/library.md: its code, run from top to bottom, prints the output on the page."""

from gen.verilog.lint import lint
from tests.pages import run_page


def test_the_page_is_true(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_page("library.md") == 1
    lint([tmp_path / "squares.v"], "squares")
