"""Files of the folder for OpenNIC's ``build.tcl -user_plugin``."""

from collections.abc import Mapping
from typing import Any

from gen.shells.opennic import OpenNicPlugin, OpenNicPorts
from gen.shells.opennic_hbm import HBM_MHZ, box_name, hbm_box, hbm_readme, hbm_tcl
from gen.shells.timing_xdc import constraints_readme, dies_xdc, fan_out_xdc
from gen.shells.vivado import for_vivado
from gen.shells.vivado_ooc import CLOCK_NS, ooc_name, ooc_paragraph, ooc_script
from gen.shells.xdc import crossings_xdc
from gen.verilog.convert import Verilog
from rtl.config import NicConfig
from rtl.formats import BEAT_BYTES

__all__ = ["opennic_files"]

_BOX = "box_250mhz"


def opennic_files(config: NicConfig, plugin: OpenNicPlugin, verilog: Verilog,
                  timing: Mapping[str, Any] | None = None) -> dict[str, str]:
    """Return the text of each file of the plugin, by its path in the folder.

    The folder has no box at 322 MHz, so the shell uses its own, which forwards packets.

    Parameters
    ----------
    config: configuration of the NIC.
    plugin: top of the plugin.
    verilog: Verilog of ``plugin``.
    timing: timing report of its NIC (:mod:`gen.timing.report`), the source of constraints, or None.
    """
    top, ports, masters = verilog.name, plugin.ports, plugin.masters
    longest = BEAT_BYTES * (1 + max(config.net_payload_beats, config.host_payload_beats))
    clocks = {"axis_aclk": CLOCK_NS, "axil_aclk": 2 * CLOCK_NS} | (
        {"hbm_aclk": 1000 / HBM_MHZ} if masters else {})
    between = [("axis_aclk", "hbm_aclk", 1000 / HBM_MHZ)] if masters else []
    constraints = {} if timing is None else {
        f"{top}.fanout.xdc": fan_out_xdc(top, timing), f"{top}.slr.xdc": dies_xdc(top, timing)}
    read = "".join(f"read_xdc -ref {top} {name}\n" for name in constraints)
    return {
        f"{top}.v": for_vivado(verilog),
        **({f"{box_name(top)}.v": hbm_box(verilog, masters)} if masters else {}),
        f"{top}.xdc": crossings_xdc(verilog, CLOCK_NS, between),
        **constraints,
        ooc_name(top): ooc_script(top, clocks, f"{top}.xdc",
                                  None if timing is None else f"{top}.fanout.xdc"),
        "build_box_250mhz.tcl": (
            f"# The shell's build.tcl reads this script in this folder.\n"
            f"read_verilog -quiet -sv {top}.v\n"
            f"read_xdc -ref {top} {top}.xdc\n"
            f"{read}"
            f"{hbm_tcl(top, masters) if masters else ''}"),
        f"{_BOX}/{_BOX}_axi_crossbar.tcl":
            "# The plugin uses the whole window, so the box has no crossbar.\n",
        f"{_BOX}/{_BOX}_address_map.v": _address_map(top),
        f"{_BOX}/{_BOX}_address_map_inst.vh":
            f"// {top} uses the whole window of the box and decodes addresses itself.\n",
        f"{_BOX}/user_plugin_250mhz_inst.vh": _instance(top, ports, plugin, longest),
        "README.md": _readme(config, top, ports, longest) + (
            hbm_readme(top, masters) if masters else "") + (
            constraints_readme(constraints) if constraints else ""),
    }


def _address_map(top: str) -> str:
    return (f"// Address map of {top} in the 250 MHz box, 0x100000 to 0x1FFFFF of BAR2:\n"
            "//   0x00000 to 0x0FFFF   registers of the SmartNIC\n"
            "//   0x10000 to 0xFFFFF   unused, answered with SLVERR\n")


def _instance(top: str, ports: OpenNicPorts, plugin: OpenNicPlugin, longest: int) -> str:
    checks = "".join(
        f'  if ({name} != {value})\n'
        f'    $fatal(1, "{top} is made for {name} = {value}, not %0d", {name});\n'
        for name, value in (("NUM_PHYS_FUNC", ports.functions), ("NUM_QDMA", ports.qdma),
                            ("NUM_CMAC_PORT", ports.macs), ("USE_PHYS_FUNC", 1)))
    own = {"mod_rstn": "mod_rstn[0]", "mod_rst_done": "mod_rst_done[0]"}
    module, names = top, list(plugin.signature.members)
    if plugin.masters:
        module = box_name(top)
        names = [name for name in names if not name.startswith(("m_axi_", "hbm_"))]
        names.append("ref_clk_100mhz")
    connections = ",\n".join(f"  .{name}({own.get(name, name)})" for name in names)
    return (f"initial begin\n{checks}"
            f'  if (MAX_PKT_LEN < {longest})\n'
            f'    $fatal(1, "{top} needs -max_pkt_len {longest}, not %0d", MAX_PKT_LEN);\nend\n\n'
            "// Unused reset pairs are always done.\n"
            "assign mod_rst_done[15:1] = {15{1'b1}};\n\n"
            f"{module} {top}_inst (\n{connections}\n);\n")


def _readme(config: NicConfig, top: str, ports: OpenNicPorts, longest: int) -> str:
    frame = BEAT_BYTES * (1 + config.net_payload_beats)
    return f"""# {top}: EmberNIC for OpenNIC on the Alveo U280

Run the shell's own script in its folder `script`:

```
vivado -mode batch -source build.tcl -tclargs -board au280 -user_plugin PATH_TO_THIS_FOLDER \\
    -num_phys_func {ports.functions} -num_qdma {ports.qdma} -num_cmac_port {ports.macs} \\
    -max_pkt_len {longest}
```

`-max_pkt_len` is the longest packet that the NIC sends or receives: the larger of
`host_payload_beats` and `net_payload_beats`, plus a header beat. The box at 322 MHz is the shell's.

The NIC's registers begin at 0x100000 of BAR2. After a reset the NIC sweeps its tables; then the
shell's reset-done bit of user block 0 is 1. Host packets use function 0 of QDMA 0. Network packets
use MAC port 0, as frames of at most {frame:,} bytes without FCS.

{ooc_paragraph(top)}"""
