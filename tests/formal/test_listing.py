"""The list of proofs, and docs/verification.md, which names every proof with its reach."""

import re
import subprocess
import sys

from tests.formal.listing import HERE, Found, table
from tests.pages import DOCS

PAGE = (DOCS / "verification.md").read_text(encoding="utf-8")


def test_table():
    found = {"test_b": Found({0, 9}, 7), "test_a": Found(), "test_c": Found({4}, 2)}
    assert table(found).splitlines()[2:] == ["| `test_b` | any, 9 | 7 |", "| `test_c` | 4 | 2 |"]


def test_the_page_has_every_proof():
    done = subprocess.run([sys.executable, "-m", "tests.formal.listing"], cwd=HERE.parents[1],
                          capture_output=True, text=True, check=True)
    found = re.findall(r"^\| `(test_\w+)` \| ([^|]+) \|", done.stdout, re.MULTILINE)
    assert {name for name, _ in found} == {
        path.stem for path in HERE.glob("test_*.py")
        if path.stem not in ("test_prove", "test_listing") and "prove(" in path.read_text("utf-8")}
    assert sorted(re.findall(r"`(test_\w+)` \(([^)]+)\)", PAGE)) == sorted(found)
