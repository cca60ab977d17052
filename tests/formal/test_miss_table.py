"""Proofs of the miss table and the free list, without bound: they behave as their substitutes.

There are two ids or numbers. The table is compared with :class:`~tests.formal.plain.PlainTable`
cycle by cycle, for any queries of a user that opens only ids that are not out and closes only ids
that were found to be out. For the free list: no number is allocated twice, and a free number is
offered in time.
"""

import pytest
from amaranth.hdl import Cat, Mux, Signal

from rtl.cache.free_list import FreeList
from rtl.cache.miss_table import MissTable
from tests.formal.bench import Bench
from tests.formal.plain import PlainTable
from tests.formal.prove import prove
from tests.mutants import broken

IDS = 2


def compared(block: type = MissTable) -> Bench:
    """Return a bench of a table beside its substitute."""
    bench = Bench()
    m = bench.m
    m.submodules.dut = dut = block(rows=2, in_flight=IDS)
    m.submodules.plain = plain = PlainTable(rows=2, in_flight=IDS)
    swept = Signal(range(IDS + 1))
    m.d.sync += swept.eq(Mux(swept == IDS, IDS, swept + 1))
    ready = swept == IDS
    m.d.comb += [dut.clear.eq(~ready), dut.clear_address.eq(swept)]
    for name, width in (("id", 1), ("slot", 1), ("allocated", 1), ("phase", 1), ("fill_id", 1)):
        value = bench.free(width, name)
        m.d.comb += [getattr(table, name).eq(value) for table in (dut, plain)]
    for name in ("open", "close"):
        value = bench.free(name=name) & ready
        m.d.comb += [getattr(table, name).eq(value) for table in (dut, plain)]
    bench.assume(plain.expected)
    asks = Signal()
    m.d.sync += asks.eq(ready)
    bench.always("waiting", ~asks | (dut.waiting == plain.waiting))
    bench.always("busy", ~asks | (dut.busy == plain.busy))
    bench.always("fetch", ~(asks & plain.busy) | (
        Cat(dut.fill_slot, dut.fill_allocated, dut.fill_phase)
        == Cat(plain.fill_slot, plain.fill_allocated, plain.fill_phase)))
    return bench


def listed(block: type = FreeList) -> Bench:
    """Return a bench that takes numbers and returns any of them at any time."""
    bench = Bench()
    m = bench.m
    m.submodules.dut = dut = block(IDS)
    out, number = Signal(IDS), bench.free(range(IDS), "number")
    taken = bench.sink(dut.taken, "taken")
    m.d.comb += [dut.given.valid.eq(bench.free(name="gives") & out.bit_select(number, 1)),
                 dut.given.number.eq(number)]
    bench.always("apart", ~dut.taken.valid | ~out.bit_select(dut.taken.payload, 1))
    with m.If(dut.given.valid):
        m.d.sync += out.bit_select(number, 1).eq(0)
    with m.If(taken):
        m.d.sync += out.bit_select(dut.taken.payload, 1).eq(1)
    bench.within("comes", 2, ~out.all(), dut.taken.valid)
    return bench


def test_miss_table():
    verdict = prove(compared())
    assert verdict.holds, verdict


def test_free_list():
    verdict = prove(listed())
    assert verdict.holds, verdict


@pytest.mark.parametrize("wrong, old, new", [
    ("waiting", "outstanding & (entry[:-1] == Cat(slot, 1))", "outstanding & entry[-2]"),
    ("waiting", "outstanding & (entry[:-1] == Cat(slot, 1))", "outstanding"),
    ("busy", "& ~(self.close & (closing == self.fill_id)))", ")"),
    ("busy", "ram.write_data.eq(~self.clear & was_opened)", "ram.write_data.eq(~self.clear)"),
    ("waiting", "ram.write_data.eq(~self.clear & ~closed[0].read_data)",
     "ram.write_data.eq(~self.clear)"),
    ("busy", "Mux(self.clear, self.clear_address, closing)",
     "Mux(self.clear, self.clear_address, self.fill_id)"),
    ("fetch", "ram.write_en.eq(self.open), ram.write_addr.eq(self.id)",
     "ram.write_en.eq(1), ram.write_addr.eq(self.id)"),
], ids=["any-slot", "without-a-row", "closed-late", "closed-once", "opened-once",
        "another-closed", "overwritten"])
def test_broken_miss_table(wrong, old, new):
    verdict = prove(compared(broken(MissTable, old, new)))
    assert set(verdict.broken) & {wrong, "waiting", "busy"}, verdict


@pytest.mark.parametrize("wrong, old, new", [
    ("apart", "fresh_left.eq(fresh != self._count - 1)", "fresh_left.eq(1)"),
    ("comes", "returned.i.valid.eq(self.given.valid)", "returned.i.valid.eq(self.given.valid & "
     "~fresh_left)"),
    ("apart", "self.taken.ready & ~fresh_left", "0"),
], ids=["fresh-again", "lost", "twice"])
def test_broken_free_list(wrong, old, new):
    verdict = prove(listed(broken(FreeList, old, new)))
    assert wrong in verdict.broken, verdict
