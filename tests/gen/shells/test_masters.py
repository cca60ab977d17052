"""Memory masters from one table, in both shells: ports, files, and transferred bytes."""

import json
import re
import subprocess
from collections import deque
from xml.etree import ElementTree as Xml

import pytest
from amaranth.sim import Simulator

from gen.documents.generate import generate
from gen.shells import SHELLS, OpenNicPlugin, VitisKernel
from gen.shells.masters import check_masters
from gen.shells.opennic_hbm import hbm_box, hbm_tcl
from gen.verilog.convert import Verilog
from gen.verilog.lint import lint
from rtl.config import preset
from rtl.memory import MemoryMaster
from tests.gen.shells.designs import Storing, read_header, write_header
from tests.optional import needs_tool

MASTERS = (MemoryMaster("mem0", 17, 512), MemoryMaster("rows", 3, 256))
# Ports of an AXI master: their widths, where "data", "address" and "length" depend on the shell.
_AXI = {"awid": 6, "awaddr": "address", "awlen": "length", "awsize": 3, "awburst": 2, "awvalid": 1,
        "wdata": "data", "wstrb": "strobe", "wlast": 1, "wvalid": 1, "bready": 1, "arid": 6,
        "araddr": "address", "arlen": "length", "arsize": 3, "arburst": 2, "arvalid": 1,
        "rready": 1}
_BACK = {"awready": 1, "wready": 1, "bid": 6, "bresp": 2, "bvalid": 1, "arready": 1, "rid": 6,
         "rdata": "data", "rresp": 2, "rlast": 1, "rvalid": 1}
_VITIS = {"awcache": 4, "awprot": 3, "arcache": 4, "arprot": 3}


def axi_ports(shell, data):
    """Return (width, direction) of a master's ports by name."""
    sizes = {"data": data, "strobe": data // 8, "address": 64 if shell == "vitis" else 33,
             "length": 8 if shell == "vitis" else 4}
    ports = {}
    for table, direction in ((_AXI, "output"), (_BACK, "input"),
                             (_VITIS if shell == "vitis" else {}, "output")):
        ports |= {name: (sizes.get(width, width), direction) for name, width in table.items()}
    return ports


def wanted_ports(shell, masters):
    ports = {f"m_axi_{name}_{port}": what for name, _, width in masters
             for port, what in axi_ports(shell, width if shell == "vitis" else 256).items()}
    if shell == "opennic":
        ports |= {"hbm_aclk": (1, "input"), "hbm_ready": (1, "input"), "hbm_aresetn": (1, "output")}
    return ports


def make(shell, masters, folder):
    """Generate a design with ``masters`` into ``folder``; return its description."""
    config = preset("tiny").with_fields(name="store")
    return generate(config, folder, shell=shell, build=lambda _config: Storing(masters))


@pytest.fixture(scope="module", params=sorted(SHELLS))
def made(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    make(request.param, MASTERS, folder)
    return request.param, folder


def test_ports(made):
    shell, folder = made
    described = json.loads((folder / f"store_{shell}.json").read_text())
    assert described["masters"] == [
        {"name": "mem0", "channel": 17, "width": 512}, {"name": "rows", "channel": 3, "width": 256}]
    assert {port["name"]: (port["width"], port["direction"]) for port in described["ports"]
            if port["name"].startswith(("m_axi_", "hbm_"))} == wanted_ports(shell, MASTERS)


# Ports of a pseudo-channel in the HBM IP (PG276), except clock, reset and parity.
_HBM_PORT = {name.upper(): (width, {"input": "output", "output": "input"}[direction])
             for name, (width, direction) in axi_ports("opennic", 256).items()}


def stubs(top, channels, stacks):
    """Return Verilog of the vendor's modules, ports only."""
    ports = {f"HBM_REF_CLK_{n}": (1, "input") for n in range(stacks)}
    for channel in channels:
        own = {"ACLK": (1, "input"), "ARESET_N": (1, "input"), "WDATA_PARITY": (32, "input"),
               "RDATA_PARITY": (32, "output"), **_HBM_PORT}
        ports |= {f"AXI_{channel:02}_{name}": what for name, what in own.items()}
    for n in range(stacks):
        ports |= {f"APB_{n}_PCLK": (1, "input"), f"APB_{n}_PRESET_N": (1, "input"),
                  f"apb_complete_{n}": (1, "output"), f"DRAM_{n}_STAT_CATTRIP": (1, "output"),
                  f"DRAM_{n}_STAT_TEMP": (7, "output")}
    declared = ", ".join(
        f"{way} [{width - 1}:0] {name}" for name, (width, way) in ports.items())
    return (f"module {top}_hbm_ip ({declared}); endmodule\n"
            f"module {top}_hbm_clock (input clk_in1, output clk_out1, output locked); endmodule\n")


def check_in_icarus(shell, folder, channels, stacks):
    """Elaborate a store in Icarus, with the HBM, whose ports must all be connected."""
    top, files = f"store_{shell}", [folder / f"store_{shell}.v"]
    if shell == "opennic":
        (folder / "stubs.sv").write_text(stubs(top, channels, stacks))
        files += [folder / "store_opennic_box.v", folder / "stubs.sv"]
        top = "store_opennic_box"
    done = subprocess.run(["iverilog", "-g2012", "-t", "null", "-s", top, *map(str, files)],
                          capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == ""


@needs_tool("iverilog")
def test_icarus_reads_it(made):
    shell, folder = made
    # Channel 17 is on the second stack; 3 is on the first.
    check_in_icarus(shell, folder, [3, 17], 2)


def test_verilog(made):
    shell, folder = made
    lint([folder / f"store_{shell}.v"], f"store_{shell}")
    if shell == "opennic":
        box = (folder / "store_opennic_box.v").read_text()
        connected = re.findall(r"\.AXI_(\d\d)_(\w+)\(([\w']*)\)", box)
        assert len(connected) == 2 * (len(_HBM_PORT) + 4)
        assert all(value == f"m_axi_{owner}_{port.lower()}" for channel, port, value in connected
                   for owner in [{"17": "mem0", "03": "rows"}[channel]] if port in _HBM_PORT)
        instance = (folder / "box_250mhz" / "user_plugin_250mhz_inst.vh").read_text()
        assert "store_opennic_box store_opennic_inst" in instance
        assert ".ref_clk_100mhz(ref_clk_100mhz)" in instance and "hbm" not in instance


@pytest.mark.parametrize("channel, stacks, enabled", [
    (3, 1, ["03"]), (15, 1, ["15"]), (16, 2, ["00", "16"]), (31, 2, ["00", "31"])])
def test_a_stack_has_a_port_at_least(channel, stacks, enabled):
    """Every stack has at least one connected port."""
    masters = [MemoryMaster("mem", channel, 512)]
    tcl = hbm_tcl("top", masters)
    assert f"USER_HBM_STACK {{{stacks}}}" in tcl
    assert re.findall(r"USER_SAXI_(\d\d) {true}", tcl) == enabled
    assert re.findall(r"USER_CLK_SEL_LIST\d {AXI_(\d\d)_ACLK}", tcl) == enabled
    box = hbm_box(Verilog("top", "", (), {}), masters)
    assert re.findall(r"\.AXI_(\d\d)_ACLK", box) == enabled
    assert re.findall(r"\.AXI_(\d\d)_ARVALID\((.*?)\)", box) == [
        (port, "m_axi_mem_arvalid" if int(port) == channel else "1'd0") for port in enabled]


@pytest.mark.slow
@pytest.mark.parametrize("shell", sorted(SHELLS))
def test_every_channel(shell, tmp_path):
    masters = [MemoryMaster(f"mem{k}", 31 - k, (512, 256)[k % 2]) for k in range(32)]
    described = make(shell, masters, tmp_path)
    assert {port["name"]: (port["width"], port["direction"]) for port in described["ports"]
            if port["name"].startswith(("m_axi_", "hbm_"))} == wanted_ports(shell, masters)
    lint([tmp_path / f"store_{shell}.v"], f"store_{shell}")


@pytest.mark.slow
@needs_tool("iverilog")
@pytest.mark.parametrize("shell", sorted(SHELLS))
def test_icarus_reads_every_channel(shell, tmp_path):
    make(shell, [MemoryMaster(f"mem{k}", 31 - k, (512, 256)[k % 2]) for k in range(32)], tmp_path)
    check_in_icarus(shell, tmp_path, range(32), 2)


@pytest.mark.parametrize("shell, top", [("opennic", OpenNicPlugin), ("vitis", VitisKernel)])
def test_ports_of_every_channel(shell, top):
    """Check the ports of the component: converting it is slow."""
    masters = [MemoryMaster(f"mem{k}", k, 512) for k in range(32)]
    members = top(Storing(masters)).signature.members
    assert {name: (member.shape, {"Out": "output", "In": "input"}[member.flow.name])
            for name, member in members.items() if name.startswith(("m_axi_", "hbm_"))} \
        == wanted_ports(shell, masters)


@pytest.mark.thorough
def test_crossings_are_bounded(made):
    shell, folder = made
    text = (folder / f"store_{shell}.v").read_text()
    assert ("ASYNC_REG" in text) == (shell == "opennic")
    if shell == "opennic":
        assert (folder / "store_opennic.xdc").read_text().splitlines()[-2:] == [
            f"set_max_delay -datapath_only -from [get_clocks -of_objects [get_ports {source}]] "
            f"-to [get_clocks -of_objects [get_ports {target}]] 2.222"
            for source, target in (("axis_aclk", "hbm_aclk"), ("hbm_aclk", "axis_aclk"))]
        assert "create_clock -name hbm_aclk -period 2.222 [get_ports hbm_aclk]" in (
            folder / "store_opennic.vivado.tcl").read_text()


@needs_tool("tclsh")
def test_tcl(made, tmp_path):
    shell, folder = made
    script = folder / {"opennic": "build_box_250mhz.tcl", "vitis": "package_kernel.tcl"}[shell]
    (tmp_path / "run.tcl").write_text(
        "namespace eval ipx {}\nrename unknown {}\n"
        "proc unknown {name args} { puts [list $name {*}$args]; return <$name> }\n"
        f"source {{{script}}}\n")
    done = subprocess.run(["tclsh", str(tmp_path / "run.tcl")], cwd=folder, capture_output=True,
                          text=True)
    assert done.returncode == 0 and done.stderr == ""
    lines = done.stdout.splitlines()
    if shell == "opennic":
        assert "read_verilog -quiet -sv store_opennic_box.v" in lines
        made_ip = [line.split()[-1] for line in lines if line.startswith("create_ip")]
        assert made_ip == ["store_opennic_hbm_ip", "store_opennic_hbm_clock"]
        ports = dict(re.findall(r"CONFIG.USER_SAXI_(\d\d) (\w+)", done.stdout))
        assert len(ports) == 32
        assert [port for port, there in ports.items() if there == "true"] == ["03", "17"]
        for setting in ("USER_HBM_STACK 2", "USER_HBM_DENSITY 8GB",
                        "USER_CLK_SEL_LIST0 AXI_03_ACLK", "USER_CLK_SEL_LIST1 AXI_17_ACLK",
                        "CLKOUT1_REQUESTED_OUT_FREQ 450.000"):
            assert f"CONFIG.{setting}" in done.stdout
    else:
        for name, offset in (("mem0", "0x18"), ("rows", "0x24")):
            assert f"ipx::associate_bus_interfaces -busif m_axi_{name} -clock ap_clk" in done.stdout
            at = next(k for k, line in enumerate(lines)
                      if line.startswith(f"ipx::add_register -quiet {name} "))
            assert lines[at + 1] == f"set_property address_offset {offset} <ipx::add_register>"
            assert lines[at + 2] == "set_property size 64 <ipx::add_register>"
            assert lines[at + 4] == \
                f"set_property value m_axi_{name} <ipx::add_register_parameter>"


@pytest.mark.parametrize("made", ["vitis"], indirect=True, scope="module")
def test_kernel_xml_and_link(made):
    _, folder = made
    kernel = Xml.parse(folder / "kernel.xml").getroot()
    ports = {port.get("name"): port.attrib for port in kernel.iter("port")}
    arguments = {arg.get("name"): arg.attrib for arg in kernel.iter("arg")}
    for (name, _, width), offset, number in zip(MASTERS, ("0x18", "0x24"), "56"):
        assert ports[f"m_axi_{name}"] == {
            "name": f"m_axi_{name}", "mode": "master", "range": "0xFFFFFFFFFFFFFFFF",
            "dataWidth": str(width), "portType": "addressable", "base": "0x0"}
        assert arguments[name] == {
            "name": name, "addressQualifier": "1", "id": number, "port": f"m_axi_{name}",
            "size": "0x8", "offset": offset, "type": "void*", "hostOffset": "0x0",
            "hostSize": "0x8"}
    link = (folder / "link.cfg").read_text().splitlines()
    assert [line for line in link if line.startswith("sp=")] == [
        "sp=store_vitis_0.m_axi_mem0:HBM[17]", "sp=store_vitis_0.m_axi_rows:HBM[3]"]


class Memory:
    """A memory at flat AXI ports: bytes by address; one burst of each kind at a time."""

    def __init__(self, top, prefix, beat):
        self.top, self.prefix, self.beat = top, prefix, beat
        self.bytes: dict[int, int] = {}
        self.writing, self.reading, self.done = None, deque(), deque()
        self.bursts: list[tuple] = []

    def port(self, name):
        return getattr(self.top, f"{self.prefix}_{name}")

    def before(self, ctx):
        """Take the transfers of the next edge."""
        def taken(channel, *fields):
            return ctx.get(self.port(f"{channel}valid")) and ctx.get(
                self.port(f"{channel}ready")) and {
                    field: ctx.get(self.port(channel + field)) for field in fields}
        for channel in ("aw", "ar"):
            if burst := taken(channel, "addr", "len", "size", "burst", "id"):
                assert 1 << burst["size"] == self.beat and burst["burst"] == 1
                self.bursts.append((channel, burst["addr"], burst["len"] + 1))
                if channel == "aw":
                    self.writing = [burst["addr"], burst["id"]]
                else:
                    self.reading.extend(
                        (burst["id"], burst["addr"] + self.beat * k, k == burst["len"])
                        for k in range(burst["len"] + 1))
        if self.writing and (beat := taken("w", "data", "strb", "last")):
            for k in range(self.beat):
                if beat["strb"] >> k & 1:
                    self.bytes[self.writing[0] + k] = beat["data"] >> 8 * k & 0xFF
            self.writing[0] += self.beat
            if beat["last"]:
                self.done.append(self.writing[1])
                self.writing = None
        if ctx.get(self.port("bvalid")) and ctx.get(self.port("bready")):
            self.done.popleft()
        if ctx.get(self.port("rvalid")) and ctx.get(self.port("rready")):
            self.reading.popleft()

    def after(self, ctx):
        """Offer the pending transfers."""
        values = {"awready": self.writing is None, "wready": self.writing is not None,
                  "arready": 1, "bvalid": bool(self.done), "rvalid": bool(self.reading)}
        if self.done:
            values["bid"] = self.done[0]
        if self.reading:
            number, address, last = self.reading[0]
            values |= {"rid": number, "rlast": last, "rdata": sum(
                self.bytes.get(address + k, 0) << 8 * k for k in range(self.beat))}
        for name, value in values.items():
            ctx.set(self.port(name), int(value))


def exchange(top, packets, *, clock, into, out, memories, memory_clock, start, others=()):
    """Give ``packets`` to port ``into`` of ``top``; return the beats that leave ``out``.

    Clocks are ports: ``clock`` of the streams, ``memory_clock``, and ``others``. ``start(ctx,
    edge)`` resets the top.
    """
    beats = deque((beat, k == len(packet) - 1) for packet in packets
                  for k, beat in enumerate(packet))
    answers, started = [], []

    def port(name):
        return getattr(top, name)

    async def edge(ctx, name):
        moved = False
        if name == memory_clock:
            for memory in memories:
                memory.before(ctx)
        if name == clock:
            moved = ctx.get(port(f"{into}_tvalid")) and ctx.get(port(f"{into}_tready"))
            if ctx.get(port(f"{out}_tvalid")):
                answers.append((ctx.get(port(f"{out}_tdata")), ctx.get(port(f"{out}_tlast"))))
        ctx.set(port(name), 1)
        ctx.set(port(name), 0)
        if name == memory_clock:
            for memory in memories:
                memory.after(ctx)
        if moved:
            beats.popleft()
        if name == clock and started:
            ctx.set(port(f"{into}_tvalid"), int(bool(beats)))
            if beats:
                ctx.set(port(f"{into}_tdata"), beats[0][0])
                ctx.set(port(f"{into}_tlast"), int(beats[0][1]))

    async def bench(ctx):
        ctx.set(port(f"{out}_tready"), 1)
        names = [*others, clock, *([memory_clock] if memory_clock != clock else [])]
        await start(ctx, lambda name: edge(ctx, name))
        started.append(True)
        for _ in range(250):
            for name in names:
                await edge(ctx, name)
        assert not beats, "packets were not taken"

    sim = Simulator(top)
    sim.add_testbench(bench)
    sim.run()
    return answers


def pattern(seed, beats, width):
    """Return the beats of a packet; a master of ``width`` bits uses their low part."""
    return [int.from_bytes(bytes((seed + 7 * k + j) % 256 for j in range(width // 8)), "little")
            for k in range(beats)]


BURSTS = ((0, 0x0ABCD00, 3), (1, 0xFFFFF20, 2), (0, 0x0000040, 1))
"""Master, address in its channel, beats."""


def check_exchange(answers, memories, bases):
    expected = []
    for number, address, beats in BURSTS:
        width = MASTERS[number].width
        data = pattern(address >> 5, beats, width)
        expected += [(beat, k == beats - 1) for k, beat in enumerate(data)]
        # Beats are whole: a port of 256 bits has more of them.
        count = beats * width // 8 // memories[number].beat
        for channel in ("aw", "ar"):
            assert (channel, bases[number] + address, count) in memories[number].bursts
        stored = [sum(memories[number].bytes[bases[number] + address + width // 8 * k + j] << 8 * j
                      for j in range(width // 8)) for k in range(beats)]
        assert stored == data
    assert answers == expected
    assert [len(memory.bursts) for memory in memories] == [4, 2]


def packets():
    made = []
    for number, address, beats in BURSTS:
        made += [[write_header(number, address, beats),
                  *pattern(address >> 5, beats, MASTERS[number].width)],
                 [read_header(number, address, beats)]]
    return made


def test_opennic_puts_each_channel_at_its_place():
    top = OpenNicPlugin(Storing(MASTERS))
    memories = [Memory(top, f"m_axi_{name}", 32) for name, _, _ in MASTERS]

    async def start(ctx, edge):
        """Reset; the memory's clock stops until the memory is ready."""
        ctx.set(top.mod_rstn, 1)
        for _ in range(120):
            for clock in ("axil_aclk", "axis_aclk"):
                await edge(clock)
        assert not ctx.get(top.mod_rst_done)
        ctx.set(top.hbm_ready, 1)
        for _ in range(12):
            for clock in ("axil_aclk", "axis_aclk", "hbm_aclk"):
                await edge(clock)
        assert ctx.get(top.mod_rst_done) and ctx.get(top.hbm_aresetn)

    answers = exchange(
        top, packets(), clock="axis_aclk", into="s_axis_qdma_h2c", out="m_axis_qdma_c2h",
        memories=memories, memory_clock="hbm_aclk", others=("axil_aclk",), start=start)
    check_exchange(answers, memories, [17 << 28, 3 << 28])


def test_vitis_adds_the_pointers():
    top = VitisKernel(Storing(MASTERS))
    memories = [Memory(top, f"m_axi_{name}", width // 8) for name, _, width in MASTERS]
    pointers = [0x4_4000_1000, 0x1_F000_0000]

    async def start(ctx, edge):
        for awake in (0, 0, 1, 1, 1):
            ctx.set(top.ap_rst_n, awake)
            await edge("ap_clk")
        for number, pointer in enumerate(pointers):
            for word in range(2):
                for name, value in (("awaddr", 0x18 + 12 * number + 4 * word), ("awvalid", 1),
                                    ("wdata", pointer >> 32 * word & 0xFFFFFFFF), ("wstrb", 15),
                                    ("wvalid", 1), ("bready", 1)):
                    ctx.set(getattr(top, f"s_axi_control_{name}"), value)
                for _ in range(8):
                    ready = [name for name in ("aw", "w")
                             if ctx.get(getattr(top, f"s_axi_control_{name}ready"))]
                    await edge("ap_clk")
                    for name in ready:
                        ctx.set(getattr(top, f"s_axi_control_{name}valid"), 0)

    answers = exchange(top, packets(), clock="ap_clk", into="s_axis_host", out="m_axis_host",
                       memories=memories, memory_clock="ap_clk", start=start)
    check_exchange(answers, memories, pointers)


@pytest.mark.parametrize("masters, text", [
    ([(f"mem{k}", k, 512) for k in range(33)],
     "masters must be at most 32, one for each pseudo-channel of the HBM, not 33"),
    ([("a", 3, 512), ("b", 3, 512)], "channel of b must be free: master a uses channel 3"),
    ([("a", 32, 512)], "channel of a must be between 0 and 31, not 32"),
    ([("a", -1, 512)], "channel of a must be between 0 and 31, not -1"),
    ([("a", 0, 128)], "width of a must be 256 or 512 bits, not 128"),
    ([("a", 0, 512), ("a", 1, 512)], "names of masters must differ: 'a' occurs twice"),
    ([("a b", 0, 512)], "name of a master must be an identifier, not 'a b': use 1 to 100 letters, "
     "digits and _ of ASCII, no digit first"),
    ([("a", "0", 512)], "channel of a must be an integer, not '0'")])
@pytest.mark.parametrize("shell", sorted(SHELLS))
def test_bad_tables(shell, masters, text, tmp_path):
    class Design(Storing):
        def __init__(self):
            super().__init__([("mem", 0, 512)])
            self.masters = masters

    with pytest.raises((ValueError, TypeError), match=f"^{re.escape(text)}$"):
        generate(preset("tiny"), tmp_path / "o", shell=shell, build=lambda _config: Design())
    assert not (tmp_path / "o").exists()


def test_no_masters():
    check_masters(())
    assert not any(name.startswith(("m_axi_", "hbm_"))
                   for top in (OpenNicPlugin, VitisKernel)
                   for name in top(Storing(())).signature.members)
