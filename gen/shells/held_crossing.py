"""Clock crossing of data that are stable while a toggle crosses."""

from collections.abc import Sequence

from amaranth.hdl import Elaboratable, Module, Signal, Value

__all__ = ["HELD", "TAKEN", "HeldCrossing"]

HELD, TAKEN = "held_", "taken_"
"""Prefixes of the register names on both sides."""


class HeldCrossing(Elaboratable):
    """Registers ``taken`` in ``domain`` that sample registers of another clock.

    The registers on each side have fixed names, because :mod:`gen.shells.xdc` bounds the paths
    between them. Latency 1 cycle.

    Parameters
    ----------
    held: registers of the other clock, named ``held_<name>``. They must be stable from the cycle
        before their toggle until the answer.
    take: whether to sample, in ``domain``, after the toggle has crossed.
    domain: clock domain of ``taken``.

    Members: ``taken``, a register named ``taken_<name>`` for each of ``held``.

    Raises ``ValueError`` for a signal with another name.
    """

    def __init__(self, held: Sequence[Signal], take: Value, *, domain: str = "sync"):
        for signal in held:
            if not signal.name.startswith(HELD):
                raise ValueError(f"name of a held register must begin with {HELD}, "
                                 f"not {signal.name!r}")
        self.taken = tuple(Signal.like(signal, name=TAKEN + signal.name.removeprefix(HELD))
                           for signal in held)
        self._held, self._take, self._domain = tuple(held), take, domain

    def elaborate(self, platform) -> Module:
        m = Module()
        with m.If(self._take):
            for taken, held in zip(self.taken, self._held):
                m.d[self._domain] += taken.eq(held)
        return m
