"""docs/start.md: its commands run as they stand, and print its output."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import DOCS

pytestmark = pytest.mark.every

_BLOCK = re.compile(r"^```\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _cells(text: str) -> list[str]:
    """Return the lines of ``text`` with single spaces."""
    return [" ".join(line.split()) for line in text.splitlines()]


def test_the_page_prints_its_output(tmp_path):
    """With fidelity ``fast``, whose figures equal those of RTL."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "PYTHONPATH": str(DOCS.parent), "COLUMNS": "100"}
    printed: list[str] = []
    shown = 0
    for block in _BLOCK.findall((DOCS / "start.md").read_text(encoding="utf-8")):
        if block.startswith(("cat ", "python ")):
            command = block.replace("sim run", "sim run --fidelity fast")
            done = subprocess.run(["bash", "-ec", command], cwd=tmp_path, env=environment,
                                  capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, done.stderr
            printed = _cells(done.stdout)
            continue
        for line in _cells(block):
            # A model computes no values, so it compares none.
            if "bit-identical" not in line:
                assert line in printed
                shown += 1
    assert shown == 7
