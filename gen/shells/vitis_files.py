"""Files of a Vitis kernel: Verilog, kernel.xml, packaging script, link settings."""

from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree as Xml

from gen.shells.kernel_control import KERNEL_ADDRESS_BITS, NIC_BASE, REGISTERS, pointer_address
from gen.shells.masters import axi_name
from gen.shells.timing_xdc import constraints_readme, fan_out_xdc
from gen.shells.vitis import GLOBAL_BITS, STREAMS, VitisKernel
from gen.shells.vivado import for_vivado
from gen.shells.vivado_ooc import CLOCK_NS, PART, ooc_name, ooc_paragraph, ooc_script
from gen.verilog.convert import Verilog
from rtl.config import BEAT_BITS, NicConfig
from rtl.formats import BEAT_BYTES
from rtl.memory import MemoryMaster

__all__ = ["PLATFORM", "kernel_xml", "vitis_files"]

PLATFORM = "xilinx_u280_gen3x16_xdma_1_202211_1"
_MHZ = 250


def vitis_files(config: NicConfig, kernel: VitisKernel, verilog: Verilog,
                timing: Mapping[str, Any] | None = None) -> dict[str, str]:
    """Return the text of each file by its path. The die is a setting of the link.

    Parameters
    ----------
    config: configuration of the NIC.
    kernel: top of the kernel.
    verilog: Verilog of ``kernel``.
    timing: timing report of its NIC (:mod:`gen.timing.report`), the source of fan-out bounds, or
        None.
    """
    top = verilog.name
    fan_out = None if timing is None else f"{top}.fanout.xdc"
    return {
        **({} if timing is None else {f"{top}.fanout.xdc": fan_out_xdc(top, timing)}),
        f"{top}.v": for_vivado(verilog),
        "kernel.xml": kernel_xml(top, kernel.masters),
        "package_kernel.tcl": _package(top, kernel.masters, fan_out),
        "link.cfg": _link(top, kernel.masters),
        ooc_name(top): ooc_script(top, {"ap_clk": CLOCK_NS}, synthesis=fan_out),
        "README.md": _readme(config, top) + _memory_readme(kernel.masters) + (
            constraints_readme([fan_out]) if fan_out else ""),
    }


def kernel_xml(name: str, masters: Sequence[MemoryMaster] = ()) -> str:
    """Return ``kernel.xml`` of a kernel called ``name`` (UG1393, RTL kernel XML).

    Each of ``masters`` has a port, and a pointer to its memory as an argument.
    """
    root = Xml.Element("root", versionMajor="1", versionMinor="6")
    kernel = Xml.SubElement(
        root, "kernel", name=name, language="ip_c", vlnv=f"embernic:kernel:{name}:1.0",
        attributes="", preferredWorkGroupSizeMultiple="0", workGroupSize="1", interrupt="true",
        hwControlProtocol="ap_ctrl_hs")
    ports = Xml.SubElement(kernel, "ports")
    Xml.SubElement(ports, "port", name="s_axi_control", mode="slave",
                   range=f"{1 << KERNEL_ADDRESS_BITS:#x}", dataWidth="32", portType="addressable",
                   base="0x0")
    for master in masters:
        Xml.SubElement(ports, "port", name=axi_name(master), mode="master",
                       range=f"{(1 << GLOBAL_BITS) - 1:#X}".replace("X", "x"),
                       dataWidth=str(master.width), portType="addressable", base="0x0")
    for stream, (direction, _) in STREAMS.items():
        Xml.SubElement(ports, "port", name=stream, dataWidth=str(BEAT_BITS), portType="stream",
                       mode="read_only" if direction == "in" else "write_only")
    arguments = Xml.SubElement(kernel, "args")
    Xml.SubElement(arguments, "arg", name="packets", addressQualifier="0", id="0",
                   port="s_axi_control", size="0x4", offset=f"{REGISTERS['packets']:#x}",
                   type="uint", hostOffset="0x0", hostSize="0x4")
    for number, (stream, (_, more)) in enumerate(STREAMS.items(), 1):
        Xml.SubElement(
            arguments, "arg", name=stream, addressQualifier="4", id=str(number), port=stream,
            size="0x0", offset="0x0", hostOffset="0x0", hostSize="0x0", memSize="0",
            type=f"stream<ap_axiu<{BEAT_BITS},{more.get('tuser', 0)},0,{more.get('tdest', 0)}>>&")
    for number, master in enumerate(masters):
        Xml.SubElement(
            arguments, "arg", name=master.name, addressQualifier="1",
            id=str(1 + len(STREAMS) + number), port=axi_name(master), size="0x8",
            offset=f"{pointer_address(number):#x}", type="void*", hostOffset="0x0",
            hostSize="0x8")
    Xml.indent(root)
    return Xml.tostring(root, encoding="unicode", xml_declaration=False).join(
        ('<?xml version="1.0" encoding="UTF-8"?>\n', "\n"))


def _package(top: str, masters: Sequence[MemoryMaster], constraints: str | None) -> str:
    streams = "\n".join(
        f"ipx::associate_bus_interfaces -busif {name} -clock ap_clk $core"
        for name in (*STREAMS, *map(axi_name, masters)))
    if masters:
        streams += "\n" + _pointers(masters)
    read = f"read_xdc $here/{constraints}\n" if constraints else ""
    return f"""# Packages {top} as a kernel. Run: vivado -mode batch -source package_kernel.tcl
set here [file dirname [file normalize [info script]]]
set packaged $here/packaged
create_project -force -part {PART} package_{top} $here/project
read_verilog -sv $here/{top}.v
{read}set_property top {top} [current_fileset]
update_compile_order -fileset sources_1
ipx::package_project -root_dir $packaged -vendor embernic -library kernel -taxonomy /KernelIP \\
    -import_files -set_current true
set core [ipx::current_core]
set_property core_revision 1 $core
foreach parameter [ipx::get_user_parameters -of_objects $core] {{
    ipx::remove_user_parameter [get_property NAME $parameter] $core
}}
{streams}
ipx::associate_bus_interfaces -busif s_axi_control -clock ap_clk $core
ipx::associate_bus_interfaces -clock ap_clk -reset ap_rst_n $core
set_property sdx_kernel true $core
set_property sdx_kernel_type rtl $core
set_property xpm_libraries XPM_MEMORY $core
set_property supported_families {{}} $core
set_property auto_family_support_level level_2 $core
ipx::update_checksums $core
ipx::check_integrity -kernel $core
ipx::save_core $core
close_project
package_xo -force -xo_path $here/{top}.xo -kernel_name {top} -ip_directory $packaged \\
    -kernel_xml $here/kernel.xml
"""


def _pointers(masters: Sequence[MemoryMaster]) -> str:
    """Return Tcl that defines the pointer register of each master for the packager."""
    lines = ["set map [ipx::add_memory_map -quiet s_axi_control $core]",
             "set block [ipx::add_address_block -quiet reg0 $map]"]
    for number, master in enumerate(masters):
        lines += [
            f"set register [ipx::add_register -quiet {master.name} $block]",
            f"set_property address_offset {pointer_address(number):#x} $register",
            f"set_property size {GLOBAL_BITS} $register",
            "set parameter [ipx::add_register_parameter -quiet ASSOCIATED_BUSIF $register]",
            f"set_property value {axi_name(master)} $parameter"]
    lines.append("set_property slave_memory_map_ref s_axi_control "
                 "[ipx::get_bus_interfaces s_axi_control -of_objects $core]")
    return "\n".join(lines)


def _link(top: str, masters: Sequence[MemoryMaster]) -> str:
    memory = "".join(f"sp={top}_0.{axi_name(master)}:HBM[{master.channel}]\n"
                     for master in masters)
    if memory:
        memory = f"# Each master has its own pseudo-channel.\n{memory}"
    return f"""# Read by v++ --link --config.
[connectivity]
nk={top}:1:{top}_0
nk=networklayer:1:networklayer_0
nk=cmac_0:1:cmac_0
# The NIC needs a die; the network and MAC kernels are near the QSFPs.
slr={top}_0:SLR1
slr=networklayer_0:SLR2
slr=cmac_0:SLR2
{memory}stream_connect=cmac_0.M_AXIS:networklayer_0.S_AXIS_eth2nl
stream_connect=networklayer_0.M_AXIS_nl2eth:cmac_0.S_AXIS
stream_connect={top}_0.m_axis_net:networklayer_0.S_AXIS_sk2nl
stream_connect=networklayer_0.M_AXIS_nl2sk:{top}_0.s_axis_net
# Host streams: add the kernels that move the host's packets.
# nk=...
# stream_connect=MOVER.STREAM:{top}_0.s_axis_host
# stream_connect={top}_0.m_axis_host:MOVER.STREAM
"""


def _readme(config: NicConfig, top: str) -> str:
    datagram, packet = (BEAT_BYTES * (1 + beats)
                        for beats in (config.net_payload_beats, config.host_payload_beats))
    return f"""# {top}: EmberNIC as a Vitis kernel for the Alveo U280

```
vivado -mode batch -source package_kernel.tcl        # writes {top}.xo
v++ --link --platform {PLATFORM} --kernel_frequency 0:{_MHZ} \\
    --config link.cfg {top}.xo networklayer.xo cmac_0.xo -o embernic.xclbin
```

`networklayer.xo` and `cmac_0.xo` are the 100 Gb/s UDP and MAC kernels of
https://github.com/Xilinx/xup_vitis_network_example. Entry n of the UDP kernel's socket table is
node n; leave out the kernel's own entry. Use the same UDP port on all nodes. Datagrams have at most
{datagram:,} bytes.

`s_axis_host` and `m_axis_host` contain packets of the host, of at most {packet:,} bytes, with
`tlast` at the end of each packet. Kernels that move the packets to and from memory must keep their
boundaries (the example's `krnl_mm2s` and `krnl_s2mm` do not).

Control has {KERNEL_ADDRESS_BITS} address bits. 0x00 to 0x0F are `ap_ctrl_hs`, 0x10 is the argument
`packets`. A run ends when `packets` packets have arrived from the host, the NIC's tables are swept,
and the NIC has no work in progress. Frames for other nodes do not delay the end. A run of 0 packets
ends when a reset is over. A reset completes an outgoing packet with ones and `tlast`. The NIC's
registers begin at {NIC_BASE:#x}. The NIC also works before the kernel is started.

{ooc_paragraph(top)}"""


def _memory_readme(masters: Sequence[MemoryMaster]) -> str:
    if not masters:
        return ""
    rows = "\n".join(
        f"| `{master.name}` | {pointer_address(number):#x} | {master.width} | "
        f"HBM[{master.channel}] |" for number, master in enumerate(masters))
    return f"""
## HBM

Each master uses a buffer in its pseudo-channel. The buffer's address is an argument of the kernel
(low word first). Set the arguments before the NIC's tables are used.

| argument | address | bits | memory |
|---|---|---|---|
{rows}
"""
