"""RowUpdater: updates the rows of an owner by the sums of their gradients."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.cache.vectors import row_write_layout, vector_beat_layout
from rtl.config import LANES, NicConfig
from rtl.formats import (
    STEP_BITS,
    OptimizerMode,
    OutgoingPartial,
    OutgoingRecord,
    RecordBeat,
)
from rtl.gateable import Gateable
from rtl.gradient.optimizer import RowOptimizer
from rtl.gradient.records import ROW_NUMBER_BITS, RowLookup
from rtl.gradient.reducer_layouts import Flushed, reduced_beat_layout
from rtl.gradient.row_output import RowOutput
from rtl.gradient.row_ring import RowRing
from rtl.gradient.rows_end import RowsEnd
from rtl.gradient.state_unpacker import StateUnpacker
from rtl.monitor.counters import CounterLayout, count

__all__ = ["ROW_UPDATER_COUNTERS", "RowUpdater"]

ROW_UPDATER_COUNTERS = CounterLayout(
    "rows", "update_misses", "states", "bad_states", "stall_places", "stall_requests",
    "stall_rows", "stall_states", "stall_output", "stall_written")


class RowUpdater(Gateable, wiring.Component):
    """Fetch the row of each summed gradient, update it, and write it back (paper, 4.2.2).

    A row is looked up in the local cache, which fetches it from the GPU if necessary. In row-wise
    Adagrad its state is requested from the host. Items wait in a ring of ``config.update_rows``
    places, from which rows enter the optimizer in the order of their sums. The new row goes to the
    host and, if the old row was cached, to its slot; its state goes to the host. The step is done
    when everything has left and the host has written it.

    In row-wise Adagrad, ``landing`` of a state request, of its answer and of the state update is
    the number of the row, modulo 2^16.

    After reset, ``update_rows`` cycles pass before the first sum is taken.

    Ports
    -----
    sums: input stream of :func:`~rtl.gradient.reducer_layouts.reduced_beat_layout`, the beats of a
        key consecutive and in ascending order, of one step until the step is done.
    flushed: input stream of :data:`~rtl.gradient.reducer_layouts.Flushed`, each after the sums
        before it were taken.
    lookups, vectors, write, frozen: to ``updates``, ``updated``, ``write``, ``frozen`` of the
        :class:`~rtl.cache.LocalCache`.
    state_requests: output stream of :data:`rtl.formats.OutgoingRecord` with a ``LookupRecord``.
    states: input stream of :data:`rtl.formats.RecordBeat` of ``StateRecord``. Always ready if the
        host sends only requested states. A state for which no row waits is dropped and counted.
    rows: output stream of :data:`rtl.formats.OutgoingPartial`: beats of new rows.
    state_updates: output stream of :data:`rtl.formats.OutgoingRecord` with a ``StateRecord``.
    written: row beats and states that the host has written, modulo 2^32.
    others (``config.owner_bags``): further writes of the host that a step waits for, modulo 2^32;
        ``written`` counts them too.
    reports: output stream of :data:`rtl.formats.OutgoingRecord` with a ``StepRecord``, ``PASSED``
        at the end of each pass.
    done: output stream of steps whose rows are all written.
    mode, dimension, learning_rate, epsilon: as in :class:`RowOptimizer`; may change only while no
        step is in progress.
    vector_beats: beats of a row; may change only while no step is in progress.
    time: cycle counter, including cycles skipped while idle.
    counters: ``rows`` updated; ``update_misses``, rows that the cache did not hold; ``states``
        taken, ``bad_states`` dropped. Cycles: ``stall_places`` a beat waits for a place,
        ``stall_requests`` for lookups or requests to leave; ``stall_rows`` the oldest row waits for
        its vector, ``stall_states`` for its state alone; ``stall_output`` a beat of a new row waits
        for an output; ``stall_written`` the step waits for the host.
    idle: inactive until an input changes; ``written`` takes effect one cycle later.

    Raises ``TypeError`` if ``config`` is not a :class:`~rtl.config.NicConfig`.
    """

    LATENCY = {
        ("sum of a row of 16 values that the local cache holds", "rows, SGD"): 37,
        ("sum of a row of 16 values that the local cache holds",
         "rows, Adagrad, besides what the state takes"): 111,
    }
    RATE = (
        "1 beat in 2 cycles, that of the optimizer and of sums that leave global reduction, "
        "while update_rows cover the way from the sum to the end of the row")

    def __init__(self, config: NicConfig):
        if not isinstance(config, NicConfig):
            raise TypeError(f"config must be a NicConfig, not {config!r}")
        self._config = config
        super().__init__({
            "sums": In(stream.Signature(reduced_beat_layout())),
            "flushed": In(stream.Signature(Flushed)),
            "lookups": Out(stream.Signature(RowLookup)),
            "vectors": In(stream.Signature(
                vector_beat_layout(ROW_NUMBER_BITS, config.local_cache_rows))),
            "write": Out(stream.Signature(
                row_write_layout(config.local_cache_rows, config.vector_beats))),
            "frozen": Out(1),
            "state_requests": Out(stream.Signature(OutgoingRecord)),
            "states": In(stream.Signature(RecordBeat)),
            "rows": Out(stream.Signature(OutgoingPartial)),
            "state_updates": Out(stream.Signature(OutgoingRecord)),
            "written": In(32),
            "reports": Out(stream.Signature(OutgoingRecord)),
            "done": Out(stream.Signature(STEP_BITS)),
            "mode": In(OptimizerMode), "dimension": In(range(16 * LANES + 1)),
            "learning_rate": In(32), "epsilon": In(32),
            "vector_beats": In(range(config.vector_beats + 1)), "time": In(32),
            "counters": Out(ROW_UPDATER_COUNTERS), "idle": Out(1),
            **({"others": In(32)} if config.owner_bags else {})})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.ring = ring = RowRing(self._config)
        m.submodules.unpacker = unpacker = StateUnpacker(self._config.update_rows)
        m.submodules.optimizer = optimizer = RowOptimizer(self._config, id_bits=ROW_NUMBER_BITS)
        m.submodules.output = output = RowOutput(self._config)
        m.submodules.end = end = RowsEnd()
        wiring.connect(m, unpacker.o, ring.states)
        wiring.connect(m, ring.o, optimizer.i)
        wiring.connect(m, optimizer.o, output.i)
        for port, block, name in (
                ("sums", ring, "sums"), ("vectors", ring, "vectors"), ("flushed", end, "flushed"),
                ("states", unpacker, "i")):
            wiring.connect(m, wiring.flipped(getattr(self, port)), getattr(block, name))
        for port, block, name in (
                ("lookups", ring, "lookups"), ("state_requests", ring, "state_requests"),
                ("write", output, "write"), ("rows", output, "rows"),
                ("state_updates", output, "states"), ("reports", end, "reports"),
                ("done", end, "done")):
            wiring.connect(m, getattr(block, name), wiring.flipped(getattr(self, port)))

        adagrad = Signal()
        m.d.sync += adagrad.eq(self.mode == OptimizerMode.ROWWISE_ADAGRAD)
        m.d.comb += [
            *(getattr(optimizer, name).eq(getattr(self, name))
              for name in ("mode", "dimension", "learning_rate", "epsilon")),
            ring.adagrad.eq(adagrad), output.adagrad.eq(adagrad),
            ring.vector_beats.eq(self.vector_beats), output.step.eq(ring.step),
            *(getattr(ring, name).eq(getattr(output, name))
              for name in ("read_en", "read_place", "freed")),
            *(getattr(output, name).eq(getattr(ring, name)) for name in ("key", "slot", "held")),
            end.begins.eq(ring.begins), end.empty.eq(ring.empty & output.idle),
            end.sent.eq(output.sent + self.others if self._config.owner_bags else output.sent),
            end.written.eq(self.written), self.frozen.eq(end.frozen),
            self.idle.eq(ring.idle & unpacker.idle & optimizer.idle & output.idle & end.idle),
        ]

        # The block is inactive in the cycles that are counted here, so ``time`` counts them.
        before, passed = Signal(32), Signal(32)
        m.d.comb += passed.eq(self.time - before)
        m.d.sync += before.eq(self.time)
        count(m, self.counters, rows=output.freed, update_misses=ring.missed,
              states=ring.accepted, bad_states=ring.dropped, stall_places=ring.waits_place,
              stall_requests=ring.waits_request, stall_output=output.waits,
              stall_rows=Mux(ring.waits_row, passed, 0),
              stall_states=Mux(ring.waits_state, passed, 0),
              stall_written=Mux(end.waits, passed, 0))
        return m
