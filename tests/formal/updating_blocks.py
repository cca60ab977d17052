"""The row updater and the local cache's part for updates, of small sizes; substitutes for the
tables, the optimizer and the unpacker of states."""

from types import SimpleNamespace

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.cache.local import LocalCache
from rtl.cache.vectors import row_write_layout, vector_beat_layout
from rtl.formats import OptimizerMode
from rtl.gradient.arrivals import Arrivals
from rtl.gradient.optimizer import RowOptimizer
from rtl.gradient.row_output import RowOutput
from rtl.gradient.row_ring import RowRing
from rtl.gradient.rows_end import RowsEnd
from rtl.gradient.state_unpacker import StateUnpacker
from rtl.gradient.updater import RowUpdater
from rtl.stream import SkidBuffer
from tests.formal.bench import Bench
from tests.formal.shown import LOCALS, ShownRam, made_at_once
from tests.mutants import variant

__all__ = ["COUNT", "KEY", "LOOKUP", "NUMBER", "PLACES", "STATE", "SUM", "UpdaterBlocks"]

PLACES, SLOTS, NUMBER, COUNT = 2, 2, 2, 3
"""Rows in the ring, slots, bits of a row's number (16 in the hardware) and of a count of sent data
(32)."""

KEY = data.StructLayout({"row": 1, "table": 1})
LOOKUP = data.StructLayout({"key": KEY, "meta": NUMBER})
REQUEST = data.StructLayout({"row": 1, "table": 1, "landing": NUMBER})
STATE = data.StructLayout({"state": 1, "landing": NUMBER})
OUTGOING = data.StructLayout({"step": 1, "record": max(REQUEST.size, STATE.size)})
SUM = data.StructLayout({"step": 1, "key": KEY, "beat": 1, "data": 1, "last": 1})
FLUSHED = data.StructLayout({"step": 1, "passed": 1})
_RECORD_BEAT = data.StructLayout({"data": 1, "records": 1})
_FILL = data.StructLayout({"id": NUMBER, "data": 1, "last": 1})
STEP_RECORD = data.StructLayout({"count": 1, "kind": 2, "level": 1})


def _vector(meta, slots: int = 0) -> data.StructLayout:
    return data.StructLayout({**vector_beat_layout(meta, slots).members, "data": 1})


def _write(slots: int, beats: int) -> data.StructLayout:
    return data.StructLayout({**row_write_layout(slots, beats).members, "data": 1})


def _update(id_bits: int) -> data.StructLayout:
    return data.StructLayout({"row": 1, "gradient": 1, "state": 1, "id": id_bits, "last": 1})


def _updated(id_bits: int) -> data.StructLayout:
    return data.StructLayout({"row": 1, "state": 1, "id": id_bits, "last": 1})


def _shown(text: str, name: str = "at") -> tuple[str, str]:
    """Return an edit by which a block exposes its local names as its member ``name``."""
    return f"        {text}", f"        {LOCALS.format(name)}{text}"


class UpdaterBlocks:
    """The parts of :class:`~tests.formal.updating.Updating`.

    Members
    -------
    bench, beats: the bench, and beats of a vector.
    embedding: the substitute for the tables.
    answers, answer: inputs to drive: it answers a lookup, and the answer.
    computing: beats inside the optimizer: valid flags, and values.
    """

    bench: Bench
    beats: int
    embedding: wiring.Component
    computing: tuple[Signal, list[Signal]]

    def _edited(self, block: type, *shown: tuple[str, str], **names) -> type:
        edits = [edit for name, *edit in self._edits if name == block.__name__]
        return made_at_once(variant(block, *edits, *shown, **names))

    def _updater(self) -> RowUpdater:
        """Return the row updater with narrow blocks."""
        self.config = config = SimpleNamespace(owner_bags=0,
            update_rows=PLACES, vector_beats=self.beats, local_cache_rows=SLOTS, store_bits=1,
            local_cache_ways=1, misses_in_flight=2, dedupe_in_flight=2, local_cache_sets=2,
            training=1, policy="")
        arrivals = self._edited(
            Arrivals, _shown("return m\n"), ROW_NUMBER_BITS=NUMBER, Ram=ShownRam)
        skid = self._edited(SkidBuffer, _shown("return m\n\n\ndef"))
        row = data.StructLayout({"step": 1, "data": 1, "record": data.StructLayout(
            {"row": 1, "table": 1, "beat": 1})})
        ring = self._edited(
            RowRing, _shown("return m\n"), _shown("return found\n", "finding"),
            _shown("return number\n", "landing"), _shown("return left, ", "feeding"),
            Ram=ShownRam, SkidBuffer=skid, Key=KEY, ROW_NUMBER_BITS=NUMBER, RowLookup=LOOKUP,
            LookupRecord=REQUEST, OutgoingRecord=OUTGOING, StateRecord=STATE, STEP_BITS=1,
            Arrivals=arrivals, vector_beat_layout=_vector, reduced_beat_layout=lambda: SUM,
            update_layout=_update)
        output = self._edited(
            RowOutput, _shown("return m\n\n\nclass"),
            ('"sent": Out(32)', f'"sent": Out({COUNT})'),
            SkidBuffer=skid, Key=KEY, ROW_NUMBER_BITS=NUMBER, OutgoingPartial=row,
            OutgoingRecord=OUTGOING, StateRecord=STATE, STEP_BITS=1, row_write_layout=_write,
            updated_layout=_updated)
        return self._edited(
            RowUpdater, ('"written": In(32)', f'"written": In({COUNT})'), NicConfig=SimpleNamespace,
            RowRing=ring, RowOutput=output, RowsEnd=self._edited(
                RowsEnd, ("with m.FSM():", "with m.FSM() as fsm:"),
                _shown("return m\n"), ('"sent": In(32), "written": In(32)',
                                       f'"sent": In({COUNT}), "written": In({COUNT})'),
                STEP_BITS=1, OutgoingRecord=OUTGOING, StepRecord=STEP_RECORD,
                Flushed=FLUSHED),
            StateUnpacker=self._states(), RowOptimizer=self._optimizer(),
            RecordBeat=_RECORD_BEAT, ROW_NUMBER_BITS=NUMBER, STEP_BITS=1,
            reduced_beat_layout=lambda: SUM, Flushed=FLUSHED, RowLookup=LOOKUP,
            vector_beat_layout=_vector, row_write_layout=_write, OutgoingRecord=OUTGOING,
            OutgoingPartial=row)(config)

    def _states(self) -> type:
        """Return the substitute for the unpacker: any states."""
        bench = self.bench
        valid, state = bench.free(name="state_comes"), bench.free(STATE.size, "state")

        class States(StateUnpacker):
            def __init__(self, states: int):
                wiring.Component.__init__(self, {
                    "i": In(stream.Signature(_RECORD_BEAT)), "o": Out(stream.Signature(STATE)),
                    "idle": Out(1)})

            def elaborate(self, platform) -> Module:
                m = Module()
                m.d.comb += [self.o.valid.eq(valid), self.o.payload.as_value().eq(state)]
                return m
        return States

    def _optimizer(self) -> type:
        """Return the substitute for the optimizer: the same number of beats, each after any time.
        """
        goes, takes, owner = (self.bench.free(name="computed"), self.bench.free(name="computes"),
                              self)
        places = PLACES * self.beats

        class Optimizer(RowOptimizer):
            def __init__(self, config, *, id_bits: int):
                wiring.Component.__init__(self, {
                    "i": In(stream.Signature(_update(id_bits))),
                    "o": Out(stream.Signature(_updated(id_bits))),
                    "mode": In(OptimizerMode), "dimension": In(1), "learning_rate": In(1),
                    "epsilon": In(1), "idle": Out(1)})

            def elaborate(self, platform) -> Module:
                m = Module()
                shape = self.o.payload.shape()
                held, shown = Signal(places), Signal()
                items = [Signal(shape, name=f"item{k}") for k in range(places + 1)]
                came, left = Signal(), Signal(places)
                beat, new = self.i.payload, Signal(shape)
                owner.computing = held, items
                m.d.comb += [
                    self.i.ready.eq(~held[-1] & takes),
                    came.eq(self.i.valid & self.i.ready),
                    self.o.valid.eq(held[0] & (shown | goes)),
                    self.o.payload.eq(items[0]), self.idle.eq(~held.any()),
                    new.row.eq(beat.row ^ beat.gradient), new.state.eq(beat.state),
                    new.id.eq(beat.id), new.last.eq(beat.last),
                    left.eq(Mux(self.o.valid & self.o.ready, held >> 1, held))]
                m.d.sync += [held.eq(Mux(came, Cat(1, left), left)),
                             shown.eq(self.o.valid & ~self.o.ready)]
                for k in range(places):
                    with m.If(came & ~left[k] & (left[k - 1] if k else 1)):
                        m.d.sync += items[k].eq(new)
                    with m.Elif(self.o.valid & self.o.ready):
                        m.d.sync += items[k].eq(items[k + 1])
                return m
        return made_at_once(Optimizer)

    def _cache(self) -> LocalCache:
        """Return the local cache without its tables."""
        owner, bench = self, self.bench
        settled, ready, answer = (
            bench.free(name="settled"), bench.free(name="cache_ready"), Signal(_vector(
                NUMBER + 1, SLOTS)))
        self.answer, self.answers = answer, Signal()
        event = data.StructLayout({"valid": 1, "key": KEY})

        class Embedding(wiring.Component):
            def __init__(self, key_bits: int, meta_bits: int, **options):
                super().__init__({
                    "lookups": In(stream.Signature(
                        data.StructLayout({"key": key_bits, "meta": meta_bits}))),
                    "vectors": Out(stream.Signature(_vector(meta_bits, SLOTS))),
                    "misses": Out(stream.Signature(
                        data.StructLayout({"key": key_bits, "id": NUMBER}))),
                    "fills": In(stream.Signature(_FILL)),
                    "write": In(stream.Signature(_write(SLOTS, owner.beats))),
                    "sets": In(2), "enable": In(1), "merge": In(1), "frozen": In(1),
                    "forget": In(1),
                    "vector_beats": In(range(owner.beats + 1)), "settled": Out(1),
                    "evicted": Out(event), "landed": Out(1), "tap": Out(KEY), "idle": Out(1),
                    "counters": Out(data.StructLayout({"frozen": 1}))})
                owner.embedding = self

            def elaborate(self, platform) -> Module:
                m = Module()
                m.d.comb += [
                    self.settled.eq(self.frozen & settled),
                    self.lookups.ready.eq(ready), self.write.ready.eq(
                        owner.write_ready),
                    self.vectors.valid.eq(owner.answers), self.vectors.payload.eq(answer)]
                return m

        self.write_ready = Signal()
        m = self.bench.m
        m.d.comb += self.write_ready.eq(bench.free(name="write_ready"))
        cache = self._edited(
            LocalCache, NicConfig=SimpleNamespace, EmbeddingCache=Embedding, Key=KEY,
            FILL_ID_BITS=NUMBER, FillBeat=_FILL, LOCAL_CACHE_COUNTERS=(),
            vector_beat_layout=_vector, row_write_layout=_write,
            tap_layout=lambda key: KEY)(self.config)
        m.d.comb += [cache.lookups.valid.eq(bench.free(name="lookup")),
                     cache.lookups.payload.as_value().eq(bench.free(LOOKUP.size, "of")),
                     cache.vectors.ready.eq(bench.free(name="vectors_ready"))]
        return cache
