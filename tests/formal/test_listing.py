"""The list of proofs, and the page of this folder, which contains it."""

import re
import subprocess
import sys

from tests.formal.listing import HERE, Found, property_of, table


def test_table():
    found = {"test_b": Found("b: is", {0, 9}, 7), "test_a": Found(), "test_c": Found("c", {4}, 2)}
    assert table(found).splitlines()[2:] == ["| `test_b` | b: is | any, 9 | 7 |",
                                             "| `test_c` | c | 4 | 2 |"]


def test_property():
    assert property_of("Proof of the pool, without bound: no\n``beat`` is lost.\n\nTwo beats.") \
        == "pool: no `beat` is lost"


def test_the_page_has_every_proof():
    """If this fails, run ``python -m tests.formal.listing > tests/formal/README.md``."""
    done = subprocess.run([sys.executable, "-m", "tests.formal.listing"], cwd=HERE.parents[1],
                          capture_output=True, text=True, check=True)
    assert done.stdout == (HERE / "README.md").read_text("utf-8")
    assert set(re.findall(r"^\| `(test_\w+)`", done.stdout, re.MULTILINE)) == {
        path.stem for path in HERE.glob("test_*.py")
        if path.stem not in ("test_prove", "test_listing") and "prove(" in path.read_text("utf-8")}
