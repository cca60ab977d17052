"""Bag receiver: buffers the bags that requesters send."""

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data

from rtl.bags.layouts import BagBeat
from rtl.config import NicConfig
from rtl.network.lookup_receiver import LookupReceiver
from rtl.stream import SkidBuffer, StreamFIFO

__all__ = ["BagReceiver"]


class BagReceiver(LookupReceiver):
    """Store beats of bags that requesters send against credits, as :class:`LookupReceiver` stores
    lookups, and output them beat by beat.

    The first beat of a packet, and the beat behind a dropped one, is ``fresh``: the bag of the beat
    before it does not continue there.

    Parameters: ``config``; ``owner_bag_beats`` is the depth of the FIFO, ``nodes`` the number of
    requesters.

    Ports
    -----
    o: stream of :data:`rtl.bags.layouts.BagBeat`.
    counters: ``records`` are words of bags.

    Other ports: see :class:`LookupReceiver`.
    """

    LATENCY = {("beat", "the same beat"): 4}
    RATE = "1 beat per cycle"

    def __init__(self, config: NicConfig):
        self._set(config.nodes, config.owner_bag_beats, BagBeat, BagBeat)

    def _enter(self, m: Module, entry: data.View, beat: data.View, come: Value, keep: Value):
        fresh = Signal(init=1)
        with m.If(come):
            m.d.sync += fresh.eq(~keep | beat.last)
        m.d.comb += entry.fresh.eq(fresh)
        return Value.cast(entry)[:len(Value.cast(beat))].eq(beat)

    def _split(self, m: Module, fifo: StreamFIFO, output: SkidBuffer, current: data.View,
               left: Value, gone: Value, quiet: Value) -> None:
        del left
        m.d.comb += [
            output.i.valid.eq(fifo.o.valid), output.i.payload.eq(fifo.o.payload),
            fifo.o.ready.eq(output.i.ready), self.idle.eq(quiet & fifo.idle & output.idle),
        ]
        with m.If(gone):
            m.d.sync += current.source.eq(fifo.o.payload.source)
