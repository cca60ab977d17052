"""The NIC's streams by name: the list is complete, and registers show every stream."""

import random

import pytest
from amaranth.hdl import Fragment, Module, Signal, Value
from amaranth.lib import stream, wiring

from rtl.monitor.channels import ChannelProbe, channel_map, channel_words
from rtl.nic import SmartNic
from tests.rtl.control.test_csr import run
from tests.rtl.test_links import OPTIONS, UNUSED, config_of
from tests.support import simulate


def _outputs(component) -> set[str]:
    return {name for name, member in component.signature.members.items()
            if not member.is_port and member.flow == wiring.Out
            and isinstance(member.signature, stream.Signature)}


@OPTIONS
def test_every_stream_between_blocks_is_a_channel(training, bags, repeats):
    nic = SmartNic(config_of(training, bags, repeats))
    channels = channel_map(training, bags=bags, repeats=repeats)
    found = {f"{name}.{port}" for name, block in nic._blocks.items() for port in _outputs(block)}
    # A stream that leaves through an edge has the name of the edge.
    found -= {"net_assembler.o", "host_assembler.o", *UNUSED}
    named = {name for name in channels if name.partition(".")[0] in nic._blocks}
    assert named == found
    assert {name for name in channels if "." not in name} == {
        "net_rx", "host_rx", "net_tx", "host_tx"}
    parts = {name.partition(".")[0] for name in channels if "." in name}
    assert set(channels.values()) <= parts | {"net_assembler", "host_assembler", "network", "host"}


def _takers(nic: SmartNic) -> dict[str, str]:
    """Return the block that takes from each stream: the block whose ``ready`` is the stream's."""
    for block in (*nic._blocks.values(), nic._csr):
        block.elaborate = lambda platform: Module()  # only the wiring around the blocks matters
    top = Fragment.get(nic, None)
    parts = {name: next(block for block in part.origins if isinstance(block, wiring.Component))
             for part, name, _source in top.subfragments}
    ports = [(name, Value.cast(value)) for name, part in parts.items()
             for _path, _member, value in part.signature.flatten(part)]
    ports += [(edge, getattr(nic, edge).ready) for edge in ("net_tx", "host_tx")]
    owners = {id(value): name for name, value in ports}
    drivers = {id(assign.lhs): assign.rhs for assign in top.statements["comb"]
               if isinstance(assign.lhs, Signal)}

    def taker(source) -> str:
        driver = drivers[id(source.ready)]
        # An edge is ready if its block is ready and the NIC is not held quiet.
        return owners[id(driver.operands[0] if hasattr(driver, "operands") else driver)]

    def taken_behind_guard(source) -> str:
        name = taker(source)
        return taker(parts[name].o) if name.endswith("_guard") else name

    taking = {edge: taken_behind_guard(getattr(nic, edge)) for edge in ("net_rx", "host_rx")}
    for name, part in parts.items():
        for port in _outputs(part):
            if f"{name}.{port}" not in UNUSED:
                taking[f"{name}.{port}"] = taken_behind_guard(getattr(part, port))
    return taking


@OPTIONS
def test_every_channel_names_the_block_that_takes_from_it(training, bags, repeats, monkeypatch):
    monkeypatch.setattr("rtl.reset.check_counters", lambda fragment: None)  # the blocks are empty
    nic = SmartNic(config_of(training, bags, repeats))
    taking = _takers(nic)
    # The edges: a stream of an assembler has the name of its edge.
    assert taking.pop("net_assembler.o") == "net_tx"
    assert taking.pop("host_assembler.o") == "host_tx"
    taking |= {"net_tx": "network", "host_tx": "host"}
    channels = channel_map(training, bags=bags, repeats=repeats)
    assert {name: taking[name] for name in channels} == channels


@OPTIONS
def test_registers_show_the_channels(training, bags, repeats):
    channels = channel_map(training, bags=bags, repeats=repeats)

    async def script(ctx, dut, master, registers):
        for shift in range(0, len(channels), 1 + 6 * training):
            valid = 0x5A5A_5A5A_1234_5678_9ABC >> shift & (1 << len(channels)) - 1
            ctx.set(dut.channels.valid, valid)
            ctx.set(dut.channels.ready, valid ^ 1 << shift)
            for member, value in (("valid", valid), ("ready", valid ^ 1 << shift)):
                places = [registers[f"channel_{member}{k}"]
                          for k in range(len(channel_words(training, bags=bags, repeats=repeats)))]
                answers = await master.read(ctx, *(place.address for place in places))
                assert answers == [(value >> 32 * k & (1 << place.width) - 1, 0)
                                   for k, place in enumerate(places)]
        ctx.set(dut.lookup_next_node, 7)
        assert await master.read(ctx, registers["lookup_next_node"].address) == [(7, 0)]

    run(script, config=config_of(training, bags, repeats))


@OPTIONS
def test_a_probe_shows_each_stream_now_and_a_cycle_later(training, bags, repeats):
    names, rng = list(channel_map(training, bags=bags, repeats=repeats)), random.Random(1)
    streams = {name: stream.Signature(1).create(path=(name.replace(".", "_"),)) for name in names}
    others = {"another": stream.Signature(1).create(path=("another",))}
    options = {"training": training, "bags": bags, "repeats": repeats}
    dut = ChannelProbe(dict(reversed(streams.items())) | others, **options)

    async def bench(ctx):
        before = None
        for _ in range(200):
            state = {member: rng.getrandbits(len(names)) for member in ("valid", "ready")}
            for member, value in state.items():
                for k, name in enumerate(names):
                    ctx.set(getattr(streams[name], member), value >> k & 1)
                assert ctx.get(getattr(dut.now, member)) == value
                if before is not None:
                    assert ctx.get(getattr(dut.kept, member)) == before[member]
            before = state
            await ctx.tick()

    simulate(dut, bench)
    with pytest.raises(KeyError, match=names[-1]):
        ChannelProbe({name: streams[name] for name in names[:-1]}, **options)
