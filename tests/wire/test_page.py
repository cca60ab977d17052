"""The page on security names existing tests."""

import re

from tests.pages import DOCS


def _named(text: str) -> set[tuple[str, str]]:
    """Return each test that ``text`` names, with the file or files named after it."""
    named, names, paths = set(), [], False
    for name, path in re.findall(r"`(test_\w+)`|`(tests/[\w/]+\.py)`", text):
        if path:
            named |= {(each, path) for each in names}
        else:
            names = [*([] if paths else names), name]
        paths = bool(path)
    return named


def test_each_line_names_a_test_of_the_file():
    text = (DOCS / "security.md").read_text(encoding="utf-8")
    named = {pair for line in text.splitlines() for pair in _named(line)}
    assert len(named) >= 20
    assert {name for name, _ in named} == set(re.findall(r"`(test_\w+)`", text))
    for name, path in named:
        source = (DOCS.parent / path).read_text(encoding="utf-8")
        assert f"def {name}(" in source, f"{path} has no {name}"
