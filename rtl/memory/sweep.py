"""Sweep: clears a small memory, address by address, after reset."""

from amaranth.hdl import Module, Signal

__all__ = ["sweep"]


def sweep(m: Module, depth: int) -> tuple[Signal, Signal]:
    """Count through ``depth`` addresses after reset; return (address, whether all are done)."""
    address, swept = Signal(range(max(2, depth))), Signal()
    with m.If(~swept):
        m.d.sync += [address.eq(address + 1), swept.eq(address == depth - 1)]
    return address, swept
