"""NIC in a shell: its clock and reset domains."""

from typing import Any

from amaranth.hdl import ClockDomain, DomainRenamer, Elaboratable, Module, ResetSignal, Value
from amaranth.lib import wiring

__all__ = ["place_nic", "without_reset"]

_DOMAIN = "nic"


def place_nic(m: Module, nic: wiring.Component, clock: Value) -> None:
    """Add ``nic`` on ``clock``, the clock of domain ``sync``, and a domain without reset.

    A NIC with a port ``rst`` distributes its reset itself and is in the domain without reset. Both
    domains derive from ``clock`` in the same way, so they rise at the same time in a simulation.
    """
    m.domains.nic = domain = ClockDomain(_DOMAIN, reset_less=True)
    m.d.comb += domain.clk.eq(clock)
    if "rst" not in nic.signature.members:
        m.submodules.nic = nic
        return
    m.d.comb += nic.rst.eq(ResetSignal())
    m.submodules.nic = without_reset(nic)


def without_reset(block: Elaboratable) -> Any:
    """Return ``block`` in the domain without reset: it keeps its contents through a reset."""
    return DomainRenamer(_DOMAIN)(block)
