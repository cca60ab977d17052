"""Sweep: clears a small memory, address by address, after reset."""

from amaranth.hdl import Module, Signal, ValueLike

__all__ = ["SWEPT", "report_swept", "sweep"]

SWEPT = "swept"
"""Attribute of the registers of :func:`report_swept`; :class:`rtl.reset.ResetBranch` finds them by
it."""


def sweep(m: Module, depth: int) -> tuple[Signal, Signal]:
    """Count through ``depth`` addresses after reset; return the address, and whether the sweep is
    over."""
    address, swept = Signal(range(max(2, depth))), Signal()
    with m.If(~swept):
        m.d.sync += [address.eq(address + 1), swept.eq(address == depth - 1)]
    report_swept(m, swept)
    return address, swept


def report_swept(m: Module, swept: ValueLike) -> None:
    """Report ``swept``, the end of a sweep after reset, to the top of the design.

    Every block that sweeps with its own counter calls this function.
    """
    told = Signal(attrs={SWEPT: 1})
    m.d.sync += told.eq(swept)
