"""Two gaps of an unpacker, of which the second begins while the first may wait as a marker."""

from tests.support import send_at_once, simulate

__all__ = ["reported_twice"]


def reported_twice(dut, taken: int) -> list[int | None]:
    """Return the gaps that ``dut`` reports: the number of a marker's dropped packet, or None.

    Packets of one record arrive until one is dropped, and again after the output has been ready for
    ``taken`` cycles. The output becomes ready when all have arrived. The step of a packet is the
    number of packets dropped before it.
    """
    gaps: list[int | None] = []

    async def collect(ctx):
        async for _, _, moves, user in ctx.tick().sample(
                dut.o.valid & dut.o.ready, getattr(dut.o.payload, "user", dut.o.payload)):
            if moves and user["gap"]:
                gaps.append(user["step"] if user["marker"] else None)

    async def feed(ctx):
        for step in range(2):
            gone = 0
            while not gone:
                beat = {"data": 0, "records": 1, "source": 0, "step": step, "last": 1}
                ctx.set(dut.i.payload, beat)
                ctx.set(dut.i.valid, 1)
                gone = ctx.get(dut.dropped)
                await send_at_once(ctx, dut.i, beat)
            ctx.set(dut.o.ready, 1)
            if step == 0:
                await ctx.tick().repeat(taken)
                ctx.set(dut.o.ready, 0)
                await ctx.tick().repeat(4)  # the gap may become a marker
        await ctx.tick().until(dut.idle)
        await ctx.tick()

    simulate(dut, feed, background=[collect])
    return gaps
