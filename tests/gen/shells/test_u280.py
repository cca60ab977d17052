"""The platform of the Alveo U280: pins, part, clocks, and designs for Vivado."""

import os
import re
import shlex

import pytest
from amaranth.build import DiffPairs, Pins
from amaranth.hdl import Elaboratable, Instance, Module
from amaranth.lib import io
from amaranth_boards.test.blinky import Blinky

from gen.base.yosys import yosys_command
from gen.shells.u280 import AlveoU280Platform
from gen.verilog.convert import to_verilog
from gen.verilog.core import Converted
from gen.verilog.memories import memory_text
from rtl.config import preset
from rtl.memory import Ram
from rtl.nic import SmartNic
from tests.gen.designs import Bank

# From Corundum's and OpenNIC's constraints; a pair is P/N, bits are numbered from 0.
PINS = """
clk_100mhz_0 BJ43/BJ44 | clk_100mhz_1 BH6/BJ6 | clk_100mhz_2 G31/F31 | clk_si570_0 G30/F30
rst_0 L30 | uart_0__tx A28 | uart_0__rx B33 | msp_gpio_0 K28 J29 K29 J31
msp_uart_0__tx D29 | msp_uart_0__rx E28 | hbm_cattrip_0 D32 | pcie_0__rst BH26
pcie_refclk_1 AR15/AR14 | pcie_refclk_0 AL15/AL14 | pcie_refclk_2 AK13/AK12
pcie_refclk_3 AP13/AP12
qsfp_0__refclk0 T42/T43 | qsfp_0__refclk1 R40/R41 | qsfp_0__refclk_oe H32 | qsfp_0__refclk_fs G32
qsfp_1__refclk0 P42/P43 | qsfp_1__refclk1 M42/M43 | qsfp_1__refclk_oe H30 | qsfp_1__refclk_fs G33
"""
LANES = """
qsfp_0__rx L53/L54 | qsfp_0__tx L48/L49 | qsfp_1__rx G53/G54 | qsfp_1__tx G48/G49
pcie_0__rx AL2/AL1 | pcie_0__tx AL11/AL10
"""


def ports_of(group):
    """Yield the IO ports of a platform's result."""
    if isinstance(group, io.SingleEndedPort):
        yield group.io
    elif isinstance(group, io.DifferentialPort):
        yield from (group.p, group.n)
    else:
        for part in vars(group).values():
            yield from () if isinstance(part, str) else ports_of(part)


class Everything(Elaboratable):
    """Uses every pin of the card."""

    def elaborate(self, platform):
        m = Module()
        for resource in platform.resources.values():
            plain = isinstance(resource.ios[0], (Pins, DiffPairs))
            direction = "-" if plain else {part.name: "-" for part in resource.ios}
            for port in ports_of(platform.request(resource.name, resource.number, dir=direction)):
                m.submodules += Instance("somewhere", io_x=port)
        return m


@pytest.fixture(scope="module")
def everything():
    platform = AlveoU280Platform()
    platform.default_clk = None
    return platform.build(Everything(), do_build=False, add_constraints="# mine",
                          synth_design_opts="-flatten_hierarchy none").files


def located(xdc):
    return dict(reversed(pair) for pair in re.findall(
        r'^set_property LOC (\w+) \[get_ports "(.*)"\]$', xdc.replace("\\[", "["), re.MULTILINE))


def test_pins(everything):
    pins = located(everything["top.xdc"])
    assert len(set(pins.values())) == len(pins)
    wanted = {}
    for entry in re.split(r"[|\n]", PINS.strip()):
        name, *places = entry.split()
        bits = [f"[{k}]" for k in range(len(places))] if len(places) > 1 else [""]
        for bit, place in zip(bits, places):
            halves = dict(zip(("p", "n"), place.split("/"))) if "/" in place else {"io": place}
            wanted |= {f"{name}__{half}{bit}": pin for half, pin in halves.items()}
    assert {name: pin for name, pin in pins.items() if "__rx__p" not in name
            and "__rx__n" not in name and "__tx__p" not in name
            and "__tx__n" not in name} == wanted
    for entry in re.split(r"[|\n]", LANES.strip()):
        name, place = entry.split()
        assert [pins[f"{name}__{half}[0]"] for half in "pn"] == place.split("/")
        lanes = 16 if "pcie" in name else 4
        assert sum(port.startswith(f"{name}__p") for port in pins) == lanes
        # The two pins of a transceiver pair are adjacent.
        for k in range(lanes):
            one, other = (re.fullmatch(r"([A-Z]+)(\d+)", pins[f"{name}__{half}[{k}]"]).groups()
                          for half in "pn")
            assert one[0] == other[0] and abs(int(one[1]) - int(other[1])) == 1


def test_standards_and_clocks(everything):
    xdc = everything["top.xdc"]
    standards = dict(re.findall(r'^set_property IOSTANDARD "(\w+)" \[get_ports "(\w+)', xdc,
                                re.MULTILINE))
    assert set(standards) == {"LVDS", "LVCMOS18"}
    with_standard = re.findall(r'^set_property IOSTANDARD "\w+" \[get_ports "(.*)"\]', xdc,
                               re.MULTILINE)
    # Transceivers have no IO standard.
    assert not any(name.startswith(("pcie_refclk", "pcie_0__rx", "qsfp_0__tx", "qsfp_1__refclk0"))
                   for name in with_standard)
    periods = dict(re.findall(r"^create_clock -name (\w+) -period ([\d.]+)", xdc, re.MULTILINE))
    assert periods.pop("clk_100mhz_0__p") == "10.0" and periods["clk_si570_0__p"] == "6.4"
    assert float(periods["qsfp_1__refclk1__p"]) == pytest.approx(6.206, abs=1e-3)
    assert len(periods) == 11
    assert "set_property CONFIG_VOLTAGE 1.8 [current_design]" in xdc
    assert xdc.rstrip().endswith("# mine")


def test_part_and_memories(everything):
    tcl = everything["top.tcl"]
    assert "-part xcu280-fsvh2892-2L-e\n" in tcl
    assert "auto_detect_xpm\n" in tcl
    assert "synth_design -top top -verilog_define EMBER_XPM -flatten_hierarchy none\n" in tcl


def test_blinky_of_amaranth_boards():
    files = AlveoU280Platform().build(Blinky(), do_build=False).files
    assert {"top.v", "top.xdc", "top.tcl"} <= files.keys()
    assert located(files["top.xdc"]) == {
        "clk_100mhz_0__p": "BJ43", "clk_100mhz_0__n": "BJ44", "rst_0__io": "L30"}
    # The counter counts half a second of the default clock.
    assert f"timer = 26'h{49_999_999:x};" in files["top.v"]


class Remembering(Elaboratable):
    """A block of this package on the card, without a name of its own."""

    def elaborate(self, platform):
        m = Module()
        uart = platform.request("uart", dir={"rx": "-", "tx": "-"})
        m.submodules.rx = rx = io.Buffer("i", uart.rx)
        m.submodules.tx = tx = io.Buffer("o", uart.tx)
        m.submodules.ram = ram = Ram(8, 512, style="bram")
        m.submodules.table = table = Ram(8, 32, latency=0)
        m.submodules.late = late = Ram(8, 512, style="bram", latency=2)
        m.d.sync += [ram.write_addr.eq(ram.write_addr + 1), ram.write_data.eq(ram.read_data)]
        m.d.comb += [ram.write_en.eq(rx.i), ram.read_addr.eq(ram.write_addr),
                     late.write_en.eq(rx.i), late.write_data.eq(ram.write_data),
                     table.read_addr.eq(ram.read_data),
                     tx.o.eq(table.read_data.xor() ^ late.read_data.xor())]
        return m


@pytest.mark.parametrize("named", [False, True], ids=["own", "named-with-arguments"])
def test_a_small_design(monkeypatch, tmp_path, named):
    """Only the project's Yosys can convert it: PATH contains no other."""
    monkeypatch.delenv("YOSYS", raising=False)
    if named:
        monkeypatch.setenv("YOSYS", shlex.join(yosys_command()))
    monkeypatch.setenv("PATH", str(tmp_path))
    before = os.environ.get("YOSYS")
    files = AlveoU280Platform().build(Remembering(), do_build=False).files
    assert os.environ.get("YOSYS") == before
    for module in ("ember_ram", "ember_ram_async", "ember_ram_piped"):
        assert files[f"{module}.v"] == memory_text(module)
        assert f"add_files {module}.v\n" in files["top.tcl"].replace('"', "")
        assert len(re.findall(rf"^  {module} #\(", files["top.v"], re.MULTILINE)) == 1
    assert located(files["top.xdc"]) == {
        "clk_100mhz_0__p": "BJ43", "clk_100mhz_0__n": "BJ44", "rst_0__io": "L30",
        "uart_0__tx__io": "A28", "uart_0__rx__io": "B33"}
    # The button is pressed when it is low.
    button = files["top.v"].split("module \\top.cd_sync.rst_buf (")[1].split("endmodule")[0]
    assert re.search(r"= ~", button)
    assert "STARTUPE3" in files["top.v"]


class Bare(Elaboratable):
    """A NIC that shows on a pin whether it is idle."""

    def __init__(self, nic):
        self.nic = nic

    def elaborate(self, platform):
        m = Module()
        m.submodules.nic = self.nic
        m.submodules.pin = pin = io.Buffer("o", platform.request("hbm_cattrip", dir="-"))
        m.d.comb += pin.o.eq(self.nic.idle & self.nic.csr.rdata[0])
        return m


@pytest.mark.slow
def test_a_nic_behind_a_thin_top():
    config = preset("tiny").with_fields(dot_units=0)
    files = AlveoU280Platform().build(
        Bare(Converted(SmartNic(config), "nic")), "board", do_build=False).files
    assert {"board.v", "board.xdc", "board.tcl", "nic.v"} <= files.keys()
    assert "-part xcu280-fsvh2892-2L-e\n" in files["board.tcl"]
    assert re.search(r'^add_files "?nic.v"?\n', files["board.tcl"], re.MULTILINE)
    assert located(files["board.xdc"]) == {
        "clk_100mhz_0__p": "BJ43", "clk_100mhz_0__n": "BJ44", "rst_0__io": "L30",
        "hbm_cattrip_0__io": "D32"}
    (head,) = re.findall(r"^module nic\((.*?)\);", files["nic.v"],
                         re.MULTILINE | re.DOTALL)
    (instance,) = re.findall(r"^  nic \S+ \((.*?)\);", files["board.v"], re.MULTILINE | re.DOTALL)
    connected = re.findall(r"\.\\?(\w+) ?\(", instance)
    assert sorted(connected) == sorted(re.findall(r"\w+", head)) and "clk" in connected


def test_converted_has_the_ports_and_the_verilog_of_its_component():
    class Plain:
        files: dict[str, str] = {}

        def add_file(self, name, text):
            self.files[name] = text

    core = Converted(Bank(), "bank")
    assert core.signature == Bank().signature
    core.elaborate(Plain())
    assert Plain.files == {"bank.v": to_verilog(Bank(), "bank").text}


def test_bad_uses():
    with pytest.raises(ValueError, match="name must be an identifier, not 'two words'"):
        Converted(Bank(), "two words")
    with pytest.raises(TypeError, match=r"platform must be a vendor platform with .*, not None"):
        Converted(Bank(), "bank").elaborate(None)
