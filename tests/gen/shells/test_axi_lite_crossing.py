"""AXI-Lite crossing in front of a register file, with two clocks of any ratio and phase."""

import random
from itertools import groupby

import pytest
from amaranth.hdl import ClockDomain, Module
from amaranth.lib import wiring
from amaranth.sim import Simulator

from gen.shells.axi_lite_crossing import AxiLiteCrossing
from rtl.control.axi_lite import AxiLiteSlave

OKAY, SLVERR = 0, 2
REFUSED = 0x40
"""Word that the register file rejects."""


def run(accesses, *, shell_ns, nic_ns, phase_ns=0.0, stall=0.0, answer_after=(0, 3)):
    """Do ``accesses``, one by one or both kinds at once; return the answers of each kind.

    An access is (address, None) for a read and (address, value) for a write.
    """
    top = Module()
    top.domains.axil, top.domains.sync = ClockDomain("axil"), ClockDomain("sync")
    top.submodules.dut = dut = AxiLiteCrossing(20)
    top.submodules.slave = slave = AxiLiteSlave()
    wiring.connect(top, dut.m, slave.bus)
    sim = Simulator(top)
    sim.add_clock(shell_ns * 1e-9, phase=phase_ns * 1e-9, domain="axil")
    sim.add_clock(nic_ns * 1e-9, domain="sync")
    words, answers, rng = {}, {"read": [], "write": [], "order": []}, random.Random(5)

    async def registers(ctx):
        while True:
            await ctx.tick()
            await ctx.tick().repeat(rng.randint(*answer_after) + 1)
            if ctx.get(slave.write):
                answers["order"].append("write")
                word = ctx.get(slave.write_word)
                if word != REFUSED:
                    assert ctx.get(slave.write_strobe) == 0xF
                    words[word] = ctx.get(slave.write_data)
                ctx.set(slave.write_error, word == REFUSED)
                ctx.set(slave.write_done, 1)
                await ctx.tick()
                ctx.set(slave.write_done, 0)
            elif ctx.get(slave.read):
                answers["order"].append("read")
                word = ctx.get(slave.read_word)
                ctx.set(slave.read_data, words.get(word, 0xDEAD0000 + word))
                ctx.set(slave.read_error, word == REFUSED)
                ctx.set(slave.read_done, 1)
                await ctx.tick()
                ctx.set(slave.read_done, 0)

    def channel(valid, ready, items, seed):
        async def bench(ctx):
            wait = random.Random(seed)
            for values in items:
                while wait.random() < stall:
                    await ctx.tick("axil")
                for port, value in values:
                    ctx.set(port, value)
                ctx.set(valid, 1)
                await ctx.tick("axil").until(ready)
                ctx.set(valid, 0)
        return bench

    def taker(valid, ready, ports, into, expected, seed):
        async def bench(ctx):
            wait = random.Random(seed)
            while len(into) < expected:
                while wait.random() < stall:
                    await ctx.tick("axil")
                ctx.set(ready, 1)
                into.append(tuple(await ctx.tick("axil").sample(*ports).until(valid)))
                ctx.set(ready, 0)
        return bench

    bus = dut.s
    writes = [a for a in accesses if a[1] is not None]
    reads = [a for a in accesses if a[1] is None]
    ctx_set = [(bus.wstrb, 0xF)]
    for bench in (
            channel(bus.awvalid, bus.awready, [
                [(bus.awaddr, a & 0xFFFF), (dut.s_awaddr_high, a >> 16)] for a, _ in writes], 1),
            channel(bus.wvalid, bus.wready, [
                [(bus.wdata, value), *ctx_set] for _, value in writes], 2),
            channel(bus.arvalid, bus.arready, [
                [(bus.araddr, a & 0xFFFF), (dut.s_araddr_high, a >> 16)] for a, _ in reads], 3),
            taker(bus.bvalid, bus.bready, (bus.bresp,), answers["write"], len(writes), 4),
            taker(bus.rvalid, bus.rready, (bus.rresp, bus.rdata), answers["read"], len(reads), 5)):
        sim.add_testbench(bench)
    sim.add_testbench(registers, background=True)
    sim.run_until((200 * shell_ns * max(1, len(accesses)) + 5_000) * 1e-9)
    return answers, words


CLOCKS = [(8, 4, 0.0), (8, 4, 1.3), (3, 10, 0.7), (4, 4, 2.0), (8, 3.7, 0.1)]


@pytest.mark.few(4)
@pytest.mark.parametrize("shell_ns,nic_ns,phase_ns", CLOCKS)
@pytest.mark.parametrize("stall", [0.0, 0.6])
def test_every_access_once(shell_ns, nic_ns, phase_ns, stall):
    rng = random.Random(3)
    writes = [(4 * rng.choice([k, REFUSED]), rng.getrandbits(32)) for k in range(12)]
    answers, words = run(writes, shell_ns=shell_ns, nic_ns=nic_ns, phase_ns=phase_ns, stall=stall)
    assert answers["write"] == [(SLVERR if a == 4 * REFUSED else OKAY,) for a, _ in writes]
    assert words == {a // 4: value for a, value in writes if a != 4 * REFUSED}
    reads = [(4 * rng.choice([k, REFUSED]), None) for k in range(12)]
    answers, _ = run(reads, shell_ns=shell_ns, nic_ns=nic_ns, phase_ns=phase_ns, stall=stall)
    assert answers["read"] == [(SLVERR if a == 4 * REFUSED else OKAY, 0xDEAD0000 + a // 4)
                               for a, _ in reads]


def test_beyond_the_registers_is_refused():
    accesses = [(0x10004, None), (0x4, None), (0xF0004, None), (0x10008, 7), (0x8, 9)]
    answers, words = run(accesses, shell_ns=8, nic_ns=4)
    assert answers["read"] == [(SLVERR, 0), (OKAY, 0xDEAD0001), (SLVERR, 0)]
    assert answers["write"] == [(SLVERR,), (OKAY,)] and words == {2: 9}


def test_reads_and_writes_take_turns():
    """An access of either kind waits for at most one access of the other."""
    accesses = [(4 * k, None) for k in range(8)] + [(0x200 + 4 * k, k) for k in range(8)]
    answers, words = run(accesses, shell_ns=8, nic_ns=4)
    assert len(answers["read"]) == len(answers["write"]) == 8
    assert words == {0x80 + k: k for k in range(8)}
    runs = [len(list(same)) for _, same in groupby(answers["order"])]
    assert len(answers["order"]) == 16 and max(runs) <= 2


@pytest.mark.parametrize("bits,message", [
    (16, "address_bits must be between 17 and 64, not 16"),
    (65, "address_bits must be between 17 and 64, not 65")])
def test_bounds(bits, message):
    with pytest.raises(ValueError, match=message):
        AxiLiteCrossing(bits)
    with pytest.raises(TypeError, match="address_bits must be an integer, not '20'"):
        AxiLiteCrossing("20")
