"""Edges of a SmartNIC: guards of packets that a reset cuts, and its state for the shell."""

from collections.abc import Sequence
from types import SimpleNamespace

from amaranth.hdl import Cat, Module, Signal, ValueLike
from amaranth.lib import wiring

from rtl.network import HeadGuard, TailGuard
from rtl.reset import ResetBranch

__all__ = ["guard_edges", "report_state"]

_FOREIGN = ("net_receiver", "csr_block")
"""Blocks that move with foreign traffic or register accesses; ``working`` ignores their ``idle``.
"""


def guard_edges(m: Module, nic: wiring.Component, blocks: SimpleNamespace,
                quiet: Signal) -> dict[str, HeadGuard | TailGuard]:
    """Add a guard to each edge of ``nic`` where a reset may cut a packet; return them by edge.

    ``net_rx`` has no guard: the CRC rejects and counts the rest of a packet. A whole packet of a
    peer that was also reset passes.
    """
    head = HeadGuard()
    guards: dict[str, HeadGuard | TailGuard] = {"host_rx": head}
    wiring.connect(m, wiring.flipped(nic.host_rx), head.i)
    m.d.comb += blocks.host_receiver.cut.eq(head.cut)
    for edge, assembler in (("net_tx", blocks.net_assembler), ("host_tx", blocks.host_assembler)):
        guards[edge] = tail = TailGuard()
        wiring.connect(m, tail.o, wiring.flipped(getattr(nic, edge)))
        m.d.comb += [tail.i_bytes.eq(assembler.bytes),
                     getattr(nic, f"{edge}_bytes").eq(tail.o_bytes)]
    for edge, guard in guards.items():
        m.submodules[f"{edge}_guard"] = guard
        m.d.comb += guard.hold.eq(quiet)
    return guards


def report_state(m: Module, nic: wiring.Component, parts: dict, branches: Sequence[ResetBranch],
                 quiet: Signal, due: ValueLike) -> None:
    """Drive ``swept``, ``working`` and ``idle`` of ``nic`` from its ``parts`` and ``branches``.

    ``due``: a deadline of the link has passed.
    """
    own = Cat(nic.host_rx.valid, due).any()
    moves = Cat(own, nic.net_rx.valid, nic.csr.awvalid, nic.csr.wvalid, nic.csr.arvalid).any()
    # Blocks report a cycle late. If all were idle in a cycle without a moving input, only an input
    # of the next cycle can have started new work.
    still = Signal(len(parts), reset_less=True)
    settled, moved, own_moved = (Signal(reset_less=True, name=name)
                                 for name in ("settled", "moved", "own_moved"))
    idle, working, swept = (Signal(reset_less=True, name=name)
                            for name in ("idle", "working", "swept"))
    own_parts = Cat(still[k] for k, name in enumerate(parts) if name not in _FOREIGN)
    m.d.sync += [
        still.eq(Cat(part.idle for part in parts.values())),
        settled.eq(parts["net_receiver"].settled), moved.eq(moves), own_moved.eq(own),
        idle.eq(still.all() & ~moved & ~moves & ~quiet),
        working.eq(~(own_parts.all() & settled & ~own_moved & ~own & swept) | quiet),
        swept.eq((swept | Cat(branch.swept for branch in branches).all()) & ~quiet),
    ]
    m.d.comb += [nic.idle.eq(idle), nic.working.eq(working), nic.swept.eq(swept)]
