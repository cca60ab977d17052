"""Socket check: the sender named in a header must own the socket from which the packet arrived."""

import random

from gen.shells.socket_check import SocketCheck
from tests.rtl.network.frames import Frame
from tests.support import receiver, sender, simulate


def test_a_packet_in_the_name_of_another_node_is_marked():
    dut, rng, items, sockets, wanted = SocketCheck(16), random.Random(2), [], [], []
    for _ in range(60):
        source = rng.randrange(16)
        socket = rng.choice((source, source, source ^ 1 << rng.randrange(4), source | 256))
        frame = Frame(source=source, framing="udp", payload=rng.randbytes(64 * rng.randrange(3)))
        beats = frame.beats()
        items += beats
        sockets += [socket] * len(beats)
        wanted += [beat | {"err": int(beat["last"] and socket != source)} for beat in beats]
    taken: list[dict] = []

    async def name(ctx):
        ctx.set(dut.socket, sockets[0])
        gone = 0
        while gone < len(items):
            _, _, valid, ready = await ctx.tick().sample(dut.i.valid, dut.i.ready)
            gone += valid & ready
            ctx.set(dut.socket, sockets[min(gone, len(items) - 1)])

    simulate(dut, name, sender(dut.i, items, stall=0.3),
             receiver(dut.o, taken, len(items), stall=0.3))
    assert taken == wanted and sum(item["err"] for item in wanted) > 10
