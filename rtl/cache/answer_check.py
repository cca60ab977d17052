"""Answer check: accepts a vector only from the node that owes it, and only once."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.cache.fills import FillWriter
from rtl.formats import LANDING_BITS, NODE_BITS
from rtl.memory import Ram, sweep

__all__ = ["AnswerCheck", "Asked"]

Asked = data.StructLayout({"valid": 1, "id": LANDING_BITS, "node": NODE_BITS})
"""Event: the vector of a miss id is requested from ``node``."""

_LANDED = FillWriter.LATENCY["last beat", "write"]


class AnswerCheck(wiring.Component):
    """Store which node owes the vector of each miss id, and check whether a vector is owed.

    An id is reused once its vector has arrived. The request therefore contains the id and, in the
    bits above it, its lap: the number of requests of the id, modulo 2^(16 - bits of an id). The
    owner echoes both as the vector's tag.

    A vector is owed if it comes from the node of the last request of its id, with the lap of that
    request, and has not been taken yet. A duplicate is therefore rejected, even after its id is in
    use again, until the lap repeats. A vector of another node is rejected too.

    Parameters: ``in_flight``, the number of ids, a power of two, at most 2^15.

    Ports
    -----
    asked: event :data:`Asked`. Its vector must arrive at least two cycles later: in the next cycle
        it is not owed yet.
    tag: tag of ``asked.id`` for the owner to echo, combinational.
    vector: ``tag`` and ``source``, the sending node, of a beat of a vector.
    owed: the vector is owed, one cycle after ``vector``.
    landed: the vector whose last beat arrived :data:`rtl.cache.fills.FillWriter.LATENCY` ``"last
        beat", "write"`` cycles ago was taken, and is no longer owed.
    idle: inactive until an input changes. It is 0 during the sweep, ``in_flight`` cycles after
        reset; ``asked`` must wait for it.
    """

    LATENCY = {("vector", "owed"): 1}
    RATE = "1 question and 1 beat per cycle"

    def __init__(self, in_flight: int):
        most = 1 << LANDING_BITS - 1
        if (not isinstance(in_flight, int) or not 2 <= in_flight <= most
                or in_flight & (in_flight - 1)):
            raise ValueError(f"in_flight must be a power of two, 2 to {most}, not {in_flight!r}")
        self._count = in_flight
        super().__init__({
            "asked": In(Asked), "tag": Out(LANDING_BITS),
            "vector": In(data.StructLayout({"tag": LANDING_BITS, "source": NODE_BITS})),
            "owed": Out(1), "landed": In(1), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        id_bits = ceil_log2(self._count)
        word = data.StructLayout({"node": NODE_BITS, "lap": LANDING_BITS - id_bits})
        address, swept = sweep(m, self._count)
        # The lap of the next request of an id.
        m.submodules.laps = laps = Ram(
            LANDING_BITS - id_bits, self._count, style="lutram", latency=0)
        # The last request; block RAM, because its output is only compared in the same cycle.
        m.submodules.questions = questions = Ram(
            word.size, self._count, style="bram" if self._count > 64 else "lutram", latency=1)
        # The lowest bit of the lap that was last taken.
        m.submodules.taken = taken = Ram(1, self._count, style="lutram", latency=1)
        # Written one cycle later, for short paths: an answer takes longer.
        number, question = Signal(id_bits, reset_less=True), Signal(word, reset_less=True)
        pending, lap = Signal(), laps.read_data
        m.d.sync += [number.eq(self.asked.id), pending.eq(self.asked.valid),
                     question.node.eq(self.asked.node), question.lap.eq(lap)]
        m.d.comb += [
            laps.read_addr.eq(self.asked.id), self.tag.eq(Cat(self.asked.id[:id_bits], lap)),
            laps.write_en.eq(pending | ~swept),
            laps.write_addr.eq(Mux(swept, number, address)),
            laps.write_data.eq(Mux(swept, question.lap + 1, 1)),
            # Lap 0 counts as taken after reset.
            questions.write_en.eq(laps.write_en), questions.write_addr.eq(laps.write_addr),
            questions.write_data.eq(Mux(swept, question, 0)),
        ]
        # Tags of vectors on their way to ``landed``.
        tag, source = self.vector.tag, Signal(NODE_BITS, reset_less=True)
        stages = [tag]
        for k in range(_LANDED):
            stage = Signal(LANDING_BITS, reset_less=True, name=f"tag{k}")
            m.d.sync += stage.eq(stages[-1])
            stages.append(stage)
        m.d.sync += source.eq(self.vector.source)
        found, gone = data.View(word, questions.read_data), stages[-1]
        m.d.comb += [
            questions.read_addr.eq(tag), taken.read_addr.eq(tag),
            self.owed.eq((found.node == source) & (found.lap == stages[1][id_bits:])
                         & (taken.read_data != stages[1][id_bits])),
            taken.write_en.eq(self.landed | ~swept),
            taken.write_addr.eq(Mux(swept, gone[:id_bits], address)),
            taken.write_data.eq(swept & gone[id_bits]),
            self.idle.eq(swept & ~pending),
        ]
        return m
