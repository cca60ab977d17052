"""Credits of a rejoining peer while lookups or bags for it wait and leave all the time."""

import random
from types import SimpleNamespace

import pytest
from amaranth.hdl import Elaboratable, Module, Signal

from rtl.config import preset
from rtl.formats import Opcode
from rtl.monitor.answers import ANSWER_COUNTERS
from rtl.network import CreditCounter, FrameReceiver
from rtl.network.layouts import AtNode, Credit, FreedBeats
from rtl.network.link.layouts import Failed
from rtl.nic_link import connect_link, link_blocks
from tests.rtl.network.dirty import simulate

CONFIG = preset("tiny").with_fields(link=True)
PEER, CONSUMED, CHANGE = 2, 300, 0x5A


class Linked(Elaboratable):
    """The blocks of the link, connected as in the NIC; all other blocks are signals."""

    def __init__(self, bags: bool):
        nodes = CONFIG.nodes
        self.config = CONFIG.with_fields(owner_bags=16 * bags)
        self.blocks = SimpleNamespace(
            **link_blocks(self.config), net_receiver=FrameReceiver(CONFIG, link=True),
            host_reporter=SimpleNamespace(failed=Signal(Failed)),
            net_parser=SimpleNamespace(credit=Signal(Credit), bag_credit=Signal(Credit)),
            lookup_receiver=SimpleNamespace(kept=Signal(FreedBeats)),
            lookup_packager=SimpleNamespace(lost=Signal(nodes)),
            peer_answers=SimpleNamespace(counters=Signal(ANSWER_COUNTERS)),
            lookup_check=SimpleNamespace(refused=Signal(AtNode)),
            bag_receiver=SimpleNamespace(kept=Signal(FreedBeats)),
            bag_check=SimpleNamespace(freed=Signal(AtNode), passed=Signal(AtNode)),
            bag_packager=SimpleNamespace(lost=Signal(nodes)),
            bag_answers=SimpleNamespace(counters=Signal(ANSWER_COUNTERS)))
        self.csr = SimpleNamespace(
            link_rejoin=Signal(16), link_rejoins=Signal(), link_rejoining=Signal(),
            link_given_up=Signal(nodes))
        self.credits = [CreditCounter(nodes) for _ in range(1 + bags)]

    def elaborate(self, platform) -> Module:
        m, blocks = Module(), self.blocks
        m.submodules += [blocks.net_receiver, *self.credits,
                         *(getattr(blocks, name) for name in link_blocks(self.config))]
        connect_link(m, self.config, blocks, self.csr, *self.credits)  # type: ignore[arg-type]
        return m


@pytest.mark.thorough
@pytest.mark.parametrize("bags", [False, True], ids=["lookups", "bags"])
@pytest.mark.parametrize("beats", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_each_beat_is_given_back_once(beats, bags):
    """What the old peer got is given back to the gate, and nothing that is sent to the new peer;
    the new peer is told of no beat that the old one has sent.

    In a NIC with bags, credits of lookups come and go in most cycles meanwhile.
    """
    dut, rng = Linked(bags), random.Random(beats)
    sender, csr, credits = dut.blocks.link_sender, dut.csr, dut.credits[-1]
    account = dut.blocks.link_bag_credits if bags else dut.blocks.link_credits
    taken, left, told, lost = [], [], [], []

    async def bench(ctx):
        for name, value in (("timeout_first", 9_000), ("timeout_most", 9_000), ("tries", 9)):
            ctx.set(getattr(sender, name), value)
        ctx.set(sender.header_out.ready, 1)
        ctx.set(sender.payload_out.ready, 1)
        await ctx.tick().until(credits.idle)
        ctx.set(credits.freed, {"valid": 1, "node": PEER})
        await ctx.tick().repeat(CONSUMED)
        ctx.set(credits.freed.valid, 0)
        await ctx.tick().repeat(200)
        ctx.set(csr.link_rejoin, PEER << 8 | CHANGE)
        ctx.set(csr.link_rejoins, 1)
        await ctx.tick()
        ctx.set(csr.link_rejoins, 0)
        await ctx.tick().until(~csr.link_rejoining)
        await ctx.tick().repeat(100)

    async def traffic(ctx):
        ctx.set(sender.payload.valid, 1)
        ctx.set(sender.headers.payload, {
            "opcode": Opcode.BAGS if bags else Opcode.LOOKUPS, "destination": PEER, "step": 1,
            "count": 8 * beats})
        while True:
            ctx.set(sender.headers.valid, 1)
            await ctx.tick().until(sender.headers.ready)
            taken.append(beats)
            ctx.set(sender.headers.valid, 0)
            await ctx.tick()

    async def payload(ctx):
        place = 0
        while True:
            ctx.set(sender.payload.payload.last, int(place == beats - 1))
            _, _, ready = await ctx.tick().sample(sender.payload.ready)
            place = (place + ready) % beats

    async def watch(ctx):
        while True:
            _, _, valid, header, credit, given_up = await ctx.tick().sample(
                sender.header_out.valid, sender.header_out.payload, account.credit,
                csr.link_given_up)
            if valid:
                left.append((header.change, header.sequence, header.credit))
            if credit.valid:
                told.append((credit.node, credit.value))
            lost.append(given_up)

    async def others(ctx):
        """Lookups of peer 1 are consumed, and it returns credits."""
        await ctx.tick().until(dut.credits[0].idle)
        while bags:
            ctx.set(dut.credits[0].freed, {"valid": rng.random() < 0.8, "node": 1})
            ctx.set(dut.blocks.net_parser.credit, {"valid": rng.random() < 0.8, "node": 1})
            await ctx.tick()

    simulate(dut, bench, background=[traffic, payload, watch, others], limit=4_000)
    old, new = ([entry for entry in left if entry[0] == change] for change in (0, CHANGE))
    assert len(new) > 1 and old + new == left
    assert old[-1][2] == CONSUMED
    assert [(number, credit) for _, number, credit in new] == [(k, 0) for k in range(len(new))]
    # Headers taken that leave in the new epoch, or are about to.
    assert len(told) == 1 and told[0][0] == PEER
    returned = told[0][1]
    assert returned % beats == 0
    assert 0 <= sum(taken) - returned - beats * len(new) <= 2 * beats
    assert set(lost) == {0, 1 << PEER} and lost[-1] == 0
