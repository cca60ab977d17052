"""The page on security names existing tests."""

import re

from tests.pages import DOCS

_NAMED = re.compile(r"`(test_\w+)`(?:(?!`test_)[^;:|])*?`(tests/[\w/]+\.py)`")


def test_each_line_names_a_test_of_the_file():
    text = (DOCS / "security.md").read_text(encoding="utf-8")
    named = _NAMED.findall(text)
    assert len(named) >= 20
    assert {name for name, _ in named} >= set(re.findall(r"`(test_\w+)`", text))
    for name, path in named:
        source = (DOCS.parent / path).read_text(encoding="utf-8")
        assert f"def {name}(" in source, f"{path} has no {name}"
