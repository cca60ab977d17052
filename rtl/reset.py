"""Reset: a pipelined tree, whose last registers each reset a part of one block."""

from amaranth.hdl import Cat, Elaboratable, Fragment, Module, ResetInserter, ResetSignal, Signal

from rtl.memory import SWEPT
from rtl.monitor.counters import check_counters

__all__ = ["LEAVES", "LOADS", "QUIET_CYCLES", "ResetBranch", "reset_root"]

LOADS = 512
"""Bits that a register of the tree resets, unless a module has more."""
LEAVES = 32
"""Most reset registers of a block."""
QUIET_CYCLES = 2
"""Cycles from the end of the reset until blocks start, and a NIC accepts its first input."""


class ResetBranch(Elaboratable):
    """``block``, reset by registers of its own that follow ``resets`` a cycle later.

    The registers and the block use clock ``sync``. Modules of the block share the registers in
    their order, about :data:`LOADS` bits each; data registers are ``reset_less``. A shared unit
    with a reset (:class:`rtl.shared.Shared`) has its own register while registers remain.

    Parameters: ``block``, any elaboratable; ``resets``, the root of :func:`reset_root`.

    Members: ``swept``, a register: every sweep in the block is over
    (:func:`rtl.memory.report_swept`). It is 0 from three cycles after the begin of the reset, and
    always 1 for a block without a sweep.
    """

    def __init__(self, block: Elaboratable, resets: Signal):
        self._block, self._resets = block, resets
        self.swept = Signal()

    def elaborate(self, platform) -> Fragment:
        inserter, fragment = _Leaves(), Fragment.get(self._block, platform)
        check_counters(fragment)
        fragment = inserter.on_fragment(fragment)
        for leaf, reset in zip(inserter.leaves, self._resets, strict=False):
            fragment.add_statements("sync", leaf.eq(reset))
        if inserter.sweeps:
            # The registers of the sweeps and this register are reset together.
            fragment.add_statements(
                "sync", self.swept.eq(Cat(inserter.sweeps).all() & ~inserter.leaves[0]))
        else:
            fragment.add_statements("comb", self.swept.eq(1))
        return fragment


class _Leaves(ResetInserter):
    """Reset each module in a fragment by one of ``leaves``.

    sweeps: registers in the fragment that report the end of a sweep.
    """

    def __init__(self):
        super().__init__({"sync": Signal()})
        self.leaves: list[Signal] = []
        self.sweeps: list[Signal] = []
        self._bits = 0

    def _insert_control(self, fragment, domain, lhs_masks) -> None:
        self.sweeps += [signal for signal, _mask in lhs_masks.masks() if SWEPT in signal.attrs]
        bits = sum(mask.bit_count() for signal, mask in lhs_masks.masks() if not signal.reset_less)
        if not bits:
            return
        self.controls = {domain: self._leaf(bits)}
        super()._insert_control(fragment, domain, lhs_masks)

    def map_ports(self, fragment, new_fragment) -> None:
        # An instance: the number of its reset bits is unknown here.
        super().map_ports(fragment, new_fragment)
        for name, (value, direction) in fragment.ports.items():
            if isinstance(value, ResetSignal) and value.domain == "sync":
                new_fragment.ports[name] = self._leaf(LOADS), direction

    def _leaf(self, bits: int) -> Signal:
        """Return the register that resets the next ``bits``."""
        if not self.leaves or (self._bits + bits > LOADS and len(self.leaves) < LEAVES):
            # Without dont_touch, tools would merge equal registers into one net.
            self.leaves.append(Signal(init=1, reset_less=True, name=f"rst{len(self.leaves)}",
                                      attrs={"dont_touch": "true"}))
            self._bits = 0
        self._bits += bits
        return self.leaves[-1]


def reset_root(m: Module, reset: Signal) -> tuple[Signal, Signal]:
    """Return the root of the tree and ``quiet``.

    The root has one register for each leaf of a block, which follows ``reset``. ``quiet`` is a
    register that is 1 from a cycle after the begin of the reset until every block starts.
    """
    root = Signal(LEAVES, init=-1, reset_less=True, name="reset", attrs={"dont_touch": "true"})
    quiet = Signal(init=1, reset_less=True)
    m.d.sync += [root.eq(reset.replicate(LEAVES)), quiet.eq(reset | root[0])]
    return root, quiet
