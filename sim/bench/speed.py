"""Speed of the cluster simulation against the bare compiled model and Amaranth's simulator.

Times are CPU seconds, which depend little on other work on the machine. Only the gain of threads is
measured in wall time; its rows state it. The candidates run in turns, because the load of the
machine changes: a processor that shares its core is half as fast while its sibling is busy. A row
is the median of the ratios within each turn. The ratio of the best times would compare different
loads.
"""

import os
import time
from dataclasses import dataclass
from statistics import median

from sim.bench.rows import Progress, Row
from sim.cluster.crew import Crew
from sim.engines.compiled import CompiledEngine
from sim.job.options import RunOptions
from sim.run.run import Run

__all__ = ["speed_rows"]

TURNS = 8


@dataclass(frozen=True)
class _Timed:
    """A timed run: node-cycles evaluated, CPU seconds, wall seconds, and its result."""

    cycles: int
    cpu: float
    wall: float
    result: dict

    @property
    def serial(self) -> float:
        """Serial share of the CPU time: all but NICs, hosts, checks and inputs."""
        spent = self.result["cpu_seconds"]
        return 1.0 - sum(spent[part] for part in (
            "nics", "hosts", "checks", "inputs")) / spent["total"]


def speed_rows(progress: Progress = lambda line: None, *, config: str = "kaggle",
               samples: int = 8192, nodes: int = 4, pysim: bool = True) -> list[dict]:
    """Measure and return rows: ``name``, ``value``, ``unit``, ``target``, ``holds``, ``note``, ...

    Parameters
    ----------
    progress: called with a line on the current measurement.
    config, samples, nodes: options of the run; the targets apply to the defaults.
    pysim: whether to compare with Amaranth's simulator, which takes longest.
    """
    options = RunOptions.of(config=config, samples=samples, nodes=nodes, threads=1)
    progress("the inputs of a cluster's NICs")
    bare = _Bare(options)
    several = len(os.sched_getaffinity(0)) > 1 and nodes > 1
    turns = []
    for number in range(TURNS):
        progress(f"clusters and bare loops in turn, {number + 1} of {TURNS}")
        turns.append(_Turn.take(options, bare, several))
    ones = [turn.one for turn in turns]
    cycles = ones[0].cycles
    rate = cycles / median(one.cpu for one in ones)
    rows = [
        _ratio("cluster simulation against a bare loop",
               [turn.loop.cpu / turn.one.cpu for turn in turns], 0.75,
               f"{config}, {nodes} nodes, one thread: {rate / 1e3:,.0f} thousand node-cycles per "
               f"CPU second; the bare loop, with the inputs of the same run, "
               f"{cycles / median(turn.loop.cpu for turn in turns) / 1e3:,.0f}"),
        _ratio("cluster simulation against a bare loop, inputs held",
               [turn.held / turn.one.cpu for turn in turns], None,
               f"inputs as they are in the middle of the run: the NIC drains, and less of it "
               f"moves than in a run; {cycles / median(turn.held for turn in turns) / 1e3:,.0f} "
               f"thousand cycles per second"),
        Row("part of a cluster simulation that is serial", median(one.serial for one in ones),
            "of CPU time", 0.25, "<=",
            note="network and handing out the work; two threads gain 1.6 where it is 0.25"),
    ]
    if several:
        rows += _threads_rows(turns)
    if pysim:
        progress("Amaranth's simulator")
        rows.append(_pysim_row(options, rate))
    return [row.as_dict() for row in rows]


def _ratio(name: str, ratios: list[float], target: float | None, note: str) -> Row:
    return Row(name, median(ratios), "of its speed", target,
               note=f"{note}; the median of {len(ratios)} turns, from {min(ratios):.2f} to "
                    f"{max(ratios):.2f}")


def _timed(job: Run) -> _Timed:
    engines = [node.engine for node in job.cluster.nodes]
    before = sum(engine.cycles_run for engine in engines)
    wall, cpu = time.perf_counter(), time.process_time()
    result = job.execute()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return _Timed(sum(engine.cycles_run for engine in engines) - before, cpu, wall, result)


@dataclass(frozen=True)
class _Seconds:
    """CPU seconds of all threads together, and wall seconds."""

    cpu: float
    wall: float


def _engines(job: Run) -> list[CompiledEngine]:
    return [node.engine for node in job.cluster.nodes if isinstance(node.engine, CompiledEngine)]


class _Bare:
    """A bare loop: only the evaluations of a run, with its recorded inputs."""

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
        """Replay all nodes, each thread one node at a time.

        ``RuntimeError`` if the NICs behave differently from the run.
        """
        again = Run(self._options)
        work = list(zip(_engines(again), self._stimuli))
        with Crew(work, threads) as crew:
            wall, cpu = time.perf_counter(), time.process_time()
            crew.each(lambda one: one[0].replay(one[1]))
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


@dataclass(frozen=True)
class _Turn:
    """One turn of measurements: a run on one thread, the bare loop, the bare loop with inputs held,
    and run and bare loop on two threads."""

    one: _Timed
    loop: _Seconds
    held: float
    two: _Timed | None
    pair: _Seconds | None

    @classmethod
    def take(cls, options: RunOptions, bare: _Bare, several: bool) -> "_Turn":
        return cls(_timed(Run(options)), bare.replay(1), bare.held(),
                   _timed(Run(options.with_fields(threads=2))) if several else None,
                   bare.replay(2) if several else None)


def _threads_rows(turns: list[_Turn]) -> list[Row]:
    ones, twos = [turn.one for turn in turns], [turn.two for turn in turns if turn.two]
    loops, pairs = [turn.loop for turn in turns], [turn.pair for turn in turns if turn.pair]
    # On an undisturbed processor, the wall time of a run on one thread equals its CPU time.
    alone = median(one.cpu / one.wall for one in ones)
    gains = [one.wall / two.wall for one, two in zip(ones, twos)]
    machine = [loop.wall / pair.wall for loop, pair in zip(loops, pairs)]
    return [
        _ratio("two threads against one", gains, 1.6,
               f"wall time: {median(two.cycles / two.wall for two in twos) / 1e3:,.0f} thousand "
               f"node-cycles per second on two; the run on one thread had {alone:.0%} of a "
               f"processor, so other work "
               f"{'hardly disturbed' if alone > 0.95 else 'disturbed the measure'}"),
        _ratio("two bare loops at once against one after another", machine, None,
               "gain of the machine's second processor at the time, without shared data: wall time "
               "of the same loops"),
        _ratio("two threads against one, of what two bare loops gain",
               [gain / whole for gain, whole in zip(gains, machine)], None,
               "share of the second processor's gain that a cluster reaches"),
    ]


def _pysim_row(options: RunOptions, rate: float) -> Row:
    slow = _timed(Run(RunOptions.of(config=options.workload.config, engine="pysim", nodes=1,
                                    samples=2, mini_batch=2, threads=1)))
    slow_rate = slow.cycles / slow.cpu
    return Row("cluster simulation against Amaranth's simulator", rate / slow_rate,
               "times its speed", 500,
               note=f"node-cycles per CPU second; {slow_rate:,.0f} on Amaranth's simulator, one "
                    f"node, {slow.cycles:,} cycles")
