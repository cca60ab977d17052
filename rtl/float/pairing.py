"""Pairing: decides which values of an entry are added, while its earlier sums are in flight."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.memory import Ram, sweep

__all__ = ["Pairing", "pairing_layout"]


def pairing_layout(entries: int) -> data.StructLayout:
    """Layout of a decision.

    add: an addition of ``entry`` begins.
    both: its operands are the arrival and the result; otherwise one is the value in ``place``, and
        the other is the result if ``again`` is set, else the arrival.
    take: the values in the places ``full`` of ``entry`` leave.
    write: bit per place, a value is stored; ``from_result``: bit per place, the value is the
        result, otherwise the arrival.
    arrival, result: the entry of the arrival, and of the result.
    """
    entry = range(entries)
    return data.StructLayout({
        "add": 1, "both": 1, "again": 1, "place": 1, "take": 1, "full": 2, "write": 2,
        "from_result": 2, "entry": entry, "arrival": entry, "result": entry})


class Pairing(wiring.Component):
    """Pair the values of each entry for one pipelined adder, whose results are values again.

    The values of an entry may be added in any order, so any two present values are paired, as in
    JugglePAC (arXiv 2310.01336). Each entry has two places for waiting values. A cycle processes an
    arrival and a result, and begins at most one addition:

    1. An arrival and a result of the same entry are added to each other.
    2. A result whose places are both full is added to a stored value. The arrival is stored.
    3. Otherwise the arrival is added to a stored value if there is one, else it is stored.
    4. The result is added to a stored value if the adder is free, else it is stored.
    5. If the places of both are full, the arrival is added, and the result waits.

    An arrival never waits. If all arrivals have the same entry, the adder's stages hold partial
    sums of it. With no addition in flight, all values of an entry are in its places.

    A place is full if two bits differ. Arrivals invert one bit, results the other. Each memory of
    bits therefore has one writer. Each is stored twice, for arrivals and for results to read. After
    reset, a sweep of one cycle per entry makes both copies of the bits of results equal; the first
    arrival of an entry writes the other bits.

    Parameters: ``entries``, at least 2.

    Ports
    -----
    valid, entry, first, take: an operation. ``first``: an arrival, whose entry has no values.
        ``take``: the values of the entry leave; only while no addition is in flight. Neither:
        another arrival.
    results: input stream of the entries of results.
    o: decision, of :func:`pairing_layout`.
    grows: an addition with a new arrival begins, or values are taken; one cycle before ``o``.
    shrinks: a result is stored; one cycle before ``o``.
    swept: the sweep is over; no operation before.
    """

    LATENCY = {("operation", "decision"): 2}
    RATE = "1 operation and 1 result per cycle, unless all four places are full"

    def __init__(self, entries: int):
        self._entries = entries
        super().__init__({
            "valid": In(1), "entry": In(range(entries)), "first": In(1), "take": In(1),
            "results": In(stream.Signature(range(entries))), "o": Out(pairing_layout(entries)),
            "grows": Out(1), "shrinks": Out(1), "swept": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        # The operation and the result that are processed in this cycle.
        arrival, result = (
            Signal(range(self._entries), reset_less=True, name=n) for n in ("arrival", "result"))
        valid, first, take, waits = (
            Signal(name=n) for n in ("arrived", "first", "take", "waits"))
        load, goes = Signal(), Signal()
        m.d.comb += [load.eq(~waits | goes), self.results.ready.eq(load)]
        m.d.sync += [valid.eq(self.valid), arrival.eq(self.entry), first.eq(self.first),
                     take.eq(self.take)]
        with m.If(load):
            m.d.sync += [waits.eq(self.results.valid), result.eq(self.results.payload)]
        added = Signal()
        m.d.comb += added.eq(valid & ~take)

        new = [Signal(2, name=f"new{side}") for side in range(2)]
        address, swept = sweep(m, self._entries)
        m.d.comb += self.swept.eq(swept)
        writes = [(added, arrival, new[0]),
                  (goes | ~swept, Mux(swept, result, address), Mux(swept, new[1], 0))]
        mine = self._read(m, self.entry, 1, writes)
        its = self._read(m, self.results.payload, load, writes)
        # Whether both have the same entry, from comparisons in the previous cycle.
        same, loaded, held, came = (Signal(name=n) for n in ("same", "loaded", "held", "came"))
        m.d.sync += [loaded.eq(load), held.eq(self.entry == result),
                     came.eq(self.entry == self.results.payload)]
        m.d.comb += same.eq(added & waits & Mux(loaded, came, held))

        full, there, own = Signal(2), Signal(2), Signal(2)
        must, adds, stores, again, returns = (
            Signal(name=n) for n in ("must", "adds", "stores", "again", "returns"))
        m.d.comb += [
            own.eq(Mux(first, mine[1], mine[0])), full.eq(own ^ mine[1]), there.eq(its[0] ^ its[1]),
            must.eq(waits & there.all()),
            adds.eq(added & ~same & full.any() & (~must | full.all())),
            stores.eq(added & ~same & ~adds),
            again.eq(waits & ~same & there.any() & ~adds),
            returns.eq(waits & ~same & ~must & ~again),
            goes.eq(same | again | returns),
            # The place of an arrival: added to the upper one if it is full, stored in the lower one
            # if it is free. A result prefers the other place.
            new[0].eq(own ^ _place(adds | stores, Mux(adds, full[1], full[0]))),
            new[1].eq(its[1] ^ _place(again | returns, Mux(again, ~there[0], ~there[1]))),
            self.grows.eq(adds | (valid & take)), self.shrinks.eq(returns),
        ]
        decision, stored = self.o, _place(returns, ~there[1])
        m.d.sync += [
            decision.add.eq(same | adds | again), decision.both.eq(same), decision.again.eq(again),
            decision.place.eq(Mux(again, ~there[0], full[1])), decision.take.eq(valid & take),
            decision.full.eq(full), decision.write.eq(_place(stores, full[0]) | stored),
            decision.from_result.eq(stored), decision.entry.eq(Mux(again, result, arrival)),
            decision.arrival.eq(arrival), decision.result.eq(result),
        ]
        return m

    def _read(self, m: Module, entry, enable, writes: list) -> list[Signal]:
        """Return the bits of arrivals and of results for ``entry``, one cycle later; they stay
        while ``enable`` is low. ``writes``: (enable, entry, bits) of both memories."""
        found = []
        for number, (write, where, bits) in enumerate(writes):
            m.submodules += (ram := Ram(2, self._entries))
            newest, kept = Signal(), Signal(2, reset_less=True)
            with m.If(enable):
                # A read does not see a write in the same cycle.
                m.d.sync += [newest.eq(write & (entry == where)), kept.eq(bits)]
            now = Signal(2, name=f"bits{number}")
            m.d.comb += [
                ram.read_en.eq(enable), ram.read_addr.eq(entry), ram.write_en.eq(write),
                ram.write_addr.eq(where), ram.write_data.eq(bits),
                now.eq(Mux(newest, kept, ram.read_data)),
            ]
            found.append(now)
        return found


def _place(condition, upper):
    """Return the mask of one of the two places, or 0 without ``condition``."""
    return Cat(condition & ~upper, condition & upper)
