"""The list of proofs: its content, and docs/proofs.md contains every proof and contract."""

from tests.formal.listing import HERE, Found, contracts, table
from tests.pages import DOCS

PAGE = (DOCS / "proofs.md").read_text(encoding="utf-8")


def test_table():
    found = {"test_b": Found("Proof of b.", {0, 9}, 7), "test_a": Found("Others."),
             "test_c": Found("Proofs of c.", {4}, 2)}
    assert table(found, {"test_b": [2.4, 1.6, 3, 3]}).splitlines()[2:] == [
        "| b. (`tests/formal/test_b.py`) | any run; 9 cycles | 2 s, mutants 2 s | 7 | 3 of 3 |",
        "| c. (`tests/formal/test_c.py`) | 4 cycles | | 2 | |"]


def test_the_page_has_every_proof():
    for path in HERE.glob("test_*.py"):
        if path.stem not in ("test_prove", "test_listing") and "prove(" in path.read_text("utf-8"):
            assert f"(`tests/formal/{path.name}`)" in PAGE, path.name


def test_the_page_has_the_contracts():
    assert contracts() in PAGE
