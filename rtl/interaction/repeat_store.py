"""Repeat store: gives bags that repeat a bag of the previous sample the vector of that bag."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.config import NicConfig
from rtl.interaction.records import PooledBeat, pooled_beat
from rtl.memory import Ram
from rtl.monitor.counters import CounterLayout, count
from rtl.stream import SkidBuffer

__all__ = ["RepeatStore"]


class RepeatStore(wiring.Component):
    """Store the pooled vector of each ``kept`` bag by its position, and replace the zeros of each
    ``repeat`` by the vector at its position. A repeat is ``lost`` if that vector is lost.

    The order of the bags makes it the vector of the bag that is repeated
    (:class:`rtl.query.BagRepeats`).

    Parameters: ``config``, with ``owner_bags`` and ``repeat_words``; ``repeat_vectors`` is the
    number of vectors.

    Ports
    -----
    i: stream of :func:`~rtl.interaction.records.pooled_beat`.
    o: stream of :data:`~rtl.interaction.records.PooledBeat`.
    counters: vectors ``kept``; ``repeats``.
    idle: no beat inside.

    Raises ``TypeError`` if ``config`` is not a :class:`~rtl.config.NicConfig`, ``ValueError`` if it
    has no ``owner_bags`` or no ``repeat_words``.
    """

    LATENCY = {("beat", "the same beat"): 2}
    RATE = "1 beat per cycle"

    def __init__(self, config: NicConfig):
        if not isinstance(config, NicConfig):
            raise TypeError(f"config must be a NicConfig, not {config!r}")
        config.check_repeats()
        self._beats, self._bits = config.vector_beats, config.store_bits
        self._vectors, self._beat = config.repeat_vectors, pooled_beat(config.repeat_positions)
        super().__init__({
            "i": In(stream.Signature(self._beat)), "o": Out(stream.Signature(PooledBeat)),
            "counters": Out(CounterLayout("kept", "repeats")), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        number = ceil_log2(self._beats)
        depth = self._vectors << number
        # Beside each beat: whether its bag is lost.
        m.submodules.store = store = Ram(
            self._bits + 1, depth, style="uram" if depth >= 2048 else "bram")
        m.submodules.output = output = SkidBuffer(PooledBeat)
        wiring.connect(m, output.o, wiring.flipped(self.o))
        beat, valid = Signal(self._beat, reset_less=True), Signal()
        coming, out, taken = self.i.payload, output.i.payload, Signal()
        place, address = Signal(number), Signal(range(depth))
        m.d.comb += [
            self.i.ready.eq(~valid | output.i.ready), taken.eq(self.i.valid & self.i.ready),
            address.eq(Cat(place, coming.position)),
            store.read_en.eq(self.i.ready), store.read_addr.eq(address),
            store.write_en.eq(taken & coming.kept), store.write_addr.eq(address),
            store.write_data.eq(Cat(coming.data[:self._bits], coming.lost)),
            output.i.valid.eq(valid),
            *(out[name].eq(beat[name]) for name in PooledBeat.members),
            self.idle.eq(~valid & output.idle),
        ]
        with m.If(beat.repeat):
            m.d.comb += [out.data.eq(store.read_data[:self._bits]),
                         out.lost.eq(store.read_data[self._bits])]
        with m.If(self.i.ready):
            m.d.sync += [valid.eq(self.i.valid), beat.eq(coming)]
        with m.If(taken):
            m.d.sync += place.eq(place + 1)
            with m.If(coming.beat_last):
                m.d.sync += place.eq(0)
        ends = taken & coming.beat_last
        count(m, self.counters, kept=ends & coming.kept, repeats=ends & coming.repeat)
        return m
