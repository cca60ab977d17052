"""Answer check: a vector is taken only from the node that owes it, and only once."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.cache.fills import FillWriter
from rtl.formats import LANDING_BITS, NODE_BITS
from rtl.memory import Ram, sweep

__all__ = ["AnswerCheck", "Asked"]

Asked = data.StructLayout({"valid": 1, "id": LANDING_BITS, "node": NODE_BITS})
"""Event: the vector of a miss id is asked for, of ``node``."""

_LANDED = FillWriter.LATENCY["last beat", "write"]


class AnswerCheck(wiring.Component):
    """Keep who owes the vector of each miss id, and tell which vectors are owed.

    An id is used again once its vector is here. So what goes to the owner, and comes back as the
    vector's tag, is the id and, in the bits above it, its lap: how often the id was asked for,
    modulo 2^(16 - bits of an id). A vector is owed if it comes from the node that was last asked
    for its id, with the lap of that question, and has not been taken yet. So a vector that comes
    twice is refused the second time, also after its id is in use again, up to as many laps later;
    and so is one of a node that was not asked.

    Latency and rate: see ``LATENCY`` and ``RATE``.

    Parameters: ``in_flight``, the number of ids, a power of two, at most 2^15.

    Ports
    -----
    asked: event :data:`Asked`. Its vector must come two cycles later or after that: it is not owed
        in the next cycle. tag: the tag of ``asked.id`` for the owner to echo, combinational.
    vector: ``tag``, and ``source``, the node that has sent it, of a beat of a vector.
    owed: in the cycle after: the vector is owed.
    landed: the vector whose last beat came :data:`rtl.cache.fills.FillWriter.LATENCY` ``"last
        beat", "write"`` cycles ago was taken, and is owed no more.
    idle: nothing moves until an input does; before it is 1 for the first time, ``in_flight`` cycles
        after reset, nothing is asked.
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
        # The lap of the next question of an id.
        m.submodules.laps = laps = Ram(
            LANDING_BITS - id_bits, self._count, style="lutram", latency=0)
        # What was last asked; block RAM, as its answer is only compared in the same cycle.
        m.submodules.questions = questions = Ram(
            word.size, self._count, style="bram" if self._count > 64 else "lutram", latency=1)
        # The lowest bit of the lap that was last taken.
        m.submodules.taken = taken = Ram(1, self._count, style="lutram", latency=1)
        # Written a cycle later, for short paths: an answer takes longer.
        number, question = Signal(id_bits, reset_less=True), Signal(word, reset_less=True)
        pending, lap = Signal(), laps.read_data
        m.d.sync += [number.eq(self.asked.id), pending.eq(self.asked.valid),
                     question.node.eq(self.asked.node), question.lap.eq(lap)]
        m.d.comb += [
            laps.read_addr.eq(self.asked.id), self.tag.eq(Cat(self.asked.id[:id_bits], lap)),
            laps.write_en.eq(pending | ~swept),
            laps.write_addr.eq(Mux(swept, number, address)),
            laps.write_data.eq(Mux(swept, question.lap + 1, 1)),
            # Lap 0 is taken from the start.
            questions.write_en.eq(laps.write_en), questions.write_addr.eq(laps.write_addr),
            questions.write_data.eq(Mux(swept, question, 0)),
        ]
        # A vector on its way to ``landed``.
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
