"""Control of a Vitis kernel: its own registers, the NIC's registers behind them, ends of runs."""

import random

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring

from gen.shells.kernel_control import NIC_BASE, REGISTERS, KernelControl, pointer_address
from rtl.control.axi_lite import AxiLiteSlave
from tests.support import simulate

OKAY, SLVERR = 0, 2
START, DONE, IDLE, READY, RESTART = 1, 2, 4, 8, 0x80


class Bench:
    """The block in front of a register file, with a master that does one access at a time."""

    def __init__(self, stall=0.0, pointers=0):
        self.top = Module()
        self.top.submodules.dut = self.dut = KernelControl(pointers)
        self.top.submodules.nic = self.nic = AxiLiteSlave()
        wiring.connect(self.top, self.dut.m, self.nic.bus)
        self.words: dict[int, int] = {}
        self._rng, self._stall = random.Random(1), stall

    async def _pause(self, ctx):
        while self._rng.random() < self._stall:
            await ctx.tick()

    async def _send(self, ctx, valid, ready, *values):
        await self._pause(ctx)
        for port, value in values:
            ctx.set(port, value)
        ctx.set(valid, 1)
        await ctx.tick().until(ready)
        ctx.set(valid, 0)

    async def read(self, ctx, address):
        bus = self.dut.s
        await self._send(ctx, bus.arvalid, bus.arready, (bus.araddr, address % NIC_BASE),
                         (self.dut.s_araddr_high, address // NIC_BASE))
        await self._pause(ctx)
        ctx.set(bus.rready, 1)
        answer = await ctx.tick().sample(bus.rresp, bus.rdata).until(bus.rvalid)
        ctx.set(bus.rready, 0)
        return tuple(answer)

    async def write(self, ctx, address, value, strobe=0xF):
        bus = self.dut.s
        await self._send(ctx, bus.wvalid, bus.wready, (bus.wdata, value), (bus.wstrb, strobe))
        await self._send(ctx, bus.awvalid, bus.awready, (bus.awaddr, address % NIC_BASE),
                         (self.dut.s_awaddr_high, address // NIC_BASE))
        await self._pause(ctx)
        ctx.set(bus.bready, 1)
        answer, = await ctx.tick().sample(bus.bresp).until(bus.bvalid)
        ctx.set(bus.bready, 0)
        return answer

    async def registers(self, ctx):
        """Serve the NIC's registers; word 5 is rejected."""
        nic = self.nic
        while True:
            await ctx.tick().repeat(self._rng.randint(1, 4))
            for wanted, done, error in ((nic.write, nic.write_done, nic.write_error),
                                        (nic.read, nic.read_done, nic.read_error)):
                if ctx.get(wanted):
                    word = ctx.get(nic.write_word if wanted is nic.write else nic.read_word)
                    if wanted is nic.write and word != 5:
                        self.words[word] = ctx.get(nic.write_data), ctx.get(nic.write_strobe)
                    ctx.set(nic.read_data, 0xC0DE0000 + word)
                    ctx.set(error, word == 5)
                    ctx.set(done, 1)
                    await ctx.tick()
                    ctx.set(done, 0)
                    break

    async def packets(self, ctx, count):
        for _ in range(count):
            ctx.set(self.dut.taken, 1)
            await ctx.tick()
            ctx.set(self.dut.taken, 0)
            await ctx.tick().repeat(2)

    def run(self, bench):
        simulate(self.top, bench, background=[self.registers], limit=20_000)


@pytest.mark.parametrize("stall", [0.0, 0.5])
def test_the_nics_registers(stall):
    bench = Bench(stall)

    async def accesses(ctx):
        for k in (0, 1, 5, 0x3FFF):
            want = (SLVERR if k == 5 else OKAY)
            assert await bench.write(ctx, NIC_BASE + 4 * k, 7 * k, 0xF) == want
            assert await bench.read(ctx, NIC_BASE + 4 * k) == (want, 0xC0DE0000 + k)
        assert await bench.write(ctx, NIC_BASE + 8, 0x11223344, 0b0010) == OKAY

    bench.run(accesses)
    assert bench.words == {0: (0, 15), 1: (7, 15), 0x3FFF: (7 * 0x3FFF, 15), 2: (0x11223344, 2)}


def test_own_registers():
    bench = Bench()

    async def accesses(ctx):
        ctx.set(bench.dut.idle, 1)
        packets = REGISTERS["packets"]
        assert await bench.write(ctx, packets, 0x12345678) == OKAY
        assert await bench.write(ctx, packets, 0xAABBCCDD, 0b0101) == OKAY
        assert await bench.read(ctx, packets) == (OKAY, 0x12BB56DD)
        for address in (0x14, 0x40, 0xFFFC):
            assert (await bench.read(ctx, address))[0] == SLVERR
            assert await bench.write(ctx, address, 1) == SLVERR
        assert await bench.read(ctx, REGISTERS["control"]) == (OKAY, IDLE)
        assert bench.words == {}

    bench.run(accesses)


def test_pointers():
    bench = Bench(pointers=2)

    async def accesses(ctx):
        assert [pointer_address(k) for k in range(2)] == [0x18, 0x24]
        for k, value in enumerate((0x1122334455667788, 0x99AABBCCDDEEFF00)):
            for word in range(2):
                address, half = pointer_address(k) + 4 * word, value >> 32 * word & 0xFFFFFFFF
                assert await bench.write(ctx, address, half) == OKAY
                assert await bench.read(ctx, address) == (OKAY, half)
        assert await bench.write(ctx, 0x24, 0x55005500, 0b1010) == OKAY
        assert ctx.get(bench.dut.pointer0) == 0x1122334455667788
        assert ctx.get(bench.dut.pointer1) == 0x99AABBCC55EE5500
        for address in (0x14, 0x20, 0x2C, 0x30):
            assert (await bench.read(ctx, address))[0] == SLVERR
            assert await bench.write(ctx, address, 1) == SLVERR

    bench.run(accesses)


def test_a_run_ends_with_its_packets_and_an_idle_nic():
    bench = Bench()

    async def accesses(ctx):
        dut, control = bench.dut, REGISTERS["control"]
        ctx.set(dut.idle, 1)
        await bench.packets(ctx, 5)  # before the run: not counted
        await bench.write(ctx, REGISTERS["interrupt_global"], 1)
        await bench.write(ctx, REGISTERS["interrupt_enable"], 1)
        await bench.write(ctx, REGISTERS["packets"], 3)
        await bench.write(ctx, control, START)
        assert await bench.read(ctx, control) == (OKAY, START)
        await bench.packets(ctx, 2)
        assert await bench.read(ctx, control) == (OKAY, START) and not ctx.get(dut.interrupt)
        ctx.set(dut.idle, 0)
        await bench.packets(ctx, 1)
        assert await bench.read(ctx, control) == (OKAY, START), "the NIC is still at work"
        ctx.set(dut.idle, 1)
        await ctx.tick().repeat(2)
        assert ctx.get(dut.interrupt)
        assert await bench.read(ctx, control) == (OKAY, DONE | IDLE | READY)
        assert await bench.read(ctx, control) == (OKAY, IDLE), "cleared by reading"
        assert await bench.read(ctx, REGISTERS["interrupt_status"]) == (OKAY, 1)
        await bench.write(ctx, REGISTERS["interrupt_status"], 1)
        assert not ctx.get(dut.interrupt)
        assert await bench.read(ctx, REGISTERS["interrupt_status"]) == (OKAY, 0)

    bench.run(accesses)


def test_auto_restart():
    bench = Bench()

    async def accesses(ctx):
        dut, control = bench.dut, REGISTERS["control"]
        ctx.set(dut.idle, 1)
        await bench.write(ctx, REGISTERS["packets"], 2)
        await bench.write(ctx, control, START | RESTART)
        for _ in range(3):
            await bench.packets(ctx, 2)
            assert await bench.read(ctx, control) == (OKAY, START | DONE | READY | RESTART)
        await bench.write(ctx, control, 0)
        await bench.packets(ctx, 2)
        assert await bench.read(ctx, control) == (OKAY, DONE | IDLE | READY)
        assert not ctx.get(dut.interrupt), "not enabled"

    bench.run(accesses)
