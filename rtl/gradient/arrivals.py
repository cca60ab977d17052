"""Arrivals: records which rows of a ring have received an item."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.gradient.records import ROW_NUMBER_BITS
from rtl.memory import Ram, report_swept

__all__ = ["Arrivals"]


class Arrivals(wiring.Component):
    """Store one bit for each row of a ring of ``places``: whether its item has arrived.

    Rows are numbered modulo 2^16 and use the places in turn. A memory bit is the parity of the
    ring's round in which the last item arrived, so no bit is cleared. Answers are combinational
    (LUTRAM). A change is visible in the next cycle. After reset, a sweep of the memory takes
    ``places`` cycles.

    Ports
    -----
    number, known: number of a row, and whether its item has arrived.
    came, come: number of a row, and its item arrives in this cycle.
    asked, here: a second read port, like ``number`` and ``known``.
    sweeping: the sweep after reset is running.
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
