"""Alveo U280 as a board of amaranth-boards, for designs without a shell.

Use it as any other board: ``AlveoU280Platform().build(Blinky(), do_build=False)`` writes Verilog,
constraints and Vivado's script for the example of amaranth-boards.

Pins and settings: Corundum, ``fpga/mqnic/Alveo/fpga_100g/fpga_au280.xdc``, and verilog-ethernet,
``example/AU280/fpga_10g/fpga.xdc``, which agree. Not tested with Vivado.
"""

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from amaranth.build import Attrs, Clock, DiffPairs, Pins, PinsN, Resource, Subsignal
from amaranth.build.run import BuildPlan
from amaranth.hdl import Instance
from amaranth.vendor import XilinxPlatform
from amaranth_boards.resources import UARTResource

from gen.base.cache import cache_dir
from gen.base.yosys import yosys_command
from gen.verilog.memories import XPM_DEFINE, memory_text
from gen.verilog.platform import ram_instance, ram_module

__all__ = ["AlveoU280Platform"]

_LVCMOS = Attrs(IOSTANDARD="LVCMOS18")
_SLOW = Attrs(IOSTANDARD="LVCMOS18", SLEW="SLOW", DRIVE="8")
_MSP = Attrs(IOSTANDARD="LVCMOS18", SLEW="SLOW", DRIVE="4")
_LVDS = Attrs(IOSTANDARD="LVDS")

_CONSTRAINTS = """\
set_property CFGBVS GND [current_design]
set_property CONFIG_VOLTAGE 1.8 [current_design]
set_property CONFIG_MODE SPIx4 [current_design]
set_property BITSTREAM.GENERAL.COMPRESS TRUE [current_design]
set_property BITSTREAM.CONFIG.CONFIGFALLBACK ENABLE [current_design]
set_property BITSTREAM.CONFIG.SPI_BUSWIDTH 4 [current_design]
set_property BITSTREAM.CONFIG.CONFIGRATE 85.0 [current_design]
set_property BITSTREAM.CONFIG.EXTMASTERCCLK_EN DISABLE [current_design]
set_property BITSTREAM.CONFIG.SPI_FALL_EDGE YES [current_design]
set_property BITSTREAM.CONFIG.UNUSEDPIN PULLUP [current_design]
set_property BITSTREAM.CONFIG.SPI_32BIT_ADDR YES [current_design]
set_property BITSTREAM.CONFIG.OVERTEMPSHUTDOWN Enable [current_design]
set_operating_conditions -design_power_budget 160
"""


def _qsfp(number: int, rx: tuple[str, str], tx: tuple[str, str], refclk0: tuple[str, str],
          refclk1: tuple[str, str], enable: str, select: str) -> Resource:
    return Resource(
        "qsfp", number,
        Subsignal("rx", DiffPairs(*rx, dir="i", assert_width=4)),
        Subsignal("tx", DiffPairs(*tx, dir="o", assert_width=4)),
        # From the Si570, and from the Si546, which gives 156.25 MHz while refclk_fs is 0.
        Subsignal("refclk0", DiffPairs(*refclk0, dir="i"), Clock(156.25e6)),
        Subsignal("refclk1", DiffPairs(*refclk1, dir="i"), Clock(161.1328125e6)),
        Subsignal("refclk_oe", PinsN(enable, dir="o"), _SLOW),
        Subsignal("refclk_fs", Pins(select, dir="o"), _SLOW))


class AlveoU280Platform(XilinxPlatform):
    """Alveo U280: clocks, reset button, UARTs, satellite controller, PCIe, both QSFP28 cages.

    Transceiver pins (``pcie``, ``pcie_refclk``, ``qsfp``) are requested with ``dir="-"``: they go
    to transceivers and to IBUFDS_GTE4, not to fabric buffers. A design with HBM must drive
    ``hbm_cattrip``, with 0 unless HBM is too hot. The default clock has 100 MHz; a NIC's 250 MHz
    come from a PLL or a shell.

    :class:`rtl.memory.Ram` becomes ``ember_ram`` with ``xpm_memory_sdpram`` inside, see
    :mod:`gen.verilog.memories`. A whole NIC goes through :class:`gen.verilog.core.Converted`.
    """

    device, package, speed = "xcu280", "fsvh2892", "2L-e"
    default_clk, default_rst = "clk_100mhz", "rst"
    connectors = []
    resources = [
        Resource("clk_100mhz", 0, DiffPairs("BJ43", "BJ44", dir="i"), Clock(100e6), _LVDS),
        Resource("clk_100mhz", 1, DiffPairs("BH6", "BJ6", dir="i"), Clock(100e6), _LVDS),
        Resource("clk_100mhz", 2, DiffPairs("G31", "F31", dir="i"), Clock(100e6), _LVDS),
        Resource("clk_si570", 0, DiffPairs("G30", "F30", dir="i"), Clock(156.25e6), _LVDS),
        Resource("rst", 0, PinsN("L30", dir="i"), _LVCMOS),
        UARTResource(0, rx="B33", tx="A28", attrs=_LVCMOS),
        Resource("msp_gpio", 0, Pins("K28 J29 K29 J31", dir="io"), _MSP),
        UARTResource("msp_uart", 0, rx="E28", tx="D29", attrs=_LVCMOS),
        Resource("hbm_cattrip", 0, Pins("D32", dir="o"), _LVCMOS),
        # 1 is that of all 16 lanes; 0 and 2 serve lanes 0 to 7, 1 and 3 lanes 8 to 15.
        Resource("pcie_refclk", 0, DiffPairs("AL15", "AL14", dir="i"), Clock(100e6)),
        Resource("pcie_refclk", 1, DiffPairs("AR15", "AR14", dir="i"), Clock(100e6)),
        Resource("pcie_refclk", 2, DiffPairs("AK13", "AK12", dir="i"), Clock(100e6)),
        Resource("pcie_refclk", 3, DiffPairs("AP13", "AP12", dir="i"), Clock(100e6)),
        Resource(
            "pcie", 0,
            Subsignal("rst", PinsN("BH26", dir="i"), Attrs(IOSTANDARD="LVCMOS18", PULLUP="TRUE")),
            Subsignal("rx", DiffPairs(
                "AL2 AM4 AN6 AN2 AP4 AR2 AT4 AU2 AV4 AW6 AW2 AY4 BA6 BA2 BB4 BC2",
                "AL1 AM3 AN5 AN1 AP3 AR1 AT3 AU1 AV3 AW5 AW1 AY3 BA5 BA1 BB3 BC1",
                dir="i", assert_width=16)),
            Subsignal("tx", DiffPairs(
                "AL11 AM9 AN11 AP9 AR11 AR7 AT9 AU11 AU7 AV9 AW11 AY9 BA11 BB9 BC11 BC7",
                "AL10 AM8 AN10 AP8 AR10 AR6 AT8 AU10 AU6 AV8 AW10 AY8 BA10 BB8 BC10 BC6",
                dir="o", assert_width=16))),
        _qsfp(0, ("L53 K51 J53 H51", "L54 K52 J54 H52"), ("L48 L44 K46 J48", "L49 L45 K47 J49"),
              ("T42", "T43"), ("R40", "R41"), "H32", "G32"),
        _qsfp(1, ("G53 F51 E53 D51", "G54 F52 E54 D52"), ("G48 E48 C48 A49", "G49 E49 C49 A50"),
              ("P42", "P43"), ("M42", "M43"), "H30", "G33"),
    ]

    def ram_instance(self, ram) -> Instance:
        """Return the owned memory module for ``ram``, and add its source to the build."""
        module = ram_module(ram)
        self.add_file(f"{module}.v", memory_text(module))
        return ram_instance(ram)

    def toolchain_prepare(self, fragment, name, **kwargs) -> BuildPlan:
        """Return Amaranth's plan, with the card's constraints and the vendor's memories."""
        added = {"add_constraints": _CONSTRAINTS, "script_after_read": "auto_detect_xpm\n",
                 "synth_design_opts": f"-verilog_define {XPM_DEFINE} "}
        for option, text in added.items():
            kwargs[option] = text + kwargs.get(option, "")
        with _own_yosys():
            return super().toolchain_prepare(fragment, name, **kwargs)


@contextmanager
def _own_yosys() -> Iterator[None]:
    """Make Amaranth use the Yosys of :mod:`gen.base.yosys`.

    Amaranth reads the path of an executable from ``YOSYS``: here, a script with the whole command.
    """
    named = os.environ.get("YOSYS")
    with TemporaryDirectory(dir=cache_dir()) as folder:
        script = Path(folder, "yosys")
        script.write_text(f'#!/bin/sh\nexec {shlex.join(yosys_command())} "$@"\n')
        script.chmod(0o700)
        os.environ["YOSYS"] = str(script)
        try:
            yield
        finally:
            if named is None:
                del os.environ["YOSYS"]
            else:
                os.environ["YOSYS"] = named
