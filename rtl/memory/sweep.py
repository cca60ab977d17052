"""Sweep: clears a small memory, address by address, after reset."""

from amaranth.hdl import Module, Signal, ValueLike

__all__ = ["SWEPT", "report_swept", "sweep"]

SWEPT = "swept"
"""Attribute of the registers of :func:`report_swept`, by which :class:`rtl.reset.ResetBranch` finds
them."""


def sweep(m: Module, depth: int) -> tuple[Signal, Signal]:
    """Count through ``depth`` addresses after reset; return (address, whether all are done)."""
    address, swept = Signal(range(max(2, depth))), Signal()
    with m.If(~swept):
        m.d.sync += [address.eq(address + 1), swept.eq(address == depth - 1)]
    report_swept(m, swept)
    return address, swept


def report_swept(m: Module, swept: ValueLike) -> None:
    """Report ``swept``, whether a sweep after reset is over, to the top of the design.

    Every block that sweeps by a counter of its own calls this function.
    """
    told = Signal(attrs={SWEPT: 1})
    m.d.sync += told.eq(swept)
