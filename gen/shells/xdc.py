"""Constraints of a shell wrapper: one for every crossing that the design has."""

from gen.verilog import Verilog

__all__ = ["crossings_xdc"]


def crossings_xdc(verilog: Verilog, period_ns: float) -> str:
    """Return XDC for the crossings of ``verilog``, to be read scoped to its top (``-ref``).

    Toggles and levels cross through synchronizers, modules whose registers are ``crossed0``,
    ``crossed1``, ...: no path to the first is timed. What is held while a toggle crosses goes from
    ``held_*`` to ``taken_*`` registers of one module: it may take ``period_ns``, the shorter of
    both clocks' periods, since the toggle takes at least that long.
    """
    lines = [f"# Clock crossings of {verilog.name}. Read with: read_xdc -ref {verilog.name} FILE"]
    for path, registers in sorted(_registers(verilog)):
        if "crossed0" in registers:
            lines.append(f"set_false_path -to [get_cells {{{path}/crossed0_reg}}]")
        if any(name.startswith("taken_") for name in registers):
            for side in ("held", "taken"):
                if not any(name.startswith(f"{side}_") for name in registers):
                    raise ValueError(f"{path} must have {side}_ registers for what crosses")
            lines.append(
                f"set_max_delay -datapath_only -from [get_cells {{{path}/held_*_reg*}}] "
                f"-to [get_cells {{{path}/taken_*_reg*}}] {period_ns:.3f}")
    return "\n".join(lines) + "\n"


def _registers(verilog: Verilog):
    """Yield the path of each instance from the top, and its registers."""
    for path, module in verilog.instances():
        yield "/".join(path), set(verilog.modules[module].registers)
