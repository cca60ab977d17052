"""Run: sends samples through a cluster, checks every result, and measures."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain

import numpy as np

from host.batching import MiniBatch
from host.dlrm.dlrm import Dlrm
from host.dlrm.interaction import ResultLayout
from host.placement.shard import foreign_keys
from host.samples import Samples
from host.timing.clock import cycles_of_us
from host.wire.indices import MOST_INDICES, pooled_instead
from rtl.config import LANES, preset
from sim.cluster.watchdog import StuckError
from sim.files.outputs import LiveJson
from sim.files.stop import never
from sim.job.fit import check_wire, divides_by_table, fitting_nic
from sim.job.inputs import SampleSource, batcher_of, check_warmup, holdable
from sim.job.memory import check_memory
from sim.job.options import RunOptions
from sim.job.pools import check_weights, with_pools
from sim.job.restarts import check_restarts
from sim.job.settings import apply_settings
from sim.nic.ports import Observer
from sim.nic_cpp.config import WideConfig
from sim.node.owner_pooling import share_slots
from sim.node.repeats import new_bags
from sim.node.step import Step
from sim.run.backend import Backend, choose
from sim.run.checks import CheckQueue, check_refusals, make_check
from sim.run.measurements import Measurements
from sim.run.prefetch import Prefetcher
from sim.run.report import summary
from sim.run.restart import EPOCHS, restart
from sim.run.similarity import SimilarityTally
from sim.run.simulation import Simulation
from sim.run.tally import Tally

__all__ = ["Run", "run"]

Progress = Callable[[int, int], None]
"""Called periodically with the samples answered and the cluster's cycle."""


def run(options: RunOptions, progress: Progress = lambda done, cycle: None) -> dict:
    """Run the cluster of ``options`` and return the measurements.

    Raises
    ------
    ValueError
        Options contradict each other or the hardware, or an input file cannot be read
        (:class:`host.errors.InputError`).
    """
    return Run(options).execute(progress)


class Run:
    """A cluster set up for a run.

    Parameters
    ----------
    options: options of the run.
    backend: the implementations; by default the result of :func:`choose`.
    batches: mini-batches to run; by default the mini-batches of the options.
    counted: whether to count foreign keys, for the result's hit rate of unique keys.

    Members
    -------
    simulation: the cluster.
    model, config, plan: model, NIC and placement of the cluster.
    foreign_keys: sum over the mini-batches handed out, see :class:`sim.node.step.Step`.
    notes: lines that the result does not contain: NICs pool if the first mini-batch has too many
        slots for unique delivery.
    """

    def __init__(self, options: RunOptions, backend: Backend | None = None,
                 batches: Iterable[MiniBatch] | None = None, counted: bool = True):
        self.options = options
        self._counted = counted
        workload, simulation = options.workload, options.simulation
        check_warmup(workload)
        backend = backend or choose(options)
        self._modelled = simulation.fidelity == "model"
        base = preset(workload.config)
        config, runtime = apply_settings(
            WideConfig.of(base) if self._modelled else base, list(workload.settings))
        source = SampleSource.of(workload)
        runtime, self.model = runtime.with_model(source.model)
        source = source.with_model(self.model)
        self.plan, self._placed = with_pools(source.plan(), self.model, workload, config,
                                             runtime, source.measured())
        self.notes: list[str] = []
        self.config = fitting_nic(config, self.model, runtime, workload, self.plan)
        self._restarts = deque(workload.fault_plan.restarts)
        check_restarts(workload.fault_plan.restarts, self.config)
        self._layout = ResultLayout.of(self.model) if runtime.interaction else None
        self._unique = runtime.deliver == "unique"
        check_memory(workload, self.model, source.gpu_plan(),
                     dimensions=runtime.stored_dimensions(self.model))
        self._dlrm = Dlrm(self.model, workload.seed, simulation.mlp, backend.numerics.linear,
                          workload.wire, tuple(np.flatnonzero(self.plan.owner_pooled).tolist()))
        self._before: Samples | None = None
        self.batcher = batcher_of(workload)
        if batches is None:
            batches = source.mini_batches(self.config, self.batcher, self._sample_before,
                                          plan=self.plan)
        else:
            batches = holdable(batches, self.config, self.plan, self.model)
        batches = iter(batches)
        first = next(batches, None)
        if self._unique and first is not None:
            slots = share_slots(first.samples, self.plan, new_bags(
                first.samples, workload.nodes, workload.host_repeats))
            if slots > MOST_INDICES:
                check_wire(workload.wire, runtime, slots)
                runtime, self._unique = replace(runtime, deliver="pooled"), False
                self.notes.append(pooled_instead(slots))
        check_weights(self.plan, runtime.deliver)
        divides = divides_by_table(self.config, self.model, runtime)
        if divides:
            self.plan = self.plan.with_means(self.model.poolings)
        batches = chain(() if first is None else (first,), batches)
        self.steps = Prefetcher(self._made(batches), background=simulation.threads > 1)
        # Read the first mini-batch before building a NIC: an invalid file fails at once.
        self._next: Step | None = self.steps.take()
        if self._next is None:
            raise ValueError("samples must be at least 1, but the input is empty")
        self.foreign_keys = 0
        self._open: dict[int, Step] = {}
        self._floor = 0
        self._tally = Tally(SimilarityTally(workload), workload.first_sample)
        check = check_refusals if self._modelled else make_check(
            self._dlrm, backend.numerics.pooled, self._layout, divides)
        self.checks = CheckQueue(check, self._tally.add, max_pending=workload.in_flight,
                             background=simulation.threads > 1 and not self._modelled)
        self._stop: Callable[[], str | None] = never
        self.simulation = Simulation(options, self.config, runtime, self.model, self.plan, backend)
        self.cluster, self.registers = self.simulation.cluster, self.simulation.registers
        self.waves = self.simulation.waves

    @property
    def expected_samples(self) -> int | None:
        """Samples that will run; None if the number depends on the length of a file."""
        workload = self.options.workload
        last = workload.sample_count
        return last and last - workload.first_sample

    @property
    def prediction_before(self) -> float | None:
        """Prediction of the sample before the first; None without that sample, or if its bits may
        vary (``mlp`` not ``fixed``)."""
        if self._before is None or self.options.simulation.mlp != "fixed":
            return None
        return float(self._dlrm.forward(self._before)[0])

    def _sample_before(self, sample: Samples) -> None:
        self._before = sample

    def _made(self, batches: Iterable[MiniBatch]) -> Iterator[Step]:
        """Make the steps of mini-batches."""
        first, nodes = self.options.workload.first_sample, self.options.workload.nodes
        answer = ((self.model.tables, self.model.width) if self._layout is None else
                  (self._layout.beats, LANES))
        for number, batch in enumerate(batches):
            samples, dense = batch.samples, None
            if self._layout is not None:
                dense = np.zeros((len(samples), self.model.width), np.float32)
                if not self._modelled:  # modelled NICs ignore values
                    dense[:, :self.model.dimension] = self._dlrm.bottom(samples.dense)
            step = Step.of(number, first, samples, nodes, answer, dense, batch,
                           unique=self._unique, plan=self.plan,
                           repeats=self.options.workload.host_repeats)
            if nodes > 1 and self._counted:
                step.foreign_keys = foreign_keys(self.plan, samples, step.shares)
            yield step
            first += len(samples)

    def _submit(self, now: float) -> None:
        # After a stop, finish the current window: another run can resume at the next window.
        while (self._next is not None and not self._restart_due(now)
               and len(self._open) < self.options.workload.in_flight
               and (self._stop() is None or not self._next.fresh)):
            step = self._next
            self._open[step.number] = step
            self.foreign_keys += step.foreign_keys
            self.simulation.submit(step, now)
            self._next = self.steps.take()

    def _restart_due(self, now: float) -> bool:
        """Whether a node is to be restarted before more is handed out."""
        return bool(self._restarts) and now >= self.simulation.start + cycles_of_us(
            self._restarts[0].start)

    def _restart(self) -> None:
        """Restart the next node, and hand out more."""
        epoch = (len(self.simulation.restarts) + 1) % EPOCHS
        self.simulation.restarts.append(restart(
            self.simulation, self._restarts.popleft(), epoch, self._floor & 0xFFFF))
        self._submit(self.cluster.cycle + self.simulation.hand_out)

    def _raise_floor(self, floor: int, now: float) -> None:
        """Write the oldest open step to every NIC, as soon as its host can know the step."""
        if floor == self._floor:
            return
        self._floor = floor
        self.simulation.write(now + self.simulation.hand_out, step_floor=floor & 0xFFFF)

    def _after_quantum(self, cycle: int) -> None:
        for step in self.simulation.finished():
            self._take(step)
            del self._open[step.number]
            self._raise_floor(min(self._open, default=step.number + 1), step.finished)
            self.checks.add(step)
            self._submit(step.finished + self.simulation.hand_out)
        self._report_progress(self._tally.samples, cycle)
        if self._live.due() and self._window_drained:
            self.checks.drain()
            if not self._tally.gap:
                # Without the NICs' counters, because reading them takes NIC cycles.
                self._live.write(self._result(None))

    @property
    def _window_drained(self) -> bool:
        """Whether all steps before the oldest unfinished one make up whole windows."""
        oldest = self._open[min(self._open)] if self._open else self._next
        return oldest is None or oldest.fresh

    def _work_left(self) -> bool:
        if not self._open or self._stop() is None:
            return bool(self._open)
        if not self._window_drained:
            return True
        # Stop only when the finished samples have no gap: another run can resume there.
        self.checks.drain()
        return self._tally.gap

    def execute(self, progress: Progress = lambda done, cycle: None,
                observer: Observer | None = None, *,
                stop: Callable[[], str | None] = never, live: LiveJson | None = None,
                predictions: Callable[[np.ndarray], None] | None = None,
                take: Callable[[Step], None] = lambda step: None) -> dict:
        """Run to the end and return the measurements.

        Parameters
        ----------
        progress: see `Progress`.
        observer: sees every frame.
        stop: returns the name of a signal to end the run early. The result then contains the
            finished mini-batches, ``interrupted``, and ``next_sample``, the ``first_sample`` with
            which another run resumes.
        live: JSON file that is updated during the run.
        predictions: receives the predictions (float32 ``[n]``) in the order of the samples.
        take: called with each finished mini-batch in order of time, before the next is handed out.
        """
        self._report_progress, self._take = progress, take
        self.cluster.observer = observer
        self._stop = stop
        self._live = live or LiveJson(None)
        if predictions is not None:
            self._tally.sink = predictions
        try:
            with self.checks, self.steps:
                return self._execute(stop)
        finally:
            self.simulation.close()

    def _execute(self, stop: Callable[[], str | None]) -> dict:
        self._began, self._began_cpu = time.perf_counter(), time.process_time()
        self._submit(float(self.simulation.start))
        stuck = None
        try:
            self.simulation.advance(self._work_left, self._after_quantum)
            # The next samples are held back from the cycle in which they would be handed out.
            while not self._open and stop() is None and self._restart_due(
                    self.cluster.cycle + self.simulation.hand_out):
                self._restart()
                self.simulation.advance(self._work_left, self._after_quantum)
        except StuckError as error:
            stuck = self.simulation.diagnose(error)
        self.checks.drain()
        self._report_progress(self._tally.samples, self.cluster.cycle)
        complete = stuck is None and not self._open and self._next is None
        wall, cpu = time.perf_counter() - self._began, time.process_time() - self._began_cpu
        if complete:
            self.cluster.settle()
        return self._result(self.simulation.counters(), wall=wall, cpu=cpu, stuck=stuck,
                            complete=complete,
                            interrupted=None if complete or stuck else stop())

    def _result(self, counters: list[dict[str, int]] | None, *, wall: float | None = None,
                cpu: float | None = None, stuck: dict | None = None, complete: bool = False,
                interrupted: str | None = None) -> dict:
        tally = self._tally
        unanswered = sum(step.unanswered(node) for step in self._open.values()
                         for node in range(len(step.left)))
        return summary(Measurements(
            options=self.options, simulation=self.simulation, counters=counters, stuck=stuck,
            complete=complete, interrupted=interrupted,
            wall=time.perf_counter() - self._began if wall is None else wall,
            cpu=time.process_time() - self._began_cpu if cpu is None else cpu,
            seconds={"checks": self.checks.seconds, "inputs": self.steps.seconds,
                     "batching": self.batcher.seconds},
            samples=tally.samples, lookups=tally.lookups, next_sample=tally.next_sample,
            under_way=sum(len(step.samples) for step in self._open.values()),
            unanswered=unanswered if stuck else 0, repeats=tally.repeats,
            cycles=int(np.ceil(tally.last_result)) - self.simulation.start if tally.samples else 0,
            latencies=tally.latencies[self.options.workload.warmup:],
            foreign_keys=self.foreign_keys, verdicts=tally.verdicts, sha256=tally.sha256,
            batching=tally.similarity.result(), notes=self._placed))
