"""Miss table: the state of each outstanding fetch, by miss id."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.cache.tags import slot_bits
from rtl.memory import Ram

__all__ = ["MissTable"]


class MissTable(wiring.Component):
    """Store for each miss id whether it is outstanding, and which slot waits for its vector.

    One port opens and queries an id for the current lookup; the other queries and closes the id of
    a vector. Each port writes its own one-bit memory, on opening or on closing. An id is
    outstanding while its bits in the two memories differ.

    A query is answered in the next cycle. The answer includes all openings and closings before the
    cycle of the query. ``busy`` also includes a closing in that cycle.

    Parameters
    ----------
    rows: rows of the vector store.
    in_flight: number of ids.

    Ports
    -----
    id: id of the lookup.
    open, slot, allocated, phase: make ``id`` outstanding, for ``slot`` with ``phase`` if
        ``allocated``. It must not be outstanding yet.
    waiting: one cycle later: ``id`` was outstanding on behalf of ``slot``.
    fill_id: id of a vector.
    busy, fill_slot, fill_allocated, fill_phase: one cycle later: ``fill_id`` is outstanding, and
        the values of its opening.
    close: close the id that is answered in this cycle.
    clear, clear_address: make the id of an address not outstanding.
    """

    LATENCY = {("id", "its state"): 1}
    RATE = "1 question of each side per cycle"

    def __init__(self, *, rows: int, in_flight: int):
        self._count = in_flight
        id_bits, self._slot_bits = max(1, ceil_log2(in_flight)), slot_bits(rows)
        super().__init__({
            "id": In(id_bits), "open": In(1), "slot": In(self._slot_bits), "allocated": In(1),
            "phase": In(1), "waiting": Out(1),
            "fill_id": In(id_bits), "close": In(1), "busy": Out(1),
            "fill_slot": Out(self._slot_bits), "fill_allocated": Out(1), "fill_phase": Out(1),
            "clear": In(1), "clear_address": In(id_bits)})

    def elaborate(self, platform) -> Module:
        m = Module()

        # Memories have one read port, so each is stored twice, one copy per side.
        def pair(name: str, width: int, latency: int) -> tuple[Ram, Ram]:
            # The answer to the lookup is compared in the same cycle; block RAM would be too late.
            style = "bram" if latency and self._count > 64 else "lutram"
            copies = (Ram(width, self._count, style="lutram", latency=latency),
                      Ram(width, self._count, style=style, latency=latency))
            for side, ram, address in zip(("lookup", "fill"), copies, (self.id, self.fill_id),
                                          strict=True):
                m.submodules[f"{name}_{side}"] = ram
                m.d.comb += ram.read_addr.eq(address)
            return copies

        opened, closed = pair("opened", 1, 0), pair("closed", 1, 0)
        entries = pair("entries", self._slot_bits + 2, 1)
        entry, fill_entry = (Signal(self._slot_bits + 2, name=n) for n in ("entry", "fill_entry"))
        slot = Signal.like(self.slot, reset_less=True)
        outstanding = Signal(reset_less=True)
        closing, was_opened = Signal(range(self._count), reset_less=True), Signal(reset_less=True)
        for ram in opened:
            m.d.comb += [
                ram.write_en.eq(self.clear | self.open),
                ram.write_addr.eq(Mux(self.clear, self.clear_address, self.id)),
                ram.write_data.eq(~self.clear & ~closed[0].read_data)]
        for ram in closed:
            m.d.comb += [
                ram.write_en.eq(self.clear | self.close),
                ram.write_addr.eq(Mux(self.clear, self.clear_address, closing)),
                ram.write_data.eq(~self.clear & was_opened)]
        for ram in entries:
            m.d.comb += [ram.write_en.eq(self.open), ram.write_addr.eq(self.id),
                         ram.write_data.eq(Cat(self.slot, self.allocated, self.phase))]
        m.d.sync += [
            outstanding.eq(opened[0].read_data ^ closed[0].read_data), slot.eq(self.slot),
            closing.eq(self.fill_id), was_opened.eq(opened[1].read_data),
            self.busy.eq((opened[1].read_data ^ closed[1].read_data)
                         & ~(self.close & (closing == self.fill_id))),
        ]
        m.d.comb += [
            entry.eq(entries[0].read_data), fill_entry.eq(entries[1].read_data),
            # Meanwhile an id may serve another slot, or a fetch without a slot.
            self.waiting.eq(outstanding & (entry[:-1] == Cat(slot, 1))),
            Cat(self.fill_slot, self.fill_allocated, self.fill_phase).eq(fill_entry),
        ]
        return m
