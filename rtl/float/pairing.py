"""Pairing: decides which values of an entry are added, while its earlier sums are in flight."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
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

    Operations and results have two stages: the memories answer in the first, the second decides. A
    result that waits holds both stages of results. A stage contains the bits that the decisions
    before it leave.

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

    LATENCY = {("operation", "decision"): 3}
    RATE = "1 operation and 1 result per cycle, unless all four places are full"

    def __init__(self, entries: int):
        self._entries = entries
        super().__init__({
            "valid": In(1), "entry": In(range(entries)), "first": In(1), "take": In(1),
            "results": In(stream.Signature(range(entries))), "o": Out(pairing_layout(entries)),
            "grows": Out(1), "shrinks": Out(1), "swept": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()

        def later(given, name: str, enable=1) -> Signal:
            """Return ``given`` one cycle later; the value stays while ``enable`` is low."""
            register = Signal.like(Value.cast(given), name=name)
            with m.If(enable):
                m.d.sync += register.eq(given)
            return register

        # Both stages of operations and of results. ``load``: the results move.
        load = Signal()
        arrived, first = later(self.valid & ~self.take, "arrived"), later(self.first, "first")
        arrival1, taken = later(self.entry, "arrival1"), later(self.valid & self.take, "taken")
        came1, result1 = (later(self.results.valid, "came1", load),
                          later(self.results.payload, "result1", load))
        added, take, arrival = (later(arrived, "added"), later(taken, "take"),
                                later(arrival1, "arrival"))
        waits, result = later(came1, "waits", load), later(result1, "result", load)
        loaded = later(load, "loaded")
        m.d.comb += self.results.ready.eq(load)

        # The decision. Bits of arrivals and full places of the arrival; of results, and full
        # places, of the result; all four as the decision leaves them.
        own, full, its, there = (Signal(2, name=n) for n in ("own", "full", "its", "there"))
        left = [Signal(2, name=f"{n}_left") for n in ("own", "full", "its", "there")]
        # Whether the first stages had the same entry, and the arrival the entry of the second.
        with_first, with_second = (later(arrival1 == other, f"with_{n}")
                                   for other, n in ((result1, "first"), (result, "second")))
        same, prefers, adds, stores, again, returns = (Signal(name=n) for n in (
            "same", "prefers", "adds", "stores", "again", "returns"))
        m.d.comb += [
            same.eq(added & waits & Mux(loaded, with_first, with_second)),
            # The arrival is added, unless it has the entry of the result.
            prefers.eq(added & full.any() & (~(waits & there.all()) | full.all())),
            adds.eq(~same & prefers), stores.eq(added & ~same & ~prefers),
            again.eq(waits & ~same & there.any() & ~prefers),
            returns.eq(waits & ~same & ~there.all() & (prefers | ~there.any())),
            load.eq(~(waits & ~same & there.all() & prefers)),
            self.grows.eq(adds | take), self.shrinks.eq(returns),
        ]
        # The place of an arrival: added to the upper one if it is full, stored in the lower one if
        # it is free. A result prefers the other place.
        changed = [_place(adds | stores, Mux(adds, full[1], full[0])),
                   _place(again | returns, Mux(again, ~there[0], ~there[1]))]
        m.d.comb += [after.eq(before ^ changed[number // 2])
                     for number, (before, after) in enumerate(zip((own, full, its, there), left))]
        decision, stored = self.o, _place(returns, ~there[1])
        m.d.sync += [
            decision.add.eq(same | adds | again), decision.both.eq(same), decision.again.eq(again),
            decision.place.eq(Mux(again, ~there[0], full[1])), decision.take.eq(take),
            decision.full.eq(full), decision.write.eq(_place(stores, full[0]) | stored),
            decision.from_result.eq(stored), decision.entry.eq(Mux(again, result, arrival)),
            decision.arrival.eq(arrival), decision.result.eq(result),
        ]

        # The memories' bits for the first stage. A read does not see a write in the same cycle.
        address, swept = sweep(m, self._entries)
        m.d.comb += self.swept.eq(swept)
        writes = [(added, arrival, left[0]),
                  (waits | ~swept, Mux(swept, result, address), Mux(swept, left[2], 0))]
        read = [[self._read(m, entry, enable, *write) for write in writes]
                for entry, enable in ((self.entry, 1), (self.results.payload, load))]

        # The second stage's bits: those that the decision of this cycle leaves, for its entries.
        behind = later(arrived & (self.entry == arrival1), "behind")
        after = Mux(loaded, later(came1 & (self.entry == result1), "after_first"),
                    later(waits & (self.entry == result), "after_second"))
        arrivals, results = (word for word, _ in read[0])
        m.d.sync += [
            own.eq(Mux(behind, left[0], Mux(first, results, arrivals))),
            full.eq(Mux(first, 0, Mux(behind, left[1], Mux(after, left[3], arrivals ^ results)))),
        ]
        before = added & Mux(loaded, later(self.results.payload == arrival1, "before"), with_first)
        follows = later(came1 & (self.results.payload == result1), "follows", load)
        arrivals, results = (word for word, _ in read[1])
        with m.If(load):
            m.d.sync += [
                its.eq(Mux(follows, left[2], results)),
                there.eq(Mux(before, left[1], Mux(follows, left[3], arrivals ^ results))),
            ]
        # While results wait, an arrival may change the bits of the result in the first stage.
        newest, kept = read[1][0][1]
        with m.If(before & ~load):
            m.d.sync += [newest.eq(1), kept.eq(left[0])]
        return m

    def _read(self, m: Module, entry, enable, write, where, bits) -> tuple[Value, tuple]:
        """Return a memory's bits for ``entry``, one cycle later, which stay while ``enable`` is
        low; and the registers that replace them: whether, and by which bits. ``write``, ``where``,
        ``bits``: enable, entry and bits of a write."""
        m.submodules += (ram := Ram(2, self._entries))
        newest, kept = Signal(), Signal(2, reset_less=True)
        with m.If(enable):
            m.d.sync += [newest.eq(write & (entry == where)), kept.eq(bits)]
        m.d.comb += [ram.read_en.eq(enable), ram.read_addr.eq(entry), ram.write_en.eq(write),
                     ram.write_addr.eq(where), ram.write_data.eq(bits)]
        return Mux(newest, kept, ram.read_data), (newest, kept)


def _place(condition, upper):
    """Return the mask of one of the two places, or 0 without ``condition``."""
    return Cat(condition & ~upper, condition & upper)
