"""Credits: a receiver's count of consumed beats, and a sender's window relative to it."""

from amaranth.hdl import C, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.formats import CREDIT_BITS, NODE_BITS
from rtl.memory import Ram, sweep
from rtl.network.layouts import AtNode, Credit, Freed, FreedBeats
from rtl.network.sums import carry_saved
from rtl.stream import SkidBuffer

__all__ = ["HALF", "CreditCounter", "CreditGate", "check_nodes"]

HALF = 1 << (CREDIT_BITS - 1)
"""Half of the range of counts. A count that is at least this far ahead of another one is older."""


def check_nodes(nodes: object) -> None:
    """Raise ``TypeError`` or ``ValueError`` unless ``nodes`` is an integer from 1 to 256."""
    if isinstance(nodes, bool) or not isinstance(nodes, int):
        raise TypeError(f"nodes must be an integer, not {nodes!r}")
    if not 1 <= nodes <= 1 << NODE_BITS:
        raise ValueError(f"nodes must be between 1 and {1 << NODE_BITS}, not {nodes!r}")


class CreditCounter(wiring.Component):
    """Count the consumed beats of each node mod 2^16, for the headers to that node.

    An event takes effect in the next cycle. After reset, a sweep clears one counter per cycle.
    ``clear`` clears a single counter in the first cycle without an event.

    Parameters
    ----------
    nodes: number of nodes.
    readers: number of blocks that read the counts.
    several: an event may report several beats.

    Ports
    -----
    freed: event :data:`rtl.network.layouts.Freed`, or ``FreedBeats`` if ``several``; not during the
        sweep.
    node[k], value[k]: count of ``node[k]``, combinational.
    clear: :data:`rtl.network.layouts.AtNode`, the counter to clear; held until ``cleared``.
    cleared: the counter is cleared in this cycle.
    idle: the sweep is done.
    """

    def __init__(self, nodes: int, readers: int = 1, *, several: bool = False):
        check_nodes(nodes)
        if not isinstance(readers, int) or readers < 1:
            raise ValueError(f"readers must be a positive integer, not {readers!r}")
        self._nodes, self._readers, self._several = nodes, readers, several
        super().__init__({
            "freed": In(FreedBeats if several else Freed), "node": In(NODE_BITS).array(readers),
            "value": Out(CREDIT_BITS).array(readers), "clear": In(AtNode), "cleared": Out(1),
            "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        address, swept = sweep(m, self._nodes)
        counts = swept & ~self.cleared
        m.d.comb += self.cleared.eq(self.clear.valid & ~self.freed.valid & swept)
        copies = [Ram(CREDIT_BITS, self._nodes, latency=0) for _ in range(self._readers + 1)]
        own, beats = copies[0], self.freed.beats if self._several else 1
        for k, ram in enumerate(copies):
            m.submodules[f"count{k}"] = ram
            node = self.freed.node if k == 0 else self.node[k - 1]
            m.d.comb += [
                ram.write_en.eq(self.freed.valid | ~counts),
                ram.write_addr.eq(Mux(counts, self.freed.node,
                                      Mux(swept, self.clear.node, address))),
                ram.write_data.eq(Mux(counts, own.read_data + beats, 0)),
                ram.read_en.eq(1), ram.read_addr.eq(node),
            ]
            if k:
                m.d.comb += self.value[k - 1].eq(ram.read_data)
        m.d.comb += self.idle.eq(swept)
        return m


class CreditGate(wiring.Component):
    """Pass a packet when its beats fit into the window of its destination.

    At most ``window`` beats per destination are unacknowledged. An acknowledgement is the
    cumulative number of beats that the destination has consumed, mod 2^16. A value between the last
    acknowledgement and the number sent is accepted. A value beyond the number sent acknowledges all
    beats. An older value is ignored.

    Packets pass in order: a packet that does not fit blocks all later packets. Every packet to a
    ``lost`` destination fits.

    Parameters
    ----------
    shape: layout of a packet, with members ``destination`` and ``beats``.
    nodes: number of destinations.

    Ports
    -----
    i, o: streams of ``shape``.
    window: beats, less than ``HALF``. A packet larger than the window never passes.
    lost: bit mask of failed nodes.
    credit_in: event :data:`rtl.network.layouts.Credit`, an acknowledgement.
    acknowledged: event :data:`rtl.network.layouts.Credit`: an accepted acknowledgement and the
        count that holds for ``node`` from the next cycle on.
    stalled: a packet waits for credit in this cycle.
    idle: no packet inside. A packet that waits for credit clears ``idle``, because ``stalled`` is
        counted.
    """

    LATENCY = {("packet", "the same packet"): 2}
    RATE = "1 packet in 2 cycles"

    def __init__(self, shape: data.StructLayout, nodes: int):
        check_nodes(nodes)
        self._shape, self._nodes = shape, nodes
        super().__init__({
            "i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)),
            "window": In(CREDIT_BITS), "lost": In(nodes), "credit_in": In(Credit),
            "acknowledged": Out(Credit),
            "stalled": Out(1), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.output = output = SkidBuffer(self._shape)
        wiring.connect(m, output.o, wiring.flipped(self.o))
        # Two copies of each: packets read one, events the other.
        sent, acked, sent_copy, acked_copy = rams = [
            Ram(CREDIT_BITS, self._nodes, latency=0) for _ in range(4)]
        m.submodules.sent, m.submodules.acknowledged = sent, acked
        m.submodules.sent_copy, m.submodules.acknowledged_copy = sent_copy, acked_copy
        address, swept = sweep(m, self._nodes)
        event = Signal(Credit)
        m.d.sync += [event.eq(self.credit_in), event.valid.eq(self.credit_in.valid & swept)]
        item = self.i.payload
        over, step, beyond = Signal(CREDIT_BITS), Signal(CREDIT_BITS), Signal(CREDIT_BITS)
        m.d.comb += [
            *(ram.read_en.eq(1) for ram in rams),
            sent.read_addr.eq(item.destination), acked.read_addr.eq(item.destination),
            sent_copy.read_addr.eq(event.node), acked_copy.read_addr.eq(event.node),
            step.eq(event.value - acked_copy.read_data),
            # Event values and packets in flight stay below ``HALF``, so the sign shows a value
            # beyond the number sent.
            beyond.eq(sent_copy.read_data - event.value),
        ]
        # sent - acknowledged + beats - window - 1 in one carry chain; negative if the packet fits.
        ones, twos = carry_saved(sent.read_data, ~acked.read_data, ~self.window)
        ones, more = carry_saved(ones, Cat(C(1, 1), twos)[:CREDIT_BITS],
                                 Cat(item.beats, C(0, CREDIT_BITS))[:CREDIT_BITS])
        m.d.comb += over.eq(ones + Cat(C(0, 1), more))
        checked, fits, following = Signal(), Signal(), Signal(CREDIT_BITS)
        passing = Signal()
        m.d.comb += [
            passing.eq(checked & fits & output.i.ready),
            output.i.valid.eq(checked & fits), output.i.payload.eq(item),
            self.i.ready.eq(passing),
            self.idle.eq(swept & ~self.i.valid & ~event.valid & output.idle),
        ]
        for ram in (sent, sent_copy):
            m.d.comb += [
                ram.write_en.eq(passing | ~swept),
                ram.write_addr.eq(Mux(swept, item.destination, address)),
                ram.write_data.eq(Mux(swept, following, 0)),
            ]
        m.d.comb += [
            self.acknowledged.valid.eq(event.valid & (step < HALF)),
            self.acknowledged.node.eq(event.node),
            self.acknowledged.value.eq(Mux(beyond < HALF, event.value, sent_copy.read_data)),
        ]
        for ram in (acked, acked_copy):
            m.d.comb += [
                ram.write_en.eq(self.acknowledged.valid | ~swept),
                ram.write_addr.eq(Mux(swept, event.node, address)),
                ram.write_data.eq(Mux(swept, self.acknowledged.value, 0)),
            ]
        with m.If(checked & fits):
            with m.If(passing):
                m.d.sync += checked.eq(0)
        with m.Else():
            # Check, or check again, for use in the next cycle. An event in between can only add
            # credit.
            m.d.sync += [
                checked.eq(self.i.valid & swept),
                fits.eq(((over >= HALF) | self.lost.bit_select(item.destination, 1))
                        & (item.beats < HALF)),
                following.eq(sent.read_data + item.beats),
            ]
        m.d.comb += self.stalled.eq(self.i.valid & checked & ~fits)
        return m
