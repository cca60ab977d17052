"""AXI4-Lite: a slave that converts the five channels into single accesses."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["ADDRESS_BITS", "OKAY", "SLVERR", "AxiLite", "AxiLiteSlave"]

ADDRESS_BITS = 16
OKAY, SLVERR = 0b00, 0b10
"""Values of bresp and rresp (AMBA AXI, A3.4.4)."""

AxiLite = wiring.Signature({
    "awaddr": Out(ADDRESS_BITS), "awvalid": Out(1), "awready": In(1),
    "wdata": Out(32), "wstrb": Out(4), "wvalid": Out(1), "wready": In(1),
    "bresp": In(2), "bvalid": In(1), "bready": Out(1),
    "araddr": Out(ADDRESS_BITS), "arvalid": Out(1), "arready": In(1),
    "rdata": In(32), "rresp": In(2), "rvalid": In(1), "rready": Out(1),
})
"""The bus from the view of its master: 32-bit data, without the unused protection bits."""


class AxiLiteSlave(wiring.Component):
    """Accept one write and one read at a time from an AXI4-Lite bus.

    Address and data of a write may arrive in any order. Every output of the bus is a register, and
    ready does not wait for valid. A write and a read may be in progress together; only their
    answers order them.

    Ports
    -----
    bus: :data:`AxiLite`, slave side.
    write, write_word, write_data, write_strobe: a write request to 32-bit word ``write_word``;
        stable until ``write_done``.
    write_done, write_error: the write is done, or rejected; for one cycle.
    read, read_word: a read request; stable until ``read_done``.
    read_done, read_data, read_error: the result of the read; for one cycle.
    idle: no access in progress.
    """

    LATENCY = {
        ("address and data on the bus", "access"): 1,
        ("end of the access", "answer on the bus"): 1,
    }
    RATE = "1 read and 1 write at a time"

    def __init__(self):
        super().__init__({
            "bus": In(AxiLite),
            "write": Out(1), "write_word": Out(ADDRESS_BITS - 2), "write_data": Out(32),
            "write_strobe": Out(4), "write_done": In(1), "write_error": In(1),
            "read": Out(1), "read_word": Out(ADDRESS_BITS - 2), "read_done": In(1),
            "read_data": In(32), "read_error": In(1), "idle": Out(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        bus = self.bus
        # The content of each channel, from its handshake until the answer is accepted.
        write_word, read_word = (Signal(ADDRESS_BITS - 2, reset_less=True, name=name)
                                 for name in ("write_word", "read_word"))
        write_data, read_data = (Signal(32, reset_less=True, name=name)
                                 for name in ("write_data", "read_data"))
        write_strobe = Signal(4, reset_less=True)
        write_error, read_error = (Signal(reset_less=True, name=name)
                                   for name in ("write_error", "read_error"))
        address_held, data_held, read_held = Signal(), Signal(), Signal()
        write_answered, read_answered = Signal(), Signal()
        m.d.comb += [
            bus.awready.eq(~address_held), bus.wready.eq(~data_held), bus.arready.eq(~read_held),
            bus.bvalid.eq(write_answered), bus.rvalid.eq(read_answered),
            self.write.eq(address_held & data_held & ~write_answered),
            self.read.eq(read_held & ~read_answered),
            self.write_word.eq(write_word), self.write_data.eq(write_data),
            self.write_strobe.eq(write_strobe), self.read_word.eq(read_word),
            bus.bresp[1].eq(write_error), bus.rresp[1].eq(read_error), bus.rdata.eq(read_data),
            self.idle.eq(~(address_held | data_held | read_held)),
        ]
        with m.If(bus.awvalid & bus.awready):
            m.d.sync += [address_held.eq(1), write_word.eq(bus.awaddr[2:])]
        with m.If(bus.wvalid & bus.wready):
            m.d.sync += [data_held.eq(1), write_data.eq(bus.wdata), write_strobe.eq(bus.wstrb)]
        with m.If(self.write & self.write_done):
            m.d.sync += [write_answered.eq(1), write_error.eq(self.write_error)]
        with m.If(bus.bvalid & bus.bready):
            m.d.sync += [write_answered.eq(0), address_held.eq(0), data_held.eq(0)]
        with m.If(bus.arvalid & bus.arready):
            m.d.sync += [read_held.eq(1), read_word.eq(bus.araddr[2:])]
        with m.If(self.read & self.read_done):
            m.d.sync += [read_answered.eq(1), read_error.eq(self.read_error),
                         read_data.eq(self.read_data)]
        with m.If(bus.rvalid & bus.rready):
            m.d.sync += [read_answered.eq(0), read_held.eq(0)]
        return m
