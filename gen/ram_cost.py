"""Primitives of a memory in an UltraScale+ device, from its size and style."""

from typing import NamedTuple

__all__ = ["RamCost", "ram_cost"]

_BRAM36 = ((512, 72), (1024, 36), (2048, 18), (4096, 9), (8192, 4), (16384, 2), (32768, 1))
_BRAM18 = ((512, 36), (1024, 18), (2048, 9), (4096, 4), (8192, 2), (16384, 1))
_URAM = (4096, 72)
# Simple dual-port LUTRAM: RAM32M16 holds 32 x 14 bits, RAM64M8 64 x 7, in 8 LUTs each.
_LUTRAM_LUTS = 8
AUTO_LUTRAM_DEPTH = 64
"""Deepest memory of style ``auto`` that is counted as LUTRAM; a deeper one is block RAM."""


class RamCost(NamedTuple):
    """LUTs, 36-kbit block RAMs (18-kbit ones count half), UltraRAMs, and levels of read logic."""

    lut: int = 0
    bram36: float = 0
    uram: int = 0
    levels: int = 0


def ram_cost(width: int, depth: int, style: str) -> RamCost:
    """Return the cost of a simple dual-port memory of ``depth`` words of ``width`` bits.

    ``style`` is Vivado's: ``distributed``, ``block``, ``ultra`` or ``auto``. UltraRAM and block
    RAM cascade in depth by themselves; LUTRAM above 64 words needs LUTs to select.
    """
    if style == "ultra":
        return RamCost(uram=_pieces(width, depth, _URAM))
    if style == "block" or (style == "auto" and depth > AUTO_LUTRAM_DEPTH):
        whole = min(_pieces(width, depth, shape) for shape in _BRAM36)
        halves = min(_pieces(width, depth, shape) for shape in _BRAM18)
        return RamCost(bram36=min(whole, halves / 2))
    per_word = 14 if depth <= 32 else 7
    banks = -(-depth // 64)
    # A LUT6 selects one of four; the levels are those of their tree.
    levels, left, muxes = 1, banks, 0
    while left > 1:
        left = -(-left // 4)
        muxes += left * width
        levels += 1
    return RamCost(lut=-(-width // per_word) * _LUTRAM_LUTS * banks + muxes, levels=levels)


def _pieces(width: int, depth: int, shape: tuple[int, int]) -> int:
    return -(-depth // shape[0]) * -(-width // shape[1])
