"""The same run on the compiled engine and on Amaranth's simulator."""

from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path

from sim.nic.registers import RegisterFile
from sim.run.run import Run

__all__ = ["on_both_engines"]


def _some(registers: RegisterFile, names: list[str], blocks: Collection[str]) -> dict[str, int]:
    return dict.fromkeys(names, 0) | registers.read(*(
        name for name in names if name.partition(".")[0] in blocks))


def on_both_engines(make: Callable[..., Run], folder: Path, blocks: Collection[str]) -> dict:
    """Return the result of a run of a few samples; it must be the same on both engines.

    ``make`` makes the run from options. Reading counters is slow on Amaranth's simulator: only
    counters of ``blocks`` are read.
    """
    path = folder / "trace.txt"
    path.write_text("0:1 1:2 1:2 2:99 3:0\n0:1 1:2 3:6\n")
    results = []
    for engine in ("verilator", "pysim"):
        job = make(data=str(path), format="trace", placement="row", engine=engine, mini_batch=2,
                   samples=None)
        for registers in job.registers:
            registers.counters = partial(_some, registers, [
                name for name in registers.names if "." in name], blocks)
        results.append(job.execute())
    for result in results:
        for name in ("wall_seconds", "cpu_seconds", "node_cycles_per_second", "engine", "options"):
            del result[name]
    assert results[0] == results[1] and results[0]["bit_identical"]
    return results[0]
