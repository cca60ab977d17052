"""Arrival bits: one bit for each packet of each peer's window, whether it has arrived."""

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.formats import NODE_BITS
from rtl.memory import Ram, report_swept
from rtl.network.link.layouts import WINDOW, PacketNumber
from rtl.network.link.renewal import Wipe

__all__ = ["WORD", "WORDS", "ArrivalBits", "WordNumber", "has_come"]

WORD = 64
"""Bits that are read at once."""
WORDS = WINDOW // WORD

WordNumber = data.StructLayout({"node": NODE_BITS, "word": range(WORDS)})
"""A word of a peer's bits."""


def has_come(bits: Value, sequence: Value) -> Value:
    """Return for each of the stored ``bits`` whether its packet has arrived. ``sequence`` is the
    number of one of the packets.

    The next window reuses the bits of a window. A packet stores the complement of the bit that the
    previous packet at its position stored, so no bit is cleared in between.
    """
    lap = sequence[WINDOW.bit_length() - 1]
    return bits ^ lap.replicate(len(bits))


class ArrivalBits(wiring.Component):
    """Store a bit for each of the :data:`WINDOW` packets of a peer that may arrive.

    Each packet reads a word, and writes it with its bit changed if the packet is admitted. After
    reset, a sweep clears one word per cycle.

    Parameters
    ----------
    nodes: number of peers.
    first_sequence: number of each peer's first packet.

    Ports
    -----
    look: :data:`PacketNumber`.
    come: the packet at ``look`` three cycles ago has arrived before; valid if it is in the peer's
        window.
    mark: that packet arrives now; ``come`` is 0. Not in two consecutive cycles.
    scan: :data:`WordNumber`.
    scanned: bits of that word; :func:`has_come` decodes them.
    wipe: :data:`rtl.network.link.renewal.Wipe`: clears a word of a peer; not with ``mark``.
    clearing: word that the sweep clears, counted through all peers.
    ready: the sweep is done.
    """

    LATENCY = {("look", "come"): 3, ("mark", "come of a later look"): 2, ("scan", "scanned"): 1}
    RATE = "1 packet in 2 cycles"

    def __init__(self, nodes: int, *, first_sequence: int = 0):
        self._nodes, self._first = nodes, first_sequence
        super().__init__({
            "look": In(PacketNumber), "come": Out(1), "mark": In(1),
            "scan": In(WordNumber), "scanned": Out(WORD), "wipe": In(Wipe),
            "clearing": Out(range(nodes * WORDS)), "ready": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.looked = looked = Ram(WORD, self._nodes * WORDS, style="bram", latency=2)
        m.submodules.copy = copy = Ram(WORD, self._nodes * WORDS, style="bram")
        number = data.StructLayout(
            {"bit": range(WORD), "word": range(WORDS), "lap": 1, "node": NODE_BITS})
        here, read, now, then = Signal(number), *(
            Signal(number, reset_less=True, name=name) for name in ("read", "now", "then"))
        m.d.comb += Cat(here.bit, here.word, here.lap).eq(self.look.sequence)
        m.d.comb += here.node.eq(self.look.source)
        m.d.sync += [read.eq(here), now.eq(read), then.eq(now)]

        # The decoded position, and two registers of which one is 0, because the read data is late.
        place = Signal(WORD, reset_less=True)
        kept, just_written = (Signal(reset_less=True, name=name) for name in ("kept", "just"))
        # The new bits of a word that is written in the cycle of its read or in the next one.
        met, meets, written = Signal(), Signal(), Signal(WORD, reset_less=True)
        changed, found, word = Signal(WORD), Signal(WORD), Signal(WORD, reset_less=True)
        m.d.comb += [
            found.eq(Mux(met, written, looked.read_data)),
            changed.eq(word ^ Cat(then.bit == k for k in range(WORD))),
        ]
        m.d.sync += [
            meets.eq(self.mark & (Cat(here.word, here.node) == Cat(then.word, then.node))),
            met.eq(meets | (self.mark & (Cat(read.word, read.node) == Cat(then.word, then.node)))),
            word.eq(found), place.eq(Cat(read.bit == k for k in range(WORD))),
            kept.eq((looked.read_data & place).any() & ~met),
            just_written.eq((written & place).any() & met),
        ]
        with m.If(self.mark):
            m.d.sync += written.eq(changed)
        report_swept(m, self.ready)
        with m.If(~self.ready):
            m.d.sync += [self.clearing.eq(self.clearing + 1),
                         self.ready.eq(self.clearing == self._nodes * WORDS - 1)]
        marks, cleared = Signal(), Signal.like(self.clearing)
        m.d.comb += [
            marks.eq(self.ready & ~self.wipe.valid),
            cleared.eq(Mux(self.ready, Cat(
                self.wipe.word[:(WORDS - 1).bit_length()], self.wipe.node), self.clearing)),
        ]
        for ram in (looked, copy):
            m.d.comb += [
                ram.write_en.eq(self.mark | ~marks),
                ram.write_addr.eq(Mux(marks, Cat(then.word, then.node), cleared)),
                ram.write_data.eq(Mux(marks, changed, self._nothing(cleared))),
            ]
        m.d.comb += [
            self.come.eq((kept | just_written) ^ then.lap),
            looked.read_addr.eq(Cat(here.word, here.node)),
            copy.read_addr.eq(Cat(self.scan.word, self.scan.node)),
            self.scanned.eq(copy.read_data),
        ]
        return m

    def _nothing(self, cleared: Value) -> Value:
        """Return the value of the word ``cleared`` while no packet has arrived. The first window
        may begin anywhere in a lap; positions before its beginning belong to the next lap."""
        place, lap = self._first % WINDOW, self._first // WINDOW % 2
        first = place // WORD
        word = cleared[:(WORDS - 1).bit_length()]
        ones = (1 << WORD) - 1
        second = (1 << place % WORD) - 1  # bits of the next lap in the word where the window begins
        partly = second if not lap else ones & ~second
        behind = Mux(word == first, C(partly, WORD), C(ones * lap, WORD))
        # No word is before the first one.
        return Mux(word < first, C(ones * (1 - lap), WORD), behind) if first else behind
