"""The register map as data, for hardware, documents and the driver of the simulator."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from zlib import crc32

from amaranth.hdl import Shape
from amaranth.lib import data

from rtl.config import POLICY_CODES, NicConfig
from rtl.control.axi_lite import ADDRESS_BITS
from rtl.control.settings import controls
from rtl.formats import VERSION
from rtl.monitor.channels import channel_map, channel_words
from rtl.monitor.counters import WIDE_COUNTER_BITS

__all__ = ["CHANNEL_BASE", "CONFIG_BASE", "CONTROL_BASE", "COUNTER_BASE", "FLUSHING", "GIVEN_UP",
           "MAGIC",
           "NEXT_NODE", "TABLE_BASE", "TABLE_WORDS", "Register", "map_fingerprint", "register_map"]

MAGIC = int.from_bytes(b"EMBR", "little")
CONFIG_BASE, CONTROL_BASE, TABLE_BASE, COUNTER_BASE = 0x0040, 0x0100, 0x0280, 0x1000
CHANNEL_BASE = 0x0300
NEXT_NODE = CHANNEL_BASE + 0x80
GIVEN_UP = NEXT_NODE + 4
FLUSHING = CHANNEL_BASE + 0xC0
TABLE_WORDS = 5
"""32-bit words of a table descriptor."""

_OF_BAGS = ("owner_bags", "bag_segments", "owner_bag_beats")
"""Fields of a configuration that have registers only with owner pooling."""
_OF_REPEATS = ("repeat_words", "repeat_vectors")
"""The same with the comparison of bags."""

_ACCESS = {"ro": "read", "rw": "read and write", "wo": "write"}


@dataclass(frozen=True)
class Register:
    """A 32-bit word of the register block.

    Members
    -------
    name: ``block.counter`` for a counter, else a plain word.
    address: byte address, a multiple of 4.
    width: bits used, from bit 0 on; higher bits read 0.
    access: ``ro``, ``rw`` or ``wo``.
    reset: value after reset.
    description: one line.
    low, high: smallest and largest value of a write; the block rejects other values.

    Raises ``TypeError`` or ``ValueError`` for an invalid field.
    """

    name: str
    address: int
    width: int
    access: str
    reset: int
    description: str
    low: int = 0
    high: int | None = None

    def __post_init__(self) -> None:
        for name in ("address", "width", "reset", "low"):
            if not isinstance(getattr(self, name), int):
                raise TypeError(f"{name} must be an integer, not {getattr(self, name)!r}")
        if self.access not in _ACCESS:
            raise ValueError(f"access must be one of {', '.join(_ACCESS)}, not {self.access!r}")
        if not 1 <= self.width <= 32:
            raise ValueError(f"width must be between 1 and 32, not {self.width!r}")
        if self.address % 4 or not 0 <= self.address < 1 << ADDRESS_BITS:
            raise ValueError(f"address must be a multiple of 4 below {1 << ADDRESS_BITS:#x}, "
                             f"not {self.address!r}")
        if self.high is None:
            object.__setattr__(self, "high", (1 << self.width) - 1)
        for name in ("low", "high", "reset"):
            value = getattr(self, name)
            if not 0 <= value < 1 << self.width:
                raise ValueError(f"{name} of {self.name} must fit in {self.width} bits, "
                                 f"not {value!r}")
        if self.access == "rw" and not self.low <= self.reset <= self.high:
            raise ValueError(f"reset of {self.name} must be between {self.low} and {self.high}, "
                             f"not {self.reset!r}")


def register_map(config: NicConfig, counters: dict[str, data.StructLayout]) -> list[Register]:
    """Return the registers of a NIC, by ascending address.

    Parameters: ``config``; ``counters``, layout of each block's counters by block name. Raises
    ``TypeError`` for other types, and ``ValueError`` if a counter has more than 64 bits or the
    counters do not fit the address space.
    """
    if not isinstance(config, NicConfig):
        raise TypeError(f"config must be a NicConfig, not {config!r}")
    counts = list(_counters(counters))
    configured = list(_configuration(config))
    registers = [
        Register(f"config_{name}", CONFIG_BASE + 4 * k, 32, "ro", value, description)
        for k, (name, value, description) in enumerate(configured)]
    registers += [
        Register(name, CONTROL_BASE + 4 * k, width, "rw", reset, description, low, high)
        for k, (name, width, reset, low, high, description) in enumerate(controls(config))]
    if registers[-1].address >= TABLE_BASE:
        raise ValueError(f"control registers must end below {TABLE_BASE:#x}, "
                         f"not at {registers[-1].address:#x}")
    registers.append(Register(
        "table_index", TABLE_BASE, 12, "rw", 0, "table that table_word0 to 4 write to",
        0, config.tables - 1))
    registers += [
        Register(f"table_word{k}", TABLE_BASE + 4 + 4 * k, 32, "wo", 0,
                 f"word {k} of the descriptor of table_index; write it whole; takes effect at once")
        for k in range(TABLE_WORDS)]
    registers += [
        Register(f"channel_{member}{k}", CHANNEL_BASE + 8 * k + 4 * at, len(names), "ro", 0,
                 f"{member} in this cycle, of the streams {', '.join(names)}, from bit 0 on")
        for k, names in enumerate(channel_words(*config.optional))
        for at, member in enumerate(("valid", "ready"))]
    registers.append(Register(
        "lookup_next_node", NEXT_NODE, 8, "ro", 0,
        "destination of the next lookups packet, or node whose credit a queue waited for last"))
    if config.link:
        words = -(-config.nodes // 32)
        registers += [
            Register(f"link_given_up{k}", GIVEN_UP + 4 * k, 32, "ro", 0,
                     f"nodes {32 * k} to {32 * k + 31} that were given up because they do not "
                     "acknowledge, from bit 0 on")
            for k in range(words)]
        registers.append(Register(
            "link_rejoining", GIVEN_UP + 4 * words, 1, "ro", 0,
            "the rejoin of the node in link_rejoin is not complete"))
    registers.append(Register(
        "flushing", FLUSHING, 2, "ro", 0, "caches that are being emptied, bits as in flush"))
    registers += [
        Register(name, COUNTER_BASE + 4 * k, 32, "ro", 0, description)
        for k, (name, description) in enumerate(counts)]
    return _identity(config, registers, len(configured), len(counts)) + registers


def _configuration(config: NicConfig):
    """Yield name, value and description of each size, then of the policy, by its number."""
    for field in fields(config):
        value = getattr(config, field.name)
        if (field.name in _OF_BAGS and not config.owner_bags) or (
                field.name in _OF_REPEATS and not config.repeat_positions) or (
                field.name in ("short_vectors", "code_vectors") and not value):
            continue
        if isinstance(value, int):
            yield field.name, int(value), f"{field.name} of this configuration"
    numbers = ", ".join(f"{code} {name}" for name, code in POLICY_CODES.items())
    yield "policy", int(POLICY_CODES[config.policy]), f"policy of this configuration: {numbers}"


def _identity(config: NicConfig, others: list[Register], configured: int,
              counts: int) -> list[Register]:
    """Return the words at address 0: the identity, and the addresses of the ``others``."""
    words = (
        ("magic", MAGIC, 'identity: the bytes "EMBR"'),
        ("version", VERSION, "version of formats and registers"),
        ("counter_base", COUNTER_BASE, "address of the first counter"),
        ("counter_count", counts, "number of registers of counters"),
        ("config_base", CONFIG_BASE, "address of the first register of this configuration"),
        ("config_count", configured, "number of registers of this configuration"),
        ("control_base", CONTROL_BASE, "address of the first control register"),
        ("control_count", len(list(controls(config))), "number of control registers"),
        ("table_base", TABLE_BASE, "address of table_index, before the words of a descriptor"),
        ("table_words", TABLE_WORDS, "words of a table descriptor"),
        ("channel_base", CHANNEL_BASE, "address of the first word of stream states"),
        ("channel_count", len(channel_map(*config.optional)),
         "number of streams, 32 per word"),
        ("register_count", len(others), "number of registers from config_base on"),
        ("register_map", map_fingerprint(others),
         "CRC-32 of name, address, width and access of these registers; identifies the map"),
    )
    return [Register(name, 4 * k, 32, "ro", value, description)
            for k, (name, value, description) in enumerate(words)]


def map_fingerprint(registers: Iterable[Register]) -> int:
    """Return the CRC-32 (IEEE 802.3, as in zlib) of the parts of a map that a driver depends on.

    The CRC covers a line "name address width access" for each of ``registers``, numbers in decimal.
    """
    lines = (f"{r.name} {r.address} {r.width} {r.access}\n" for r in registers)
    return crc32("".join(lines).encode())


def _counters(counters: dict[str, data.StructLayout]):
    """Yield ``block.counter`` and a description of every word of a counter.

    A counter of 64 bits has a second word, ``block.counter_high``.
    """
    if not isinstance(counters, dict):
        raise TypeError(f"counters must be a dict, not {counters!r}")
    total = 0
    room = ((1 << ADDRESS_BITS) - COUNTER_BASE) // 4
    for block, layout in counters.items():
        if not isinstance(layout, data.StructLayout):
            raise TypeError(f"counters of {block} must be a StructLayout, not {layout!r}")
        for name, shape in layout.members.items():
            width = Shape.cast(shape).width
            if width > WIDE_COUNTER_BITS:
                raise ValueError(
                    f"{block}.{name} must have at most {WIDE_COUNTER_BITS} bits, not {shape!r}")
            words = 1 if width <= 32 else 2
            total += words
            if total > room:
                raise ValueError(f"registers of counters must be at most {room}, not {total!r}")
            if words == 1:
                yield f"{block}.{name}", "cumulative, modulo 2^32"
            else:
                yield f"{block}.{name}", "cumulative, modulo 2^64: bits 31 to 0"
                yield f"{block}.{name}_high", "the same, bits 63 to 32"
