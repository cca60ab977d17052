"""Dot array: the dot units, each with copies of the ring of vectors, and the sums over slices."""

from itertools import pairwise

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.config import NicConfig
from rtl.float import DOT_LATENCY, DOT_TREE_LATENCY, RECODED_SLICE, DotProduct
from rtl.interaction.dot_schedule import DotGroup, group_count
from rtl.interaction.slices import ring_depth
from rtl.memory import Ram
from rtl.shared import Shared

__all__ = ["DotArray"]


class _DotUnit(wiring.Component):
    """Compute one dot product per cycle of any two vectors of the ring, with a copy of the ring per
    operand.

    Addresses and write enable arrive one cycle early, at registers of the unit: they have hundreds
    of loads in each unit.

    Ports
    -----
    write_en, write_addr, write_data: write into both copies; ``write_data`` one cycle later.
    row, column: places of the operands, two cycles before they enter
        :class:`~rtl.float.DotProduct`.
    first, previous, o: see :class:`~rtl.float.DotProduct`; ``first`` and ``previous`` only with
        several slices.
    """

    def __init__(self, depth: int, several: bool):
        self._depth, self._several = depth, several
        ports = {
            "write_en": In(1), "write_addr": In(range(depth)), "write_data": In(RECODED_SLICE.size),
            "row": In(range(depth)), "column": In(range(depth)), "o": Out(32)}
        if several:
            ports |= {"first": In(1), "previous": In(32)}
        super().__init__(ports)

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.product = product = DotProduct(accumulate=self._several)
        write_en, write_addr = Signal(), Signal.like(self.write_addr, reset_less=True)
        m.d.sync += [write_en.eq(self.write_en), write_addr.eq(self.write_addr)]
        for name, place, operand in (("rows", self.row, product.a),
                                     ("columns", self.column, product.b)):
            read_addr = Signal.like(place, name=f"{name}_addr", reset_less=True)
            m.d.sync += read_addr.eq(place)
            m.submodules[name] = ram = Ram(RECODED_SLICE.size, self._depth, style="lutram")
            m.d.comb += [
                ram.write_en.eq(write_en), ram.write_addr.eq(write_addr),
                ram.write_data.eq(self.write_data), ram.read_addr.eq(read_addr),
                operand.eq(ram.read_data),
            ]
        m.d.comb += self.o.eq(product.o)
        if self._several:
            m.d.comb += [product.first.eq(self.first), product.previous.eq(self.previous)]
        return m


class DotArray(wiring.Component):
    """Compute ``dot_units`` dot products per cycle, of any pairs of vectors, summed over slices.

    A copy of the ring per operand costs fewer LUTs than a rotating ring of registers (8 for 7 bits
    of 64 vectors, against 1 and two flip-flops for each bit of one vector). Pairs can then be taken
    in result order for any number of vectors, without reordering.

    Ports
    -----
    write_en, write_addr, write_data: from :class:`~rtl.interaction.slices.SliceLoader`.
    valid, group, rows, columns: from :class:`~rtl.interaction.dot_schedule.DotSchedule`.
    o_valid, o_group: the finished group, not registered after the float units.
    dots: its dots, unit 0 lowest; for slices before the final one, the partial sums.
    idle: no group is in flight.
    """

    LATENCY = {
        ("group", "its dots, where vectors have one slice"): 1 + DOT_TREE_LATENCY,
        ("group", "its dots, where vectors may have several slices"): 1 + DOT_LATENCY,
    }
    RATE = "1 group per cycle"

    def __init__(self, config: NicConfig):
        self._config, self._group = config, DotGroup(config)
        self._depth, self._units = ring_depth(config), config.dot_units
        places = data.ArrayLayout(ceil_log2(self._depth), self._units)
        super().__init__({
            "write_en": In(1), "write_addr": In(range(self._depth)),
            "write_data": In(RECODED_SLICE.size),
            "valid": In(1), "group": In(self._group), "rows": In(places),
            "columns": In(places), "o_valid": Out(1), "o_group": Out(self._group),
            "dots": Out(32 * self._units), "idle": Out(1),
        })

    @classmethod
    def latency(cls, config: NicConfig) -> int:
        """Return the cycles from a group to its dots in a NIC with ``config``."""
        several = "may have several slices" if config.vector_beats > 1 else "have one slice"
        return cls.LATENCY["group", f"its dots, where vectors {several}"]

    def elaborate(self, platform) -> Module:
        m = Module()
        several = self._config.vector_beats > 1
        latency = self.latency(self._config)
        valid = [self.valid, *(Signal(name=f"valid{k}") for k in range(latency))]
        # Without a reset, these become shift registers in LUTs.
        groups = [self.group, *(Signal(self._group, name=f"group{k}", reset_less=True)
                                for k in range(latency))]
        m.d.sync += [after.eq(before) for before, after in (*pairwise(valid), *pairwise(groups))]
        m.d.comb += [
            self.o_valid.eq(valid[-1]), self.o_group.eq(groups[-1]),
            self.idle.eq(~Cat(valid).any()),
        ]

        units = []
        for k in range(self._units):
            unit = Shared(_DotUnit(self._depth, several), "dot_unit")
            m.submodules[f"unit{k}"] = unit
            units.append(unit)
            m.d.comb += [
                unit.write_en.eq(self.write_en), unit.write_addr.eq(self.write_addr),
                unit.write_data.eq(self.write_data),
                unit.row.eq(self.rows[k]), unit.column.eq(self.columns[k]),
                self.dots.word_select(k, 32).eq(unit.o),
            ]
        if several:
            m.submodules.sums = sums = Ram(len(self.dots), group_count(self._config),
                                           style="lutram")
            before, done = groups[DOT_TREE_LATENCY], groups[-1]
            m.d.comb += [
                sums.read_en.eq(valid[DOT_TREE_LATENCY] & ~before.first),
                sums.read_addr.eq(before.number),
                sums.write_en.eq(valid[-1] & done.keep), sums.write_addr.eq(done.number),
                sums.write_data.eq(self.dots),
            ]
            for k, unit in enumerate(units):
                m.d.comb += [unit.first.eq(groups[DOT_TREE_LATENCY + 1].first),
                             unit.previous.eq(sums.read_data.word_select(k, 32))]
        return m
