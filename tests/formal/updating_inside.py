"""Invariant of an updater: the location of its rows, for induction."""

from types import SimpleNamespace

from amaranth.hdl import C, Cat, Mux, Signal, Value
from amaranth.lib import data

from tests.formal.updating import Updating
from tests.formal.updating_blocks import COUNT, NUMBER, PLACES, STATE

__all__ = ["inside"]


def inside(made: Updating) -> None:
    """State the invariant for vectors of one beat."""
    bench, dut, m = made.bench, made.dut, made.bench.m
    blocks = dut.made.submodules
    ring, output, end = blocks.ring, blocks.output, blocks.end
    at, find, land, feed = (SimpleNamespace(**each) for each in (
        ring.at, ring.finding, ring.landing, ring.feeding))
    rams, out = ring.made.submodules, SimpleNamespace(**output.at)
    over = SimpleNamespace(**end.at)
    left, ready, sweep = rams.left, rams.ready, rams.rows_here.sweeping
    head, tail, level = at.head, at.tail, ring.level

    def minus(a, b):
        result = Signal(NUMBER)
        m.d.comb += result.eq(a - b)
        return result

    def items(buffer, shape):
        """Return the items of a skid buffer, each with its valid flag."""
        inner = SimpleNamespace(**buffer.at)
        return [(valid, data.View(shape, Cat(value))) for valid, value in (
            (inner.front_valid, inner.front), (inner.held_valid, inner.held))]

    for name, buffer in (("entry", rams.entry), ("lookup", rams.lookup_buffer),
                         ("write", out.write), ("row", out.rows), ("state", out.states),
                         ("request", rams.request_buffer)):
        inner = SimpleNamespace(**buffer.at)
        bench.always(f"{name}_buffer", (inner.ready == ~inner.held_valid)
                     & (~inner.held_valid | inner.front_valid))
    entry, lookups = (items(buffer, buffer.o.payload.shape()) for buffer in (
        rams.entry, rams.lookup_buffer))
    writes, rows, states = (items(buffer, buffer.o.payload.shape()) for buffer in (
        out.write, out.rows, out.states))

    # The surroundings of the block.
    kept = made.kept
    bench.always("offered", ~made.within_key & ~made.within[0] & ~made.within[1] & (
        ~made.stalled | (kept.last & (kept.beat == 0) & (kept.step == made.step) & ~made.last_end
                         & ((Value.cast(kept.key) != 0) | ~made.had))))

    # Numbers.
    found, place = find.found, find.place
    to_place, to_feed = minus(place, tail), minus(feed.feed, tail)
    unfound, waiting = minus(head, place), minus(place, feed.feed)
    bench.always("level", (level == minus(head, tail)) & (level <= PLACES))
    bench.always("left", (left.level == unfound) & (left.some == (unfound != 0))
                 & (left.many == (unfound >= 2)) & (find.after == minus(place, C(3, 2))))
    bench.always("ready", (ready.level == waiting) & (ready.some == (waiting != 0))
                 & (ready.many == (waiting >= 2)))
    bench.always("order", (to_feed <= to_place) & (to_place <= level)
                 & (~found | (unfound != 0)))
    bench.always("one_beat", (feed.beat == 0) & (feed.out_beat == 0) & (out.beat == 0)
                 & (feed.last_beat == 0))
    held, computed = made.computing
    bench.always("held", ~held[1] | held[0])
    here = out.valid + (held[0] + held[1])
    bench.always("fed", to_feed == here + feed.valid)
    fed = [(out.valid, out.item.id, C(0)),
           *((held[k], computed[k].id, out.valid + k) for k in range(PLACES)),
           (feed.valid, feed.out.id, here)]
    for k, (valid, number, ahead) in enumerate(fed):
        bench.always(f"fed_{k}", ~valid | (minus(number, tail) == ahead))
    bench.always("last", (~out.valid | out.item.last) & (~feed.valid | feed.out.last) & Cat(
        ~held[k] | computed[k].last for k in range(PLACES)).all())

    # Lookups that wait, and lookups that are outstanding.
    looking = Signal(2)
    m.d.comb += looking.eq(lookups[0][0] + lookups[1][0])
    bench.always("looking", (~lookups[0][0] | (lookups[0][1].meta == minus(head, looking)))
                 & (~lookups[1][0] | (lookups[1][1].meta == minus(head, C(1)))))
    bench.always("looking_few", looking <= unfound - found)
    asked, landed, number = made.asked, ring.landed, land.number
    known_to = Signal(3)
    m.d.comb += known_to.eq(level - looking)
    for n in range(1 << NUMBER):
        ahead = minus(C(n, NUMBER), tail)
        bench.always(f"asked_{n}", ~asked[n] | (
            (ahead < known_to) & (ahead >= to_place + found)))
        lands = landed & (number == n)
        bench.always(f"lands_{n}", ~lands | (
            (ahead < known_to) & ~asked[n] & (ahead >= to_place + found)))
        answered = (ahead < known_to) & ~asked[n] & ~lands
        for ram in ("here_ram", "known_ram"):
            cell = getattr(rams.rows_here.made.submodules, ram).cells[n % PLACES]
            bench.always(f"{ram}_{n}", sweep | (ahead >= PLACES) | (
                (cell == n // PLACES) == answered))
    bench.always("sweep", ~sweep | ((level == 0) & (looking == 0) & (head == 0) & (tail == 0)
                                    & (asked == 0) & ~landed))
    for ram in ("here_ram", "known_ram"):
        bench.always(f"{ram}_swept", ~sweep | (rams.rows_here.at["sweep"] == 0) | (
            getattr(rams.rows_here.made.submodules, ram).cells[0] == 1))

    # The end of a step.
    drain, done, take = (over.fsm.ongoing(name) for name in ("DRAIN", "DONE", "TAKE"))
    report = over.fsm.ongoing("REPORT")
    empty = Value.cast(end.empty)
    ending, passed = made.last_end, dut.flushed.payload.passed
    nothing = (level == 0) & ~Cat(valid for buffer in (writes, rows, states)
                                  for valid, _ in buffer).any() & (made.out == 0)
    bench.always("counts", (output.sent - made.acknowledged)[:COUNT] == made.out)
    bench.always("thawed", dut.frozen | nothing)
    bench.always("some_state", drain | done | take | report | over.fsm.ongoing("WAIT"))
    bench.always("at_end", ~(drain | done | take | report) | ending)
    bench.always("emptied", ~(ending & over.emptied) | empty)
    bench.always("all_written", ~(ending & over.emptied & over.written) | (made.out == 0))
    bench.always("at_done", ~done | (empty & nothing))
    bench.always("at_take", ~(take & ~passed) | (~dut.frozen & empty))
    bench.always("passed", (~(drain | done) | ~passed) & (end.reports.valid == report))

    # The data that is not yet written, and the wait of the end since all is written.
    coming, going, putting, saving = (sum((valid for valid, _ in buffer), C(0)) for buffer in (
        entry, rows, writes, states))
    to_write = sum(((minus(C(n, NUMBER), tail) < known_to) & ~asked[n]
                    & rams.slots.cells[n % PLACES][-1] for n in range(1 << NUMBER)), C(0))
    bench.always("unsent", made.unsent == coming + level + going)
    bench.always("unwritten", made.unwritten == to_write + putting)
    bench.always("unsaved", made.unsaved == Mux(made.adagrad, coming + level, 0) + saving)
    count, late = made.count, Signal(3)
    m.d.comb += late.eq(Mux(report, 1, Mux(drain, 2, Mux(done, 3, Mux(take, 4, 0)))))
    bench.always("due", (count <= late) & ((count == 0) | (ending & ~passed & made.all_written)))
    bench.always("over", ~(drain & (count != 0)) | (over.emptied & over.written))

    # The followed row.
    key = Value.cast
    in_ring = [(minus(C(n, NUMBER), tail) < level) & (rams.keys.cells[n % PLACES] == 0)
               for n in range(1 << NUMBER)]
    inside = Cat(*in_ring)
    entering = sum((valid & (key(item.key) == 0) for valid, item in entry), C(0))
    asking = sum((valid & (key(item.key) == 0) for valid, item in lookups), C(0))
    leaving = sum((valid & (Cat(item.record.row, item.record.table) == 0)
                   for valid, item in rows), C(0))
    gone = Signal()
    m.d.comb += gone.eq((leaving != 0) | made.sent[0])
    bench.always("one_place", entering + sum(in_ring, C(0)) + leaving + made.sent[0]
                 == made.summed)
    bench.always("looked", entering + asking + made.looked == made.summed)
    bench.always("known", ~made.summed | made.had)
    bench.always("not_yet", made.looked | ~(made.found | made.held | made.old[0] | made.wrote[0]
                                            | made.sent[0]))
    for k, (valid, item) in enumerate(lookups):
        bench.always(f"lookup_key_{k}", ~valid | (
            (key(item.key) == 0) == inside.bit_select(item.meta, 1)))
    for k, (valid, item) in enumerate(entry):
        bench.always(f"entry_{k}", ~valid | (
            item.last & (item.beat == 0) & (item.step == made.step) & (
                (key(item.key) != 0) | (item.data == made.gradient))))
    right = made.old ^ made.gradient
    for n in range(1 << NUMBER):
        p, its = n % PLACES, in_ring[n]
        row = minus(C(n, NUMBER), tail) < level
        answered = (minus(C(n, NUMBER), tail) < known_to) & ~asked[n]
        slot = rams.slots.cells[p]
        bench.always(f"number_{n}", ~(its & made.looked) | (
            (made.number == n) & (made.found == ~asked[n])))
        bench.always(f"present_{n}", ~row | (rams.present.cells[p] == 1))
        bench.always(f"gradient_{n}", ~its | (rams.gradients.cells[p] == made.gradient))
        bench.always(f"old_{n}", ~(its & made.found) | (
            (rams.rows.cells[p] == made.old) & (slot[-1] == made.held)
            & (~made.held | (slot[0] == made.place))))
        bench.always(f"slot_{n}", ~(row & ~its & answered & slot[-1]) | (slot[0] != made.place))
    bench.always("gone_found", ~gone | made.found)
    # A value in flight, of the followed row.
    def own(number):
        return inside.bit_select(number, 1)

    bench.always("feeding", ~feed.valid | (rams.present.word == 1) & (~own(feed.out.id) | (
        (rams.rows.word == made.old) & (rams.gradients.word == made.gradient))))
    for k in range(PLACES):
        bench.always(f"computed_{k}", ~(held[k] & own(computed[k].id)) | (
            computed[k].row == right))
    bench.always("waits", ~out.valid | (
        (rams.keys.word == _cell(rams.keys, tail))
        & (rams.slots.word == _cell(rams.slots, tail))
        & (~own(tail) | (out.item.row == right))))
    its_writes = [valid & (item.slot == made.place) for valid, item in writes]
    bench.always("writes", sum(its_writes, C(0)) + made.wrote[0] == (gone & made.held))
    for k, (valid, item) in enumerate(writes):
        bench.always(f"writes_{k}", ~valid | (
            (item.beat == 0) & (~its_writes[k] | (item.data == right))))
    for k, (valid, item) in enumerate(rows):
        bench.always(f"rows_{k}", ~valid | (
            (item.step == made.step) & (item.record.beat == 0) & (
                (Cat(item.record.row, item.record.table) != 0) | (item.data == right))))
    bench.always("step", (level == 0) | (ring.step == made.step))
    # Its state, which has a number and no key.
    def landing(item):
        return data.View(STATE, item.record[:STATE.size]).landing

    ours = [valid & (landing(item) == made.number) for valid, item in states]
    for k, (valid, item) in enumerate(states):
        bench.always(f"states_{k}", ~valid | (
            made.adagrad & (landing(item) == minus(tail, 1 if k else saving))))
    bench.always("state", ~made.looked | made.saved | (
        sum(ours, C(0)) == (gone & made.adagrad)))
    bench.always("saved", ~made.saved | (gone & made.adagrad))
    bench.always("mode", sweep | (ring.adagrad == made.adagrad))


def _cell(ram, number):
    return Mux(number[0], ram.cells[1], ram.cells[0])
