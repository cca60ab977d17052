"""The table of links contains every stream of every block once, and both ends match."""

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import NicConfig, preset
from rtl.links import Link, join, links, port_at
from rtl.nic import SmartNic
from tests.support import simulate

UNUSED = {"access_tap.o"}
"""The tap is not part of the NIC's data path."""

OPTIONS = pytest.mark.parametrize("training, bags, repeats", [
    (False, False, False), (True, False, False), (False, True, False), (True, True, False),
    (False, True, True), (True, True, True)])


def config_of(training: bool, bags: bool, repeats: bool) -> NicConfig:
    return preset("tiny").with_fields(
        training=training, owner_bags=16 * bags, repeat_words=64 * repeats)


@OPTIONS
@pytest.mark.parametrize("linked", [False, True])
def test_every_stream_of_a_block_is_an_end_of_a_link(training, linked, bags, repeats):
    nic = SmartNic(config_of(training, bags, repeats).with_fields(link=linked))
    ends = {"source": set(), "target": set()}
    for name, block in nic.blocks.items():
        for port, member in block.signature.members.items():
            if not member.is_port and isinstance(
                    inner := member.signature, (stream.Signature, wiring.FlippedSignature)):
                flipped = isinstance(inner, wiring.FlippedSignature)
                if isinstance(inner.flip() if flipped else inner, stream.Signature):
                    ends["target" if flipped else "source"].add(f"{name}.{port}")
    table = links(training, linked, bags, repeats)
    for end, found in ends.items():
        named = [getattr(link, end) for link in table]
        assert len(set(named)) == len(named)
        assert {place for place in named if place.partition(".")[0] in nic.blocks} == found - UNUSED
    assert len({link.name for link in table}) == len(table)


@OPTIONS
@pytest.mark.parametrize("linked", [False, True])
def test_the_ends_of_a_link_have_one_shape(training, linked, bags, repeats):
    nic = SmartNic(config_of(training, bags, repeats).with_fields(link=linked))
    for link in links(training, linked, bags, repeats):
        if link.fields is None and {link.source.partition(".")[0],
                                    link.target.partition(".")[0]} <= nic.blocks.keys():
            shapes = [port_at(dict(nic.blocks), place).payload.shape()
                      for place in (link.source, link.target)]
            assert shapes[0] == shapes[1], link


def test_names():
    assert Link("a.o", "b.i").name == "a.o" and Link("a.o", "b.i.1").taker == "b"
    out = Link("net_assembler.o", "net_tx")
    assert (out.name, out.taker) == ("net_tx", "network")
    assert (Link("host_rx", "b.i").name, Link("host_rx", "b.i").taker) == ("host_rx", "b")


class _End(wiring.Component):
    def __init__(self, flow, shape):
        super().__init__({"port": flow(stream.Signature(shape)).array(2)})

    def elaborate(self, platform) -> Module:
        return Module()


def test_fields_and_holding():
    source, target = _End(Out, data.StructLayout({"a": 4, "b": 4})), _End(
        In, data.StructLayout({"b": 4, "sum": 5}))
    m, held, clocked = Module(), Signal(), Signal()
    m.d.sync += clocked.eq(1)
    join(m, Link("s.port.0", "t.port.1", lambda item: {"b": item.b, "sum": item.a + item.b}),
         {"s": source, "t": target}, held)

    async def bench(ctx):
        ctx.set(source.port[0].payload, {"a": 3, "b": 9})
        ctx.set(source.port[0].valid, 1)
        ctx.set(target.port[1].ready, 1)
        for quiet in (1, 0):
            ctx.set(held, quiet)
            assert ctx.get(target.port[1].valid) == ctx.get(source.port[0].ready) == 1 - quiet
        assert ctx.get(target.port[1].payload) == {"b": 9, "sum": 12}
        assert not ctx.get(target.port[0].valid)

    simulate(m, bench)


def test_payloads_that_differ():
    parts = {"s": _End(Out, 4), "t": _End(In, 5)}
    with pytest.raises(TypeError, match=r"s\.port\.0 and t\.port\.1 must have the same payload"):
        join(Module(), Link("s.port.0", "t.port.1"), parts)
