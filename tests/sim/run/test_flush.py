"""Flush of a served model: rows change in memory, the NICs flush, and new lookups get new rows."""

import numpy as np
import pytest

from host.dlrm.dlrm import pooled_reference
from host.dlrm.rows import row_values
from host.wire.rows import GivenRows
from sim.job.options import RunOptions
from sim.nic.registers import address_of
from sim.run.run import Run

NODES, SAMPLES, BATCH, TABLES, ROWS = 3, 720, 12, 3, 40
LOCAL, REMOTE = 1, 2


class _Server:
    """A run whose rows double during traffic; its NICs then flush.

    flushes: values of register ``flush``; each is written after the previous flush has ended on all
        NICs.
    """

    def __init__(self, job: Run, rows: GivenRows, flushes: list[int]):
        self.job, self._rows, self._flushes = job, rows, flushes
        self._address = {name: address_of(job.config, name) for name in ("flush", "flushing")}
        self._open: set[int] = set()
        self.changed = self.renewed = False
        self.first_new: int | None = None
        """First step that was handed out after the last flush."""
        self.old = self.new = self.stale = 0
        """Vectors of old rows, of new rows, and of old rows in a step from ``first_new`` on."""

    def serve(self) -> None:
        """Run to the end; each vector must be the old row or the new row."""
        after, check = self.job._after_quantum, self.job.checks.check

        def compared(step):
            self._compare(step)
            return check(step)

        def quantum(cycle: int) -> None:
            after(cycle)
            self._go_on()

        self.job.checks.check, self.job._after_quantum = compared, quantum
        assert self.job.execute()["complete"] and self.first_new is not None

    def _go_on(self) -> None:
        if not self.changed and self.old > SAMPLES * TABLES / 4:
            self.changed = True
            for table in self._rows.tables:
                table *= 2
            self._begin()
        nodes = self.job.cluster.nodes
        for number in sorted(self._open):
            for access in nodes[number].engine.read_results():
                if access.data:
                    nodes[number].engine.read(self._address["flushing"])
                else:
                    self._open.remove(number)
        if self.changed and not self._open and self.first_new is None:
            self._begin()

    def _begin(self) -> None:
        if not self._flushes:
            step = self.job._next
            assert step is not None, "the run is too short"
            self.first_new = step.number
            return
        bits = self._flushes.pop(0)
        for number, node in enumerate(self.job.cluster.nodes):
            node.engine.write(self._address["flush"], bits)
            node.engine.read(self._address["flushing"])
            self._open.add(number)

    def _compare(self, step) -> None:
        before = pooled_reference(step.samples, self.job.model, self.job.options.workload.seed)
        assert not step.status.any()
        old = (step.answers == before).all(axis=-1)
        new = (step.answers == 2 * before).all(axis=-1)
        assert (old ^ new).all() and (self.changed or old.all())
        self.old, self.new = self.old + int(old.sum()), self.new + int(new.sum())
        if self.first_new is not None and step.number >= self.first_new:
            self.stale += int(old.sum())


@pytest.mark.parametrize("flushes, stays", [
    ([LOCAL, LOCAL | REMOTE], False), ([], True), ([LOCAL], True), ([REMOTE], True)],
    ids=["all", "no-flush", "local-only", "remote-only"])
def test_new_lookups_get_new_rows(tmp_path, backend, flushes, stays):
    rng = np.random.default_rng(45)
    path = tmp_path / "trace.txt"
    path.write_text("".join(" ".join(f"{table}:{row}" for table, row in enumerate(
        rng.integers(ROWS, size=TABLES).tolist())) + "\n" for _ in range(SAMPLES)))
    options = RunOptions.of(config="tiny", data=str(path), format="trace", placement="row",
                            samples=None, mini_batch=BATCH, nodes=NODES, threads=1)
    model = Run(options).model
    rows = GivenRows(tuple(
        row_values(model, options.workload.seed, np.full(count, table), np.arange(count))
        for table, count in enumerate(model.rows)))
    backend(given=rows)
    server = _Server(Run(options), rows, list(flushes))
    server.serve()
    assert server.old and (server.stale > 0) == stays
    assert (server.new > 0) == (LOCAL in flushes)  # else owners keep old rows
