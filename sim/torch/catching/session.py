"""Session that answers the embedding bags of a PyTorch program."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch.multiprocessing.reductions import StorageWeakRef

from host.model import Model
from host.samples import most_slots
from host.wire.indices import MOST_INDICES
from host.wire.packets import bag_slots
from sim.cluster.watchdog import StuckError
from sim.node.repeats import new_bags
from sim.torch.catching.process_group import exchanged
from sim.torch.lookups.bags import Bags, pooled
from sim.torch.lookups.comparison import Comparison
from sim.torch.lookups.dense import Chains
from sim.torch.lookups.memory import array_of, storage_of
from sim.torch.lookups.mini_batch import columns_of, samples_of, vectors_of
from sim.torch.lookups.query import Elsewhere, Query
from sim.torch.lookups.record import MiniBatch, Record
from sim.torch.lookups.tables import Tables
from sim.torch.numerics import own_numerics
from sim.torch.options import TorchOptions
from sim.torch.values.asked import AskedUpdate, UpdateElsewhere
from sim.torch.values.nics import LookupNics, NicsError
from sim.torch.values.rows import Update
from sim.torch.values.training_nics import TrainingNics
from sim.torch.values.updates import RowUpdates
from sim.torch.values.written import Written

__all__ = ["Session"]


@dataclass(frozen=True, eq=False)
class _Waiting:
    """A call that waits for vectors of the NICs.

    bags: bags of the call.
    table: number of their table.
    output: tensor that the script reads, float32 ``[n, d]``.
    expected: vectors of the numerics.
    """

    bags: Bags
    table: int
    output: torch.Tensor
    expected: np.ndarray

    def give(self, values: np.ndarray) -> None:
        """Write the script's output, unless the script has freed its memory."""
        if self.output.untyped_storage().nbytes() >= 4 * self.output.numel():
            # The first sample of each bag, see `Bags.stretched`.
            count = len(self.output)
            first = -(-np.arange(count) * len(values) // max(1, count))
            array_of(self.output)[...] = values if count == len(values) else values[first]


class Session:
    """The embedding bags of a program.

    With fidelity ``model``, the numerics compute the vectors, bit for bit like a NIC. With ``rtl``,
    NICs return the vectors. The calls of a forward pass wait until the program reads a vector or
    writes to a table; then the NICs look them up as a mini-batch. Until then, the output contains
    the vectors of the numerics, and the NICs' vectors are compared with them.

    Parameters
    ----------
    options: options of the program; ``fidelity`` selects the source of vectors.
    steps: number of the current mini-batch in the process of each node; default: the number in the
        record.

    Members
    -------
    tables, record, chains: observed tables, mini-batches and linear layers.
    comparison: comparison with PyTorch's vectors.
    verdicts: number of samples from NICs that are ``equal`` to the numerics or ``different``.
    latencies: lookup time of each mini-batch on NICs, in microseconds.
    row_times: time of each update on NICs, in microseconds.
    counts: counters of NICs that have ended.
    resets: number of times that NICs were rebuilt, by reason.
    caches: counts of local caches, by node, mini-batch and name in
        :data:`sim.torch.lookups.record.COUNTED`.
    uncached: mini-batches on NICs with disabled caches.
    pooled: mini-batches that NICs pooled, because a share has too many slots for unique delivery.
    weighted: calls with weights.
    gradients: bags whose gradients returned.
    updates: number of updates by a fused optimizer, by its name.
    nic_optimizer: replacement of PyTorch's optimizer; None if PyTorch's is used.
    written: rows that the replacement wrote.
    mistake: exception that ended the program; None if there is none.
    first: callback before the first call.
    over: callback after each mini-batch.
    elsewhere, update_elsewhere: lookup and update functions if another process owns the NICs.
    owners: node of each table; if empty, the options place the tables.
    """

    def __init__(self, options: TorchOptions, steps: Sequence[int] = ()):
        self.options, self.steps = options, steps
        self.owners: list[int] = []
        self.tables, self.record, self.chains = Tables(), Record(), Chains()
        self.comparison = Comparison()
        self.verdicts = {"equal": 0, "different": 0}
        self.latencies: list[float] = []
        self.row_times: list[float] = []
        self.counts = Counter[str]()
        self.resets = Counter[str]()
        self.caches = Counter[tuple[int, int, str]]()
        self.updates = Counter[str]()
        self.written = Written()
        self.nic_optimizer = (RowUpdates(self.tables, self.updating, self.update)
                              if options.optimizer_on == "nic" else None)
        self.weighted = self.gradients = self.uncached = self.pooled = 0
        self.mistake: Exception | None = None
        self.first: Callable[[], None] = lambda: None
        self.over: Callable[[], None] = lambda: None
        self.elsewhere: Elsewhere | None = None
        self.update_elsewhere: UpdateElsewhere | None = None
        self._busy = self._changed = False
        self._rtl = options.fidelity == "rtl"
        self._nics: LookupNics | None = None
        self._addresses: tuple[int, ...] = ()
        self._caches = False
        self._waiting: list[_Waiting] = []
        self._batch, self._exchanged = MiniBatch(), 0
        self._outputs: dict[int, StorageWeakRef] = {}
        self._forwards: dict[int, int] = {}
        self._left: set[int] = set()

    @own_numerics()
    def take(self, calls: Sequence[tuple[Bags, torch.Tensor]], indices: torch.Tensor,
             kept: torch.Tensor) -> None:
        """Take calls that the program makes at once. If their numbers of bags differ, bags of the
        calls with fewer bags are those of several samples.

        calls: bags of each call, and the output with PyTorch's vectors, which the session
            overwrites.
        indices: tensor that identifies the gradients of the calls.
        kept: tensor that only the backward pass of these calls gets; ``indices`` if there is no
            such tensor.
        """
        tables = [self.tables.number_of(bags) for bags, _ in calls]
        samples = max(len(bags) for bags, _ in calls)
        if not all(self._batch.takes(samples, table) for table in tables):
            self.look_up()
            self._close()
        self._forwards[indices.data_ptr()] = sum(len(bags) for bags, _ in calls)
        self._left.discard(kept.data_ptr())
        if not self.record.steps and not self._batch.columns:
            self.first()
        for (bags, output), table in zip(calls, tables):
            self._take(bags, output, table, samples)

    def _take(self, bags: Bags, output: torch.Tensor, table: int, samples: int) -> None:
        # Shared with the script, which reads vectors that arrive later.
        values = array_of(output)
        expected = pooled(bags, array_of(bags.weight)[bags.rows])
        self.comparison.add(expected, values, bags)
        values[...] = expected
        if not self._batch.columns:
            self._exchanged = exchanged()
        bags = bags.stretched(samples)
        self._batch.columns.append(bags.without_rows())  # do not keep the script's table alive
        self._batch.tables.append(table)
        if output.numel():
            self._outputs[storage_of(output)] = StorageWeakRef(output.untyped_storage())
        self.weighted += bags.weights is not None
        self.chains.end()
        if self._rtl and len(output):
            which = np.arange(samples) * len(output) // samples
            self._waiting.append(_Waiting(bags, table, output.detach(), expected[which]))

    def touches(self, tensor: torch.Tensor) -> bool:
        """Return True if ``tensor`` shares memory with an unread vector."""
        return bool(self._outputs) and storage_of(tensor) in self._outputs

    def read(self) -> None:
        """Complete all vectors, because the program is about to read a vector."""
        self.look_up()
        self._batch.read = True
        self._outputs.clear()

    def write(self) -> None:
        """Note that the program is about to write to a table."""
        self.look_up()
        self.tables.changed = True

    def updating(self) -> None:
        """Note that the program's optimizer is about to write rows that the NICs' rows will
        replace."""
        self.look_up()
        self._changed = self.tables.changed

    @own_numerics()
    def update(self, updates: Sequence[Update]) -> None:
        """Write the rows of updates by the NICs' optimizer, over those of the program's optimizer.

        Raises ``ValueError`` for an update that NICs do not support;
        :class:`sim.torch.values.nics.NicsError` if NICs do not answer.
        """
        self.tables.changed = self._changed  # PyTorch's rows will be replaced
        try:
            for update in updates:
                update.write(self.written, self.updated if self._rtl else None)
        except NicsError as error:
            self.mistake = error
            raise

    def updated(self, update: Update) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows and states of an update as the NICs write them."""
        nics, self.tables.changed = self._nics, False
        changed, self._changed = self._changed, False
        if self.update_elsewhere is not None:
            rows, states = self.update_elsewhere(AskedUpdate.of(update), changed)
            return rows, states
        assert isinstance(nics, TrainingNics)
        if changed and nics.cached:
            nics.switch_caches_off()
        nics.begin(self._steps())
        with self._asking():
            found = nics.update(update)
        return found

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Mark the NICs as busy during the block, and afterwards if they do not finish."""
        self._busy = True
        try:
            yield
        except StuckError as error:
            assert self._nics is not None
            raise NicsError("the NICs do not answer: "
                            + self._nics.diagnose(error)["message"]) from None
        self._busy = False

    def leave(self, kept: torch.Tensor) -> None:
        """Leave a call to PyTorch.

        kept: see `take`.
        """
        self._left.add(kept.data_ptr())

    def backward(self, indices: torch.Tensor, kept: torch.Tensor, bags: int | None = None) -> bool:
        """Count the returned gradients of a call; return True if the call was taken.

        indices, kept: see `take`.
        bags: number of bags with gradients; None for all bags of ``indices``.
        """
        taken = self._forwards.get(indices.data_ptr())
        if taken is None or kept.data_ptr() in self._left:
            return False
        self._batch.trained = True
        self.gradients += taken if bags is None else bags
        return True

    def _close(self) -> None:
        if self._batch.columns:
            self._batch.exchanged = exchanged() - self._exchanged
            self.record.add(self._batch)
            self.over()
        self._batch = MiniBatch()
        self._outputs.clear()

    def finish(self) -> None:
        """End the session: look up waiting calls, and read the counters of the NICs."""
        self.look_up()
        self._close()
        self._retire("")

    def stop(self) -> None:
        """End the session in the middle of a mini-batch, and drop that mini-batch."""
        self._waiting, self._batch = [], MiniBatch()
        if self._busy and self._nics is not None:
            self._nics.abandon()
            self._nics = None
        self._retire("")

    def leave_off(self) -> None:
        """End the program early while other processes may wait for this process.

        A mini-batch without its vectors is dropped.
        """
        if not self._waiting:
            self._close()

    @own_numerics()
    def look_up(self) -> None:
        """Let the NICs look up the waiting calls as a mini-batch."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        if self.elsewhere is not None:
            changed, self.tables.changed = self.tables.changed, False
            for call, given in zip(waiting, self.elsewhere(
                    [Query.of(call.bags, call.table, self.tables.all[call.table].values)
                     for call in waiting], changed)):
                call.give(given)
            return
        columns, tables, spans = columns_of([(call.bags, call.table) for call in waiting])
        if not columns:
            return
        samples = samples_of(columns, tables)
        nics = self._ready(waiting, int(samples.slots.max()),
                           most_slots(bag_slots(samples.bag_lengths, new_bags(
                               samples, self.options.count, self.options.repeats)).sum(axis=1),
                                      self.options.count))
        nics.begin(self._steps())
        with self._asking():
            answers = nics.look_up(samples)
        same = np.ones(len(samples), bool)
        for call, span in zip(waiting, spans):
            given = vectors_of(call.bags, answers[:, span], nics.model.pooling)
            call.give(given)
            same &= (given.view(np.uint32) == call.expected.view(np.uint32)).all(axis=1)
        self.verdicts["equal"] += int(same.sum())
        self.verdicts["different"] += int((~same).sum())

    def _ready(self, waiting: list[_Waiting], slots: int, share: int) -> LookupNics:
        """Return NICs that hold all tables, accept ``slots`` per sample and ``share`` per share,
        and cache no stale row."""
        means = all(call.bags.pooling == "mean" for call in waiting)
        pooling = "mean" if means else "sum"
        changed, self.tables.changed = self.tables.changed, False
        nics = self._nics
        if nics is not None:
            shape = tuple(table.shape[0] for table in self.tables.all)
            if (nics.model.rows, nics.model.dimension, self._addresses) != (
                    shape, self.tables.dimension, self.tables.addresses):
                self._retire("a table that they did not hold")
            elif slots > nics.sample_slots:
                self._retire("a larger sample")
            elif share > (nics.most_slots or share):
                self._retire("a larger share")
            elif nics.model.pooling != pooling:
                self._retire("another pooling")
            elif changed and nics.cached:
                nics.switch_caches_off()
            elif not changed and not nics.cached and self._caches:
                self._retire("rows that PyTorch has stopped changing")
        if self._nics is None:
            options = self.options.cluster(len(self.tables.all), self.tables.dimension, slots,
                                           ",".join(map(str, self.owners)) or None,
                                           share > MOST_INDICES)
            kind = TrainingNics if self.nic_optimizer else LookupNics
            self._nics = kind(options, self._model(pooling), self.tables.rows)
            self._addresses = self.tables.addresses
            self._caches = self._nics.cached
        self.pooled += share > MOST_INDICES
        self.uncached += self._caches and not self._nics.cached
        return self._nics

    def _steps(self) -> tuple[int, ...]:
        """Return the number of the current mini-batch for each node."""
        return tuple(self.steps or [len(self.record.steps)] * self.options.count)

    def _model(self, pooling: str) -> Model:
        """Return a model with the known tables and placeholder MLPs."""
        dimension = self.tables.dimension
        return Model(tuple(table.shape[0] for table in self.tables.all), dimension, 1,
                     (dimension,), (1,), "pytorch", pooling=pooling)

    def _retire(self, why: str) -> None:
        if self._nics is not None:
            self.latencies += self._nics.latencies
            if isinstance(self._nics, TrainingNics):
                self.row_times += self._nics.updates
            self.counts.update(self._nics.close())
            self.caches.update(self._nics.caches)
            self._nics = None
            if why:
                self.resets[why] += 1
