"""Arrival scan: moves each peer's base over what has come, and gathers the bits of LINK packets."""

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
"""Blocks of :data:`ARRIVALS` packets that are told apart: a window is in up to half of them and
one more."""
_BLOCK_WORDS = ARRIVALS // WORD
_GROUP = 8
"""Bits in which the first that is 0 is found in one step."""

Moved = data.StructLayout({"valid": 1, "node": NODE_BITS, "base": SEQUENCE_BITS})
"""Event: ``base`` is the first packet of ``node`` that has not come, as far as was looked."""

Report = data.StructLayout({"node": NODE_BITS, "block": range(BLOCKS), "forced": 1})
"""What LINK packets may have to tell ``node``: of the packets whose number is, in blocks, ``block``
modulo :data:`BLOCKS`; ``forced``: even if nothing is missing and headers have told the rest."""


class ArrivalScan(wiring.Component):
    """Look at the bits of peers of which packets have come, in turn, and at what is to be reported.

    A report is made if it is forced, if a packet of the block is missing before one that has come,
    or if no header has told of the base; otherwise it is dropped.

    Latency and rate: see ``LATENCY`` and ``RATE``.

    Parameters: ``nodes``.

    Ports
    -----
    came: event :data:`rtl.network.layouts.AtNode`, a packet of ``node`` has been admitted; not
        before the bits are ready.
    base_node, base, told: of the peer that is looked at, combinational: its base, and what the last
        header to it said.
    moved: event :data:`Moved`.
    scan, scanned: a word of the bits and, a cycle later, its content.
    reports: stream of :data:`Report`.
    links: stream of :data:`rtl.network.link.layouts.Arrivals`.
    made: event: one more of them.
    held: :data:`rtl.network.layouts.AtNode`, as long as it lasts: nothing of that peer moves or is
        reported, and its turns and reports are dropped. busy: it is still looked at, or a LINK
        packet to it waits.
    idle.
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
        # Whether a peer waits for its turn, or begins it in this cycle.
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
        # The peer of what is at the front of each queue is held, or that which is looked at.
        hold_report, hold_turn = (self.held.valid & (self.held.node == node) for node in (
            self.reports.payload.node, turns.o.payload))
        m.d.comb += stays.eq(self.held.valid & (self.held.node == report.node))
        gather, shown = self._gather(m, report, base, below, start, offered, stays)
        with m.FSM() as fsm:
            with m.State("CHOOSE"):
                # A report after each peer's turn at most, and a turn after each report.
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
        """Gather the bits of the reported block, from the cycle after ``start``; return whether
        that is over, and the node of the last LINK packet. ``offered``: a LINK packet waits to be
        taken; ``stays``: none is made."""
        bits = Signal(ARRIVALS, reset_less=True)
        at_word, in_block = WORD.bit_length() - 1, ARRIVALS.bit_length() - 1
        block_bits, word_bits = (BLOCKS - 1).bit_length(), in_block - at_word
        # How many blocks after the base's; beyond the window's is before it.
        after = Signal(block_bits)
        beyond, ahead = Signal(), Signal(block_bits + 1)
        first = Signal(SEQUENCE_BITS - in_block, reset_less=True)
        m.d.comb += [
            after.eq(report.block - base[in_block:]),
            beyond.eq(after > BLOCKS // 2), ahead.eq(Cat(after, beyond)),
        ]
        number = Signal(range(_BLOCK_WORDS + 4))
        active, ended = Signal(), Signal()
        # Words from the base's to the one that is read: 0 and more are in the window or beyond it.
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
    """Return a bit for each packet of the word of ``sequence``: whether it is before it."""
    place = sequence[:WORD.bit_length() - 1]
    # None is beyond the last.
    return Value.cast(Cat(*(place > k for k in range(WORD - 1)), C(0, 1)))


def _first_zero(bits: Value) -> Value:
    """Return the place of the lowest bit that is 0; any if there is none."""
    place = Value.cast(len(bits) - 1)
    for k in reversed(range(len(bits) - 1)):
        place = Mux(bits[k], place, k)
    return Value.cast(place)
