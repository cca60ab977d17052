"""Errors of a simulated NIC that violates its protocol with the host."""

__all__ = ["COUNT", "OPCODE", "ProtocolError"]

OPCODE = "sent opcode {:#x} to its host"
COUNT = "sent its host a packet of opcode {:#x} whose count does not fit its length"
"""Format of the message about a packet with a wrong count; its argument is the opcode."""


class ProtocolError(Exception):
    """The NIC sent something that it must never send."""
