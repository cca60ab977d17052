"""Lost misses: zero vectors in place of the vectors that failed nodes owe."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.config import NicConfig
from rtl.formats import (
    BEAT_INDEX_BITS,
    LANDING_BITS,
    NODE_BITS,
    LookupRecord,
    OutgoingRecord,
    PeerBeat,
)
from rtl.memory import Ram, sweep
from rtl.monitor.counters import CounterLayout, count

__all__ = ["LOST_MISSES_COUNTERS", "LostMisses"]

LOST_MISSES_COUNTERS = CounterLayout("kept", "vectors", "walks")

_Asked = data.StructLayout({"valid": 1, "tag": LANDING_BITS, "node": NODE_BITS})
"""The last request with a miss id: the tag that its owner echoes, and the owner."""

_SETTLED = 2
"""Least cycles from a miss to its vector (:class:`rtl.cache.answer_check.AnswerCheck`)."""


class LostMisses(wiring.Component):
    """Answer misses of the remote cache to failed owners with ``lost`` vectors of zeros.

    A miss to a failed node is not sent, and is answered at once. When a node fails, a walk over all
    miss ids answers each id whose last request went to that node. The remote cache rejects the
    zeros if the owner's vector has arrived (:class:`~rtl.cache.answer_check.AnswerCheck`), and the
    owner's vector if it arrives later. Each miss is therefore answered exactly once. A node that
    rejoins counts as failed until the walk that answers its misses is over. Then the remote cache
    must forget the zeros (``back``).

    Vectors of other nodes have priority; they wait while a vector of zeros passes.

    Parameters: ``config``; ``ids``, the number of miss ids, by default those of the remote cache;
    ``sized``: each miss has its own vector size.

    Ports
    -----
    misses, o: streams of :data:`rtl.formats.OutgoingRecord`, from the remote cache and to the
        packager of lookups.
    vectors, fills: streams of :data:`rtl.formats.PeerBeat`, from the network and to the remote
        cache.
    lost: bit mask of failed nodes.
    back: event: a node no longer counts as failed. Later misses to it are sent.
    vector_beats: beats of a vector; not if ``sized``.
    final_beat: number of the last beat of the vector of the miss at ``misses``; if ``sized``.
    counters: misses not sent (``kept``); ``vectors`` of zeros; ``walks``.
    idle: no vector of zeros is pending, and no walk runs.

    Raises ``TypeError`` if ``config`` is not a :class:`~rtl.config.NicConfig`.
    """

    LATENCY = {("miss of another node", "the same miss"): 0, ("vector", "the same vector"): 0,
               ("miss of a lost node", "its vector, if no other comes"): 1 + _SETTLED}
    RATE = ("1 miss and 1 beat per cycle; of lost nodes 1 vector in its beats and 4 cycles; a walk "
            "takes 4 cycles a miss id, and its vectors")

    def __init__(self, config: NicConfig, *, ids: int | None = None, sized: bool = False):
        if not isinstance(config, NicConfig):
            raise TypeError(f"config must be a NicConfig, not {config!r}")
        self._sized = sized
        self._asked = data.StructLayout(
            _Asked.members | ({"final_beat": BEAT_INDEX_BITS} if sized else {}))
        self._nodes, self._ids = config.nodes, config.remote_in_flight if ids is None else ids
        super().__init__({
            "misses": In(stream.Signature(OutgoingRecord)),
            "o": Out(stream.Signature(OutgoingRecord)),
            "vectors": In(stream.Signature(PeerBeat)), "fills": Out(stream.Signature(PeerBeat)),
            "lost": In(config.nodes), "back": Out(1),
            **({"final_beat": In(BEAT_INDEX_BITS)} if sized else
               {"vector_beats": In(range(config.vector_beats + 1))}),
            "counters": Out(LOST_MISSES_COUNTERS), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        id_bits = ceil_log2(self._ids)
        address, swept = sweep(m, self._ids)
        m.submodules.asked = asked = Ram(
            self._asked.size, self._ids, style="bram" if self._ids > 64 else "lutram")
        gone, walking = Signal(self._nodes), Signal()
        # The miss that is answered next, and the remaining wait before its answer.
        held, due = Signal(self._asked), Signal(range(_SETTLED + 1))
        miss, record, question = self.misses.payload, Signal(LookupRecord), Signal(self._asked)
        keeps, kept, loads, passes = (
            Signal(name=name) for name in ("keeps", "kept", "loads", "passes"))
        m.d.comb += [
            record.eq(miss.record), question.valid.eq(1), question.tag.eq(record.landing),
            question.node.eq(miss.destination),
            keeps.eq(gone.bit_select(miss.destination, 1)),
            kept.eq(self.misses.valid & keeps & ~held.valid & ~loads),
            self.o.payload.eq(miss), self.o.valid.eq(self.misses.valid & ~keeps & swept),
            self.misses.ready.eq(Mux(keeps, ~held.valid & ~loads, self.o.ready & swept)),
            passes.eq(self.o.valid & self.o.ready),
            asked.write_en.eq(passes | ~swept),
            asked.write_addr.eq(Mux(swept, record.landing[:id_bits], address)),
            asked.write_data.eq(Mux(swept, question, 0)),
        ]
        if self._sized:
            m.d.comb += question.final_beat.eq(self.final_beat)
        found = self._walk(m, asked, gone, walking, held, loads)
        with m.If(kept):
            m.d.sync += [held.eq(question), due.eq(_SETTLED)]
        with m.Elif(loads):
            m.d.sync += [held.eq(found), due.eq(_SETTLED)]
        with m.Elif(due != 0):
            m.d.sync += due.eq(due - 1)
        ends = self._fill(m, held, due)
        m.d.comb += self.idle.eq(swept & ~walking & ~held.valid & (gone == self.lost))
        count(m, self.counters, kept=kept, vectors=ends)
        return m

    def _walk(self, m: Module, asked: Ram, gone: Signal, walking: Signal, held: Signal,
              loads: Signal) -> Signal:
        """Visit the last request of each id after a node has failed; return the loaded request."""
        place, fresh = Signal(range(self._ids)), Signal()
        read = data.View(self._asked, asked.read_data)
        found, answers = Signal(self._asked), Signal()
        m.d.comb += [asked.read_addr.eq(place), fresh.eq((self.lost & ~gone).any())]
        still = self.lost | Mux(walking, gone, 0)
        m.d.sync += [gone.eq(still), self.back.eq((gone & ~still).any())]
        again, over = Signal(), Signal()
        with m.FSM():
            with m.State("REST"):
                m.d.sync += place.eq(0)
                with m.If(fresh):
                    m.d.sync += walking.eq(1)
                    # The last miss that passed is written meanwhile.
                    m.next = "BEGIN"
            with m.State("BEGIN"):
                m.d.sync += again.eq(fresh)
                m.next = "READ"
            with m.State("READ"):
                m.next = "LOOK"
            with m.State("LOOK"):
                m.d.sync += [found.eq(read), answers.eq(read.valid & gone.bit_select(read.node, 1))]
                m.next = "ACT"
            with m.State("ACT"):
                m.d.comb += loads.eq(answers & ~held.valid)
                with m.If(~answers | loads):
                    m.d.sync += place.eq(place + 1)
                    m.next = "READ"
                    with m.If(place == self._ids - 1):
                        m.d.sync += place.eq(0)
                        m.next = "OVER"
            with m.State("OVER"):
                with m.If(again | fresh):
                    m.next = "BEGIN"
                with m.Elif(~held.valid):
                    m.d.comb += over.eq(1)
                    m.d.sync += walking.eq(0)
                    m.next = "REST"
        with m.If(walking & fresh):
            m.d.sync += again.eq(1)
        count(m, self.counters, walks=over)
        return found

    def _fill(self, m: Module, held: Signal, due: Signal) -> Signal:
        """Pass vectors on, or zeros for the held miss; return whether a vector of zeros ends."""
        within, zeros, beat = Signal(), Signal(), Signal(BEAT_INDEX_BITS)
        own, last, ends = Signal(), Signal(), Signal()
        m.d.comb += [
            # Vectors and zeros are never interleaved.
            own.eq(zeros | (held.valid & (due == 0) & ~self.vectors.valid & ~within)),
            last.eq(beat >= held.final_beat if self._sized else beat + 1 >= self.vector_beats),
            self.fills.valid.eq(own | self.vectors.valid),
            self.vectors.ready.eq(self.fills.ready & ~own),
            ends.eq(own & last & self.fills.ready),
        ]
        with m.If(own):
            m.d.comb += [
                self.fills.payload.tag.eq(held.tag), self.fills.payload.source.eq(held.node),
                self.fills.payload.last.eq(last), self.fills.payload.lost.eq(1),
            ]
            with m.If(self.fills.ready):
                m.d.sync += [zeros.eq(~last), beat.eq(Mux(last, 0, beat + 1))]
        with m.Else():
            m.d.comb += self.fills.payload.eq(self.vectors.payload)
            with m.If(self.vectors.valid & self.vectors.ready):
                m.d.sync += within.eq(~self.vectors.payload.last)
        with m.If(ends):
            m.d.sync += held.valid.eq(0)
        return ends
