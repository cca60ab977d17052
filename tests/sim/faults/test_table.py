"""Tables of the fault suite fit a terminal, and name errors."""

from io import StringIO

from rich.console import Console

from sim.faults.table import fault_tables

LINK = {"group": "goodput, 1,430 bytes, 10 us", "name": "0.001", "injected": 12_345,
        "sent": 2_000_000, "repeated": 12_345, "links": 4_567, "goodput": 0.953, "wrong": None}
CLUSTER = {"mode": "interaction", "nodes": 8, "kind": "duplicate", "rate": 0.001, "injected": 962,
           "repeated": 305, "cycles": 15_006_964, "calm_cycles": 15_006_964, "wrong": None}


def _lines(result: dict) -> list[str]:
    text = StringIO()
    for table in fault_tables(result):
        Console(file=text, width=80).print(table)
    return text.getvalue().splitlines()


def test_a_cell_takes_a_line():
    lines = _lines({"links": [LINK], "clusters": [CLUSTER]})
    assert not any("…" in line for line in lines)
    assert any("1,430 B, 10 us, 0.001" in line and "0.953" in line for line in lines)
    assert any("interaction" in line and "15,006,964" in line for line in lines)


def test_what_is_wrong_is_said():
    text = " ".join(_lines({"links": [LINK | {"wrong": "missing"}], "clusters": []}))
    assert "wrong" in text and "missing" in text
    assert "wrong" not in " ".join(_lines({"links": [LINK], "clusters": []}))
    assert len(_lines({"links": [], "clusters": []})) == 0
