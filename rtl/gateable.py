"""Mark of blocks whose clock may stop while they are idle.

The mark does not change the Verilog. A compiled model gives each marked block its own clock, which
stops while nothing moves in the block (:mod:`sim.engines.gating`).
"""

__all__ = ["LINGER", "Gateable"]

LINGER = 31
"""Cycles that the clock of a marked block continues after the last input that moves it."""


class Gateable:
    """Base of a component, beside ``wiring.Component``, whose clock may stop while it is idle.

    Contract of the block:

    - Its port ``idle`` is high only while nothing in it moves until an input does, except for the
      contents of its pipelines, valid or not, which leave within :data:`LINGER` cycles.
    - Only the ``valid`` of a stream, or another input, moves it. Such an input is not high, moving
      something, for more than :data:`LINGER` cycles without a change.
    - ``time``, the payload of a stream that is not valid, and inputs of more than 64 bits move
      nothing.
    """
