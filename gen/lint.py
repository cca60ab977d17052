"""Check generated Verilog with Verilator's lint."""

from collections.abc import Sequence
from pathlib import Path

from gen.tools import run_verilator

__all__ = ["WAIVED", "lint"]

WAIVED = {
    "CASEINCOMPLETE": "what a case assigns has its value from the statement before it",
    "DECLFILENAME": "all modules of a design are in one file",
    "INITIALDLY": "what starts the processes changes when all of them wait, not before",
    "PROCASSINIT": "a register has a value at power-up and after reset, which FPGAs give both",
    "WIDTHEXPAND": "Yosys leaves it to Verilog's rules to extend the shorter operand",
    "WIDTHTRUNC": "Yosys writes !x for x == 0, which lint takes for a truncation",
    "SYNCASYNCNET": "a FIFO between clocks is emptied by the reset of either, as it comes",
    "SYMRSVDWORD": "a kernel's port has the name that Vitis gives it, interrupt",
    "UNUSEDSIGNAL": "a submodule's port that its user leaves open stays a named signal",
}
"""Warnings that are left off, and why; every other warning of ``-Wall`` is an error."""


def lint(files: Sequence[Path], top: str) -> None:
    """Check module ``top`` of ``files``; ``BuildError`` says what is wrong."""
    run_verilator(["--lint-only", "-Wall", *(f"-Wno-{name}" for name in WAIVED),
                   "--no-timing", "--top-module", top, *(str(path.resolve()) for path in files)],
                  cwd=Path.cwd())
