"""Vivado script that reports timing, placement and placed resources."""

from collections.abc import Mapping
from typing import Any

from gen.verilog.memories import XPM_DEFINE

__all__ = ["CLOCK_NS", "PART", "not_estimated", "ooc_name", "ooc_paragraph", "ooc_script"]

PART = "xcu280-fsvh2892-2L-e"
CLOCK_NS = 4.0
"""Period of the NIC's clock, 250 MHz."""

_DIES = ("SLR0", "SLR1", "SLR2")
_DIE = "SLR1"


def ooc_name(top: str) -> str:
    """Return the name of the script's file for module ``top``."""
    return f"{top}.vivado.tcl"


def ooc_script(top: str, clocks: Mapping[str, float], constraints: str | None = None,
               synthesis: str | None = None) -> str:
    """Return Tcl for Vivado (UG835, UG905) that implements ``top`` alone on one die of a U280.

    The script belongs beside ``<top>.v``. It synthesises out of context, places and routes inside a
    pblock of one super logic region, and reports timing, utilisation by pblock and by hierarchy,
    logic levels and congestion in the folder ``<top>.vivado``.

    Parameters
    ----------
    clocks: period in ns of each clock port.
    constraints: XDC file, relative to ``top``, that is read after synthesis.
    synthesis: XDC file that is read before synthesis.
    """
    lines = "".join(f"puts $clocks {{create_clock -name {name} -period {period:.3f} "
                    f"[get_ports {name}]}}\n" for name, period in clocks.items())
    read = f"read_xdc $here/{constraints}\n" if constraints else ""
    before = f"read_xdc $here/{synthesis}\n" if synthesis else ""
    dies = " ".join(_DIES)
    return f"""# Timing, placement and resources of {top} alone on one die of an Alveo U280.
# Run: vivado -mode batch -source {ooc_name(top)} [-tclargs DIE]
# DIE is one of {", ".join(_DIES)}; the default is {_DIE}. Reports are in {top}.vivado.
set here [file dirname [file normalize [info script]]]
set die {_DIE}
if {{[llength $argv]}} {{ set die [lindex $argv 0] }}
if {{[lsearch -exact {{{dies}}} $die] < 0}} {{
    puts stderr "error: DIE must be one of {", ".join(_DIES)}, not $die"
    exit 2
}}
set out $here/{top}.vivado
file mkdir $out
# Synthesis optimises for the clocks, so they are read first.
set clocks [open $out/clocks.xdc w]
{lines}close $clocks

create_project -in_memory -part {PART}
read_verilog -sv $here/{top}.v
read_xdc $out/clocks.xdc
{before}auto_detect_xpm
synth_design -top {top} -part {PART} -mode out_of_context -verilog_define {XPM_DEFINE}
{read}create_pblock pblock_nic
resize_pblock [get_pblocks pblock_nic] -add $die
add_cells_to_pblock [get_pblocks pblock_nic] -top
opt_design
place_design
phys_opt_design
route_design

write_checkpoint -force $out/{top}.dcp
report_timing_summary -max_paths 20 -report_unconstrained -file $out/timing.rpt
report_utilization -pblocks [get_pblocks pblock_nic] -file $out/utilization_pblock.rpt
report_utilization -hierarchical -file $out/utilization_hierarchy.rpt
report_design_analysis -timing -max_paths 100 -file $out/worst_paths.rpt
report_design_analysis -logic_level_distribution -logic_level_dist_paths 10000 \\
    -file $out/logic_levels.rpt
report_design_analysis -congestion -file $out/congestion.rpt
set worst [lindex [get_timing_paths -setup -max_paths 1] 0]
puts "{top} in $die: worst setup slack [get_property SLACK $worst] ns,\\
    [get_property LOGIC_LEVELS $worst] logic levels"
"""


def ooc_paragraph(top: str) -> str:
    """Return the README's paragraph about the script, in Markdown."""
    return f"""For timing, placement and placed resources of {top} alone on one die, run

```
vivado -mode batch -source {ooc_name(top)}       # reports are in {top}.vivado
```
"""


def not_estimated(top: str) -> dict[str, Any]:
    """Return the part of a resource report about properties that need Vivado, and the script for
    them."""
    return {"what": ["timing", "placement", "resources once placed"], "tool": "Vivado",
            "script": ooc_name(top)}
