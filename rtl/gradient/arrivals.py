"""Arrivals: which rows of a ring have received an item."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.gradient.records import ROW_NUMBER_BITS
from rtl.memory import Ram, report_swept

__all__ = ["Arrivals"]


class Arrivals(wiring.Component):
    """Remember for each row of a ring of ``places`` whether an item has come for it.

    Rows are numbered modulo 2^16 and use the places in turn, so each bit of memory only says
    whether the last item came in an even or an odd round of the ring. Answers are combinational
    (LUTRAM); a change shows in the next cycle. After
    reset the memory is swept for ``places`` cycles.

    Ports
    -----
    number: of a row: ``known``, its item has come. came: of a row: ``come``, its item comes now.
    asked: of a row: ``here``, its item has come.
    sweeping: the block is not ready yet.
    """

    def __init__(self, places: int):
        self._places = places
        super().__init__({
            "number": In(ROW_NUMBER_BITS), "known": Out(1), "came": In(ROW_NUMBER_BITS),
            "come": In(1),
            "asked": In(ROW_NUMBER_BITS), "here": Out(1), "sweeping": Out(1, init=1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        bits, sweep = ceil_log2(self._places), Signal(range(self._places))
        report_swept(m, ~self.sweeping)
        with m.If(self.sweeping):
            m.d.sync += [sweep.eq(sweep + 1), self.sweeping.eq(sweep != self._places - 1)]
        for name, number, answer in (("known_ram", self.number, self.known),
                                     ("here_ram", self.asked, self.here)):
            m.submodules[name] = ram = Ram(1, self._places, style="lutram", latency=0)
            m.d.comb += [
                ram.write_en.eq(self.sweeping | self.come),
                ram.write_addr.eq(Mux(self.sweeping, sweep, self.came[:bits])),
                # The first round is an even one.
                ram.write_data.eq(self.sweeping | self.came[bits]),
                ram.read_addr.eq(number[:bits]), answer.eq(ram.read_data == number[bits]),
            ]
        return m
