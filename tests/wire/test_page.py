"""The page on security makes the statements of the claims, whose tests exist."""

import pytest

from tests.pages import DOCS
from tests.wire.claims import CLAIMS

PAGE = (DOCS / "security.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("who", CLAIMS)
def test_each_line_of_the_page_has_tests(who):
    [line] = [line for line in PAGE.splitlines() if line.startswith((f"| **{who}**", f"| {who} |"))]
    for effect, files in CLAIMS[who].items():
        assert effect in line
        for path, names in files.items():
            source = (DOCS.parent / path).read_text(encoding="utf-8")
            for name in names:
                assert f"def {name}(" in source, f"{path} has no {name}"


def test_each_attacker_of_the_page_has_claims():
    assert PAGE.count("\n| **") + PAGE.count("\n| the same,") == len(CLAIMS)
