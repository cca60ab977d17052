"""Training of a DLRM, on NICs or on the numpy reference alone."""

import hashlib
import math
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from host.batching import REPEATS, MiniBatch
from host.dlrm.dense_trainer import DenseStep, DenseTrainer
from host.dlrm.embedding import EmbeddingTables
from host.dlrm.row_store import RowStore
from host.dlrm.trainer import Trainer, weights_sha256
from host.placement.shard import ShardPlan
from host.systems import UPDATES
from rtl.config import NicConfig, preset
from sim.cluster.watchdog import StuckError
from sim.files.outputs import LiveJson
from sim.files.stop import never
from sim.job.inputs import SampleSource, batcher_of
from sim.job.memory import check_memory
from sim.job.pools import check_weights, with_pools
from sim.job.settings import Runtime, apply_settings
from sim.job.workload import Workload
from sim.nic.ports import Observer
from sim.run.backend import Backend, choose
from sim.run.similarity import SimilarityTally
from sim.training.batches import epoch_batches
from sim.training.checkpoints import Checkpoints
from sim.training.cluster import NicCluster, first_of, training_config
from sim.training.intervals import Intervals
from sim.training.measurements import Measurements
from sim.training.options import TrainOptions
from sim.training.report import summary
from sim.training.wires import wires_of

__all__ = ["Progress", "Training", "train"]

Progress = Callable[[int, float, dict | None], None]
"""Callback after each step with the steps done, its loss, and the interval that it ended or None.
"""


def train(options: TrainOptions, progress: Progress = lambda done, loss, interval: None) -> dict:
    """Train as ``options`` say and return the result.

    Raises
    ------
    ValueError
        Options that do not fit each other or the hardware, or an input file that cannot be read
        (:class:`host.errors.InputError`).
    """
    return Training(options).execute(progress)


class Training:
    """A training after set-up: first mini-batch read, checkpoint loaded, NICs built.

    Members
    -------
    model, config, runtime: trained model, and its NICs.
    plan: plan of the tables; None for the reference alone, unless tables may pool at their owner.
    notes: lines on the pool places of tables.
    wires: formats of vectors and of gradients between nodes.
    in_order: numbers of the tables whose gradients are summed in the order of the mini-batch.
    trainer: MLPs and tables.
    dense: the MLPs.
    nics: the cluster; None for the reference alone.
    first_step: steps of the loaded checkpoint.
    losses, intervals, samples, lookups, similarity: values of the steps since the checkpoint.
    """

    def __init__(self, options: TrainOptions, backend: Backend | None = None):
        self.options = options
        workload, simulation = options.run.workload, options.run.simulation
        optimizer = options.learning.rule
        self.config, self.runtime = _settings(workload)
        if options.method.reference and self.config.gradient_sums != "exact":
            raise ValueError(f"gradient_sums must be exact with reference, which sums exactly, not "
                             f"{self.config.gradient_sums!r}")
        source = SampleSource.of(workload)
        self.runtime, self.model = self.runtime.with_model(source.model)
        if workload.repeats != REPEATS[0] or self.model.weighted_tables:
            self.model = self.model.with_host_means()
        self._source = source.with_model(self.model)
        if self.model.padding and optimizer.name != "sgd":
            raise ValueError(f"optimizer must be sgd for padded vectors, not "
                             f"{optimizer.name!r}: a NIC averages squares over the padding too")
        self.notes: list[str] = []
        self.plan = self._place()
        self.wires = wires_of(options, self.model, self.plan)
        self.in_order = ([] if self.plan is None or options.learning.update != UPDATES[0] else
                         np.flatnonzero(self.plan.owner_pooled).tolist())
        self.backend = backend or choose(options.run)
        self.dense = DenseTrainer(self.model, workload.seed, optimizer.learning_rate,
                                  simulation.mlp, self.backend.numerics.linear)
        self._checkpoints = Checkpoints(
            options.record.checkpoint, self.dense, optimizer,
            options.checkpoint_identity(
                self.runtime.partials, self.config.gradient_sums, self.in_order,
                [] if self.plan is None else np.flatnonzero(self.plan.owner_pooled).tolist()))
        rows = RowStore(self.model, workload.seed)
        self.first_step = self._checkpoints.load(rows)
        self.similarity = SimilarityTally(workload)
        self._batches = epoch_batches(options, self._source, self.config,
                                      batcher_of(workload), self.first_step,
                                      self._checkpoints.learn, self.plan, self.in_order)
        # Read the first mini-batch before building the NICs, to fail early for a bad file.
        self._next = next(self._batches)
        self._checkpoints.check_samples()
        self.nics = self._build(rows) if options.method.fidelity == "rtl" else None
        self.trainer = Trainer(self.dense, self._reference(rows) if self.nics is None
                               else self.nics.tables)
        self.losses: list[float] = []
        self.intervals = Intervals(options.record.interval)
        self.samples = self.lookups = 0
        self._predictions = hashlib.sha256()

    def _place(self) -> ShardPlan | None:
        """Return the plan of the tables; None for a training without NICs that does not need it.

        The count of lookups must precede the first epoch, which may be the last pass.
        """
        workload, on_nics = self.options.run.workload, self.options.method.fidelity == "rtl"
        compares = workload.repeats == "nic"
        if not (on_nics or compares or self.model.slices or workload.pool != "requester"):
            return None
        plan, self.notes = with_pools(self._source.plan(), self.model, workload, self.config,
                                      self.runtime, self._source.measured(),
                                      gradients=self.options.learning.update == UPDATES[0])
        if on_nics:
            check_weights(plan, self.runtime.deliver)
            check_memory(workload, self.model, self._source.gpu_plan(),
                         self.options.learning.optimizer,
                         self.runtime.stored_dimensions(self.model))
        if on_nics or plan.pools_at_owner or compares:
            self.config = training_config(self.config, self.model, self.runtime, workload, plan)
        return plan

    def _build(self, rows: RowStore) -> NicCluster:
        """Return the cluster of NICs."""
        assert self.plan is not None
        return NicCluster(self.options, self.config, self.runtime, self.model, self.plan, rows,
                          self.backend, self.wires, self.in_order)

    def _reference(self, rows: RowStore) -> EmbeddingTables:
        workload = self.options.run.workload
        tables = EmbeddingTables(self.model, workload.seed, self.options.learning.rule,
                                 workload.nodes, self.runtime.partials, self.in_order,
                                 first_of(workload, self.plan, self.model), *self.wires)
        tables.rows = rows
        return tables

    @property
    def expected_steps(self) -> int | None:
        """Total steps, including the checkpoint's; None if they depend on the length of a file."""
        workload = self.options.run.workload
        samples = workload.sample_count
        return samples and -(-samples // workload.mini_batch) * self.options.learning.epochs

    @property
    def steps(self) -> int:
        """Steps done, including the checkpoint's."""
        return self.first_step + len(self.losses)

    def execute(self, progress: Progress = lambda done, loss, interval: None,
                observer: Observer | None = None, *,
                stop: Callable[[], str | None] = never, live: LiveJson | None = None,
                injected: Mapping[tuple[int, int], Sequence[np.ndarray]] | None = None) -> dict:
        """Train to the end and return the result.

        Parameters
        ----------
        progress: see `Progress`.
        observer: observer of every frame between the NICs.
        stop: returns the name of a signal to end the training early. The result then contains the
            steps done and ``interrupted``; the checkpoint contains the same steps.
        live: JSON file that is updated during the training.
        injected: extra packets, by ``(s, n)``, that the host of node ``n`` sends its NIC before its
            gradients of step ``s`` (from 0 in this run), for tests of rejected packets.
        """
        live = live or LiveJson(None)
        self._began = time.perf_counter()
        if self.nics is not None:
            self.nics.simulation.cluster.observer = observer
            self.nics.tables.injected = injected or {}
        try:
            return self._execute(progress, stop, live)
        finally:
            if self.nics is not None:
                self.nics.close()

    def _execute(self, progress: Progress, stop: Callable[[], str | None], live: LiveJson) -> dict:
        interrupted = stuck = None
        try:
            while self._next is not None and (interrupted := stop()) is None:
                epoch, batch = self._next
                overtake = self.nics is not None and self.runtime.overtake
                following = next(self._batches, None) if overtake else None
                if self.nics is not None and following is not None:
                    self.nics.tables.next_samples = following[1].samples
                self._record(epoch, batch, self.trainer.step(batch.samples), progress)
                self._next = following if overtake else next(self._batches, None)
                if self._checkpoints.due:
                    self._save()
                if live.due():
                    live.write(self._result())
        except StuckError as error:
            assert self.nics is not None
            stuck = self.nics.simulation.diagnose(error)
        if (interval := self.intervals.close()) is not None:
            progress(self.steps, self.losses[-1], interval)
        # Do not save a stuck step: some of its rows may be written already.
        if self.losses and stuck is None:
            self._save()
        rows = self.trainer.embeddings.rows
        return self._result(complete=self._next is None, interrupted=interrupted, rows=len(rows),
                            weights=weights_sha256(self.dense, rows), stuck=stuck, ended=True)

    def _record(self, epoch: int, batch: MiniBatch, done: DenseStep, progress: Progress) -> None:
        samples = batch.samples
        self._checkpoints.learn(samples)
        self.similarity.add(self.steps, batch)
        self.losses.append(done.loss)
        self.samples += len(samples)
        self.lookups += len(samples.rows)
        self._predictions.update(np.ascontiguousarray(done.predictions, "<f4").tobytes())
        interval = self.intervals.add(epoch, self.steps - 1, samples, done)
        progress(self.steps, done.loss, interval)

    def _save(self) -> None:
        """Write a checkpoint, unless rows were wrong or the loss is not finite.

        A training cannot resume from such rows.
        """
        compared = self.nics and self.nics.tables.comparison
        if (compared is None or compared.good) and math.isfinite(self.losses[-1]):
            self._checkpoints.save(self.steps, self.trainer.embeddings.rows)

    def _result(self, *, complete: bool = False, interrupted: str | None = None,
                rows: int | None = None, weights: str | None = None, stuck: dict | None = None,
                ended: bool = False) -> dict:
        wall = time.perf_counter() - self._began
        nics = {} if self.nics is None else self.nics.measured(
            wall=wall, samples=self.samples, steps=len(self.losses), ended=ended, stuck=stuck)
        return summary(Measurements(
            options=self.options, config=self.config, runtime=self.runtime, model=self.model,
            pool=[table.pool.name.lower() for table in self.plan.tables] if (
                self.plan is not None and self.plan.pools_at_owner) else [],
            notes=self.notes, nics=nics, complete=complete, interrupted=interrupted,
            first_step=self.first_step,
            losses=self.losses, intervals=self.intervals.rows, samples=self.samples,
            lookups=self.lookups, batching=self.similarity.result(), wall=wall, rows=rows,
            weights=weights,
            predictions=self._predictions.hexdigest() if self.losses else None))


def _settings(workload: Workload) -> tuple[NicConfig, Runtime]:
    """Return configuration and run-time settings; ``ValueError`` for those unfit for training."""
    named = {setting.partition("=")[0].strip() for setting in workload.settings}
    default = [] if "remote_cache" in named else ["remote_cache=false"]
    config, runtime = apply_settings(preset(workload.config), [*default, *workload.settings])
    if runtime.remote_cache:
        raise ValueError("remote_cache must be false in training: its rows would go stale")
    if runtime.interaction:
        raise ValueError("interaction must be false in training: the backward pass needs the "
                         "pooled vectors")
    return config, runtime
