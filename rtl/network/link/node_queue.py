"""Node queue: nodes that wait, each at most once, served in turn."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.network.layouts import AtNode

__all__ = ["NodeQueue", "lowest", "number"]


class NodeQueue(wiring.Component):
    """Queue the nodes that have work; output them round robin.

    A node that is set again before it is chosen is output once. A node that is set after that is
    output again.

    Parameters
    ----------
    nodes: number of nodes.
    ways: number of event sources.

    Ports
    -----
    set: array of events :data:`rtl.network.layouts.AtNode`.
    o: stream of node numbers.
    idle: no node waits.
    """

    LATENCY = {("event", "its node"): 2}
    RATE = "1 node in 2 cycles"

    def __init__(self, nodes: int, ways: int = 1):
        self._nodes, self._ways = nodes, ways
        super().__init__({
            "set": In(AtNode).array(ways), "o": Out(stream.Signature(range(max(2, nodes)))),
            "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        n = self._nodes
        waiting, later, chosen = Signal(n), Signal(n), Signal(n)
        comes, choice, taken, valid = Signal(n), Signal(n), Signal(n), Signal()
        m.d.comb += [
            comes.eq(Cat(Value.cast(0) | _any(event.valid & (event.node == k)
                                              for event in self.set) for k in range(n))),
            choice.eq(Mux((waiting & later).any(), lowest(waiting & later), lowest(waiting))),
            self.o.valid.eq(valid), self.o.payload.eq(number(chosen)),
            self.idle.eq(~waiting.any() & ~valid),
        ]
        m.d.sync += waiting.eq((waiting & ~taken) | comes)
        with m.If(valid):
            m.d.sync += later.eq(~(chosen | (chosen - 1)))
        with m.If(~valid):
            m.d.comb += taken.eq(choice)
            m.d.sync += [chosen.eq(choice), valid.eq(waiting.any())]
        with m.Elif(self.o.ready):
            m.d.sync += valid.eq(0)
        return m


def _any(values) -> Value:
    result = Value.cast(0)
    for value in values:
        result = result | value
    return result


def lowest(bits: Value) -> Value:
    """Return the lowest set bit of ``bits``, alone."""
    return Value.cast((bits & (~bits + 1))[:len(bits)])


def number(one: Value) -> Value:
    """Return the number of the only set bit of ``one``."""
    width = max(1, (len(one) - 1).bit_length())
    return Value.cast(Cat(_any(one[k] for k in range(len(one)) if k >> bit & 1)
                          for bit in range(width)))
