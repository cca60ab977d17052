"""A session: takes the bags that a PyTorch program looks up, and gives it their vectors."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch.multiprocessing.reductions import StorageWeakRef

from host.model import Model
from sim.cluster.watchdog import StuckError
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
    """A call whose vectors are to come from the NICs. Members: its ``bags``; their ``table``;
    ``output``, what the script reads, float32 ``[n, d]``; ``expected``, by the numerics."""

    bags: Bags
    table: int
    output: torch.Tensor
    expected: np.ndarray

    def give(self, values: np.ndarray) -> None:
        """Write what the script reads, unless it has given the memory back."""
        if self.output.untyped_storage().nbytes() >= 4 * self.output.numel():
            array_of(self.output)[...] = values


class Session:
    """The embedding bags of one program.

    With fidelity ``model``, vectors come from the numerics, bit for bit as a NIC computes them.
    With ``rtl`` they come from NICs: the calls of a forward pass wait until the program reads one
    of their vectors or writes to a table; then the NICs look them up together, as one mini-batch.
    Until then the vectors of the numerics stand there, and each is compared with the NIC's.

    Parameters
    ----------
    options: of the program; their ``fidelity`` is where values come from.
    steps: mini-batch under way in the process of each node; by default, that of the record.

    Members
    -------
    tables, record, chains: what was seen. comparison: with PyTorch's own vectors.
    verdicts: samples of mini-batches that NICs looked up, ``equal`` to the numerics or
    ``different``. latencies: of these mini-batches, in microseconds. row_times: of the updates that
    NICs made, likewise. counts: of NICs that are gone. resets: how often NICs were set up anew, by
    reason. caches: what the local caches of these NICs counted, by the node, the number of the
    mini-batch, and the name in :data:`sim.torch.lookups.record.COUNTED`. uncached: mini-batches
    that NICs looked up with their caches off. weighted: calls with weights.
    gradients: bags whose gradients came back. updates: how often an optimizer that is fused with
    the backward pass wrote rows, by its name. nic_optimizer: what stands in for PyTorch's, None
    where that stays; written: what it wrote. mistake: what ended the program, None for nothing.
    first: called before the first call is taken; over: when a mini-batch is. elsewhere,
    update_elsewhere: look up and write what NICs would here, where they are in another process.
    owners: node of each table; while it is empty, the options place tables.
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
        self.weighted = self.gradients = self.uncached = 0
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
        """Take calls that the program makes at once.

        calls: bags of each, and the output that contains PyTorch's vectors, into which the vectors
            of the session are put.
        indices: tensor by which the gradients of the calls are recognised.
        kept: tensor that is given to the backward pass of these calls only; ``indices`` if there
            is no such tensor.
        """
        tables = [self.tables.number_of(bags) for bags, _ in calls]
        if not all(self._batch.takes(bags, table) for (bags, _), table in zip(calls, tables)):
            self.look_up()
            self._close()
        self._forwards[indices.data_ptr()] = sum(len(bags) for bags, _ in calls)
        self._left.discard(kept.data_ptr())
        if not self.record.steps and not self._batch.columns:
            self.first()
        for (bags, output), table in zip(calls, tables):
            self._take(bags, output, table)

    def _take(self, bags: Bags, output: torch.Tensor, table: int) -> None:
        # The script's memory, so that what is put there later is what the script reads.
        values = array_of(output)
        expected = pooled(bags, array_of(bags.weight)[bags.rows])
        self.comparison.add(expected, values, bags)
        values[...] = expected
        if not self._batch.columns:
            self._exchanged = exchanged()
        self._batch.columns.append(bags.without_rows())  # the table is the script's to drop
        self._batch.tables.append(table)
        if output.numel():
            self._outputs[storage_of(output)] = StorageWeakRef(output.untyped_storage())
        self.weighted += bags.weights is not None
        self.chains.end()
        if self._rtl and len(bags):
            self._waiting.append(_Waiting(bags, table, output.detach(), expected))

    def touches(self, tensor: torch.Tensor) -> bool:
        """Return whether ``tensor`` shares memory with a vector that was not read yet."""
        return bool(self._outputs) and storage_of(tensor) in self._outputs

    def read(self) -> None:
        """Give the program its vectors: it is about to read one."""
        self.look_up()
        self._batch.read = True
        self._outputs.clear()

    def write(self) -> None:
        """The program is about to write to a table."""
        self.look_up()
        self.tables.changed = True

    def updating(self) -> None:
        """The program's optimizer is about to write rows, in whose place those of the NICs' come.
        """
        self.look_up()
        self._changed = self.tables.changed

    @own_numerics()
    def update(self, updates: Sequence[Update]) -> None:
        """Write the rows of updates by the NICs' optimizer, over those of the program's.

        ``ValueError`` for what no NIC does; :class:`sim.torch.values.nics.NicsError` where NICs do
        not answer.
        """
        self.tables.changed = self._changed  # rows that PyTorch has written are not there any more
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
        """Note that the NICs are at work, also where they do not get done."""
        self._busy = True
        try:
            yield
        except StuckError as error:
            assert self._nics is not None
            raise NicsError("the NICs do not answer: "
                            + self._nics.diagnose(error)["message"]) from None
        self._busy = False

    def leave(self, kept: torch.Tensor) -> None:
        """Leave a call to PyTorch; ``kept``: see `take`."""
        self._left.add(kept.data_ptr())

    def backward(self, indices: torch.Tensor, kept: torch.Tensor, bags: int | None = None) -> bool:
        """Take note that gradients of a call came back; return whether the call was taken.

        indices, kept: see `take`.
        bags: whose gradients came back; None for all that were taken with ``indices``.
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
        """End the session: look up what waits, and read the counters of the NICs."""
        self.look_up()
        self._close()
        self._retire("")

    def stop(self) -> None:
        """End the session in the middle of a mini-batch, which is left out."""
        self._waiting, self._batch = [], MiniBatch()
        if self._busy and self._nics is not None:
            self._nics.abandon()
            self._nics = None
        self._retire("")

    def leave_off(self) -> None:
        """The program ends early, with other processes that may wait for this one: a mini-batch
        whose vectors are not there is left out."""
        if not self._waiting:
            self._close()

    @own_numerics()
    def look_up(self) -> None:
        """Let the NICs look up the calls that wait, as one mini-batch."""
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
        nics = self._ready(waiting, int(samples.slots.max()))
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

    def _ready(self, waiting: list[_Waiting], slots: int) -> LookupNics:
        """Return NICs that hold all tables, samples of so many slots, and no row that PyTorch has
        changed since."""
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
            elif nics.model.pooling != pooling:
                self._retire("another pooling")
            elif changed and nics.cached:
                nics.switch_caches_off()
            elif not changed and not nics.cached and self._caches:
                self._retire("rows that PyTorch has stopped changing")
        if self._nics is None:
            options = self.options.cluster(len(self.tables.all), self.tables.dimension, slots,
                                           ",".join(map(str, self.owners)) or None)
            kind = TrainingNics if self.nic_optimizer else LookupNics
            self._nics = kind(options, self._model(pooling), self.tables.rows)
            self._addresses = self.tables.addresses
            self._caches = self._nics.cached
        self.uncached += self._caches and not self._nics.cached
        return self._nics

    def _steps(self) -> tuple[int, ...]:
        """Return the number of the mini-batch under way, for each node."""
        return tuple(self.steps or [len(self.record.steps)] * self.options.count)

    def _model(self, pooling: str) -> Model:
        """Return a model with the tables seen so far; its MLPs say nothing."""
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
