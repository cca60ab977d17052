"""The register map as data, for hardware, documents and the simulator's driver."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from zlib import crc32

from amaranth.hdl import Shape
from amaranth.lib import data
from amaranth.utils import ceil_log2

from rtl.config import POLICY_CODES, NicConfig
from rtl.control.axi_lite import ADDRESS_BITS
from rtl.formats import VERSION, InteractionMode, OptimizerMode
from rtl.monitor.channels import channel_map, channel_words

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

_ACCESS = {"ro": "read", "rw": "read and write", "wo": "write"}


@dataclass(frozen=True)
class Register:
    """A 32-bit word of the register block.

    Members
    -------
    name: ``block.counter`` for a counter, a plain word for others.
    address: byte address, a multiple of 4.
    width: bits used, from bit 0 on; the others read 0.
    access: ``ro``, ``rw`` or ``wo``.
    reset: value after reset.
    description: one line.
    low, high: smallest and largest value after a write; others are refused.

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

    Parameters: ``config``; ``counters``, the layout of each block's counters by block name.
    Raises ``TypeError`` for other types and ``ValueError`` if a counter has more than 32 bits or
    the counters do not fit the address space.
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
        for k, (name, width, reset, low, high, description) in enumerate(_controls(config))]
    if registers[-1].address >= TABLE_BASE:
        raise ValueError(f"control registers must end below {TABLE_BASE:#x}, "
                         f"not at {registers[-1].address:#x}")
    registers.append(Register(
        "table_index", TABLE_BASE, 12, "rw", 0, "table that table_word0 to 4 write to",
        0, config.tables - 1))
    registers += [
        Register(f"table_word{k}", TABLE_BASE + 4 + 4 * k, 32, "wo", 0,
                 f"word {k} of the descriptor of table_index; whole words; takes effect at once")
        for k in range(TABLE_WORDS)]
    registers += [
        Register(f"channel_{member}{k}", CHANNEL_BASE + 8 * k + 4 * at, len(names), "ro", 0,
                 f"{member}, now, of the streams {', '.join(names)}, from bit 0 on")
        for k, names in enumerate(channel_words(config.training, config.link))
        for at, member in enumerate(("valid", "ready"))]
    registers.append(Register(
        "lookup_next_node", NEXT_NODE, 8, "ro", 0,
        "node that the next lookups packet is for, or whose credit a queue waited for last"))
    if config.link:
        words = -(-config.nodes // 32)
        registers += [
            Register(f"link_given_up{k}", GIVEN_UP + 4 * k, 32, "ro", 0,
                     f"nodes {32 * k} to {32 * k + 31} that were given up since they do not "
                     "acknowledge, from bit 0 on")
            for k in range(words)]
        registers.append(Register(
            "link_rejoining", GIVEN_UP + 4 * words, 1, "ro", 0,
            "the node of link_rejoin has not been taken back yet"))
    registers.append(Register(
        "flushing", FLUSHING, 2, "ro", 0, "caches that are being emptied now, bits as in flush"))
    registers += [
        Register(name, COUNTER_BASE + 4 * k, 32, "ro", 0, "cumulative, modulo 2^32")
        for k, name in enumerate(counts)]
    return _identity(config, registers, len(configured), len(counts)) + registers


def _configuration(config: NicConfig):
    """Yield name, value and description: the sizes, then what has a number in place of its name."""
    for field in fields(config):
        value = getattr(config, field.name)
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
        ("counter_count", counts, "number of counters"),
        ("config_base", CONFIG_BASE, "address of the first register of this configuration"),
        ("config_count", configured, "number of registers of this configuration"),
        ("control_base", CONTROL_BASE, "address of the first control register"),
        ("control_count", len(list(_controls(config))), "number of control registers"),
        ("table_base", TABLE_BASE, "address of table_index, before the words of a descriptor"),
        ("table_words", TABLE_WORDS, "words of a table descriptor"),
        ("channel_base", CHANNEL_BASE, "address of the first word of the streams' states"),
        ("channel_count", len(channel_map(config.training, config.link)),
         "number of streams, 32 a word"),
        ("register_count", len(others), "number of registers from config_base on"),
        ("register_map", map_fingerprint(others),
         "CRC-32 of name, address, width and access of those: tells one map from another"),
    )
    return [Register(name, 4 * k, 32, "ro", value, description)
            for k, (name, value, description) in enumerate(words)]


def map_fingerprint(registers: Iterable[Register]) -> int:
    """Return the CRC-32 (IEEE 802.3, as in zlib) of the parts of a map that a driver depends on: a
    line "name address width access" for each of ``registers``, numbers in decimal."""
    lines = (f"{r.name} {r.address} {r.width} {r.access}\n" for r in registers)
    return crc32("".join(lines).encode())


def _controls(config: NicConfig):
    """Yield name, width, reset, smallest and largest value, description, in address order."""
    share = config.lookup_beats // config.nodes
    batch = 8 * config.host_payload_beats
    largest, word = 0xFFFF, (1 << 32) - 1
    yield "node", 8, 0, 0, config.nodes - 1, "this node's number"
    yield "nodes", 8, 1, 1, config.nodes, "nodes of the cluster"
    yield ("vector_beats", config.vector_beats.bit_length(), config.vector_beats, 1,
           config.vector_beats, "beats of a vector")
    yield ("vector_packing", 2, config.vector_packing, config.vector_packing, 2,
           "log2 of the vectors in a beat of a packet; counts while vector_beats is 1")
    yield "pooling_mean", 1, 0, 0, 1, "bags pool to their mean, not their sum"
    yield ("interaction_mode", 2, 0, 0, int(InteractionMode.CAT),
           "results are 0 pooled vectors, 1 dots, 2 concatenations; 1 needs dot_units")
    yield "interaction_itself", 1, 0, 0, 1, "dots pair a vector with itself too"
    yield ("unique_delivery", 1, 0, 0, int(config.unique_keys > 0),
           "the host gets each different vector of a share once, if interaction_mode is 0")
    yield "local_cache_enable", 1, 1, 0, 1, "the local cache keeps rows"
    yield ("local_cache_sets", config.local_cache_sets.bit_length(), config.local_cache_sets, 1,
           config.local_cache_sets, "sets of the local cache in use")
    yield "remote_cache_enable", 1, 1, 0, 1, "the remote cache keeps rows"
    yield ("remote_cache_sets", config.remote_cache_sets.bit_length(), config.remote_cache_sets, 1,
           config.remote_cache_sets, "sets of the remote cache in use")
    yield "requester_merge", 1, 1, 0, 1, "identical keys on their way to other nodes travel once"
    yield "dedupe_enable", 1, 1, 0, 1, "the dedupe table merges lookups of a key"
    yield "request_batch", 16, min(64, batch), 1, batch, "lookups of a request list to the host"
    for name, what in (("request", "request list to the host"), ("lookup", "lookups packet"),
                       ("vector", "vectors packet"), ("result", "results packet"),
                       ("index", "indices packet")):
        yield f"{name}_timeout", 16, 64, 0, largest, f"cycles after which an open {what} leaves"
    yield ("lookup_window", 16, config.lookup_window, 1, config.lookup_beats,
           "lookup beats that may be on their way to one owner")
    yield ("output_queues", 1, 0, 0, 1,
           "lookups wait for credit in a queue of their owner, not in one for all; set it before "
           "the first lookup, reset to change it")
    yield ("lookup_share", 16, share, 1, config.lookup_beats,
           "lookup beats that one requester may have waiting here")
    yield "tap_select", 2, 0, 0, 2, "whose lookups the access tap logs: 1 local, 2 remote cache"
    yield "step_floor", 16, 0, 0, largest, "smallest step still in use"
    yield ("completion_base_low", 32, 0, 0, word,
           f"address of the ring of completions, a multiple of {4 * config.completion_slots}, "
           "bits 31 to 0")
    yield "completion_base_high", 32, 0, 0, word, "the same, bits 63 to 32"
    yield "completion_flush", 1, 1, 0, 1, "a completion waits until what was written before is seen"
    yield "step_timeout", 32, 0, 0, word, "cycles after which an open step is completed, 0 is never"
    yield from _ring_controls(config)
    yield ("mac_base_low", 32, 0x4D420000, 0, word,
           "MAC address of node 0, bits 31 to 0")
    yield "mac_base_high", 16, 0x0245, 0, largest, "MAC address of node 0, bits 47 to 32"
    yield "ip_base", 32, 0x0A450000, 0, word, "IPv4 address of node 0"
    yield "udp_port", 16, 0x4853, 0, largest, "UDP port, source and destination"
    if config.link:
        yield from _link_controls(config)
    if config.training:
        yield from _training_controls(config)
    yield ("flush", 2, 0, 0, 3,
           "a bit that rises empties, in mid-traffic too, 0 the caches of this node's rows, 1 that "
           "of other nodes' rows: rows changed in memory are fetched again")


def _ring_controls(config: NicConfig):
    """Yield the same for the rings in GPU memory, through which a kernel there serves misses, and
    for reads of rows there."""
    word = (1 << 32) - 1
    yield "gpu_rings", 1, 0, 0, 1, "request lists go to a ring in GPU memory, vectors come from one"
    longest = {"list": config.net_payload_beats + 1, "vector": config.host_payload_beats}
    for ring, what in (("list", "request lists"), ("vector", "vectors, a slot a list")):
        shift = 6 + ceil_log2(longest[ring])
        yield f"{ring}_ring_low", 32, 0, 0, word, f"address of the ring of {what}, bits 31 to 0"
        yield f"{ring}_ring_high", 32, 0, 0, word, "the same, bits 63 to 32"
        yield f"{ring}_ring_shift", 4, 8, 0, 15, "log2 of the ring's slots"
        yield f"{ring}_slot_shift", 5, shift, shift, 31, "log2 of the bytes of a slot"
        yield (f"{ring}_index_low", 32, 0, 0, word,
               f"address of the word with the count of {ring} slots that the NIC is done with, "
               "bits 31 to 0; the others as of the ring")
    yield "vector_every", 8, 1, 0, 255, "slots read out after which their count is written"
    yield "row_reads", 1, 0, 0, 1, "rows are read from GPU memory by DMA, if gpu_rings is 0"
    yield ("rows_base_low", 32, 0, 0, word,
           "address in GPU memory from which on the bases of tables count, bits 31 to 0")
    yield "rows_base_high", 32, 0, 0, word, "the same, bits 63 to 32"
    yield "lists_consumed", 16, 0, 0, 0xFFFF, "lists that the kernel has read, modulo 2^16"
    yield "vectors_produced", 16, 0, 0, 0xFFFF, "slots of vectors it has filled, modulo 2^16"


def _link_controls(config: NicConfig):
    """Yield the same for the reliable link; times in cycles."""
    longest = (1 << 23) - 1
    yield ("link_epoch", 8, 0, 0, 255,
           "number that all nodes of a run share; a packet with another is refused, so that a node "
           "that was restarted is not taken for its former self")
    yield ("link_delay", 16, 128, 0, 0xFFFF,
           "from a packet that came to the LINK packet that acknowledges it, if no other has")
    yield ("link_timeout_first", 23, 7_500, 1, longest,
           "after which a packet is sent again, before a round trip to its node is measured")
    yield ("link_timeout_least", 23, 1_000, 1, longest,
           "the same at least, once one is measured")
    yield ("link_timeout_most", 23, 250_000, 1, longest,
           "the same at most: it doubles each time that the packet is sent")
    yield ("link_tries", 8, 12, 1, 255,
           "times that a packet is sent before its node is given up")
    yield ("link_rejoin", 16, 0, 0, (config.nodes - 1) << 8 | 0xFF,
           "a node that was restarted, in bits 15 to 8, is back with the epoch in bits 7 to 0: "
           "taken back at each write; refused for this node, and while link_rejoining is 1")


def _training_controls(config: NicConfig):
    """Yield the same for the gradient path; binary32 words may have any value."""
    share, words = config.partial_beats // config.nodes, (1 << 32) - 1
    yield "training", 1, 0, 0, 1, "lookups of a step wait until the rows of the one before are new"
    yield ("overtake", 1, 0, 0, 1,
           "lookups of the next step leave for owners that are done, before all are")
    yield ("local_reduction", 1, 1, 0, 1,
           "gradients to the same row are added up before they leave; without, each is a partial")
    yield ("gradient_partials", 1, 0, 0, 1,
           "sums of a node leave as 0 exact lists of binary32, 1 the nearest binary32")
    yield ("optimizer", 1, int(OptimizerMode.SGD), 0, int(OptimizerMode.ROWWISE_ADAGRAD),
           "rows follow their gradients by 0 SGD, 1 row-wise Adagrad")
    yield "learning_rate", 32, 0x3DCCCCCD, 0, words, "learning rate, binary32"
    yield "epsilon", 32, 0x322BCC77, 0, words, "of row-wise Adagrad, binary32"
    yield "gradient_timeout", 16, 64, 0, 0xFFFF, "cycles after which an open partials packet leaves"
    yield ("gradient_window", 16, config.gradient_window, 2, config.partial_beats,
           "beats of partials that may be on their way to one owner")
    yield ("gradient_share", 16, share, 2, config.partial_beats,
           "beats of partials that one node may have waiting here")


def _counters(counters: dict[str, data.StructLayout]):
    """Yield ``block.counter`` of every counter."""
    if not isinstance(counters, dict):
        raise TypeError(f"counters must be a dict, not {counters!r}")
    total = 0
    room = ((1 << ADDRESS_BITS) - COUNTER_BASE) // 4
    for block, layout in counters.items():
        if not isinstance(layout, data.StructLayout):
            raise TypeError(f"counters of {block} must be a StructLayout, not {layout!r}")
        for name, shape in layout.members.items():
            if Shape.cast(shape).width > 32:
                raise ValueError(f"{block}.{name} must have at most 32 bits, not {shape!r}")
            total += 1
            if total > room:
                raise ValueError(f"counters must be at most {room}, not {total!r}")
            yield f"{block}.{name}"
