"""What a simulated NIC must never do."""

__all__ = ["COUNT", "OPCODE", "ProtocolError"]

OPCODE = "sent opcode {:#x} to its host"
COUNT = "sent its host a packet of opcode {:#x} whose count does not fit its length"
"""What a node did, for its opcode."""


class ProtocolError(Exception):
    """The NIC sent something that it must never send."""
