"""A small design with the edges of the SmartNIC, and memory masters."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.cache.access_tap import Access
from rtl.control.axi_lite import AxiLite, AxiLiteSlave
from rtl.formats import Beat
from rtl.memory import MemoryMaster, axi4_master

MASTER, READ, BEATS, ADDRESS = 0, 6, 7, 16
"""Bit positions in the header beat of a command: master, read flag, number of further beats, byte
address."""


class Storing(wiring.Component):
    """Executes packets of the host: a header beat with beats to write, or a header beat alone,
    which reads written beats and returns them to the host as one packet.

    Parameters: ``masters``, the table.
    """

    def __init__(self, masters):
        self.masters = tuple(MemoryMaster(*entry) for entry in masters)
        super().__init__({
            "net_rx": In(stream.Signature(Beat)), "net_tx": Out(stream.Signature(Beat)),
            "host_rx": In(stream.Signature(Beat)), "host_tx": Out(stream.Signature(Beat)),
            "net_tx_bytes": Out(16), "host_tx_bytes": Out(16), "csr": In(AxiLite),
            "time": In(32), "swept": Out(1), "working": Out(1),
            "tap": Out(stream.Signature(Access)),
            **{name: Out(axi4_master(width)) for name, _, width in self.masters}})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.slave = slave = AxiLiteSlave()
        wiring.connect(m, wiring.flipped(self.csr), slave.bus)
        header = self.host_rx.payload.data
        master, more = Signal(READ - MASTER), Signal(3)
        m.d.comb += [
            slave.read_done.eq(slave.read), slave.write_done.eq(slave.write),
            slave.read_data.eq(self.time), self.net_rx.ready.eq(1),
            self.host_tx_bytes.eq(64 * (more + 1)), self.host_tx.payload.keep.eq(-1)]
        ports = [getattr(self, name) for name, _, _ in self.masters]
        for port in ports:
            m.d.comb += port.b.ready.eq(1)
            for channel in (port.aw, port.ar):
                m.d.comb += [channel.payload.address.eq(header[ADDRESS:]),
                             channel.payload.more.eq(header[BEATS:])]
            m.d.comb += [port.w.payload.data.eq(self.host_rx.payload.data),
                         port.w.payload.strobe.eq(-1),
                         port.w.payload.last.eq(self.host_rx.payload.last)]

        def each(number, statements):
            with m.Switch(number):
                for k, port in enumerate(ports):
                    with m.Case(k):
                        m.d.comb += statements(port)

        with m.FSM():
            with m.State("HEADER"), m.If(self.host_rx.valid):
                m.d.sync += [master.eq(header[MASTER:]), more.eq(header[BEATS:])]
                with m.If(header[READ]):
                    each(header[MASTER:READ], lambda port: [
                        port.ar.valid.eq(1), self.host_rx.ready.eq(port.ar.ready)])
                with m.Else():
                    each(header[MASTER:READ], lambda port: [
                        port.aw.valid.eq(1), self.host_rx.ready.eq(port.aw.ready)])
                with m.If(self.host_rx.ready):
                    m.next = "READ"
                    with m.If(~header[READ]):
                        m.next = "WRITE"
            with m.State("WRITE"):
                each(master, lambda port: [port.w.valid.eq(self.host_rx.valid),
                                           self.host_rx.ready.eq(port.w.ready)])
                with m.If(self.host_rx.valid & self.host_rx.ready & self.host_rx.payload.last):
                    m.next = "WRITTEN"
            with m.State("WRITTEN"):
                written = Signal()
                each(master, lambda port: [written.eq(port.b.valid)])
                with m.If(written):
                    m.next = "HEADER"
            with m.State("READ"):
                each(master, lambda port: [
                    self.host_tx.valid.eq(port.r.valid), port.r.ready.eq(self.host_tx.ready),
                    self.host_tx.payload.data.eq(port.r.payload.data),
                    self.host_tx.payload.last.eq(port.r.payload.last)])
                with m.If(self.host_tx.valid & self.host_tx.ready & self.host_tx.payload.last):
                    m.next = "HEADER"
            m.d.comb += self.swept.eq(1)
        return m


def write_header(master: int, address: int, beats: int) -> int:
    """Return the header beat of a packet that writes ``beats`` further beats."""
    return master << MASTER | (beats - 1) << BEATS | address << ADDRESS


def read_header(master: int, address: int, beats: int) -> int:
    """Return the beat of a packet that reads ``beats``."""
    return write_header(master, address, beats) | 1 << READ
