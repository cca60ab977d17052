"""HBM for OpenNIC: the vendor's IP beside the wrapper, and its Tcl script.

Ports and properties of the IP are from PG276. Not tested with Vivado.
"""

from collections.abc import Sequence

from amaranth.lib.wiring import Out

from gen.shells.hbm_port import HBM_LENGTH_BITS, HBM_WIDTH
from gen.shells.masters import axi_members, axi_name
from gen.verilog.convert import Verilog
from rtl.memory.axi4 import ADDRESS_BITS, HBM_CHANNELS, MemoryMaster

__all__ = ["HBM_MHZ", "box_name", "hbm_box", "hbm_readme", "hbm_tcl"]

HBM_MHZ = 450
"""Clock of the memory's ports."""
_REFERENCE_MHZ = 100
_STACKS = 2
_PER_STACK = HBM_CHANNELS // _STACKS
_STACK_GB = 4
_ADDRESS_BITS = ADDRESS_BITS + HBM_CHANNELS.bit_length() - 1


def box_name(top: str) -> str:
    """Return the name of the module that contains ``top`` and the HBM."""
    return f"{top}_box"


def hbm_box(verilog: Verilog, masters: Sequence[MemoryMaster]) -> str:
    """Return Verilog of a module with the box ports of ``verilog``'s top and ``ref_clk_100mhz``.

    It contains the top, the HBM IP, and the clock of the IP's ports.
    """
    top, stacks = verilog.name, _stacks(masters)
    outer = [port for port in verilog.ports if not port.name.startswith(("m_axi_", "hbm_"))]
    inner = [port for port in verilog.ports if port.name.startswith("m_axi_")]
    declared = ",\n".join(
        f"  {port.direction} wire {_range(port.width)}{port.name}" for port in outer)
    wires = "".join(f"  wire {_range(port.width)}{port.name};\n" for port in inner)
    connected = ",\n".join(f"    .{port.name}({port.name})" for port in (*outer, *inner))
    clocks = [f".HBM_REF_CLK_{n}(ref_clk_100mhz)" for n in range(stacks)]
    setup = [connection for n in range(stacks) for connection in (
        f".APB_{n}_PCLK(ref_clk_100mhz)", f".APB_{n}_PRESET_N(hbm_locked)",
        f".apb_complete_{n}(hbm_complete[{n}])", f".DRAM_{n}_STAT_CATTRIP()",
        f".DRAM_{n}_STAT_TEMP()")]
    owners = {master.channel: master for master in masters}
    ports = [connection for channel in _enabled(masters)
             for connection in _connections(channel, owners.get(channel))]
    memory = ",\n".join(f"    {connection}" for connection in (*clocks, *ports, *setup))
    return f"""// {top} and its HBM.
module {box_name(top)} (
{declared},
  input wire ref_clk_100mhz
);
  wire hbm_aclk, hbm_aresetn, hbm_locked;
  wire {_range(stacks)}hbm_complete;
{wires}
  {top}_hbm_clock hbm_clock (
    .clk_in1(ref_clk_100mhz), .clk_out1(hbm_aclk), .locked(hbm_locked)
  );

  {top} nic (
{connected},
    .hbm_aclk(hbm_aclk), .hbm_aresetn(hbm_aresetn),
    .hbm_ready(hbm_locked & (&hbm_complete))
  );

  {top}_hbm_ip hbm (
{memory}
  );
endmodule
"""


def hbm_tcl(top: str, masters: Sequence[MemoryMaster]) -> str:
    """Return Tcl that reads :func:`hbm_box` and creates the IPs in it."""
    stacks, enabled = _stacks(masters), _enabled(masters)
    properties = {
        "USER_HBM_STACK": stacks, "USER_HBM_DENSITY": f"{_STACK_GB * stacks}GB",
        "USER_APB_EN": "false"}
    for stack in range(stacks):
        first = next(channel for channel in enabled if channel // _PER_STACK == stack)
        properties |= {f"USER_HBM_REF_CLK_{stack}": _REFERENCE_MHZ,
                       f"USER_CLK_SEL_LIST{stack}": f"AXI_{first:02}_ACLK",
                       "USER_AXI_CLK1_FREQ" if stack else "USER_AXI_CLK_FREQ": HBM_MHZ}
    properties |= {f"USER_SAXI_{channel:02}": str(channel in enabled).lower()
                   for channel in range(_PER_STACK * stacks)}
    return (f"read_verilog -quiet -sv {box_name(top)}.v\n"
            + _ip("hbm", f"{top}_hbm_ip", properties)
            + _ip("clk_wiz", f"{top}_hbm_clock", {
                "PRIM_IN_FREQ": f"{_REFERENCE_MHZ}.000", "PRIM_SOURCE": "No_buffer",
                "CLKOUT1_REQUESTED_OUT_FREQ": f"{HBM_MHZ}.000", "USE_RESET": "false",
                "USE_LOCKED": "true"}))


def hbm_readme(top: str, masters: Sequence[MemoryMaster]) -> str:
    """Return the README's section about the memory."""
    rows = "\n".join(f"| `{master.name}` | {master.width} | {master.channel} |"
                     for master in masters)
    return f"""
## HBM

The shell has no HBM. `{box_name(top)}.v` instantiates the vendor's IP beside the NIC, and
`build_box_250mhz.tcl` creates it, with a clock of {HBM_MHZ} MHz from `ref_clk_100mhz`. The NIC's
reset ends only when the memory is initialised. The shell drives the card's `hbm_cattrip` with 0,
so you get no warning when the HBM overheats.

| master | bits | pseudo-channel |
|---|---|---|
{rows}
"""


def _stacks(masters: Sequence[MemoryMaster]) -> int:
    return 1 + max(master.channel for master in masters) // _PER_STACK


def _enabled(masters: Sequence[MemoryMaster]) -> list[int]:
    """Return the enabled ports of the IP: a port for each master, and at least one per stack."""
    channels = {master.channel for master in masters}
    for stack in range(_stacks(masters)):
        if not any(channel // _PER_STACK == stack for channel in channels):
            channels.add(stack * _PER_STACK)
    return sorted(channels)


def _connections(channel: int, master: MemoryMaster | None) -> list[str]:
    """Return the connections of a port of the IP; the port is idle without a ``master``."""
    prefix = f"AXI_{channel:02}"
    connections = [f".{prefix}_ACLK(hbm_aclk)", f".{prefix}_ARESET_N(hbm_aresetn)",
                   f".{prefix}_WDATA_PARITY({HBM_WIDTH // 8}'d0)", f".{prefix}_RDATA_PARITY()"]
    members = axi_members("", HBM_WIDTH, address_bits=_ADDRESS_BITS, length_bits=HBM_LENGTH_BITS)
    for name, member in members.items():
        if master is not None:
            value = axi_name(master) + name
        else:
            value = f"{member.shape}'d0" if member.flow == Out else ""
        connections.append(f".{prefix}{name.upper()}({value})")
    return connections


def _ip(name: str, module: str, properties: dict[str, object]) -> str:
    values = "".join(f"    CONFIG.{key} {{{value}}} \\\n" for key, value in properties.items())
    return (f"create_ip -name {name} -vendor xilinx.com -library ip -module_name {module}\n"
            f"set_property -dict [list \\\n{values}] [get_ips {module}]\n")


def _range(width: int) -> str:
    return f"[{width - 1}:0] " if width > 1 else ""
