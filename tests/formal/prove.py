"""Prove a bench: Yosys writes it as an and-inverter graph, and ABC in Yosys searches for a
violation."""

import json
import re
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from amaranth.back import rtlil

from gen.base.cache import cached, digest
from gen.base.yosys import run_yosys, yosys_id
from gen.verilog.collector import collect_later
from tests.formal.bench import Bench

__all__ = ["Verdict", "prove"]

# Memories become registers without an initial value, which the solver may choose: by the contract
# of rtl.memory.Ram, contents are undefined until written. Yosys must not choose instead, so no pass
# that reasons about registers is called. Logic without effect on a statement is removed. With a
# removed register, the initial value of its wire is removed too, because it would become a constant
# with two values.
_TO_GRAPH = """
read_rtlil bench.il
delete t:$meminit_v2
hierarchy -top bench
proc -noopt
flatten
opt_expr -keepdc
opt_clean
memory_collect
memory_map
opt_expr -keepdc
opt_clean
formalff -clk2ff
dffunmap
techmap
setattr -unset init a:init t:$_*FF*_ %co1:+[Q] w:* %i %d
setundef -undriven -zero
aigmap
opt_expr -keepdc
opt_clean
delete -port bench/clk
write_aiger -zinit -miter -symbols -map bench.map bench.aig
design -reset
"""

# Yosys calls ABC to map a netlist and reads the result back. It gets a dummy netlist, which is
# restored.
_CALL_ABC = """
read_verilog <<END
module aside(input a, b, output c); assign c = a & b; endmodule
END
techmap
abc -script abc.script
"""


@dataclass(frozen=True)
class Verdict:
    """Result of a proof.

    holds: no inputs break a statement or, for a bounded search, none in the first ``depth`` cycles.
    depth: cycles searched; None for an unbounded proof.
    broken: the statements that a violation breaks, in the last of its cycles.
    inputs: the violation: for each cycle, the free signals that are not 0.
    """

    holds: bool
    depth: int | None = None
    broken: tuple[str, ...] = ()
    inputs: tuple[dict[str, int], ...] = ()

    def __str__(self) -> str:
        if self.holds:
            return f"holds for {self.depth} cycles" if self.depth else "proved"
        steps = "\n".join(f"  {cycle}: {values}" for cycle, values in enumerate(self.inputs))
        return f"broken: {', '.join(self.broken)}\n{steps}"


def prove(bench: Bench, *, depth: int | None = None, seconds: int = 300) -> Verdict:
    """Prove every statement of ``bench``, or search ``depth`` cycles for a violation.

    Without ``depth``, use property-directed reachability (ABC's ``pdr``; A. R. Bradley, "SAT-Based
    Model Checking without Unrolling", VMCAI 2011). It finds an inductive invariant, so the result
    holds for runs of any length. With ``depth``, use bounded model checking (``bmc3``).

    Results are cached by the netlist and the versions of the tools.

    Raises ``TimeoutError`` if ``seconds`` are not enough, ``gen.base.yosys.YosysError`` if Yosys
    fails.
    """
    ports = [bench.clock.clk, *bench.inputs, *bench.broken.values()]
    with collect_later():
        text = rtlil.convert(bench.m, name="bench", ports=ports, emit_src=False)
    # Merging registers that are always equal helps with unrolled cycles.
    search = f"scorr\ndc2\nbmc3 -F {depth} -T {seconds}" if depth else f"pdr -T {seconds}"
    key = digest(["proof", yosys_id(), Path(__file__).read_text(), search, text])
    entry = cached(f"proof-{key}", partial(
        _search, text, search, {signal.name for signal in bench.inputs}, depth))
    found = json.loads((entry / "verdict.json").read_text())
    return Verdict(found["holds"], found["depth"], tuple(found["broken"]), tuple(found["inputs"]))


def _search(text: str, search: str, free: set[str], depth: int | None, folder: Path) -> None:
    """Write the result into ``folder``; raise ``TimeoutError`` without a result."""
    (folder / "bench.il").write_text(text)
    (folder / "abc.script").write_text("\n".join([
        "backup", "read_aiger bench.aig", "strash", "dc2", search, "write_status status",
        "write_cex -n cex", "restore", "strash", ""]))
    run_yosys(_TO_GRAPH + _CALL_ABC, cwd=folder)
    answer, cycles = (folder / "status").read_text().split()[:2]
    if answer == "snl_SAT":
        verdict = _violation((folder / "cex").read_text(), free)
    elif answer == "snl_UNSAT" or (depth and int(cycles) >= depth - 1):
        verdict = Verdict(True, depth)
    else:
        raise TimeoutError(f"no answer in {search.split()[-1]} s; the first {cycles} cycles are "
                           "searched")
    for path in folder.iterdir():
        path.unlink()
    (folder / "verdict.json").write_text(json.dumps(asdict(verdict)))


def _violation(text: str, free: set[str]) -> Verdict:
    """Parse ABC's list of ``name@cycle=bit``; names of wider signals have ``[bit]``."""
    broken: list[str] = []
    steps: list[dict[str, int]] = []
    for line in text.splitlines():
        if line.startswith("# FALSIFYING OUTPUTS:"):
            broken = [name.removeprefix("broken_") for name in line.split(":")[1].split()]
        found = re.fullmatch(r"(\w+?)(?:\[(\d+)\])?@(\d+)=([01])", line)
        if found and found[1] in free:
            name, bit, cycle, value = found.groups()
            steps += [{} for _ in range(int(cycle) + 1 - len(steps))]
            if value == "1":
                step = steps[int(cycle)]
                step[name] = step.get(name, 0) | 1 << int(bit or 0)
    return Verdict(False, None, tuple(broken), tuple(steps))
