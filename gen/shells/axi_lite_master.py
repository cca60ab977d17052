"""AXI4-Lite master that performs one access at a time."""

from amaranth.hdl import C, Cat, Module, Mux
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.control.axi_lite import ADDRESS_BITS, SLVERR, AxiLite

__all__ = ["AxiLiteMaster"]


class AxiLiteMaster(wiring.Component):
    """Perform an access and signal its completion.

    Latency: that of the slave and 3 cycles.

    Ports
    -----
    wanted: request of an access; must hold, with ``write``, ``word``, ``data`` and ``strobe``,
        until ``done``.
    write: whether the access is a write.
    word: address in 32-bit words.
    data, strobe: data and byte strobes of a write.
    done: completion, for one cycle.
    answer: read data, valid from ``done`` on.
    error: whether the slave answered with an error, valid from ``done`` on.
    bus: :data:`rtl.control.axi_lite.AxiLite`, master side.
    """

    def __init__(self):
        super().__init__({
            "wanted": In(1), "write": In(1), "word": In(ADDRESS_BITS - 2), "data": In(32),
            "strobe": In(4), "done": Out(1), "answer": Out(32), "error": Out(1),
            "bus": Out(AxiLite)})

    def elaborate(self, platform) -> Module:
        m = Module()
        bus = self.bus
        address = Cat(C(0, 2), self.word)
        m.d.comb += [bus.awaddr.eq(address), bus.araddr.eq(address), bus.wdata.eq(self.data),
                     bus.wstrb.eq(self.strobe)]
        with m.FSM(name="access"):
            with m.State("WAIT"), m.If(self.wanted):
                m.d.sync += [bus.awvalid.eq(self.write), bus.wvalid.eq(self.write),
                             bus.arvalid.eq(~self.write)]
                m.next = "UNDER WAY"
            with m.State("UNDER WAY"):
                for valid, ready in ((bus.awvalid, bus.awready), (bus.wvalid, bus.wready),
                                     (bus.arvalid, bus.arready)):
                    with m.If(ready):
                        m.d.sync += valid.eq(0)
                m.d.comb += [bus.bready.eq(1), bus.rready.eq(1)]
                with m.If(bus.bvalid | bus.rvalid):
                    m.d.sync += [
                        self.answer.eq(bus.rdata),
                        self.error.eq(Mux(self.write, bus.bresp, bus.rresp) == SLVERR),
                    ]
                    m.next = "DONE"
            with m.State("DONE"):
                m.d.comb += self.done.eq(1)
                m.next = "WAIT"
        return m
