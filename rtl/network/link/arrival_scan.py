"""Arrival scan: advances each peer's base over arrived packets, and collects the bits of LINK
packets."""

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.formats import NODE_BITS, SEQUENCE_BITS
from rtl.network.layouts import AtNode
from rtl.network.link.arrival_bits import WORD, WORDS, WordNumber, has_come
from rtl.network.link.layouts import ARRIVALS, WINDOW, Arrivals
from rtl.stream import StreamFIFO

__all__ = ["BLOCKS", "ArrivalScan", "Moved", "Report"]

BLOCKS = 2 * WINDOW // ARRIVALS
"""Blocks of :data:`ARRIVALS` packets that have distinct numbers. A window touches at most half of
them plus one."""
_BLOCK_WORDS = ARRIVALS // WORD
_GROUP = 8
"""Bits of a group; one step finds its first 0."""

Moved = data.StructLayout({"valid": 1, "node": NODE_BITS, "base": SEQUENCE_BITS})
"""Event: ``base`` is the first packet of ``node`` that has not arrived, as far as the scan has
read."""

Report = data.StructLayout({"node": NODE_BITS, "block": range(BLOCKS), "forced": 1})
"""A LINK packet that may be due for ``node``, about the packets whose block number modulo
:data:`BLOCKS` is ``block``. ``forced``: send it even if no packet is missing and headers have
acknowledged all."""


class ArrivalScan(wiring.Component):
    """Scan the arrival bits of the peers in turn, and make the reports that are due.

    A report is made if it is forced, if a packet of the block is missing before one that has
    arrived, or if no header has acknowledged the base. Otherwise it is dropped.

    Parameters: ``nodes``.

    Ports
    -----
    came: event :data:`rtl.network.layouts.AtNode`: a packet of ``node`` has been admitted; not
        before the bits are ready.
    base_node, base, told: the scanned peer, its base, and the value of the last header to it;
        combinational.
    moved: event :data:`Moved`.
    scan, scanned: a word of the bits and, one cycle later, its content.
    reports: stream of :data:`Report`.
    links: stream of :data:`rtl.network.link.layouts.Arrivals`.
    made: event: an item of ``links`` is made.
    held: :data:`rtl.network.layouts.AtNode`; while valid, the base of that peer stays, no report to
        it is made, and its turns and reports are dropped.
    busy: the ``held`` peer is still being scanned, or a LINK packet to it waits.
    idle: inactive until an input changes.
    """

    LATENCY = {
        ("event of a packet, nothing else moving", "base, over up to 64 packets"): 9,
        ("base, over up to 64 packets", "base, over 64 more"): 5,
        ("report", "its LINK packet's bits"): 19,
    }
    RATE = "1 peer, over up to 64 packets, in 7 cycles, or 1 report of 512 packets in 19"

    def __init__(self, nodes: int):
        self._nodes = nodes
        super().__init__({
            "came": In(AtNode), "base_node": Out(NODE_BITS), "base": In(SEQUENCE_BITS),
            "told": In(SEQUENCE_BITS), "moved": Out(Moved),
            "scan": Out(WordNumber), "scanned": In(WORD),
            "reports": In(stream.Signature(Report)), "links": Out(stream.Signature(Arrivals)),
            "made": Out(1), "held": In(AtNode), "busy": Out(1), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.turns = turns = StreamFIFO(NODE_BITS, max(2, self._nodes), style="lutram")
        # The peer waits for its turn; cleared in the cycle that begins the turn.
        waits = Signal(self._nodes)
        new = Signal()
        m.d.comb += [new.eq(self.came.valid & ~waits.bit_select(self.came.node, 1)),
                     turns.i.valid.eq(new), turns.i.payload.eq(self.came.node)]

        report = Signal(Report, reset_less=True)
        reporting, reported, offered = Signal(), Signal(), Signal()
        base, below = (Signal(width, reset_less=True, name=name) for name, width in (
            ("base", SEQUENCE_BITS), ("below", WORD)))
        word = Signal(WORD, reset_less=True)
        full = Signal(WORD // _GROUP, reset_less=True)
        group, part = Signal(range(WORD // _GROUP), reset_less=True), Signal(_GROUP,
                                                                             reset_less=True)
        whole = Signal(reset_less=True)
        in_word = WORD.bit_length() - 1
        following = Signal(SEQUENCE_BITS)
        m.d.comb += [
            self.base_node.eq(report.node),
            following.eq(Cat(
                Mux(whole, 0, Cat(_first_zero(part), group)), base[in_word:] + whole)),
        ]
        start, stays = Signal(), Signal()
        # The peer at the head of each queue is held, or the peer being scanned.
        hold_report, hold_turn = (self.held.valid & (self.held.node == node) for node in (
            self.reports.payload.node, turns.o.payload))
        m.d.comb += stays.eq(self.held.valid & (self.held.node == report.node))
        gather, shown = self._gather(m, report, base, below, start, offered, stays)
        with m.FSM() as fsm:
            with m.State("CHOOSE"):
                # At most one report after each peer's turn, and a turn after each report.
                with m.If(self.reports.valid & ~offered & ~(reported & turns.o.valid)):
                    m.d.comb += self.reports.ready.eq(1)
                    m.d.sync += [report.eq(self.reports.payload), reporting.eq(1), reported.eq(1)]
                    with m.If(~hold_report):
                        m.next = "LOOK"
                with m.Elif(turns.o.valid):
                    m.d.comb += turns.o.ready.eq(1)
                    m.d.sync += [report.node.eq(turns.o.payload), reporting.eq(0), reported.eq(0),
                                 waits.bit_select(turns.o.payload, 1).eq(0)]
                    with m.If(~hold_turn):
                        m.next = "LOOK"
            with m.State("LOOK"):
                m.d.sync += base.eq(self.base)
                m.next = "READ"
            with m.State("READ"):
                m.d.sync += below.eq(_below(base))
                m.next = "TAKE"
            with m.State("TAKE"):
                m.d.sync += word.eq(has_come(self.scanned, base) | below)
                m.next = "GROUPS"
            with m.State("GROUPS"):
                m.d.sync += full.eq(Cat(word.word_select(k, _GROUP).all()
                                        for k in range(WORD // _GROUP)))
                m.next = "GROUP"
            with m.State("GROUP"):
                number = _first_zero(full)
                m.d.sync += [group.eq(number), part.eq(word.word_select(number, _GROUP)),
                             whole.eq(full.all())]
                m.next = "MOVE"
            with m.State("MOVE"):
                m.d.comb += self.moved.valid.eq(~stays)
                m.d.sync += base.eq(following)
                with m.If(stays):
                    m.next = "CHOOSE"
                with m.Elif(whole):
                    m.next = "READ"
                with m.Elif(reporting):
                    m.d.comb += start.eq(1)
                    m.next = "GATHER"
                with m.Else():
                    m.next = "CHOOSE"
            with m.State("GATHER"):
                with m.If(gather):
                    m.next = "CHOOSE"
        with m.If(new):
            m.d.sync += waits.bit_select(self.came.node, 1).eq(1)
        m.d.comb += [
            self.moved.node.eq(report.node), self.moved.base.eq(following),
            self.busy.eq((~fsm.ongoing("CHOOSE") & (report.node == self.held.node))
                         | (offered & (shown == self.held.node))),
            self.idle.eq(fsm.ongoing("CHOOSE") & turns.idle & ~self.came.valid & ~offered
                         & ~self.reports.valid),
        ]
        return m

    def _gather(self, m, report, base, below, start, offered, stays) -> tuple[Value, Value]:
        """Collect the bits of the reported block, from the cycle after ``start`` on. Return whether
        this is done, and the node of the last LINK packet. ``offered``: a LINK packet waits to be
        taken. ``stays``: make no LINK packet."""
        bits = Signal(ARRIVALS, reset_less=True)
        at_word, in_block = WORD.bit_length() - 1, ARRIVALS.bit_length() - 1
        block_bits, word_bits = (BLOCKS - 1).bit_length(), in_block - at_word
        # Distance in blocks from the base's block. A block beyond the window is before the base.
        after = Signal(block_bits)
        beyond, ahead = Signal(), Signal(block_bits + 1)
        first = Signal(SEQUENCE_BITS - in_block, reset_less=True)
        m.d.comb += [
            after.eq(report.block - base[in_block:]),
            beyond.eq(after > BLOCKS // 2), ahead.eq(Cat(after, beyond)),
        ]
        number = Signal(range(_BLOCK_WORDS + 4))
        active, ended = Signal(), Signal()
        # Distance in words from the base's word to the word being read; 0 and more are in the
        # window or beyond.
        apart = Signal(word_bits + block_bits + 2)
        m.d.comb += [
            self.scan.node.eq(report.node),
            self.scan.word.eq(Mux(active, Cat(number[:word_bits], report.block), base[at_word:])),
            apart.eq(Cat(number[:word_bits], ahead, beyond) - base[at_word:in_block]),
        ]
        late = apart[-1]
        begun = Signal()
        valid1, valid2 = Signal(), Signal()
        place1, place2 = (Signal(range(_BLOCK_WORDS), reset_less=True, name=name)
                          for name in ("place1", "place2"))
        before1, at1, out1, end1 = (Signal(reset_less=True, name=name)
                                    for name in ("before1", "at1", "out1", "end1"))
        got, carried, hole, unsaid = Signal(WORD, reset_less=True), *(
            Signal(reset_less=True, name=name) for name in ("carried", "hole", "unsaid"))
        come, seen = Signal(WORD), Signal(WORD)
        m.d.comb += [
            come.eq(has_come(self.scanned, Cat(base[:in_block], first))),
            seen.eq(Mux(at1, come | below, Mux(end1, come & below, come))),
        ]
        with m.If(start):
            m.d.sync += [active.eq(1), begun.eq(0), number.eq(0)]
        with m.If(active):
            m.d.sync += [number.eq(number + 1), first.eq(
                base[in_block:] + Cat(ahead, beyond).as_signed()), below.eq(_below(base))]
            with m.If(number == _BLOCK_WORDS - 1):
                m.d.sync += active.eq(0)
        m.d.sync += [
            valid1.eq(active), valid2.eq(valid1), place1.eq(number), place2.eq(place1),
            before1.eq(late), at1.eq(apart == 0), end1.eq(apart == WORDS),
            out1.eq(~late & (apart > WORDS)),
            got.eq(Mux(before1, -1, Mux(out1, 0, seen))),
        ]
        with m.If(valid1 & ~begun):
            m.d.sync += [begun.eq(1), hole.eq(0), carried.eq(beyond | (after == 0))]
        with m.If(valid2):
            rises = got & ~Cat(carried, got)[:WORD]
            m.d.sync += [bits.word_select(place2, WORD).eq(got), carried.eq(got[-1]),
                         hole.eq(hole | rises.any())]
        m.d.sync += [
            ended.eq(valid2 & ~valid1), unsaid.eq(self.told != base),
        ]
        over = Signal()
        m.d.sync += over.eq(ended)
        wanted = report.forced | hole | unsaid
        node = Signal(NODE_BITS, reset_less=True)
        shown = Signal.like(first, reset_less=True)
        m.d.comb += [
            self.made.eq(over & wanted & ~stays), self.links.valid.eq(offered),
            self.links.payload.node.eq(node), self.links.payload.bits.eq(bits),
            self.links.payload.first.eq(Cat(C(0, in_block), shown)),
        ]
        with m.If(self.made):
            m.d.sync += [offered.eq(1), node.eq(report.node), shown.eq(first)]
        with m.Elif(self.links.ready):
            m.d.sync += offered.eq(0)
        return over, node


def _below(sequence: Value) -> Value:
    """Return a bit for each packet of the word of ``sequence``: the packet is before ``sequence``.
    """
    place = sequence[:WORD.bit_length() - 1]
    # No packet of the word is before the last position.
    return Value.cast(Cat(*(place > k for k in range(WORD - 1)), C(0, 1)))


def _first_zero(bits: Value) -> Value:
    """Return the position of the lowest 0 bit; any position if all bits are 1."""
    place = Value.cast(len(bits) - 1)
    for k in reversed(range(len(bits) - 1)):
        place = Mux(bits[k], place, k)
    return Value.cast(place)
