"""The surroundings of a shell's top in cocotb: host, GPU, another node, and the shell itself.

The bench runs inside the simulator. ``EMBER_SHELL`` names the shell, ``EMBER_CASE`` the folder with
the samples (:mod:`tests.gen.shells.cosim.case`), to which the pooled vectors are written. The
design is node 0 of two, and holds all samples. Packets of the host are made by
:mod:`host.wire.packets`, packets of the other node by ``tests/rtl/network/frames.py``. Pooled
vectors must equal numpy's, bit for bit.
"""

import itertools
import os
import random
from pathlib import Path

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge, Timer
from cocotbext.axi import (
    AxiLiteBus,
    AxiLiteMaster,
    AxiResp,
    AxiStreamBus,
    AxiStreamFrame,
    AxiStreamSink,
    AxiStreamSource,
)

from gen.documents.generate import build_nic
from gen.shells import SHELLS
from host.dlrm.embedding import EmbeddingTables
from host.dlrm.rows import row_values
from host.wire.packets import gpu_vectors, parse_header, parse_pooled, query_packets, query_records
from rtl.config import preset
from rtl.control.registers import MAGIC
from rtl.formats import Opcode
from tests.gen.shells.cosim import case
from tests.rtl.network.frames import Frame, parse, record_payload, vector_payload

SHELL = os.environ["EMBER_SHELL"]
FOLDER = Path(os.environ["EMBER_CASE"])
CONFIG = SHELLS[SHELL].prepare(preset("tiny"))
FROM_PEER = 12
MODEL, PLAN = case.model_of(FOLDER), case.plan_of(FOLDER)
FRAMING = CONFIG.net_framing
STREAMS = {
    "opennic": ("s_axis_qdma_h2c", "m_axis_qdma_c2h", "s_axis_adap_rx_250mhz",
                "m_axis_adap_tx_250mhz"),
    "vitis": ("s_axis_host", "m_axis_host", "s_axis_net", "m_axis_net")}[SHELL]
NIC_BASE = {"opennic": 0, "vitis": 0x10000}[SHELL]


def stalls(seed: int):
    """Endless random pauses, three cycles in ten."""
    rng = random.Random(seed)
    return (rng.random() < 0.3 for _ in itertools.count())


def as_packet(frame) -> np.ndarray:
    data = bytes(frame.tdata)
    assert len(data) % 64 == 0, "the NIC sends whole beats"
    return np.frombuffer(data, "<u4").reshape(-1, 16)


def vectors(tables, rows) -> np.ndarray:
    return row_values(MODEL, case.SEED, np.asarray(tables), np.asarray(rows))


class Surroundings:
    """The four streams and the control bus of the top."""

    def __init__(self, dut):
        self.dut = dut
        clock = dut.axis_aclk if SHELL == "opennic" else dut.ap_clk
        control = dut.axil_aclk if SHELL == "opennic" else dut.ap_clk
        self.clock = clock
        prefix = "s_axil" if SHELL == "opennic" else "s_axi_control"
        self.control = AxiLiteMaster(AxiLiteBus.from_prefix(dut, prefix), control)
        into_host, from_host, into_net, from_net = STREAMS
        self.host = AxiStreamSource(AxiStreamBus.from_prefix(dut, into_host), clock)
        self.net = AxiStreamSource(AxiStreamBus.from_prefix(dut, into_net), clock)
        self.to_host = AxiStreamSink(AxiStreamBus.from_prefix(dut, from_host), clock)
        self.to_net = AxiStreamSink(AxiStreamBus.from_prefix(dut, from_net), clock)
        for seed, end in enumerate((self.host, self.net, self.to_host, self.to_net)):
            end.set_pause_generator(stalls(seed))
        for seed, channel in enumerate((
                self.control.write_if.aw_channel, self.control.write_if.w_channel,
                self.control.write_if.b_channel, self.control.read_if.ar_channel,
                self.control.read_if.r_channel)):
            channel.set_pause_generator(stalls(10 + seed))
        self.registers = {r.name: r.address for r in build_nic(CONFIG).registers}

    async def read(self, name: str) -> int:
        return await self.control.read_dword(NIC_BASE + self.registers[name])

    async def write(self, name: str, value: int) -> None:
        done = await self.control.write(NIC_BASE + self.registers[name],
                                        value.to_bytes(4, "little"))
        assert done.resp == AxiResp.OKAY, name

    async def send_host(self, packet: np.ndarray) -> None:
        await self.host.send(AxiStreamFrame(packet.astype("<u4").tobytes()))

    async def send_net(self, frame: Frame) -> None:
        # The shell's UDP kernel tells whose socket it is.
        socket = {"tdest": frame.source} if SHELL == "vitis" else {}
        await self.net.send(AxiStreamFrame(frame.bytes(), **socket))

    async def reset(self) -> None:
        dut = self.dut
        if SHELL == "vitis":
            dut.ap_rst_n.value = 0
            await Timer(10, unit="ns")  # inputs are driven before the first edge
            cocotb.start_soon(Clock(dut.ap_clk, 4, unit="ns").start())
            await ClockCycles(dut.ap_clk, 10)
            dut.ap_rst_n.value = 1
            await ClockCycles(dut.ap_clk, 10)
            return
        dut.mod_rstn.value = 1
        await Timer(10, unit="ns")
        cocotb.start_soon(Clock(dut.axis_aclk, 4, unit="ns").start())
        await Timer(700, unit="ps")  # phases do not matter
        cocotb.start_soon(Clock(dut.axil_aclk, 8, unit="ns").start())
        # A pulse of one cycle in the middle of the first reset, like the shell's at boot.
        await ClockCycles(dut.axil_aclk, 20)
        dut.mod_rstn.value = 0
        await ClockCycles(dut.axil_aclk, 1)
        dut.mod_rstn.value = 1
        await ClockCycles(dut.axil_aclk, 2)
        assert not dut.mod_rst_done.value
        await RisingEdge(dut.mod_rst_done)

    async def set_up(self) -> None:
        """Configure two nodes, this one the first, and the locations of the tables."""
        assert await self.read("magic") == MAGIC
        if SHELL == "opennic":
            beyond = await self.control.read(0x40000, 4)
            assert beyond.resp == AxiResp.SLVERR
        for name, value in case.SETTINGS.items():
            await self.write(name, value)
        for table, words in enumerate(PLAN.descriptors()):
            await self.write("table_index", table)
            for k, word in enumerate(words):
                await self.write(f"table_word{k}", int(word))
        for name in ("ip_base", "nodes"):
            assert await self.read(name) == case.SETTINGS[name]


async def lengths_are_right(dut, prefix: str) -> None:
    """Check that ``tuser_size`` is the packet's length on every beat, and ``tuser_dst`` its
    direction."""
    destination = 1 << 6 if "adap" in prefix else 1
    sizes: list[int] = []
    while True:
        await RisingEdge(dut.axis_aclk)
        if getattr(dut, f"{prefix}_tvalid").value == 1 and (
                getattr(dut, f"{prefix}_tready").value == 1):
            sizes.append(int(getattr(dut, f"{prefix}_tuser_size").value))
            assert int(getattr(dut, f"{prefix}_tuser_dst").value) == destination
            if getattr(dut, f"{prefix}_tlast").value == 1:
                assert sizes == [64 * len(sizes)] * len(sizes)
                sizes = []


class Answers:
    """Answers the design's requests, and keeps its answers."""

    def __init__(self, around: Surroundings):
        self.around = around
        self.pooled: dict[tuple[int, int], bytes] = {}
        self.to_peer: dict[int, bytes] = {}
        self.refusals = 0

    async def host(self) -> None:
        while True:
            packet = as_packet(await self.around.to_host.recv())
            header = parse_header(packet[0])
            if header.opcode == Opcode.LOOKUP_REQUESTS:
                records = packet[1:].reshape(-1).view("<u8")[:header.count]
                tags = (records >> 48).astype(np.uint64)
                found = vectors(records >> 36 & 0xFFF, records & (1 << 36) - 1)
                for reply in gpu_vectors(tags, found, node=0, step=header.step,
                                         payload_beats=CONFIG.host_payload_beats):
                    await self.around.send_host(reply)
            elif header.opcode == Opcode.POOLED:
                sample, bag, _, found, _ = parse_pooled(packet, header.count, MODEL.dimension)
                for k, vector in enumerate(found):
                    assert (sample, bag + k) not in self.pooled, "a bag answered twice"
                    self.pooled[sample, bag + k] = vector.tobytes()
            elif header.opcode == Opcode.ERRORS:
                self.refusals += 1
            else:
                assert header.opcode == Opcode.CREDIT, header

    async def network(self) -> None:
        while True:
            received = await self.around.to_net.recv()
            frame = parse(bytes(received.tdata), FRAMING)
            assert frame.destination == 1 and frame.source == 0
            if SHELL == "vitis":
                assert received.tdest == 1
            if frame.opcode == Opcode.LOOKUPS:
                records = np.frombuffer(frame.payload, "<u8")[:frame.count]
                found = vectors(records >> 36 & 0xFFF, records & (1 << 36) - 1)
                await self.around.send_net(Frame(
                    opcode=Opcode.VECTORS, source=1, destination=0, step=frame.step,
                    count=frame.count, credit=-(-frame.count // 8), framing=FRAMING,
                    payload=vector_payload([(int(r >> 48), v.tobytes())
                                            for r, v in zip(records, found)])))
            else:
                assert frame.opcode == Opcode.VECTORS
                tags = np.frombuffer(frame.payload, "<u2")[:frame.count]
                start = 64 * -(-frame.count // 32)
                for k, tag in enumerate(tags):
                    assert int(tag) not in self.to_peer, "a lookup answered twice"
                    self.to_peer[int(tag)] = frame.payload[start + 64 * k:start + 64 * k + 64]


@cocotb.test()
async def queries_in_packets_out_and_back(dut):
    around = Surroundings(dut)
    await around.reset()
    await around.set_up()
    if SHELL == "opennic":
        for prefix in (STREAMS[1], STREAMS[3]):
            cocotb.start_soon(lengths_are_right(dut, prefix))
    answers = Answers(around)
    cocotb.start_soon(answers.host())
    cocotb.start_soon(answers.network())

    # The other node looks up rows of the table on this node.
    own = next(k for k, place in enumerate(PLAN.tables) if place.owner == 0)
    rows = [(7 * k) % MODEL.rows[own] for k in range(FROM_PEER)]
    await around.send_net(Frame(
        opcode=Opcode.LOOKUPS, source=1, destination=0, count=FROM_PEER, framing=FRAMING,
        payload=record_payload([row | own << 36 | (100 + k) << 48 for k, row in enumerate(rows)])))
    batch = case.samples_of(FOLDER)
    for packet in query_packets(query_records(batch, 0), node=0, step=0, payload_beats=4):
        await around.send_host(packet)

    expected = EmbeddingTables(MODEL, case.SEED).pooled(batch)
    for _ in range(400):
        await ClockCycles(around.clock, 50)
        if len(answers.pooled) == len(batch) * MODEL.tables and len(answers.to_peer) == FROM_PEER:
            break
    assert answers.pooled == {(s, t): expected[s, t].tobytes()
                              for s in range(len(batch)) for t in range(MODEL.tables)}
    np.save(FOLDER / "pooled.npy", np.frombuffer(b"".join(
        answers.pooled[key] for key in sorted(answers.pooled)), "<f4").reshape(expected.shape))
    want = vectors([own] * FROM_PEER, rows)
    assert answers.to_peer == {100 + k: want[k].tobytes() for k in range(FROM_PEER)}
    assert await around.read("net_receiver.bad_crc") == 0
    assert await around.read("query_checker.samples") == len(batch)
    assert answers.refusals == 0
    if SHELL == "vitis":
        await a_run_is_counted(around)
        assert answers.refusals == 1


async def a_run_is_counted(around: Surroundings) -> None:
    """A run of one packet counts, even if the packet is rejected."""
    control = around.control
    assert await control.read_dword(0) == 0b0100, "idle"
    await control.write_dword(0x10, 1)
    await control.write_dword(0x00, 1)
    assert await control.read_dword(0) & 0b0111 == 0b0001, "started, not done"
    await around.send_host(np.zeros((1, 16), "<u4"))
    await ClockCycles(around.clock, 400)
    assert await control.read_dword(0) & 0b0110 == 0b0110, "done and idle"
