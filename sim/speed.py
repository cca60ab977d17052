"""How fast clusters are simulated, against the compiled model alone and Amaranth's simulator.

Times are CPU seconds, so that other work on the machine disturbs little; only what threads gain is
wall time, and says so. What is compared takes turns, as neighbours of the processors come and go,
and of repeated measures the best counts.
"""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from sim.bench_rows import Progress, Row
from sim.engines.compiled import CompiledEngine
from sim.options import RunOptions
from sim.run import Run

__all__ = ["speed_rows"]

TURNS = 8


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
    progress("the inputs of a cluster's NICs")
    bare = _Bare(options)
    several = len(os.sched_getaffinity(0)) > 1 and nodes > 1
    ones: list[_Timed] = []
    twos: list[_Timed] = []
    loops: list[_Seconds] = []
    held: list[float] = []
    pairs: list[_Seconds] = []
    for turn in range(TURNS):
        progress(f"clusters and bare loops in turn, {turn + 1} of {TURNS}")
        ones.append(_timed(Run(options)))
        loops.append(bare.replay(1))
        held.append(bare.held())
        if several:
            twos.append(_timed(Run(replace(options, threads=2))))
            pairs.append(bare.replay(2))
    one, loop = min(ones, key=_cpu), min(loops, key=_cpu)
    rate = one.cycles / one.cpu
    rows = [
        Row("cluster simulation against a bare loop", loop.cpu / one.cpu, "of its speed", 0.75,
            note=f"{config}, {nodes} nodes, one thread: {rate / 1e3:,.0f} thousand node-cycles per "
                 f"CPU second; the bare loop, with the inputs of the same run, "
                 f"{one.cycles / loop.cpu / 1e3:,.0f}; the best of {TURNS} each, in turn"),
        Row("cluster simulation against a bare loop, inputs held", min(held) / one.cpu,
            "of its speed",
            note=f"inputs as they are in the middle of the run: the NIC drains, and less of it "
                 f"moves than in a run; {one.cycles / min(held) / 1e3:,.0f} thousand cycles per "
                 f"second"),
        Row("part of a cluster simulation that is serial", one.serial, "of CPU time", 0.25, "<=",
            note="network and handing out the work; two threads gain 1.6 where it is 0.25"),
    ]
    if several:
        rows += _threads_rows(ones, twos, loops, pairs)
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


@dataclass(frozen=True)
class _Seconds:
    """On the processor, all threads together, and on the clock."""

    cpu: float
    wall: float


def _cpu(measured: _Timed | _Seconds) -> float:
    return measured.cpu


def _wall(measured: _Timed | _Seconds) -> float:
    return measured.wall


def _engines(job: Run) -> list[CompiledEngine]:
    return [node.engine for node in job.cluster.nodes if isinstance(node.engine, CompiledEngine)]


class _Bare:
    """As many evaluations as a run takes, with the inputs of the run, and nothing around them."""

    def __init__(self, options: RunOptions):
        self._options = options
        job = Run(options)
        for engine in _engines(job):
            engine.record()
        before = [engine.cycles_run for engine in _engines(job)]
        self._counters = job.execute()["counters"]
        self._stimuli = [engine.recorded() for engine in _engines(job)]
        self._cycles = [engine.cycles_run - ran for engine, ran in zip(_engines(job), before)]

    def replay(self, threads: int) -> _Seconds:
        """Evaluate all of it, a node after the other in each thread.

        ``RuntimeError`` when the NICs did not do what they did in the run.
        """
        again = Run(self._options)
        work = list(zip(_engines(again), self._stimuli))
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(bool, range(threads)))  # they are there
            wall, cpu = time.perf_counter(), time.process_time()
            list(pool.map(lambda one: one[0].replay(one[1]), work))
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        if [registers.counters() for registers in again.registers] != self._counters:
            raise RuntimeError("the recorded inputs did not lead to the counters of the run")
        return _Seconds(cpu, wall)

    def held(self) -> float:
        """Return CPU seconds of as many evaluations with the inputs of the run's middle held."""
        again = Run(self._options)
        for engine, stimulus, cycles in zip(_engines(again), self._stimuli, self._cycles):
            engine.replay(stimulus[:len(stimulus) // cycles * (cycles // 2)])
        began = time.process_time()
        for engine, cycles in zip(_engines(again), self._cycles):
            engine.run_bare(cycles)
        return time.process_time() - began


def _threads_rows(ones: list[_Timed], twos: list[_Timed], loops: list[_Seconds],
                  pairs: list[_Seconds]) -> list[Row]:
    one, two, loop, pair = (min(done, key=_wall) for done in (ones, twos, loops, pairs))
    # Alone on its processors, a run on one thread takes as long as it computes.
    alone = one.cpu / one.wall
    return [
        Row("two threads against one", one.wall / two.wall, "of its speed", 1.6,
            note=f"wall time, the best of {TURNS} each: {two.cycles / two.wall / 1e3:,.0f} "
                 f"thousand node-cycles per second on two; the run on one thread had {alone:.0%} "
                 f"of a processor, so other work "
                 f"{'hardly disturbed' if alone > 0.95 else 'disturbed the measure'}"),
        Row("two bare loops at once against one after another", loop.wall / pair.wall,
            "of its speed", note="what the machine's second processor gave at the time: wall time "
                                 f"of the same loops, the best of {TURNS} each"),
    ]


def _pysim_row(options: RunOptions, rate: float) -> Row:
    slow = _timed(Run(RunOptions(config=options.config, engine="pysim", nodes=1, samples=2,
                                 mini_batch=2, threads=1)))
    slow_rate = slow.cycles / slow.cpu
    return Row("cluster simulation against Amaranth's simulator", rate / slow_rate,
               "times its speed", 500,
               note=f"node-cycles per CPU second; {slow_rate:,.0f} on Amaranth's simulator, one "
                    f"node, {slow.cycles:,} cycles")
