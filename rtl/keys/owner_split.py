"""Owner split: finds the node that owns a key, by the descriptor of its table."""

from types import MappingProxyType
from typing import Any

from amaranth.hdl import C, Cat, Module, Mux, Shape, ShapeCastable, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.formats import (
    BEAT_INDEX_BITS,
    NODE_BITS,
    ROW_BITS,
    TABLE_BITS,
    DescriptorKind,
    Key,
    Status,
)
from rtl.formats import TableDescriptor as Descriptor
from rtl.keys.hashing import hash_bits, scale
from rtl.memory import Ram, report_swept
from rtl.stream import SkidBuffer

__all__ = ["DESCRIPTOR_WRITES", "FRACTION_BITS", "OwnerSplit", "split_layout"]

DESCRIPTOR_WRITES = MappingProxyType({
    "write_en": In(1), "write_table": In(TABLE_BITS), "write_word": In(3), "write_data": In(32)})
"""Ports of a block with table descriptors, by which they are written."""

FRACTION_BITS = 16
"""Low bits of the key hash that distribute the rows of a table over its owners."""

_WORDS = 3
"""Descriptor words that determine the owner of a row; the other words are the base of the table."""


def split_layout(user_shape, bags: bool = False) -> data.StructLayout:
    """Layout of an item that leaves an :class:`OwnerSplit`."""
    return data.StructLayout({
        "key": Key, "user": user_shape, "owner": NODE_BITS, "own": 1, "status": 8, "refused": 1,
        **({"mean": 1, "final_beat": BEAT_INDEX_BITS} if bags else {})})


class OwnerSplit(wiring.Component):
    """Look up the owner of each key, or the reason that it has no owner.

    ``owner`` depends on the kind of the descriptor. TABLE: its owner. ROW: its owner plus
    (hash[15:0] * owners) >> 16, see :mod:`rtl.keys.hashing`. REPLICATED: this node. ``own``: the
    owner is this node.

    ``status`` is 0, or the first that applies of TABLE (no such table, or an invalid descriptor),
    KIND (COLUMN, which is not supported; REPLICATED where a row must have one owner), ROW (beyond
    the rows of the table) and TABLE (the owner is not among ``nodes``). The key is then
    ``refused``, and ``owner`` is invalid.

    With ``bags``, an item with ``bag`` is a segment of a bag that pools at its owner: ``key`` is
    the low 48 bits of the head of the bag, and the rows are compared elsewhere, with ``rows``.
    ``status`` is also KIND if the table pools at the other place, or if a table of kind ROW pools
    at its owners, and TABLE if a table that pools at its owner has longer vectors than
    ``vector_beats``.

    Keys keep their order. After reset the block invalidates every descriptor, which takes
    ``tables`` cycles; ``i`` is not ready meanwhile.

    Parameters: ``user_shape``, of the data beside a key; ``tables``, number of descriptors;
    ``replicated``: a row may have a copy at every node; ``bags``: tables may pool at their owner.

    Ports
    -----
    i: stream of {key, user}, and ``bag`` with ``bags``.
    o: stream of {key, user, owner, own, status, refused}; with ``bags`` also ``mean`` and
        ``final_beat`` of the table.
    node: number of this node.
    vector_beats (``bags`` only): most beats of a vector; may change while idle.
    moves, comes, coming: the pipeline moves in this cycle; ``o`` then gets a key; and the user data
        of that key. For flags in registers parallel to ``o``, whose data leave shift registers.
    rows (with ``bags``): rows of the table of ``coming``.
    nodes: nodes of the cluster.
    write_en, write_table, write_word, write_data: write a 32-bit word of a descriptor (words 0 to 4
        of :data:`rtl.formats.TableDescriptor`; words 3 and 4 are not stored here). To change a
        descriptor in use, clear word 0 first and write it last. The block ignores writes to tables
        and words that do not exist, and writes while ``write_ready`` is 0.
    write_ready: descriptors may be written.
    idle: no key inside and no sweep in progress.

    Raises ``TypeError`` if ``user_shape`` is not a shape, ``ValueError`` if ``tables`` is not
    between 1 and 4,096.
    """

    LATENCY = {("key", "its owner"): 5}
    RATE = "1 key per cycle"

    def __init__(self, user_shape, tables: int, *, replicated: bool = True, bags: bool = False):
        if not isinstance(user_shape, (ShapeCastable, Shape, int)):
            raise TypeError(f"user_shape must be a shape, not {user_shape!r}")
        if isinstance(tables, bool) or not isinstance(tables, int):
            raise TypeError(f"tables must be an integer, not {tables!r}")
        if not 1 <= tables <= 1 << TABLE_BITS:
            raise ValueError(f"tables must be between 1 and {1 << TABLE_BITS}, not {tables!r}")
        self._tables, self._replicated, self._bags = tables, replicated, bags
        self._item = data.StructLayout({
            "key": Key, "user": user_shape, **({"bag": 1} if bags else {})})
        super().__init__({
            "i": In(stream.Signature(self._item)),
            "o": Out(stream.Signature(split_layout(user_shape, bags))),
            "node": In(NODE_BITS), "nodes": In(NODE_BITS, init=(1 << NODE_BITS) - 1),
            **DESCRIPTOR_WRITES, "write_ready": Out(1), "idle": Out(1),
            "moves": Out(1), "comes": Out(1), "coming": Out(user_shape),
            **({"rows": Out(ROW_BITS),
                "vector_beats": In(5, init=1 << BEAT_INDEX_BITS)} if bags
               else {}),
        })

    def follow(self, block: wiring.Component) -> list:
        """Return the statements that connect the ports for nodes, descriptors and the size of
        vectors to those of ``block``, which have the same names."""
        return [*(getattr(self, name).eq(getattr(block, name))
                  for name in ("node", "nodes", *["vector_beats"] * self._bags,
                               *DESCRIPTOR_WRITES)),
                block.write_ready.eq(self.write_ready)]

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.head = head = SkidBuffer(self._item)
        swept = Signal()
        m.d.comb += [
            head.i.payload.eq(self.i.payload),
            head.i.valid.eq(self.i.valid & swept),
            self.i.ready.eq(head.i.ready & swept),
        ]
        # Item and valid bit of each stage. A stage declares the fields that it adds.
        items = [head.o.payload] + [Signal(self._item, name=f"item{k}", reset_less=True)
                                    for k in range(1, 5)]
        valids = [head.o.valid] + [Signal(name=f"valid{k}") for k in range(1, 5)]
        advance = Signal()
        m.d.comb += [
            advance.eq(self.o.ready | ~valids[4]),
            head.o.ready.eq(advance), self.moves.eq(advance), self.comes.eq(valids[3]),
            Value.cast(self.coming).eq(Value.cast(items[3].user)),
            self.idle.eq(swept & head.idle & ~Cat(valids).any()),
        ]
        with m.If(advance):
            for k in range(4):
                m.d.sync += [items[k + 1].eq(items[k]), valids[k + 1].eq(valids[k])]

        descriptor = self._descriptors(m, items[0].key.table, advance, swept)
        missing, fraction = Signal(), Signal(FRACTION_BITS)
        beyond, invalid, kind2, owner2 = Signal(), Signal(), Signal(2), Signal(NODE_BITS)
        offset = Signal(NODE_BITS)
        # The sum of owner and offset has one bit more than a node number.
        owner3, status3, owner4, status4 = (Signal(s) for s in (NODE_BITS + 1, 8, NODE_BITS, 8))
        own4, refused4 = Signal(), Signal()
        compared, too_long = items[1].key.row >= Cat(
            descriptor.rows_low, descriptor.rows_high), C(0)
        wrong_kind = (kind2 == DescriptorKind.COLUMN) | (
            C(not self._replicated, 1) & (kind2 == DescriptorKind.REPLICATED))
        if self._bags:
            compared &= ~items[1].bag
            too_long = items[1].bag & (descriptor.final_beat >= self.vector_beats)
            wrong_kind |= self._bag_path(m, items, descriptor, advance)
        with m.If(advance):
            # 1: descriptor read; hash of the key.
            m.d.sync += [
                missing.eq(items[0].key.table >= self._tables),
                fraction.eq(hash_bits(items[0].key)[:FRACTION_BITS]),
            ]
            # 2: bounds of the row; offset of its owner.
            m.d.sync += [
                beyond.eq(compared),
                invalid.eq(missing | ~descriptor.valid | too_long), kind2.eq(descriptor.kind),
                owner2.eq(descriptor.owner), offset.eq(scale(fraction, descriptor.owners)),
            ]
            # 3: owner and verdict.
            with m.Switch(kind2):
                with m.Case(DescriptorKind.ROW):
                    m.d.sync += owner3.eq(owner2 + offset)
                with m.Case(DescriptorKind.REPLICATED):
                    m.d.sync += owner3.eq(self.node)
                with m.Default():
                    m.d.sync += owner3.eq(owner2)
            with m.If(invalid):
                m.d.sync += status3.eq(Status.TABLE)
            with m.Elif(wrong_kind):
                m.d.sync += status3.eq(Status.KIND)
            with m.Else():
                m.d.sync += status3.eq(Mux(beyond, Status.ROW, 0))
            # 4: an owner outside the cluster would have no packet buffer.
            m.d.sync += [
                owner4.eq(owner3), own4.eq(owner3 == self.node),
                status4.eq(Mux((status3 == 0) & (owner3 >= self.nodes), Status.TABLE, status3)),
                refused4.eq((status3 != 0) | (owner3 >= self.nodes)),
            ]
        m.d.comb += [
            self.o.valid.eq(valids[4]),
            self.o.payload.key.eq(items[4].key), self.o.payload.user.eq(items[4].user),
            self.o.payload.owner.eq(owner4), self.o.payload.own.eq(own4),
            self.o.payload.status.eq(status4), self.o.payload.refused.eq(refused4),
        ]
        return m

    def _bag_path(self, m: Module, items: list, descriptor, advance) -> Signal:
        """Drive the outputs of a NIC with bags. Return whether an item's table pools elsewhere."""
        wrong2, rows2 = Signal(), Signal(ROW_BITS, reset_less=True)
        layout = data.StructLayout({"mean": 1, "final_beat": BEAT_INDEX_BITS})
        table2, table3, table4 = (
            Signal(layout, name=f"table{k}", reset_less=True) for k in (2, 3, 4))
        with m.If(advance):
            m.d.sync += [
                wrong2.eq((descriptor.pool != items[1].bag) | (
                    items[1].bag & (descriptor.kind == DescriptorKind.ROW))),
                rows2.eq(Cat(descriptor.rows_low, descriptor.rows_high)), self.rows.eq(rows2),
                *(table2[name].eq(descriptor[name]) for name in layout.members),
                table3.eq(table2), table4.eq(table3),
            ]
        m.d.comb += [self.o.payload[name].eq(table4[name]) for name in layout.members]
        return wrong2

    def _descriptors(self, m: Module, table, read_en, swept) -> data.View:
        """Build the descriptor RAM, one lane per word, and return its output, one cycle later."""
        place = Signal(range(max(2, self._tables)))
        # A register in front of the RAMs: a write takes effect two cycles later.
        write, lane = Signal(_WORDS), Signal(_WORDS)
        address, word_data = (Signal(shape, reset_less=True) for shape in (
            range(max(2, self._tables)), 32))
        m.d.comb += [
            self.write_ready.eq(swept),
            lane.eq(Cat(self.write_word == word for word in range(_WORDS))),
        ]
        m.d.sync += [
            write.eq(Mux(self.write_en & swept & (self.write_table < self._tables), lane, 0)),
            address.eq(self.write_table), word_data.eq(self.write_data),
        ]
        with m.If(~swept):
            m.d.sync += [place.eq(place + 1), swept.eq(place == self._tables - 1)]
        report_swept(m, swept)
        descriptor: Any = Signal(Descriptor)  # a View, since Descriptor is a layout
        words = []
        for word in range(_WORDS):
            ram = Ram(32, self._tables, style="lutram" if self._tables <= 64 else "bram")
            m.submodules[f"descriptor{word}"] = ram
            m.d.comb += [
                ram.read_en.eq(read_en), ram.read_addr.eq(table),
                ram.write_en.eq(write[word]),
                ram.write_addr.eq(address), ram.write_data.eq(word_data),
            ]
            if word == 0:
                with m.If(~swept):
                    m.d.comb += [ram.write_en.eq(1), ram.write_addr.eq(place),
                                 ram.write_data.eq(0)]
            words.append(ram.read_data)
        m.d.comb += descriptor.eq(Cat(words))
        return descriptor


assert Key.size == ROW_BITS + TABLE_BITS
