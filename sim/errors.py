"""What a simulated NIC must never do."""

__all__ = ["ProtocolError"]


class ProtocolError(Exception):
    """The NIC sent something that it must never send."""
