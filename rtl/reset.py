"""Reset: a pipelined tree, whose last registers each reset one block."""

from amaranth.hdl import Cat, Elaboratable, Fragment, Module, ResetInserter, Signal

__all__ = ["BLOCK_CYCLES", "QUIET_CYCLES", "ResetBranch", "reset_root"]

BLOCK_CYCLES = 2
"""Cycles from the end of the reset until a block is let go."""
QUIET_CYCLES = 4
"""Cycles from the end of the reset until a NIC takes its first input: so long a part of a block may
be held. The root, the block's register, and two of a part (see :class:`ResetBranch`) let go one
after the other."""


class ResetBranch(Elaboratable):
    """``block``, reset by a register of its own that follows ``reset`` a cycle later.

    The register and what it resets are on clock ``sync``. A reset of what is around the block does
    not reach into it, so branches may lie in each other: a block splits its own reset for a part
    with ``ResetBranch(part, reset)``, where ``reset = Signal(init=1)`` becomes 0 at every clock.
    Data registers are ``reset_less``, so that one register is enough for a block.

    Parameters: ``block``, any elaboratable; ``reset``, one bit, a register.
    """

    def __init__(self, block: Elaboratable, reset: Signal):
        self._block, self._reset = block, reset

    def elaborate(self, platform) -> Fragment:
        # Tools would merge equal registers, and one net would reset all blocks.
        leaf = Signal(init=1, reset_less=True, name="rst", attrs={"dont_touch": "true"})
        fragment = _OwnReset({"sync": leaf}).on_fragment(Fragment.get(self._block, platform))
        fragment.add_statements("sync", leaf.eq(self._reset))
        return fragment


class _OwnReset(ResetInserter):
    """Resets a fragment and all in it but the branches, which have their own."""

    def on_fragment(self, fragment: Fragment) -> Fragment:
        if any(isinstance(origin, ResetBranch) for origin in fragment.origins or ()):
            return fragment
        return super().on_fragment(fragment)


def reset_root(m: Module, reset: Signal) -> tuple[Signal, Signal]:
    """Return the root of the tree, a register that follows ``reset``, and ``quiet``: a register
    that is 1 from a cycle after the reset begins until every branch has let go."""
    root = Signal(init=1, reset_less=True, name="reset")
    quiet = Signal(init=1, reset_less=True)
    letting_go = Signal(QUIET_CYCLES - 2, init=-1, reset_less=True)
    m.d.sync += [root.eq(reset), letting_go.eq(Cat(root, letting_go)),
                 quiet.eq(reset | root | letting_go.any())]
    return root, quiet
