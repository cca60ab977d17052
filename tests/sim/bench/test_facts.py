"""Facts of blocks are data: no fact comes from a docstring, and the product does not import the
bench."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import sim

SIM = Path(sim.__file__).parent

FACTS = """
import json
from gen.documents import documents
from rtl.config import preset
from rtl.control.csr import RegisterBlock
from sim.bench.probe import stated
from sim.nic_cpp.layout import latencies
print(json.dumps([latencies(preset("kaggle")), documents("kaggle")["latency.md"],
                  stated(RegisterBlock, "write", "answer")]))
"""


def facts(*options: str) -> list:
    """Return the facts that the model, the documents and the bench use."""
    found = subprocess.run([sys.executable, *options, "-c", FACTS], cwd=SIM.parent, check=True,
                           capture_output=True, text=True)
    return json.loads(found.stdout)


@pytest.mark.thorough
def test_facts_are_the_same_without_docstrings():
    """``-OO`` strips docstrings."""
    given = facts()
    assert facts("-OO") == given
    model, page, write = given
    assert model["ring_beats"] == 4096 and "**18**" in page and write == 6


def test_the_product_does_not_import_the_bench():
    """The exceptions are the command that runs the bench, and its function in the API."""
    found = {}
    for path in SIM.rglob("*.py"):
        name = path.relative_to(SIM).as_posix()
        if name.startswith("bench/") or name in ("api/nics.py", "cli/bench.py"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            names = ([node.module, *(f"{node.module}.{a.name}" for a in node.names)]
                     if isinstance(node, ast.ImportFrom) else
                     [a.name for a in node.names] if isinstance(node, ast.Import) else [])
            if any(n == "sim.bench" or (n or "").startswith("sim.bench.") for n in names):
                found[name] = names
    assert not found
