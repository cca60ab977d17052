"""Delay in ps of the worst path through each block, as recorded in ``baseline.json``.

The file contains designs by name, their blocks, and three integers per block: with optimistic,
middle and pessimistic nets. Update it in the commit that changes the delays, by::

    python -m tests.gen.timing.baseline [parts] [repeats] [tiny]
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from amaranth.lib import wiring

from gen.base.yosys import yosys_id
from gen.documents.generate import build_nic
from gen.timing.report import report_timing
from gen.verilog.convert import to_verilog
from gen.verilog.platform import VerilogPlatform
from rtl.config import preset
from tests.gen.designs import deep_blocks, repeat_blocks

__all__ = ["CASES", "DESIGNS", "RENEW", "measured", "recorded"]

CASES = ("optimistic", "middle", "pessimistic")
DESIGNS: dict[str, tuple[str, Callable[[], wiring.Component]]] = {
    "parts": ("deep", deep_blocks), "repeats": ("repeats", repeat_blocks),
    "tiny": ("tiny", lambda: build_nic(preset("tiny"))),
}
"""Designs by name: the name of the top, and the function that makes it."""
RENEW = "python -m tests.gen.timing.baseline"

_FILE = Path(__file__).with_name("baseline.json")


def measured(name: str) -> dict[str, Any]:
    """Return the blocks of a design in the form of the file, and the Yosys that mapped them."""
    top, build = DESIGNS[name]
    report = report_timing(to_verilog(build(), top, VerilogPlatform(top, sources=True)))
    return {"yosys": yosys_id(), "blocks": {
        block["name"]: [round(block[case]["ps"]) for case in CASES]
        for block in sorted(report["blocks"], key=lambda block: block["name"])}}


def recorded(name: str) -> dict[str, Any]:
    """Return the recorded blocks of a design."""
    return json.loads(_FILE.read_text(encoding="utf-8"))[name]


def _write(found: dict[str, Any]) -> None:
    designs = ",\n".join(
        f'  {json.dumps(name)}: {{\n    "yosys": {json.dumps(one["yosys"])},\n    "blocks": {{\n'
        + ",\n".join(f"      {json.dumps(block)}: {json.dumps(ps)}"
                     for block, ps in one["blocks"].items())
        + "\n    }\n  }" for name, one in found.items())
    _FILE.write_text(f"{{\n{designs}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    chosen = sys.argv[1:] or list(DESIGNS)
    _write({name: measured(name) if name in chosen else recorded(name) for name in DESIGNS})
