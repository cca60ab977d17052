"""Walker: visits the packets of a peer, to free acknowledged packets or to find overdue ones."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.formats import NODE_BITS, SEQUENCE_BITS
from rtl.memory import Ram, sweep
from rtl.network.layouts import AtNode
from rtl.network.link.layouts import ARRIVALS, WINDOW, Arrivals
from rtl.network.link.node_queue import lowest, number
from rtl.network.link.peer_windows import AtSequence
from rtl.network.link.renewal import Wipe

__all__ = ["Question", "Walker"]

WORD = 64
"""Packets per word of acknowledgement bits in the memory."""
_COMPARED = 6
"""Bits of a sequence number that are compared together."""
WORDS = WINDOW // WORD
WORD_BITS, BLOCK_BITS, LAP = (size.bit_length() - 1 for size in (WORD, ARRIVALS, WINDOW))

Question = data.StructLayout({
    "valid": 1, "node": NODE_BITS, "sequence": SEQUENCE_BITS, "due": 1, "newest": 1})
"""A packet to look up; ``due`` and ``newest`` as in :func:`rtl.network.link.packets.Found`."""


class Walker(wiring.Component):
    """Look up each newly acknowledged packet, and one by one the packets that may be overdue.

    The block stores one bit for each packet of the window: whether it is acknowledged. The meaning
    of the bit inverts with each lap of the window, so no bit is cleared. Words of 64 packets are
    read, and the relevant packets are selected from them, by one of three kinds of walk:

    * all unacknowledged packets before the peer's acknowledgement (``told``) or, for a failed peer,
      all packets that were ``sent``;
    * the packets in a :data:`rtl.network.link.layouts.Arrivals`;
    * the first unacknowledged packet, in a walk over packets that may be overdue.

    The three kinds take turns; the last kind yields after each packet.

    Parameters
    ----------
    nodes: number of peers.
    first_sequence: number of the first packet to each peer.

    Ports
    -----
    heard: stream of nodes that have acknowledged packets or have failed.
    lost: bit mask of failed nodes.
    arrived: stream of :data:`rtl.network.link.layouts.Arrivals`.
    looks: stream of nodes whose packets may be overdue.
    node, oldest, told, sent: a peer and its numbers, see
        :class:`rtl.network.link.peer_windows.PeerWindows`.
    freed: event: ``oldest`` advances, after all packets before it were looked up.
    clear: event :data:`rtl.network.layouts.AtNode`: no packet to this node was in flight when the
        walk ended, in the cycle before.
    free, reserve, unused, look: connections to a
        :class:`rtl.network.link.packet_table.PacketTable`.
    held: :data:`rtl.network.layouts.AtNode`; while valid, items of ``heard``, ``arrived`` and
        ``looks`` for that node are dropped.
    busy: a walk over packets of the ``held`` node runs.
    wipe: :data:`rtl.network.link.renewal.Wipe`: marks all packets of the node unacknowledged; only
        while the node is held and not ``busy``.
    begins: event: a walk over packets of ``node`` that may be overdue begins.
    decided, stop: decision about the last packet looked up in that walk; the walk continues behind
        it, or ends.
    over: event: the walk has ended.
    idle: inactive until an input changes.
    """

    LATENCY = {("acknowledgement", "question"): 7}
    RATE = "1 question per cycle in a word of 64 packets, and 4 cycles more a word"

    def __init__(self, nodes: int, first_sequence: int = 0):
        self._nodes, self._first = nodes, first_sequence
        numbers = stream.Signature(range(max(2, nodes)))
        super().__init__({
            "heard": In(numbers), "lost": In(nodes), "arrived": In(stream.Signature(Arrivals)),
            "looks": In(numbers), "node": Out(NODE_BITS), "oldest": In(SEQUENCE_BITS),
            "told": In(SEQUENCE_BITS), "sent": In(SEQUENCE_BITS), "freed": Out(AtSequence),
            "clear": Out(AtNode), "free": In(1), "reserve": Out(1), "unused": Out(1),
            "look": Out(Question), "held": In(AtNode), "busy": Out(1), "wipe": In(Wipe),
            "begins": Out(1), "decided": In(1), "stop": In(1), "over": Out(1), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.words = words = Ram(WORD, self._nodes * WORDS, style="bram")
        address, swept = sweep(m, self._nodes * WORDS)
        heard, arrived, overdue = range(3)
        kind, turn, node = Signal(3), Signal(3), Signal(range(max(2, self._nodes)))
        end, base = Signal(SEQUENCE_BITS), Signal(SEQUENCE_BITS - WORD_BITS)
        # A walk over packets that may be overdue: its node and its position.
        walking, walked, position = Signal(), Signal.like(node), Signal(SEQUENCE_BITS)
        fresh = Signal()
        # First relevant packet in the word, and the end, in the word or beyond it.
        low, high = Signal(WORD_BITS), Signal(signed(SEQUENCE_BITS))
        bits, word, left = (Signal(WORD, name=name, reset_less=True)
                            for name in ("bits", "word", "left"))
        lap, more, write, asked, some = (
            Signal(name=name) for name in ("lap", "more", "write", "asked", "some"))
        covers, last, said = Signal(), Signal(), self.arrived.payload

        offered, choice = Signal(3), Signal(3)
        m.d.comb += [
            offered.eq(Cat(self.heard.valid, self.arrived.valid, walking | self.looks.valid)),
            choice.eq(Mux((offered & turn).any(), lowest(offered & turn), lowest(offered))),
            self.node.eq(node),
        ]
        # Begin of the walk, unless it is before the oldest packet.
        other, behind = Signal(SEQUENCE_BITS), Signal(SEQUENCE_BITS)
        m.d.comb += [other.eq(Mux(kind[arrived], said.first, position)),
                     behind.eq(other - self.oldest)]
        word_address = Cat(base[:WORDS.bit_length() - 1], node)
        marks, cleared = Signal(), Signal.like(address)
        m.d.comb += [
            marks.eq(swept & (write | ~self.wipe.valid)),
            cleared.eq(Mux(swept, Cat(
                self.wipe.word[:WORDS.bit_length() - 1], self.wipe.node), address)),
            words.read_addr.eq(word_address),
            words.write_en.eq(write | ~marks),
            words.write_addr.eq(Mux(marks, word_address, cleared)),
            words.write_data.eq(Mux(marks, word ^ left, self._start(cleared))),
        ]
        # Dropped: the chosen item, if it begins a walk of the held node.
        drops, taken, dropped = Signal(3), Signal(), Signal()
        m.d.comb += [
            drops.eq(Cat(self.held.valid & begins & (self.held.node == of) for of, begins in (
                (self.heard.payload, 1), (said.node, 1), (self.looks.payload, ~walking)))),
            self.arrived.ready.eq(taken | dropped),
        ]
        issue, less = Signal(), Signal(WORD)
        # all bits are the same, except the lowest set bit and the bits below it
        m.d.comb += less.eq(left - 1)
        # The comparison of 24 bits ends behind registers, which shortens the path from ``sent``.
        ended, equal = Signal(), Signal(SEQUENCE_BITS // _COMPARED)
        m.d.sync += [
            write.eq(0), ended.eq(0), self.clear.node.eq(node),
            equal.eq(Cat(end.word_select(k, _COMPARED) == self.sent.word_select(k, _COMPARED)
                         for k in range(len(equal)))),
        ]
        m.d.comb += [self.clear.valid.eq(ended & equal.all()), self.idle.eq(0)]
        with m.FSM(init="SWEEP") as fsm:
            with m.State("SWEEP"), m.If(swept):
                m.next = "IDLE"
            with m.State("IDLE"):
                m.d.comb += self.idle.eq(~offered.any())
                m.d.sync += [
                    kind.eq(choice), fresh.eq(~walking & choice[overdue]),
                    node.eq(Mux(choice[heard], self.heard.payload, Mux(
                        choice[arrived], said.node,
                        Mux(walking, walked, self.looks.payload))))]
                with m.If(offered.any()):
                    m.d.sync += turn.eq(~(choice | (choice - 1)))
                    with m.If(~(choice & drops).any()):
                        m.next = "BOUNDS"
                    with m.Elif(choice[arrived]):
                        m.next = "DROP"
                m.d.comb += self.heard.ready.eq(choice[heard])
                with m.If(choice[overdue] & ~walking):
                    m.d.comb += [self.looks.ready.eq(1)]
                    m.d.sync += [walking.eq(~drops[overdue]), walked.eq(self.looks.payload)]
            with m.State("DROP"):
                m.d.comb += dropped.eq(1)
                m.next = "IDLE"
            with m.State("BOUNDS"):
                begin = Signal(SEQUENCE_BITS)
                m.d.comb += [
                    begin.eq(Mux(~kind[heard] & ~fresh & ~behind[-1], other, self.oldest)),
                    self.begins.eq(kind[overdue] & fresh)]
                m.d.sync += [
                    low.eq(begin[:WORD_BITS]), base.eq(begin[WORD_BITS:]),
                    end.eq(Mux(kind[heard] & ~self.lost.bit_select(node, 1), self.told, self.sent))]
                m.next = "READ"
            with m.State("READ"):
                m.d.sync += [
                    high.eq(end - (base << WORD_BITS)),
                    bits.eq(Mux(kind[arrived], said.bits.word_select(
                        base[:BLOCK_BITS - WORD_BITS], WORD), -1)),
                    lap.eq(base[LAP - WORD_BITS]),
                    last.eq(base[:BLOCK_BITS - WORD_BITS].all()),
                    covers.eq(~kind[arrived] | (
                        base[BLOCK_BITS - WORD_BITS:] == said.first[BLOCK_BITS:]))]
                m.next = "PICK"
            with m.State("PICK"):
                m.d.sync += [
                    word.eq(words.read_data), write.eq(~kind[overdue]),
                    left.eq(~(words.read_data ^ lap.replicate(WORD)) & bits
                            & _between(low, high) & covers.replicate(WORD)),
                    more.eq((high > WORD) & ~(kind[arrived] & last) & covers)]
                m.next = "ASK"
            with m.State("ASK"):
                with m.If(asked & ~some):
                    with m.If(more):
                        m.d.sync += [base.eq(base + 1), low.eq(0)]
                        m.next = "READ"
                    with m.Else():
                        m.next = "END"
                with m.Elif(asked & kind[overdue]):
                    m.next = "WAIT"
                with m.Elif(self.free):
                    m.d.comb += issue.eq(1)
                    m.d.sync += left.eq(left & less)
            with m.State("WAIT"):
                with m.If(self.decided):
                    m.d.sync += position.eq(self.look.sequence + 1)
                    m.next = "IDLE"
                    with m.If(self.stop):
                        m.d.sync += walking.eq(0)
                        m.d.comb += self.over.eq(1)
            with m.State("END"):
                m.d.comb += [
                    self.freed.valid.eq(kind[heard]), taken.eq(kind[arrived]),
                    self.over.eq(kind[overdue])]
                m.d.sync += ended.eq(kind[heard])
                with m.If(kind[overdue]):
                    m.d.sync += walking.eq(0)
                m.next = "IDLE"
        m.d.comb += self.busy.eq((walking & (walked == self.held.node))
                                 | (~fsm.ongoing("IDLE") & (node == self.held.node)))
        # The question, one cycle later, unless no bit was left.
        one, place = Signal(WORD, reset_less=True), Signal(SEQUENCE_BITS - WORD_BITS)
        m.d.sync += [asked.eq(issue), some.eq(left.any()), place.eq(base)]
        with m.If(issue):
            m.d.sync += one.eq(left & ~less)
        m.d.comb += [
            self.look.valid.eq(asked & some), self.unused.eq(asked & ~some),
            self.reserve.eq(issue), self.freed.node.eq(node), self.freed.sequence.eq(end),
            self.look.node.eq(node), self.look.due.eq(kind[overdue]),
            self.look.newest.eq(~left.any()), self.look.sequence.eq(Cat(number(one), place)),
        ]
        return m

    def _start(self, address: Signal) -> Value:
        """Return the word at ``address`` with all packets unacknowledged: the lap of a packet's
        number, which is the next lap for positions before the first packet."""
        lap, place = self._first >> LAP & 1, self._first % WINDOW
        at, inside = divmod(place, WORD)
        mask = (1 << WORD) - 1
        here, behind = mask * lap, mask * (lap ^ 1)
        if not place:
            return Const(here, WORD)
        split = (here & ~((1 << inside) - 1)) | (behind & ((1 << inside) - 1))
        word = address[:WORDS.bit_length() - 1]
        return Mux(word < at, behind, Mux(word == at, split, here))


def _between(low: Value, high: Value) -> Value:
    """Return which of the numbers 0 to 63 are at or above ``low`` and below ``high``."""
    over, some = high[WORD_BITS:-1].any(), ~high[-1]
    # The last number has its own expression: both comparisons would be constant.
    return Value.cast(Cat(
        *((low <= k) & some & (over | (high[:WORD_BITS] > k)) for k in range(WORD - 1)),
        some & over))
