"""One run: samples through a cluster, every result checked, everything measured."""

import hashlib
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict

import numpy as np

from host.dlrm import Dlrm
from host.gpu import GpuProfile
from host.mlp import linear_fixed
from host.model import Model
from host.network import Network, NetworkProfile
from host.pcie import PcieProfile
from host.profile import load_profile
from host.rows import row_values
from host.samples import Samples
from host.shard import ShardPlan
from host.timing import CYCLE_NS
from rtl.config import LANES, NicConfig, preset
from sim.build import NicModel
from sim.cluster import Cluster, Observer, StuckError
from sim.linear import linear_compiled
from sim.node import Node
from sim.options import RunOptions
from sim.report import summary
from sim.results import Step, StepResult
from sim.settings import apply_settings
from sim.source import GENERATED, choose_model, mini_batches

__all__ = ["Run", "run"]

Progress = Callable[[int, int], None]
"""Called with samples answered and nodes' cycle now and then."""


def run(options: RunOptions, progress: Progress = lambda done, cycle: None) -> dict:
    """Run a cluster as ``options`` say and return what was measured.

    Raises
    ------
    ValueError
        Options that do not fit each other or the hardware, or an input file that cannot be read
        (:class:`host.errors.InputError`).
    """
    return Run(options).execute(progress)


class Run:
    """A cluster set up for a run."""

    def __init__(self, options: RunOptions):
        self.options = options
        self.config, self.runtime = apply_settings(preset(options.config), list(options.settings))
        self.model, self._kind = choose_model(options)
        check_fit(self.config, self.model, options)
        self.plan = ShardPlan.deal(self.model, options.nodes, options.placement)
        # Amaranth's simulator is there for machines without a compiler.
        self._dlrm = Dlrm(self.model, options.seed, options.mlp,
                          linear_fixed if options.engine == "pysim" else linear_compiled)
        self._batches = self._steps(mini_batches(options, self.model, self._kind, self.config))
        # The first mini-batch is read before anything is built: a bad file is found at once.
        self._next: Step | None = next(self._batches, None)
        if self._next is None:
            raise ValueError("samples must be at least 1, but the input holds none")
        self._open: dict[int, Step] = {}
        self._floor = 0
        self._done_samples = 0
        self._lookups = 0
        self._verdicts = {"equal": 0, "different": 0, "refused": 0}
        self._predictions: dict[int, np.ndarray] = {}
        self._latencies: dict[int, float] = {}
        self._last_result = 0.0
        self._build()

    @property
    def expected_samples(self) -> int | None:
        """Samples that will run, None when that depends on the length of a file."""
        return self.options.samples or (GENERATED if self.options.data is None else None)

    def _build(self) -> None:
        options, model, seed = self.options, self.model, self.options.seed
        pcie = load_profile(options.pcie, PcieProfile)
        gpu = load_profile(options.gpu, GpuProfile)
        network = Network(load_profile(options.network, NetworkProfile), options.nodes)
        nic = NicModel(self.config, options.engine)

        def rows(tables: np.ndarray, numbers: np.ndarray) -> np.ndarray:
            return row_values(model, seed, tables, numbers)

        nodes, self._registers = [], []
        for number in range(options.nodes):
            engine, registers = nic.instance(skip=options.skip)
            nic.configure(registers, self.runtime, self.plan, node=number, nodes=options.nodes,
                          vector_beats=model.dimension // LANES)
            node = Node(number, engine, self.config, rows, model.dimension, pcie, gpu,
                        options.in_flight)
            nodes.append(node)
            self._registers.append(registers)
        self.cluster = Cluster(nodes, network, options.threads)
        # The front end hears of a finished mini-batch and hands out the next: once over the
        # network and once over PCIe each way.
        self._hand_out = nodes[0].lookahead + (network.lookahead if options.nodes > 1 else 0)
        self._start = self._boot()

    def _boot(self) -> int:
        """Run every NIC until its registers are written and its tables are swept."""
        nodes = self.cluster.nodes
        for registers in self._registers:
            registers.finish()
        first = max(node.engine.cycle for node in nodes)
        while not all(node.engine.get_signal("idle") for node in nodes):
            first += self.cluster.quantum
            for node in nodes:
                node.engine.run(first)
        for node in nodes:
            node.engine.run(first)
        self.cluster.cycle = first
        self._boot_run = sum(node.engine.cycles_run for node in nodes)
        return first

    def _steps(self, batches: Iterator[Samples]) -> Iterator[Step]:
        first = 0
        for number, samples in enumerate(batches):
            yield Step.of(number, first, samples, self.options.nodes, self.model.dimension)
            first += len(samples)

    def _submit(self, now: float) -> None:
        while self._next is not None and len(self._open) < self.options.in_flight:
            step = self._next
            self._open[step.number] = step
            self._lookups += len(step.samples.rows)
            for node in self.cluster.nodes:
                node.submit(step, now)
            self._next = next(self._batches, None)

    def _steps_finished(self) -> None:
        """Take the steps that were finished in this quantum, in the order of time."""
        done = {}
        for node in self.cluster.nodes:
            done |= {step.number: step for step in node.finished if step.done}
            node.finished.clear()
        for step in sorted(done.values(), key=lambda step: (step.finished, step.number)):
            self._step_finished(step, step.finished)

    def _step_finished(self, step: Step, now: float) -> None:
        del self._open[step.number]
        self._raise_floor(min(self._open, default=step.number + 1), now)
        verdict = StepResult.judge(step, self.model, self.options.seed)
        for name, value in asdict(verdict).items():
            self._verdicts[name] += value
        predictions = self._dlrm.predict(step.samples.dense, step.pooled)
        predictions[step.status != 0] = np.nan
        self._predictions[step.number] = predictions
        self._latencies[step.number] = (step.finished - step.started) * CYCLE_NS / 1000
        self._last_result = max(self._last_result, step.finished)
        self._done_samples += len(step.samples)
        self._submit(now + self._hand_out)

    def _raise_floor(self, floor: int, now: float) -> None:
        """Tell every NIC the oldest step still open, as soon as its host can know of it."""
        if floor == self._floor:
            return
        self._floor = floor
        for registers in self._registers:
            registers.write("step_floor", floor & 0xFFFF, math.ceil(now + self._hand_out))

    def _after_quantum(self, cycle: int) -> None:
        self._steps_finished()
        self._report_progress(self._done_samples, cycle)

    def execute(self, progress: Progress = lambda done, cycle: None,
                observer: Observer | None = None) -> dict:
        """Run to the end and return what was measured; ``observer`` sees every frame."""
        self._report_progress = progress
        self.cluster.observer = observer
        began = time.perf_counter()
        self._submit(float(self._start))
        stuck = None
        try:
            self.cluster.run(lambda: bool(self._open), self._after_quantum)
        except StuckError as error:
            stuck = str(error)
        wall = time.perf_counter() - began
        unanswered = sum(sum(step.left) for step in self._open.values())
        if stuck is None:
            self.cluster.settle()
        counters = [registers.counters() for registers in self._registers]
        predictions = [self._predictions[n] for n in sorted(self._predictions)]
        digest = hashlib.sha256()
        for part in predictions:
            digest.update(np.ascontiguousarray(part, "<f4").tobytes())
        latencies = [self._latencies[n] for n in sorted(self._latencies)]
        return summary(
            self, counters=counters, wall=wall, stuck=stuck, unanswered=unanswered,
            cycles=int(np.ceil(self._last_result)) - self._start, samples=self._done_samples,
            lookups=self._lookups, verdicts=self._verdicts,
            latencies=latencies[self.options.warmup:] or latencies,
            sha256=digest.hexdigest(), cycles_before=self._boot_run)


def check_fit(config: NicConfig, model: Model, options: RunOptions) -> None:
    """Raise ``ValueError`` where model or nodes exceed what the NIC was built for."""
    if options.nodes > config.nodes:
        raise ValueError(f"nodes must be at most {config.nodes} for config {config.name}, "
                         f"not {options.nodes!r}")
    if model.tables > config.tables:
        raise ValueError(f"tables of the model must be at most {config.tables} for config "
                         f"{config.name}, not {model.tables!r}")
    if model.dimension > config.max_dimension:
        raise ValueError(f"dimension must be at most {config.max_dimension} for config "
                         f"{config.name}, not {model.dimension!r}")
    if model.tables > config.sample_slots:
        raise ValueError(f"hold_vectors must be at least {2 * model.tables}, twice the slots of a "
                         f"sample of {model.tables} tables, not {config.hold_vectors!r}")
