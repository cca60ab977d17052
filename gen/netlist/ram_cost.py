"""Primitives of a memory in an UltraScale+ device, from its size and style."""

from typing import NamedTuple

__all__ = ["RamCost", "RamShape", "ram_cost", "ram_shape"]

_BRAM36 = ((512, 72), (1024, 36), (2048, 18), (4096, 9), (8192, 4), (16384, 2), (32768, 1))
_BRAM18 = ((512, 36), (1024, 18), (2048, 9), (4096, 4), (8192, 2), (16384, 1))
_URAM = (4096, 72)
# Simple dual-port LUTRAM: RAM32M16 and RAM64M8, in 8 LUTs each.
_LUTRAM = ((32, 14), (64, 7))
_LUTRAM_LUTS = 8
AUTO_LUTRAM_DEPTH = 64
"""Largest depth of an ``auto`` memory that is counted as LUTRAM; a deeper memory is block RAM."""


class RamCost(NamedTuple):
    """LUTs, 36-kbit block RAMs (an 18-kbit RAM counts half), UltraRAMs, and levels of read logic.
    """

    lut: int = 0
    bram36: float = 0
    uram: int = 0
    levels: int = 0


class RamShape(NamedTuple):
    """Primitives of a memory: ``stages`` in depth, of ``words`` words each, and ``columns`` in
    width.

    ``kind`` is "lutram", "bram36", "bram18" or "uram".
    """

    kind: str
    words: int
    stages: int
    columns: int


def ram_shape(width: int, depth: int, style: str) -> RamShape:
    """Return the primitives of a memory that :func:`ram_cost` counts.

    Among block RAM shapes of equal cost, it prefers the fewest stages, and then the widest
    primitive.
    """
    if style == "ultra":
        return _shape("uram", width, depth, _URAM)
    if style == "block" or (style == "auto" and depth > AUTO_LUTRAM_DEPTH):
        shapes = [*(_shape("bram36", width, depth, shape) for shape in _BRAM36),
                  *(_shape("bram18", width, depth, shape) for shape in _BRAM18)]
        return min(shapes, key=lambda shape: (_blocks(shape), shape.stages))
    return _shape("lutram", width, depth, _LUTRAM[0] if depth <= _LUTRAM[0][0] else _LUTRAM[1])


def ram_cost(width: int, depth: int, style: str) -> RamCost:
    """Return the cost of a simple dual-port memory of ``depth`` words of ``width`` bits.

    ``style`` is Vivado's: ``distributed``, ``block``, ``ultra`` or ``auto``. UltraRAM and block RAM
    cascade in depth without logic. LUTRAM above 64 words requires LUTs to select a word.
    """
    shape = ram_shape(width, depth, style)
    if shape.kind == "uram":
        return RamCost(uram=shape.stages * shape.columns)
    if shape.kind != "lutram":
        return RamCost(bram36=_blocks(shape))
    # A LUT6 selects one of four inputs; the LUTs form a tree.
    levels, left, muxes = 1, shape.stages, 0
    while left > 1:
        left = -(-left // 4)
        muxes += left * width
        levels += 1
    return RamCost(lut=shape.columns * _LUTRAM_LUTS * shape.stages + muxes, levels=levels)


def _shape(kind: str, width: int, depth: int, primitive: tuple[int, int]) -> RamShape:
    return RamShape(kind, primitive[0], -(-depth // primitive[0]), -(-width // primitive[1]))


def _blocks(shape: RamShape) -> float:
    pieces = shape.stages * shape.columns
    return pieces if shape.kind == "bram36" else pieces / 2
