"""A policy as a function from a state to the next."""

from collections.abc import Callable
from typing import NamedTuple

from amaranth.hdl import Cat, Module, Signal
from amaranth.sim import Simulator

from rtl.cache.policies import Policy

__all__ = ["Step", "stepped"]


class Step(NamedTuple):
    """The victim of a state; the next state by ``update``, and by its default."""

    victim: int
    after: int
    composed: int


def stepped(policy: Policy, script: Callable) -> None:
    """Call ``script`` with the logic of ``policy``, a function that returns a :class:`Step`.

    Its arguments are ``state``, and the bits of the ``valid`` ways, of the way that is ``hit``, of
    the way ``inserted``, and of ``distant``.
    """
    m = Module()
    state, valid = Signal(policy.bits), Signal(policy.ways)
    hit, inserted, distant = Signal(policy.ways), Signal(policy.ways), Signal()
    victim, after, composed = (Signal(n) for n in (policy.ways, policy.bits, policy.bits))
    m.d.comb += [
        victim.eq(policy.victim(m, state, valid)),
        after.eq(policy.update(m, state, hit, inserted, distant)),
        composed.eq(Policy.update(policy, m, state, hit, inserted, distant))]

    ways, bits = policy.ways, policy.bits
    inputs, outputs = Cat(distant, hit, inserted, valid, state), Cat(victim, after, composed)

    async def bench(ctx):
        def step(state: int, valid: int, *, hit: int = 0, inserted: int = 0,
                 distant: int = 0) -> Step:
            # All inputs at once, because the simulator settles after each change.
            ctx.set(inputs, distant | (hit | (inserted | (valid | state << ways) << ways) << ways)
                    << 1)
            found = ctx.get(outputs)
            return Step(found & (1 << ways) - 1, found >> ways & (1 << bits) - 1,
                        found >> ways + bits)

        script(step)

    sim = Simulator(m)
    sim.add_testbench(bench)
    sim.run()
