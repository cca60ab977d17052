"""Packet table: location and state of each unacknowledged packet in the pool."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.formats import NODE_BITS, SEQUENCE_BITS
from rtl.memory import Ram
from rtl.network.link.layouts import WINDOW
from rtl.network.link.packets import Found, Kept, Record
from rtl.stream import CreditQueue

__all__ = ["PacketTable"]

PLACES = WINDOW.bit_length() - 1
QUEUE = 12
"""Packets that may be inside the table: cycles from a reservation until its place is free again."""


class PacketTable(wiring.Component):
    """Store the first beat and the :func:`rtl.network.link.packets.Record` of each packet.

    Answers keep the order of the questions.

    Parameters
    ----------
    nodes: number of peers.
    beats: beats of the pool.
    most: most beats of a packet.

    Ports
    -----
    kept: event :func:`rtl.network.link.packets.Kept`: a packet enters.
    again: stream of {first, record}: the new record of a repeated packet; not taken in the cycle of
        ``kept``.
    free, reserve: a place for an answer is free; reserve it.
    look: {valid, node, sequence, due, newest}: a question, in a cycle after its reservation.
    unused: release a reservation without a question.
    o: stream of :func:`rtl.network.link.packets.Found`, the answers.
    idle: inactive until an input changes.
    """

    LATENCY = {("question", "its answer"): 6}
    RATE = "1 question and 1 packet per cycle"

    def __init__(self, nodes: int, beats: int, most: int):
        self._nodes, self._beats, self._record = nodes, beats, Record(beats, most)
        self._found = Found(beats, most)
        self._question = data.StructLayout({
            "valid": 1, "node": NODE_BITS, "sequence": SEQUENCE_BITS, "due": 1, "newest": 1})
        super().__init__({
            "kept": In(Kept(beats, most)),
            "again": In(stream.Signature(data.StructLayout({
                "first": range(beats), "record": self._record}))),
            "free": Out(1), "reserve": In(1), "unused": In(1), "look": In(self._question),
            "o": Out(stream.Signature(self._found)), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.places = places = Ram(
            len(self.kept.first), self._nodes * WINDOW, style="bram", latency=2)
        m.submodules.records = records = Ram(
            self._record.size, self._beats, style="uram" if self._beats >= 1024 else "auto",
            latency=2)
        m.submodules.queue = queue = CreditQueue(self._found, QUEUE)
        wiring.connect(m, queue.o, wiring.flipped(self.o))
        again = self.again.payload
        m.d.comb += [
            places.write_en.eq(self.kept.valid),
            places.write_addr.eq(_place(self.kept)), places.write_data.eq(self.kept.first),
            places.read_addr.eq(_place(self.look)),
            self.again.ready.eq(~self.kept.valid),
            records.write_en.eq(self.kept.valid | self.again.valid),
            records.write_addr.eq(Mux(self.kept.valid, self.kept.first, again.first)),
            records.write_data.eq(Mux(self.kept.valid, self.kept.record.as_value(),
                                      again.record.as_value())),
            records.read_addr.eq(places.read_data),
            self.free.eq(queue.free), queue.reserve.eq(self.reserve), queue.unused.eq(self.unused),
        ]
        asked = [Signal(self._question, name=f"asked{k}") for k in range(4)]
        first = [Signal.like(self.kept.first, name=f"first{k}", reset_less=True) for k in range(2)]
        m.d.sync += [now.eq(before) for now, before in zip(asked, [self.look, *asked])]
        m.d.sync += [first[0].eq(places.read_data), first[1].eq(first[0])]
        m.d.comb += [
            queue.i.valid.eq(asked[3].valid), queue.i.payload.first.eq(first[1]),
            queue.i.payload.record.eq(records.read_data),
            *(queue.i.payload[name].eq(asked[3][name])
              for name in ("node", "sequence", "due", "newest")),
            self.idle.eq(queue.idle & ~Cat(stage.valid for stage in asked).any()),
        ]
        return m


def _place(packet):
    return Cat(packet.sequence[:PLACES], packet.node)
