"""The NIC in a shell: on the shell's clock, with the reset of domain ``sync``."""

from amaranth.hdl import ClockDomain, DomainRenamer, Module, ResetSignal, Value
from amaranth.lib import wiring

__all__ = ["place_nic"]


def place_nic(m: Module, nic: wiring.Component, clock: Value) -> None:
    """Add ``nic`` on ``clock``, which is that of domain ``sync``.

    A NIC with a port ``rst`` distributes its reset itself: its domain is one without reset, whose
    clock comes from ``clock`` as that of ``sync`` does, so that both rise at once in a simulation.
    """
    if "rst" not in nic.signature.members:
        m.submodules.nic = nic
        return
    m.domains.nic = domain = ClockDomain("nic", reset_less=True)
    m.d.comb += [domain.clk.eq(clock), nic.rst.eq(ResetSignal())]
    m.submodules.nic = DomainRenamer("nic")(nic)
