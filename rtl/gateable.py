"""The mark of blocks that may stand still while they are idle.

The mark changes nothing of the hardware: Verilog is the same with and without it. A compiled model
gives such a block a clock of its own, which stands while nothing moves in the block
(:mod:`sim.engines.gating`).
"""

__all__ = ["LINGER", "Gateable"]

LINGER = 31
"""Cycles that the clock of such a block ticks on after the last of what moves it."""


class Gateable:
    """Base of a component, besides ``wiring.Component``, that may do without its clock while idle.

    What such a block promises:

    - Its port ``idle`` is high only while nothing in it moves until an input does, but for what is
      in its pipelines, valid or not, and is through them in :data:`LINGER` cycles.
    - It is moved by the ``valid`` of a stream, or by another input. That one is not high for
      longer than :data:`LINGER` cycles, moving something, without changing.
    - Neither ``time``, nor the payload of a stream that is not valid, nor an input of more than 64
      bits moves anything.
    """
