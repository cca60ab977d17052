"""Small designs that the engine tests run."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.memory import Ram
from rtl.stream import StreamFIFO

AxiLite = wiring.Signature({
    "awaddr": Out(6), "awvalid": Out(1), "awready": In(1),
    "wdata": Out(32), "wstrb": Out(4), "wvalid": Out(1), "wready": In(1),
    "bresp": In(2), "bvalid": In(1), "bready": Out(1),
    "araddr": Out(6), "arvalid": Out(1), "arready": In(1),
    "rdata": In(32), "rresp": In(2), "rvalid": In(1), "rready": Out(1),
})

FIFO_BITS = 514

Group = data.StructLayout({"sum": 70, "count": 8, "last": 1})

TIMEOUT, BEATS, VERSION, UNMAPPED = 0x00, 0x04, 0x08, 0x0C


class Grouper(wiring.Component):
    """Sums beats in groups: a group ends when it is full or ``timeout`` cycles after its begin.

    It has all features that an engine drives: a narrow and a wide stream, a struct payload,
    ``csr``, ``time``, ``idle``, a deadline while it waits for a group's end, plain signals and a
    memory without written contents. A FIFO from ``i`` to ``o`` is part of the same design, because
    builds are slow.
    """

    def __init__(self, size: int = 4):
        self._size = size
        super().__init__({
            "items": In(stream.Signature(7)), "groups": Out(stream.Signature(Group)),
            "i": In(stream.Signature(FIFO_BITS)), "o": Out(stream.Signature(FIFO_BITS)),
            "csr": In(AxiLite), "time": In(32), "idle": Out(1),
            "waits": Out(1), "deadline": Out(32),
            "bias": In(5, init=3), "beats": Out(16), "peek": In(3), "peeked": Out(65),
            "mark": Out(8), "parity": Out(6),
            "channels": Out(wiring.Signature({"valid": Out(4), "ready": Out(4)})),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        timeout = Signal(32, init=10)
        began = Signal(32)
        total = Signal(70)
        held = Signal(8)
        flush = Signal()
        items, groups = self.items, self.groups
        m.submodules.fifo = fifo = StreamFIFO(FIFO_BITS, 9)
        wiring.connect(m, wiring.flipped(self.i), fifo.i)
        wiring.connect(m, fifo.o, wiring.flipped(self.o))
        m.submodules.ram = ram = Ram(65, 8, style="lutram", latency=0)
        m.d.comb += [
            ram.read_addr.eq(self.peek), self.peeked.eq(ram.read_data),
            flush.eq((held == self._size) | ((held != 0) & ((self.time - began)[:32] >= timeout))),
            items.ready.eq(~groups.valid & ~flush),
            self.idle.eq(~flush & ~groups.valid & fifo.idle),
            self.waits.eq(held != 0), self.deadline.eq(began + timeout),
        ]
        for member in ("valid", "ready"):
            m.d.comb += getattr(self.channels, member).eq(Cat(
                getattr(port, member) for port in (items, groups, self.i, self.o)))
        # Constant bits of a variable, beside bits that a process assigns.
        m.d.comb += self.mark[4:].eq(0xA)
        with m.If(held != 0):
            m.d.comb += self.mark[:4].eq(held)
        # A cell with inputs from its own outputs, although no bit depends on itself: one pass of
        # evaluation in any order is not enough.
        m.d.comb += self.parity[1:].eq(self.parity[:5] ^ self.bias)
        with m.If(groups.valid & groups.ready):
            m.d.sync += groups.valid.eq(0)
        with m.If(flush & ~groups.valid):
            m.d.sync += [
                groups.valid.eq(1), groups.payload.sum.eq(total), groups.payload.count.eq(held),
                groups.payload.last.eq(held != self._size), held.eq(0), total.eq(0)]
        with m.If(items.valid & items.ready):
            # The high bits show a lost word of the wide payload.
            m.d.sync += [
                total.eq(total + (items.payload << 60) + items.payload + self.bias),
                held.eq(held + 1), self.beats.eq(self.beats + 1)]
            with m.If(held == 0):
                m.d.sync += began.eq(self.time)
        self._registers(m, timeout)
        return m

    def _registers(self, m: Module, timeout: Signal) -> None:
        csr = self.csr
        m.d.comb += [
            # The data is taken after the address, to test separate handshakes.
            csr.awready.eq(~csr.wvalid | csr.awvalid), csr.wready.eq(~csr.awvalid & ~csr.bvalid),
            csr.arready.eq(~csr.rvalid),
        ]
        address = Signal.like(csr.awaddr)
        with m.If(csr.awvalid & csr.awready):
            m.d.sync += address.eq(csr.awaddr)
        with m.If(csr.wvalid & csr.wready):
            m.d.sync += csr.bvalid.eq(1)
            with m.If(address == TIMEOUT):
                m.d.sync += [timeout.eq(csr.wdata), csr.bresp.eq(0)]
            with m.Else():
                m.d.sync += csr.bresp.eq(2)
        with m.If(csr.bvalid & csr.bready):
            m.d.sync += csr.bvalid.eq(0)
        with m.If(csr.arvalid & csr.arready):
            m.d.sync += [csr.rvalid.eq(1), csr.rresp.eq(0)]
            with m.Switch(csr.araddr):
                with m.Case(TIMEOUT):
                    m.d.sync += csr.rdata.eq(timeout)
                with m.Case(BEATS):
                    m.d.sync += csr.rdata.eq(self.beats)
                with m.Case(VERSION):
                    m.d.sync += csr.rdata.eq(0xE3B0_0001)
                with m.Default():
                    m.d.sync += csr.rresp.eq(3)
        with m.If(csr.rvalid & csr.rready):
            m.d.sync += csr.rvalid.eq(0)
