"""Verilog of the owned memories: behavioural, or the vendor's macro if ``EMBER_XPM`` is defined.

``ember_ram.v``, ``ember_ram_async.v`` (latency 0) and ``ember_ram_piped.v`` (latency 2 and 3)
behave the same with and without the define. Simulators do not define it. Without it, Vivado infers
the cells that ``ram_style`` selects. With it, Vivado uses ``xpm_memory_sdpram`` without inference
(UG974); a simulator then needs :data:`XPM_TWIN`.
"""

from pathlib import Path

__all__ = ["XPM_DEFINE", "XPM_TWIN", "memory_text"]

XPM_DEFINE = "EMBER_XPM"
"""Define that selects ``xpm_memory_sdpram``; in Vivado's Tcl: ``set_property verilog_define
EMBER_XPM [current_fileset]``, or ``-verilog_define`` of ``synth_design``."""

XPM_TWIN = Path(__file__).parent / "xpm_memory_sdpram.v"
"""Behavioural ``xpm_memory_sdpram``, for file lists of simulations only."""

_RANDOMIZE = "ember_randomize.vh"


def memory_text(module: str) -> str:
    """Return the Verilog of the owned memory ``module`` with its includes expanded."""
    folder = Path(__file__).parent
    text = (folder / f"{module}.v").read_text(encoding="utf-8")
    randomize = (folder / _RANDOMIZE).read_text(encoding="utf-8")
    return text.replace(f'`include "{_RANDOMIZE}"\n', randomize)
