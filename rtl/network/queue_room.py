"""Queue room: number of waiting records and credit of each destination."""

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.formats import CREDIT_BITS, NODE_BITS
from rtl.memory import Ram
from rtl.network.layouts import AtNode, Credit
from rtl.network.sums import carry_saved

__all__ = ["Found", "Gone", "QueueRoom"]


def Found(places: int) -> data.StructLayout:
    """Layout of the state of a queue: waiting records, beats of credit (two's complement), and the
    cumulative number of records that left, mod 2^16."""
    return data.StructLayout({
        "waiting": range(places + 1), "credit": CREDIT_BITS, "gone": CREDIT_BITS})


Gone = data.StructLayout({"valid": 1, "node": NODE_BITS, "value": CREDIT_BITS})
"""Event: ``value`` records of ``node`` have left in total, mod 2^16."""


class QueueRoom(wiring.Component):
    """Count arriving and departing records per destination, and compute the remaining credit.

    Every count is cumulative, modulo a power of two above the largest difference, and has one
    writer. An event takes effect in the next cycle.

    Parameters
    ----------
    nodes: number of destinations.
    places: records of a queue.

    Ports
    -----
    clear, clear_node: set the counts of a node to 0.
    entered: event: a record for ``node`` arrives, at ``last_place`` of its queue.
    last_place: place of the record in ``entered``, combinational.
    gone: event :data:`Gone`.
    joined, acknowledged, window: see :class:`~rtl.network.OutputQueues`.
    lost: bit mask of failed nodes; each has credit for all its waiting records.
    look: a node.
    found: :func:`Found` of ``look``, combinational.
    """

    LATENCY = {("look", "what is found"): 0}

    def __init__(self, nodes: int, places: int):
        self._nodes, self._most, self._found = nodes, places, Found(places)
        super().__init__({
            "clear": In(1), "clear_node": In(NODE_BITS), "entered": In(AtNode),
            "last_place": Out(range(places)), "gone": In(Gone), "joined": In(AtNode),
            "acknowledged": In(Credit), "window": In(CREDIT_BITS), "lost": In(self._nodes),
            "look": In(NODE_BITS),
            "found": Out(self._found)})

    def elaborate(self, platform) -> Module:
        m = Module()
        found = self.found
        entered, last = self._count(m, "entered", len(found.waiting), self.entered)
        gone = self._value(m, "gone", self.gone, self.gone.value)
        joined, _ = self._count(m, "joined", CREDIT_BITS, self.joined)
        acknowledged = self._value(m, "acknowledged", self.acknowledged, self.acknowledged.value)
        # window + joined + acknowledged - gone, in one carry chain.
        ones, twos = carry_saved(self.window, joined, acknowledged)
        ones, more = carry_saved(ones, Cat(C(1, 1), twos)[:CREDIT_BITS], ~gone)
        m.d.comb += [
            self.last_place.eq(last), found.gone.eq(gone), found.waiting.eq(entered - gone),
            found.credit.eq(Mux(self.lost.bit_select(self.look, 1), self._most,
                                ones + Cat(C(0, 1), more))),
        ]
        return m

    def _value(self, m: Module, name: str, event, value: Value) -> Value:
        """Store the value of each node's last event; return the value of node ``look``."""
        m.submodules[name] = ram = Ram(len(value), self._nodes, latency=0)
        m.d.comb += [
            ram.write_en.eq(event.valid | self.clear), ram.read_en.eq(1),
            ram.write_addr.eq(Mux(self.clear, self.clear_node, event.node)),
            ram.write_data.eq(Mux(self.clear, 0, value)), ram.read_addr.eq(self.look),
        ]
        return ram.read_data

    def _count(self, m: Module, name: str, bits: int, event) -> tuple[Value, Value]:
        """Count each node's events mod 2^bits. Return the count of node ``look``, and the previous
        count of the event's node."""
        m.submodules[f"{name}_own"] = own = Ram(bits, self._nodes, latency=0)
        total = Signal(bits, name=f"{name}_total")
        m.d.comb += [
            total.eq(own.read_data + 1), own.read_addr.eq(event.node), own.read_en.eq(1),
            own.write_en.eq(event.valid | self.clear),
            own.write_addr.eq(Mux(self.clear, self.clear_node, event.node)),
            own.write_data.eq(Mux(self.clear, 0, total)),
        ]
        return self._value(m, name, event, total), own.read_data
