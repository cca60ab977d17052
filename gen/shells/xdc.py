"""Timing constraints of a shell wrapper's clock crossings."""

from collections.abc import Sequence

from gen.verilog import Verilog

__all__ = ["crossings_xdc"]


def crossings_xdc(verilog: Verilog, period_ns: float,
                  between: Sequence[tuple[str, str, float]] = ()) -> str:
    """Return XDC for all crossings of ``verilog``, to be read scoped to its top (``-ref``).

    Toggles and levels cross through synchronizers, modules whose registers are ``crossed0``,
    ``crossed1``, ...: paths to the first are not timed. Data held while a toggle crosses go from
    ``held_*`` to ``taken_*`` registers of one module; these paths may take ``period_ns``, the
    shorter of both clocks' periods, since the toggle takes at least that long.

    ``between`` lists pairs of clock ports of the top with the shorter of their periods: every path
    between the two clocks may take that long. Counters in Gray code cross like this: none of their
    bits may be a cycle later than the others. Raises ``ValueError`` for an unconstrained crossing.
    """
    lines = [f"# Clock crossings of {verilog.name}. Read with: read_xdc -ref {verilog.name} FILE"]
    for path, registers, wide in sorted(_registers(verilog), key=lambda found: found[0]):
        if "crossed0" in registers and wide:
            if not between:
                raise ValueError(f"{path} must cross between clocks whose paths are bounded")
        elif "crossed0" in registers:
            lines.append(f"set_false_path -to [get_cells {{{path}/crossed0_reg}}]")
        if any(name.startswith("taken_") for name in registers):
            for side in ("held", "taken"):
                if not any(name.startswith(f"{side}_") for name in registers):
                    raise ValueError(f"{path} must have {side}_ registers for what crosses")
            lines.append(
                f"set_max_delay -datapath_only -from [get_cells {{{path}/held_*_reg*}}] "
                f"-to [get_cells {{{path}/taken_*_reg*}}] {period_ns:.3f}")
    for pair in between:
        for source, target in (pair[:2], pair[1::-1]):
            lines.append(
                f"set_max_delay -datapath_only "
                f"-from [get_clocks -of_objects [get_ports {source}]] "
                f"-to [get_clocks -of_objects [get_ports {target}]] {pair[2]:.3f}")
    return "\n".join(lines) + "\n"


def _registers(verilog: Verilog):
    """Yield the path of each instance from the top, its registers, and whether it has ports wider
    than one bit."""
    for path, name in verilog.instances():
        module = verilog.modules[name]
        yield "/".join(path), set(module.registers), any(port.width > 1 for port in module.ports)
