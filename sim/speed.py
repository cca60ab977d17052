"""How fast clusters are simulated, against the compiled model alone and Amaranth's simulator.

Times are CPU seconds, so that other work on the machine disturbs little; of repeated measures the
best counts. Only what threads gain is wall time, and says so.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sim.bench_rows import Progress, Row
from sim.engines.compiled import CompiledEngine
from sim.options import RunOptions
from sim.run import Run

__all__ = ["speed_rows"]

REPEATS = 3
TURNS = 8
"""Of one thread and two: wall time is what neighbours of the second processor disturb most."""


@dataclass(frozen=True)
class _Timed:
    """A run: node-cycles evaluated, seconds on the processor and on the clock, its result."""

    cycles: int
    cpu: float
    wall: float
    result: dict

    @property
    def serial(self) -> float:
        """Share of the CPU time that is spent while nothing else is done."""
        spent = self.result["cpu_seconds"]
        return 1.0 - (spent["nics"] + spent["hosts"] + spent["checks"]) / spent["total"]


def speed_rows(progress: Progress = lambda line: None, *, config: str = "kaggle",
               samples: int = 8192, nodes: int = 4, pysim: bool = True) -> list[dict]:
    """Measure and return rows: ``name``, ``value``, ``unit``, ``target``, ``holds``, ``note``, ...

    Parameters
    ----------
    progress: called with a line on what is being measured.
    config, samples, nodes: of the run; the targets are meant for the defaults.
    pysim: whether to compare with Amaranth's simulator, which takes the longest.
    """
    options = RunOptions(config=config, samples=samples, nodes=nodes, threads=1)
    progress("a cluster on one thread")
    one = _best(lambda: _timed(Run(options)))
    progress("the same cycles in a bare loop")
    replayed, held = _bare_seconds(options)
    rate = one.cycles / one.cpu
    rows = [
        Row("cluster simulation against a bare loop", replayed / one.cpu, "of its speed", 0.75,
            note=f"{config}, {nodes} nodes, one thread: {rate / 1e3:,.0f} thousand node-cycles per "
                 f"CPU second; the bare loop, with the inputs of the same run, "
                 f"{one.cycles / replayed / 1e3:,.0f}"),
        Row("cluster simulation against a bare loop, inputs held", held / one.cpu, "of its speed",
            note=f"inputs as they are in the middle of the run: the NIC drains, and less of it "
                 f"moves than in a run; {one.cycles / held / 1e3:,.0f} thousand cycles per second"),
        Row("part of a cluster simulation that is serial", one.serial, "of CPU time", 0.25, "<=",
            note="network and handing out the work; two threads gain 1.6 where it is 0.25"),
    ]
    if len(os.sched_getaffinity(0)) > 1 and nodes > 1:
        rows.append(_threads_row(options, progress))
    if pysim:
        progress("Amaranth's simulator")
        rows.append(_pysim_row(options, rate))
    return [row.as_dict() for row in rows]


def _timed(job: Run) -> _Timed:
    engines = [node.engine for node in job.cluster.nodes]
    before = sum(engine.cycles_run for engine in engines)
    wall, cpu = time.perf_counter(), time.process_time()
    result = job.execute()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return _Timed(sum(engine.cycles_run for engine in engines) - before, cpu, wall, result)


def _best(measure: Callable[[], _Timed], key: Callable[[_Timed], float] = lambda run: run.cpu,
          ) -> _Timed:
    return min((measure() for _ in range(REPEATS)), key=key)


def _engines(job: Run) -> list[CompiledEngine]:
    return [node.engine for node in job.cluster.nodes if isinstance(node.engine, CompiledEngine)]


def _bare_seconds(options: RunOptions) -> tuple[float, float]:
    """Return CPU seconds of as many evaluations as a run takes, with nothing around them.

    First with the inputs of the run, so that the NICs go through the same states, then with those
    of its middle held.
    """
    job = Run(options)
    for engine in _engines(job):
        engine.record()
    before = [engine.cycles_run for engine in _engines(job)]
    counters = job.execute()["counters"]
    cycles = [engine.cycles_run - ran for engine, ran in zip(_engines(job), before)]
    stimuli = [engine.recorded() for engine in _engines(job)]
    del job
    replayed, held = [], []
    for _ in range(REPEATS):
        again = Run(options)
        replayed.append(_cpu_seconds(lambda one: one[0].replay(one[1]),
                                     list(zip(_engines(again), stimuli))))
        if [registers.counters() for registers in again.registers] != counters:
            raise RuntimeError("the recorded inputs did not lead to the counters of the run")
        again = Run(options)
        for engine, stimulus, count in zip(_engines(again), stimuli, cycles):
            engine.replay(_first_half(stimulus, count))
        held.append(_cpu_seconds(lambda one: one[0].run_bare(one[1]),
                                 list(zip(_engines(again), cycles))))
    return min(replayed), min(held)


def _first_half(stimulus: np.ndarray, cycles: int) -> np.ndarray:
    return stimulus[:len(stimulus) // cycles * (cycles // 2)]


def _cpu_seconds(work: Callable[[tuple], None], items: list[tuple]) -> float:
    began = time.process_time()
    for item in items:
        work(item)
    return time.process_time() - began


def _threads_row(options: RunOptions, progress: Progress) -> Row:
    """Compare two threads with one: the runs take turns, as other work comes and goes."""
    runs: dict[int, list[_Timed]] = {1: [], 2: []}
    for turn in range(TURNS):
        progress(f"one thread and two in turn, {turn + 1} of {TURNS}")
        for threads, done in runs.items():
            done.append(_timed(Run(RunOptions(
                config=options.config, samples=options.samples, nodes=options.nodes,
                threads=threads))))
    one, two = (min(done, key=lambda run: run.wall) for done in runs.values())
    # Alone on its processors, a run on one thread takes as long as it computes.
    alone = one.cpu / one.wall
    return Row("two threads against one", one.wall / two.wall, "of its speed", 1.6,
               note=f"wall time, the best of {TURNS} each: {two.cycles / two.wall / 1e3:,.0f} "
                    f"thousand node-cycles per second on two; the run on one thread had "
                    f"{alone:.0%} of a processor, so other work "
                    f"{'hardly disturbed' if alone > 0.95 else 'disturbed the measure'}")


def _pysim_row(options: RunOptions, rate: float) -> Row:
    slow = _timed(Run(RunOptions(config=options.config, engine="pysim", nodes=1, samples=2,
                                 mini_batch=2, threads=1)))
    slow_rate = slow.cycles / slow.cpu
    return Row("cluster simulation against Amaranth's simulator", rate / slow_rate,
               "times its speed", 500,
               note=f"node-cycles per CPU second; {slow_rate:,.0f} on Amaranth's simulator, one "
                    f"node, {slow.cycles:,} cycles")
