"""Packets on the wire: constants, byte order and sizes, for both directions."""

from amaranth.hdl import C, Cat, Mux, Value
from amaranth.lib import data

from rtl.config import NicConfig
from rtl.formats import HeaderBeat
from rtl.network.sums import carry_saved

__all__ = [
    "DONT_FRAGMENT", "IP_LENGTH", "IP_TTL", "IP_VERSION_IHL", "UDP_LENGTH", "address",
    "covered", "edge_of", "header", "is_address", "longest_payload", "swap_bytes",
]

IP_VERSION_IHL = 0x45
IP_TTL = 64
DONT_FRAGMENT = 0x4000
IP_LENGTH = 20 + 8 + 22
"""IPv4 total length of a packet without payload; each payload beat adds 64."""
UDP_LENGTH = 8 + 22
"""UDP length of a packet without payload."""

_COVERED = ("ip_source", "ip_destination", "ember")


def edge_of(framing: object) -> str:
    """Return the edge of the NIC, ``network`` or ``host``, for packets of ``framing``.

    Raise unless ``framing`` is ``ethernet``, ``udp`` or ``host``.
    """
    if not isinstance(framing, str):
        raise TypeError(f"framing must be a string, not {framing!r}")
    if framing not in ("ethernet", "udp", "host"):
        raise ValueError(f"framing must be ethernet, udp or host, not {framing!r}")
    return "host" if framing == "host" else "network"


def longest_payload(config: NicConfig, edge: str) -> int:
    """Return the payload beats of the longest packet at ``edge``, ``network`` or ``host``."""
    return config.net_payload_beats if edge == "network" else config.host_payload_beats


def swap_bytes(value) -> Value:
    """Return ``value`` with its bytes reversed: from a number to wire order, or back."""
    value = Value.cast(value)
    return Value.cast(Cat(*(value[k:k + 8] for k in reversed(range(0, len(value), 8)))))


def address(base, node, bits: int) -> Value:
    """Return the MAC or IP address of a node: the base address of the cluster plus the node's
    number."""
    return (base + node)[:bits]


def is_address(value, base, node) -> Value:
    """Return whether ``value`` equals :func:`address` of ``base`` and ``node``, without a carry
    chain.

    Each compared bit depends on two bits of each of the three operands.
    """
    value, bits = Value.cast(value), len(value)
    # base + node - value = 0 if base + node + ~value = -1: every bit of one part is the inverse of
    # the other part's bit.
    ones, twos = carry_saved(base, Cat(node, C(0, bits))[:bits], ~value)
    return (ones ^ Cat(C(0, 1), twos)[:bits]).all()


def covered(beat, first) -> Value:
    """Return the part of a beat that the CRC-32C covers; of the header beat, only IP addresses and
    EmberNIC header."""
    beat, mask = Value.cast(beat), 0
    for name in _COVERED:
        field = HeaderBeat[name]
        mask |= ((1 << field.width) - 1) << field.offset
    ember = HeaderBeat["ember"]
    crc = ember.shape["crc"]
    mask &= ~(((1 << crc.width) - 1) << (ember.offset + crc.offset))
    return beat & (Mux(first, mask, (1 << len(beat)) - 1))


def header(beat) -> data.View:
    """Return the first beat of a packet as :data:`rtl.formats.HeaderBeat`."""
    return data.View(HeaderBeat, Value.cast(beat))
