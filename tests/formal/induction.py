"""Prove a bench by induction alone: its statements are the invariant."""

import inspect
import json
import re
import sys
from functools import partial

from amaranth.back import rtlil
from amaranth.hdl import Signal

from gen.base.cache import cached, digest
from gen.base.yosys import yosys_id
from gen.verilog.collector import collect_later
from tests.formal.bench import Bench
from tests.formal.prove import Verdict, _search

__all__ = ["by_induction"]

_SEARCH = inspect.getsource(sys.modules[_search.__module__])


def by_induction(bench: Bench, *, seconds: int = 300) -> Verdict:
    """Prove that all statements hold at first, and in a cycle if they held in the previous one.

    They then hold in runs of any length. In the previous cycle, registers and memories have any
    contents for which the statements hold. ``pdr`` must find an invariant; here the statements must
    be a complete invariant, and a single search suffices.

    If a verdict does not hold, ``depth`` is 1 if the statements do not hold at first. Otherwise the
    statements may hold, but are not inductive.

    Raises the exceptions of :func:`tests.formal.prove.prove`.
    """
    m, first, before = bench.m, Signal(init=1, name="at_first"), Signal(name="held_before")
    ends = {name: Signal(name=f"broken_{name}_in_turn") for name in bench.broken}
    m.d.comb += [end.eq(bench.broken[name] & (first | before)) for name, end in ends.items()]
    m.d.sync += [first.eq(0), before.eq(~Bench.any_of(bench.broken.values()))]
    with collect_later():
        text = rtlil.convert(m, name="bench", emit_src=False, ports=[
            bench.clock.clk, *bench.inputs, *ends.values()])
    base = _found(text, 1, bench, seconds)
    return _found(_any_state(text), 2, bench, seconds) if base.holds else base


def _any_state(text: str) -> str:
    """Return the netlist with arbitrary initial registers, except those that mark the first cycle.
    """
    lines, result = text.splitlines(keepends=True), []
    for line, following in zip(lines, [*lines[1:], ""]):
        if "attribute \\init" in line:
            if re.search(r"\\at_first\b", following):
                line = line.replace("1'1", "1'0")
            elif not re.search(r"\\held_before\b", following):
                continue
        result.append(line)
    return "".join(result)


def _found(text: str, depth: int, bench: Bench, seconds: int) -> Verdict:
    """Return the verdict of a search of the first ``depth`` cycles."""
    search = f"bmc3 -F {depth} -T {seconds}"
    key = digest(["proof", yosys_id(), _SEARCH, search, text])
    free = {signal.name for signal in bench.inputs}
    entry = cached(f"proof-{key}", partial(_search, text, search, free, depth))
    found = json.loads((entry / "verdict.json").read_text())
    return Verdict(found["holds"], None if found["holds"] else depth, tuple(
        name.removesuffix("_in_turn") for name in found["broken"]), tuple(found["inputs"]))
