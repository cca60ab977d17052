"""Row reads: requests rows in GPU memory by DMA, without a kernel."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.formats import (
    OFFSET_BITS,
    ROW_BITS,
    TABLE_BITS,
    HostFrame,
    LookupRecord,
    Opcode,
    OutgoingRecord,
    RowReadRecord,
)
from rtl.keys.owner_split import DESCRIPTOR_WRITES
from rtl.memory import Ram
from rtl.monitor.counters import CounterLayout, count
from rtl.stream import CreditQueue

__all__ = ["ROW_READS_COUNTERS", "RowReads"]

ROW_READS_COUNTERS = CounterLayout("reads", "beyond")

_STAGES = 4
_LOW, _HIGH, _UNIT_BITS = 3, 4, 4
"""Descriptor words with the halves of a table's base; bits of an address below a unit."""


class RowReads(wiring.Component):
    """Request the rows of misses by their addresses in GPU memory.

    With ``enable``, each lookup becomes a :data:`rtl.formats.RowReadRecord`. Row r of a table
    begins r rows after the base of the table, in units of 16 bytes from ``base`` on. A row has 4 *
    ``vector_beats`` units, or 1 or 2 if vectors share beats. The tag is the landing of the lookup,
    the id of a miss, so reads in flight have different tags. Packets of these records leave as
    READ_ROWS. The DMA engine answers with GPU_VECTORS packets that have the same tags. A row beyond
    the largest offset is read at the largest offset: the sum of base and offset never wraps to
    another row.

    Without ``enable``, lookups and headers pass unchanged in the same cycle.

    Parameters: ``tables``, number of tables.

    Ports
    -----
    i, o: streams of :data:`rtl.formats.OutgoingRecord`; input records are
        :data:`~rtl.formats.LookupRecord`.
    headers, header_out: streams of :data:`rtl.formats.HostFrame`, of their packets.
    enable, base, vector_beats, vector_packing: may change while idle; ``vector_packing`` is 0 with
        more than one beat.
    write_en, write_table, write_word, write_data: as of :class:`rtl.keys.OwnerSplit`. This block
        stores words 3 and 4, the base of a table relative to ``base``, in bytes, a multiple of 16.
    counters: ``reads``, rows requested; ``beyond``, rows beyond the largest offset.
    idle: no lookup inside.

    Raises ``TypeError`` or ``ValueError`` for ``tables`` that are not 1 to 4,096.
    """

    LATENCY = {("lookup", "its read"): _STAGES + CreditQueue.LATENCY["item", "the same item"],
               ("lookup, without ``enable``", "the same lookup"): 0,
               ("header", "the same header"): 0}
    RATE = "1 lookup per cycle"
    PLACES = 16
    """Lookups that may be inside."""

    def __init__(self, tables: int):
        if isinstance(tables, bool) or not isinstance(tables, int):
            raise TypeError(f"tables must be an integer, not {tables!r}")
        if not 1 <= tables <= 1 << TABLE_BITS:
            raise ValueError(f"tables must be between 1 and {1 << TABLE_BITS}, not {tables!r}")
        self._tables = tables
        super().__init__({
            "i": In(stream.Signature(OutgoingRecord)), "o": Out(stream.Signature(OutgoingRecord)),
            "headers": In(stream.Signature(HostFrame)),
            "header_out": Out(stream.Signature(HostFrame)),
            "enable": In(1), "base": In(64), "vector_beats": In(5), "vector_packing": In(2),
            **DESCRIPTOR_WRITES, "counters": Out(ROW_READS_COUNTERS), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        self._pass_headers(m)
        m.submodules.queue = queue = CreditQueue(RowReadRecord, self.PLACES)
        came, lookup = self.i.valid, data.View(LookupRecord, self.i.payload.record)
        valids = [Signal(name=f"valid{k}") for k in range(_STAGES)]
        tags = [Signal(LookupRecord["landing"].shape, name=f"tag{k}", reset_less=True)
                for k in range(_STAGES)]
        m.d.comb += [
            queue.reserve.eq(self.enable & came & queue.free),
            self.i.ready.eq(Mux(self.enable, queue.free, self.o.ready)),
            self.o.valid.eq(Mux(self.enable, queue.o.valid, came)),
            self.o.payload.eq(self.i.payload),
            queue.o.ready.eq(self.o.ready & self.enable),
        ]
        with m.If(self.enable):
            m.d.comb += [self.o.payload.destination.eq(0), self.o.payload.step.eq(0),
                         self.o.payload.record.eq(queue.o.payload.as_value())]
        for k in range(_STAGES):
            m.d.sync += [valids[k].eq(valids[k - 1] if k else queue.reserve),
                         tags[k].eq(tags[k - 1] if k else lookup.landing)]
        units = Signal(RowReadRecord["units"].shape, reset_less=True)
        m.d.sync += units.eq(Mux(self.vector_packing == 0, self.vector_beats << 2,
                                 Mux(self.vector_packing[1], 1, 2)))
        offset, beyond = self._offset(m, lookup)
        m.d.comb += [
            queue.i.valid.eq(valids[-1]),
            queue.i.payload.offset.eq(offset | beyond.replicate(OFFSET_BITS)),
            queue.i.payload.units.eq(units), queue.i.payload.tag.eq(tags[-1]),
            self.idle.eq(queue.idle & ~Cat(valids).any()),
        ]
        count(m, self.counters, reads=valids[-1], beyond=valids[-1] & beyond)
        return m

    def _offset(self, m: Module, lookup) -> tuple[Value, Value]:
        """Return the offset of the row of a lookup, and whether the row is beyond the largest
        offset.

        The lookup arrived ``_STAGES`` cycles ago.
        """
        beats, row = self.vector_beats, lookup.row
        # Multiply row by beats with two sums; 16 beats, the maximum, is a single bit.
        low = Signal(ROW_BITS + 4, reset_less=True)
        high = Signal(ROW_BITS + 2, reset_less=True)
        whole, product, offset = (
            Signal(OFFSET_BITS + more, name=name, reset_less=True)
            for name, more in (("whole", 0), ("product", 2), ("offset", 3)))
        table, far = Signal(OFFSET_BITS + 1, reset_less=True), Signal(reset_less=True)
        bases = self._bases(m, lookup.table)
        m.d.sync += [
            low.eq(Mux(beats[4], row << 4, _if(row, beats[0]) + (_if(row, beats[1]) << 1))),
            high.eq(_if(row, beats[2]) + (_if(row, beats[3]) << 1)),
            whole.eq(low + (high << 2)),
            product.eq(Mux(self.vector_packing == 0, whole << 2,
                           Mux(self.vector_packing[1], whole, whole << 1))),
            # The output of the memory arrives with ``product``.
            table.eq(bases), offset.eq(product + table[:OFFSET_BITS]), far.eq(table[-1]),
        ]
        beyond = offset[OFFSET_BITS:].any() | far
        return Value.cast(offset[:OFFSET_BITS]), Value.cast(beyond)

    def _bases(self, m: Module, table) -> Value:
        """Store the bases of tables in units; return the base of ``table`` two cycles later.

        The bit above the base is 1 if the base is beyond the largest offset.
        """
        parts = []
        high = self.write_data[:OFFSET_BITS + _UNIT_BITS - 32]
        for word, value in ((_LOW, self.write_data[_UNIT_BITS:]),
                            (_HIGH, Cat(high, self.write_data[len(high):].any()))):
            ram = Ram(len(value), self._tables, latency=2)
            m.submodules[f"word{word}"] = ram
            m.d.comb += [
                ram.write_en.eq(self.write_en & (self.write_word == word)
                                & (self.write_table < self._tables)),
                ram.write_addr.eq(self.write_table), ram.write_data.eq(value),
                ram.read_addr.eq(table),
            ]
            parts.append(ram.read_data)
        return Value.cast(Cat(*parts))

    def _pass_headers(self, m: Module) -> None:
        """Pass headers; headers of reads get their opcode, and the base address."""
        into, out = self.headers, self.header_out
        m.d.comb += [out.valid.eq(into.valid), into.ready.eq(out.ready),
                     out.payload.eq(into.payload)]
        with m.If(self.enable):
            m.d.comb += [out.payload.opcode.eq(Opcode.READ_ROWS),
                         out.payload.address.eq(self.base)]


def _if(value, enable):
    """Return ``value`` where ``enable`` is 1, otherwise 0."""
    return value & enable.replicate(len(value))
