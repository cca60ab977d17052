"""The timing of recovery in blocks of the link: time-outs, deadlines, jitter, and LINK messages."""

from types import SimpleNamespace

from amaranth.hdl import Module, Signal, Value

from rtl.formats import Opcode
from rtl.keys.hash_columns import COLUMNS
from rtl.network.frame_check import FrameCheck
from rtl.network.link.deadlines import Deadlines
from rtl.network.link.ends import first_deadline
from rtl.network.link.overdue import Overdue
from rtl.network.link.round_trips import MOST_SHIFT, RoundTrips
from tests.rtl.network.frames import Frame
from tests.support import decoder, simulate

TIMES, SPACE = 1 << 24, 1 << 32


def test_a_time_out_without_scatter():
    """Without scatter a time-out is one and a half round trips; doublings saturate and end."""
    dut = RoundTrips(2)

    async def bench(ctx):
        for name, value in (("first", 900), ("least", 10), ("most", 20_000)):
            ctx.set(getattr(dut, name), value)
        ctx.set(dut.node, 1)
        await ctx.tick().until(dut.idle)
        for _ in range(MOST_SHIFT + 3):
            ctx.set(dut.late, {"valid": 1, "node": 1})
            await ctx.tick()
            ctx.set(dut.late.valid, 0)
            await ctx.tick().repeat(3)
        await ctx.tick().repeat(8)
        assert (ctx.get(dut.doublings), ctx.get(dut.timeout)) == (MOST_SHIFT, 900)
        for count in range(60):
            ctx.set(dut.measured, {"valid": 1, "node": 1, "cycles": 1_600})
            await ctx.tick()
            ctx.set(dut.measured.valid, 0)
            await ctx.tick().repeat(9)
            assert ctx.get(dut.doublings) == 0
            assert ctx.get(dut.timeout) >= 2_400 and (count or ctx.get(dut.timeout) == 4_800)
        assert ctx.get(dut.timeout) == 2_400

    simulate(dut, bench)


def test_the_earliest_deadline_is_told_across_the_wrap():
    """The earliest deadline is told, beyond the wrap of time too, and not a cycle early."""
    dut = Deadlines(3)

    async def bench(ctx):
        for last in (10, SPACE - 50, SPACE - 1):
            due = {0: (last + 40) % SPACE, 2: last, 1: (last + 20) % SPACE}
            ctx.set(dut.time, (last - 30) % SPACE)
            for node, time in due.items():
                ctx.set(dut.set, {"valid": 1, "node": node, "time": time})
                await ctx.tick()
            ctx.set(dut.set.valid, 0)
            for node in (2, 1, 0):
                for early in (1, 0):
                    ctx.set(dut.time, (due[node] - early) % SPACE)
                    came = []
                    for _ in range(12):
                        *_, valid, of = await ctx.tick().sample(dut.due.valid, dut.due.node)
                        came += [of] * valid
                    assert came == [node] * (not early)
                    if early:
                        assert ctx.get(dut.idle) and ctx.get(dut.waits)
                        assert ctx.get(dut.deadline) == due[node]
            assert not ctx.get(dut.waits)

    simulate(dut, bench)


def test_the_earlier_deadline_of_both_sides_is_told():
    """The earlier deadline of both sides is told, on both sides of the wrap."""
    m = Module()
    sides = [SimpleNamespace(deadline=Signal(32), waits=Signal()) for _ in range(2)]
    waits, deadline = first_deadline(*sides)
    told, time = Signal(), Signal(32)
    m.d.comb += [told.eq(waits), time.eq(deadline)]
    m.d.sync += Signal().eq(1)

    async def bench(ctx):
        for due in ((SPACE - 5, 7), (7, SPACE - 5), (3, 9), (9, 3)):
            for waiting in ((1, 1), (1, 0), (0, 1), (0, 0)):
                for side, at, wait in zip(sides, due, waiting):
                    ctx.set(side.deadline, at)
                    ctx.set(side.waits, wait)
                await ctx.tick()
                assert ctx.get(told) == any(waiting)
                left = [at for at, wait in zip(due, waiting) if wait]
                if left:
                    assert ctx.get(time) == min(left, key=lambda at: (at + 100) % SPACE)

    simulate(m, bench)


def spread(own: int, node: int, sequence: int, tries: int) -> int:
    """Return the sixteenths of a quarter by which a time-out is longer."""
    key, value = sequence | own << 24 | node << 32 | tries << 40, 0
    for bit, column in enumerate(COLUMNS):
        value ^= column * (key >> bit & 1)
    return value >> 28


def limits(packet: dict, timeout: int, doublings: int, most: int) -> tuple[int, int]:
    """Return the cycles after which a packet is overdue, and after which it is overdue again: the
    second wait is as long as the first, each later wait twice as long as the wait before."""
    tries = packet["record"]["tries"]
    cycles = timeout << max(doublings, min(MOST_SHIFT, max(0, tries - 2)))

    def spread_out(cycles: int, tries: int) -> int:
        part = spread(3, packet["node"], packet["sequence"], tries) if tries > 1 else 0
        return cycles + ((cycles >> 2) * part >> 4)

    return (spread_out(min(cycles, most), tries),
            spread_out(min(cycles << (tries > 1), most), tries + 1))


def test_a_packet_is_overdue_to_the_cycle():
    """Each packet is sent again in the first cycle in which it is overdue, and not before; the
    walk's deadline is the earliest of its packets', to the cycle."""
    dut = Overdue(64, 4)
    cases = [(tries, timeout, doublings, most)
             for tries in (1, 2, 3, 4, 5, 11, 40)
             for timeout, doublings, most in ((1_000, 0, 250_000), (700, 2, 250_000),
                                              (1_000, 0, 3_000), (64, 15, 5 << 20))]

    async def ask(ctx, packet, time):
        ctx.set(dut.time, time % SPACE)
        ctx.set(dut.i.payload, packet)
        ctx.set(dut.i.valid, 1)
        sent, decided = 0, 0
        while not decided:
            *_, repeats, decided, stop = await ctx.tick().sample(
                dut.repeats.valid & dut.repeats.ready, dut.decided, dut.stop)
            sent += repeats
        ctx.set(dut.i.valid, 0)
        return sent, stop

    async def over(ctx):
        ctx.set(dut.over, 1)
        await ctx.tick()
        ctx.set(dut.over, 0)
        *_, event, late = await ctx.tick().sample(dut.deadline, dut.late.valid)
        return event, late

    async def bench(ctx):
        ctx.set(dut.again.ready, 1)
        ctx.set(dut.repeats.ready, 1)
        ctx.set(dut.own, 3)
        ctx.set(dut.tries, 100)
        for number, (tries, timeout, doublings, most) in enumerate(cases):
            for name, value in (("timeout", timeout), ("doublings", doublings), ("most", most)):
                ctx.set(getattr(dut, name), value)
            packet = {"node": number % 5, "sequence": 0x123456 * number % (1 << 24), "due": 1,
                      "first": 0, "record": {"tries": tries}}
            wait, again = limits(packet, timeout, doublings, most)
            now = (SPACE - 300) + 77 * number
            for age in (wait - 1, wait):
                packet["record"]["time"] = (now - age) % TIMES
                sent, stop = await ask(ctx, packet, now)
                assert sent == (age == wait) and stop == (not sent and tries == 1)
                event, late = await over(ctx)
                assert event.valid
                assert late == (sent and (tries == 1 or tries > doublings + 1))
                assert (event.time - now) % SPACE == (again if sent else 1), (tries, timeout)
        # Two packets of a walk, due on both sides of the wrap, in either order.
        for places in ((40, 90), (90, 40)):
            for left in places:
                packet["record"] = {"tries": 1, "time": (SPACE - 60 + left - 1_000) % TIMES}
                ctx.set(dut.timeout, 1_000)
                ctx.set(dut.doublings, 0)
                await ask(ctx, packet, SPACE - 60)
            event, late = await over(ctx)
            assert not late and event.time == SPACE - 20

    simulate(dut, bench)


def test_a_link_message_has_eight_words():
    """A LINK message has eight words; one with fewer or more is dropped as ``bad_length``."""
    dut = FrameCheck(22, "udp", link=True)
    decode, output = decoder(dut.o.shape()), Value.cast(dut.o)

    async def bench(ctx):
        ctx.set(dut.node, 1)
        ctx.set(dut.nodes, 4)
        ctx.set(dut.vector_beats, 1)
        for count in (8, *range(1, 8), 9, 16, 8):
            frame = Frame(opcode=Opcode.LINK, source=2, destination=1, step=0, credit=0,
                          count=count, payload=bytes(64 * -(-count // 8)), framing="udp")
            beats, last = frame.beats(), {}
            for beat in (*beats, *[None] * 8):
                ctx.set(dut.valid, beat is not None)
                if beat is not None:
                    ctx.set(dut.beat, beat)
                *_, out = await ctx.tick().sample(output)
                item = decode(out)
                last = item if item["valid"] and item["last"] else last
            assert last["link"] and last["drop"] == last["verdict"]["bad_length"] == (count != 8)

    simulate(dut, bench)
