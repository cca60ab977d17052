"""Run scripts for Vivado in tclsh, recording the vendor's commands."""

import subprocess
from pathlib import Path

_VENDOR = """add_cells_to_pblock auto_detect_xpm close_project create_pblock create_project
    current_fileset get_cells get_pblocks get_ports get_property get_timing_paths
    ipx::associate_bus_interfaces ipx::check_integrity ipx::current_core
    ipx::get_user_parameters ipx::package_project ipx::remove_user_parameter ipx::save_core
    ipx::update_checksums opt_design package_xo phys_opt_design place_design read_verilog
    read_xdc report_design_analysis report_timing_summary report_utilization resize_pblock
    route_design set_property synth_design update_compile_order write_checkpoint"""
_STUBS = "namespace eval ipx {}\n" + "".join(
    f"proc {name} args {{ puts [list {name} {{*}}$args]; return [list <{name}>] }}\n"
    for name in _VENDOR.split())


def run_tcl(script: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ``script``; standard output has a line for each call of a vendor's command.

    A vendor's command returns its name in angle brackets. ``folder`` gets a file that sources
    ``script``.
    """
    (folder / "run.tcl").write_text(f"{_STUBS}source {{{script}}}\n")
    return subprocess.run(["tclsh", str(folder / "run.tcl"), *arguments], cwd=script.parent,
                          capture_output=True, text=True)
