"""Lint of generated Verilog with Verilator."""

from collections.abc import Sequence
from pathlib import Path

from gen.base.tools import run_verilator

__all__ = ["WAIVED", "lint"]

WAIVED = {
    "CASEINCOMPLETE": "a case's targets are assigned by the statement before it",
    "DECLFILENAME": "all modules of a design are in one file",
    "INITIALDLY": "the signal that starts processes must change after all of them wait",
    "PROCASSINIT": "a register has a value at power-up and after reset, which FPGAs support",
    "WIDTHEXPAND": "Yosys relies on Verilog's rules to extend the shorter operand",
    "WIDTHTRUNC": "Yosys writes !x for x == 0, which lint takes for a truncation",
    "SYNCASYNCNET": "a FIFO between clocks is emptied by the asynchronous reset of either side",
    "SYMRSVDWORD": "a kernel's port has the name that Vitis gives it, interrupt",
    "UNUSEDSIGNAL": "an unconnected submodule port stays a named signal",
}
"""Disabled warnings with the reason for each; every other warning of ``-Wall`` is an error."""


def lint(files: Sequence[Path], top: str) -> None:
    """Check module ``top`` of ``files``. Raises ``BuildError`` with the warnings."""
    run_verilator(["--lint-only", "-Wall", *(f"-Wno-{name}" for name in WAIVED),
                   "--no-timing", "--top-module", top, *(str(path.resolve()) for path in files)],
                  cwd=Path.cwd())
