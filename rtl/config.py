"""NicConfig: all sizes of a SmartNIC; other sizes are derived from them."""

import re
from dataclasses import dataclass, fields, replace
from enum import IntEnum
from typing import ClassVar

__all__ = ["BEAT_BITS", "GRADIENT_SUMS", "LANES", "LINK_POOL_BEATS", "LINK_POOL_SPARE",
           "POLICY_CODES", "PRESETS", "ROW_BITS", "TABLE_BITS", "CachePolicy", "NicConfig",
           "beats_of", "check_dimension", "check_identifier", "packing_of", "preset"]

BEAT_BITS = 512
"""Bits of a beat, the width of every data path."""

LANES = 16
"""float32 values per beat."""

GRADIENT_SUMS = ("exact", "float32")
"""Kinds of sums of gradients that a NIC can be built for."""

LINK_POOL_BEATS, LINK_POOL_SPARE = 4096, 4
"""Payload beats of the pool of a reliable link, for all peers together; beats of it that stay free.
"""

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")

TABLE_BITS, ROW_BITS = 12, 36
"""Bits of the table and of the row of a key."""


class CachePolicy(IntEnum):
    """Replacement policies of the caches. The numbers are stable: drivers read them in a register.
    """

    LRU = 0


POLICY_CODES = {code.name.lower(): code for code in CachePolicy}
"""Policies by name. :mod:`rtl.cache.policies` has their logic, and :mod:`host.placement.policies`
their model."""


def check_dimension(name: str, value: object) -> None:
    """Raise ``TypeError`` or ``ValueError`` if ``value`` is not 4, 8 or a multiple of 16 up to 256.

    A vector then uses whole beats, or half or a quarter of a beat.
    """
    _in_range(name, value, 4, 256)
    if value not in (4, 8) and value % LANES:  # type: ignore[operator]
        raise ValueError(f"{name} must be 4, 8 or a multiple of {LANES}, not {value!r}")


def beats_of(dimension: int) -> int:
    """Return the beats of a vector inside the NIC; below 16 values its upper lanes are +0."""
    return max(1, dimension // LANES)


def packing_of(dimension: int) -> int:
    """Return log2 of the vectors that share a beat of a packet: 2 for 4, 1 for 8 values, else 0."""
    return (max(1, LANES // dimension)).bit_length() - 1


def partials_in(beats: int, packing: int) -> int:
    """Return the beats of values that fit a payload with their records, eight per beat.

    packing: log2 of the vectors that share a beat. The result is 0 if no beat fits.
    """
    most = beats << packing
    while most and -(-most // 8) - -most // (1 << packing) > beats:
        most -= 1
    return most


def check_identifier(name: str, value: object) -> None:
    """Raise ``ValueError`` with ``name`` unless ``value`` can name a module and a file."""
    if not isinstance(value, str) or not _IDENTIFIER.fullmatch(value):
        raise ValueError(f"{name} must be an identifier, not {value!r}: use 1 to 100 letters, "
                         f"digits and _ of ASCII, no digit first")


def _in_range(name: str, value: object, low: int, high: int, by: str = "") -> None:
    """Raise ``TypeError`` or ``ValueError`` unless ``value`` is an integer within its bounds.

    by: field that determines ``low``, and its value: "field value".
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an integer, not {value!r}")
    if not low <= value <= high:
        bounds = f"between {low} and {high}" if low < high else f"{low}"
        if value >= low or not by:
            raise ValueError(f"{name} must be {bounds}, not {value!r}")
        raise ValueError(f"{name} must be {bounds} with {by}, not {value!r}: use a larger {name} "
                         f"or a smaller {by.split()[0]}")


def _power_of_two(name: str, value: int) -> None:
    if value & (value - 1):
        raise ValueError(f"{name} must be a power of two, not {value!r}")


@dataclass(frozen=True)
class NicConfig:
    """Sizes of one SmartNIC, fixed at elaboration.

    Settings that may change at run time (caches on or off, sets in use, vector beats, timeouts,
    table descriptors, node numbers) are in the register block, see :mod:`rtl.control.csr`.

    Members
    -------
    name: name of the configuration for modules, files and reports: an identifier of at most 100
        ASCII characters.
    nodes: largest number of nodes in a cluster.
    tables: number of table descriptors.
    max_dimension: longest embedding vector in float32 values: 4, 8 or a multiple of 16, to 256.
    local_cache_rows: vectors of ``max_dimension`` in the local cache (paper, 4.1.1).
    local_cache_ways: ways of a set of the local cache.
    remote_cache_rows: vectors of ``max_dimension`` in the remote cache (paper, 4.1.2).
    remote_cache_ways: ways of a set of the remote cache.
    policy: replacement policy of both caches: ``lru`` (0 in its register). The dedupe table always
        uses LRU.
    remote_in_flight: lookups that may wait for other nodes at once; each has a landing row.
    misses_in_flight: lookups that may wait for the GPU at once; each has a landing row.
    dedupe_keys: keys in the dedupe table.
    dedupe_ways: ways of a set of the dedupe table.
    dedupe_in_flight: dedupe entries that may wait for their vector at once.
    scatter_entries: requests that may wait in the scatter lists of the dedupe table.
    hold_vectors: vectors of ``max_dimension`` in the hold buffer.
    dense_vectors: samples whose dense vector may be in flight or wait for their pooled vectors.
    query_beats: beats of queries that the host may send ahead (host credits).
    lookup_beats: beats of lookups that all requesters together may send ahead (owner's credits).
    net_payload_beats: beats after the header beat of a network packet (22 fit an MTU of 1,500).
    host_payload_beats: beats after the header beat of a packet to the host.
    net_framing: packets on the network: ``ethernet`` frames, or ``udp``, datagram payloads for a
        UDP stack of the shell.
    interaction_vectors: most vectors of a sample's dot interaction, including its dense vector.
    dot_units: dot products of 16 lanes that the interaction starts per cycle, at most 16, the
        results of a beat; 0 omits the dot interaction.
    unique_keys: keys of a step's share in the table that finds repeats for unique delivery; 0 omits
        the table.
    owner_bags: bags of owner-pooled tables that may wait for the GPU of this node at once, each
        with a landing row; and as many of this node's bags may wait for other nodes. 0 omits owner
        pooling, and the four fields below are unused.
    bag_segments: segments of bags that may wait to leave, each the words of a bag in one beat;
        bounds the bags of a sample.
    owner_bag_beats: beats of bags that all requesters together may send ahead (owner's credits).
    repeat_words: words of 64 bits, the rows and weights of owner-pooled bags, that are remembered
        to find bags which repeat in the next sample; 0 omits the comparison, and the field below
        is unused.
    repeat_vectors: bags of a sample, from the first on, whose vectors are remembered.
    short_vectors: pool vectors of 16-bit values, two in each lane; otherwise the NIC pools float32
        only.
    code_vectors: also pool vectors of int8; needs ``short_vectors``.
    completion_slots: steps that may be open to the host at once; each has a word in GPU memory.
    link: NICs acknowledge packets, and send them again until then (:mod:`rtl.network.link`).
    training: gradients are reduced and rows updated; otherwise the fields below are unused.
    gradient_sums: ``exact``, or ``float32``: each addition of gradients is rounded, in the order of
        arrival. ``float32`` needs less logic and memory, and weights differ between runs.
    local_gradient_keys: keys of this node's samples whose gradients are summed at once.
    global_gradient_keys: keys of this node's rows whose partial sums are summed at once.
    gradient_ways: ways of a set of either gradient reduction.
    gradient_beats: beats of gradients, and as many of spilled gradients, that the host may send
        ahead (host credits).
    partial_beats: beats of partials that all nodes together may send ahead (owner's credits).
    update_rows: rows that may be in flight through the optimizer at once.

    Raises
    ------
    TypeError, ValueError: a size is not an integer, out of range, or contradicts another; the
        message names field, value and bound.
    """

    name: str = "custom"
    nodes: int = 16
    tables: int = 64
    max_dimension: int = 16
    local_cache_rows: int = 32768
    local_cache_ways: int = 8
    remote_cache_rows: int = 16384
    remote_cache_ways: int = 8
    policy: str = "lru"
    remote_in_flight: int = 1024
    misses_in_flight: int = 1024
    dedupe_keys: int = 4096
    dedupe_ways: int = 8
    dedupe_in_flight: int = 1024
    scatter_entries: int = 4096
    hold_vectors: int = 4096
    dense_vectors: int = 256
    query_beats: int = 512
    lookup_beats: int = 4096
    net_payload_beats: int = 22
    host_payload_beats: int = 64
    net_framing: str = "ethernet"
    interaction_vectors: int = 27
    dot_units: int = 13
    unique_keys: int = 4096
    owner_bags: int = 0
    bag_segments: int = 1024
    owner_bag_beats: int = 1024
    repeat_words: int = 0
    repeat_vectors: int = 64
    short_vectors: bool = False
    code_vectors: bool = False
    completion_slots: int = 16
    link: bool = False
    training: bool = False
    gradient_sums: str = "exact"
    local_gradient_keys: int = 512
    global_gradient_keys: int = 4096
    gradient_ways: int = 8
    gradient_beats: int = 512
    partial_beats: int = 4096
    update_rows: int = 1024

    most_nodes: ClassVar[int] = 64
    most_rows: ClassVar[int] = 1 << 17
    """Largest ``nodes``, and most rows of a cache or table."""
    most_hold_vectors: ClassVar[int] = 1 << 15
    """Largest ``hold_vectors``."""
    most_bag_segments: ClassVar[int] = 16384
    """Largest ``bag_segments``."""
    most_repeat_words: ClassVar[int] = 1 << 16
    """Largest ``repeat_words``."""
    most_repeat_vectors: ClassVar[int] = 4096
    """Largest ``repeat_vectors``."""
    unique_ways: ClassVar[int] = 8
    """Ways of a set of ``unique_keys``."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise TypeError(f"name must be a string, not {self.name!r}")
        check_identifier("name", self.name)
        _in_range("nodes", self.nodes, 1, self.most_nodes)
        _in_range("tables", self.tables, 1, 4096)
        check_dimension("max_dimension", self.max_dimension)
        for kind in ("local_cache", "remote_cache", "dedupe"):
            ways = getattr(self, f"{kind}_ways")
            total = "dedupe_keys" if kind == "dedupe" else f"{kind}_rows"
            _in_range(f"{kind}_ways", ways, 1, 16)
            _power_of_two(f"{kind}_ways", ways)
            _in_range(total, getattr(self, total), 2 * ways, self.most_rows,
                      by=f"{kind}_ways {ways}")
            if getattr(self, total) % ways:
                raise ValueError(f"{total} must be a multiple of {kind}_ways ({ways}), "
                                 f"not {getattr(self, total)!r}")
        if self.policy not in POLICY_CODES:
            raise ValueError(f"policy must be one of {', '.join(POLICY_CODES)}, "
                             f"not {self.policy!r}")
        for name, low, high in (("remote_in_flight", 4, 4096), ("misses_in_flight", 4, 4096),
                                ("dedupe_in_flight", 4, 4096),
                                ("scatter_entries", 4, 16384),
                                ("hold_vectors", 8, self.most_hold_vectors),
                                ("dense_vectors", 8, 16384),
                                ("query_beats", 16, 4096), ("lookup_beats", 16, 16384),
                                ("completion_slots", 2, 128)):
            _in_range(name, getattr(self, name), low, high)
            _power_of_two(name, getattr(self, name))
        _in_range("net_payload_beats", self.net_payload_beats, self.vector_beats + 1, 140,
                  by=f"max_dimension {self.max_dimension}")
        for name in ("training", "link", "short_vectors", "code_vectors"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} must be True or False, not {getattr(self, name)!r}")
        if self.code_vectors and not self.short_vectors:
            raise ValueError("short_vectors must be True with code_vectors, not False")
        self._check_link()
        _in_range("host_payload_beats", self.host_payload_beats, self.net_payload_beats, 140,
                  by=f"net_payload_beats {self.net_payload_beats}")
        if self.net_framing not in ("ethernet", "udp"):
            raise ValueError(f"net_framing must be ethernet or udp, not {self.net_framing!r}")
        _in_range("interaction_vectors", self.interaction_vectors, 2, 64)
        _in_range("dot_units", self.dot_units, 0, LANES)
        self._check_unique()
        self._check_bags()
        self._check_training()
        if self.lookup_beats < self.nodes * 2:
            raise ValueError(f"lookup_beats must be at least 2 for each of {self.nodes} nodes, "
                             f"not {self.lookup_beats!r}")

    def _check_link(self) -> None:
        """Raise unless the pool of the link has the beats of a largest packet for each node."""
        most = (LINK_POOL_BEATS - LINK_POOL_SPARE) // self.net_payload_beats
        if self.link and self.nodes > most:
            raise ValueError(f"nodes must be at most {most} with link and net_payload_beats "
                             f"{self.net_payload_beats}, not {self.nodes!r}: use fewer nodes or "
                             f"a smaller net_payload_beats")

    def _check_unique(self) -> None:
        """Raise for an invalid size of the table of unique delivery."""
        _in_range("unique_keys", self.unique_keys, 0, self.most_rows)
        least = 2 * self.unique_ways
        if self.unique_keys % self.unique_ways or 0 < self.unique_keys < least:
            raise ValueError(f"unique_keys must be 0 or a multiple of {self.unique_ways}, at least "
                             f"{least}, not {self.unique_keys!r}")

    def _check_bags(self) -> None:
        """Raise for an invalid size of owner pooling."""
        if self.owner_bags != 0:
            _in_range("owner_bags", self.owner_bags, 16, 4096)
            _power_of_two("owner_bags", self.owner_bags)
        for name, low, high, by in (
                ("bag_segments", 32, self.most_bag_segments, ""),
                ("owner_bag_beats", max(16, 4 * self.nodes), 16384, f"nodes {self.nodes}")):
            _in_range(name, getattr(self, name), low, high, by)
            _power_of_two(name, getattr(self, name))
        _in_range("repeat_vectors", self.repeat_vectors, 2, self.most_repeat_vectors)
        if self.repeat_words != 0:
            _in_range("repeat_words", self.repeat_words, 64, self.most_repeat_words)
            _power_of_two("repeat_words", self.repeat_words)

    def _check_training(self) -> None:
        """Raise for an invalid size of the gradient path, or an unknown ``gradient_sums``."""
        if self.gradient_sums not in GRADIENT_SUMS:
            raise ValueError(f"gradient_sums must be {' or '.join(GRADIENT_SUMS)}, "
                             f"not {self.gradient_sums!r}")
        for name, low, high, by in (
                ("gradient_ways", 1, 16, ""),
                ("local_gradient_keys", 2 * self.gradient_ways, 1 << 16, "gradient_ways"),
                ("global_gradient_keys", 2 * self.gradient_ways, 1 << 16, "gradient_ways"),
                ("gradient_beats", 2 * self.host_payload_beats + 2, 4096, "host_payload_beats"),
                ("partial_beats", 4 * self.nodes, 16384, "nodes"), ("update_rows", 8, 4096, "")):
            _in_range(name, getattr(self, name), low, high,
                      by=by and f"{by} {getattr(self, by)}")
            _power_of_two(name, getattr(self, name))

    @property
    def vector_beats(self) -> int:
        """Beats of the longest vector inside the NIC."""
        return beats_of(self.max_dimension)

    @property
    def repeat_positions(self) -> int:
        """Bags of a sample that may be repeated; 0 without the comparison of bags."""
        return self.repeat_vectors if self.owner_bags and self.repeat_words else 0

    def check_repeats(self) -> None:
        """Raise ``ValueError`` without the comparison of bags."""
        if not self.repeat_positions:
            raise ValueError(f"repeat_words must be above 0, with owner_bags, not "
                             f"{self.repeat_words!r}")

    @property
    def vector_packing(self) -> int:
        """log2 of the longest vectors that share a beat of a packet."""
        return packing_of(self.max_dimension)

    @property
    def store_bits(self) -> int:
        """Bits of a beat that memories of vectors store: the lanes that can be in use."""
        return min(BEAT_BITS, 32 * self.max_dimension)

    @property
    def local_cache_sets(self) -> int:
        """Sets of the local cache; need not be a power of two."""
        return self.local_cache_rows // self.local_cache_ways

    @property
    def remote_cache_sets(self) -> int:
        """Sets of the remote cache; need not be a power of two."""
        return self.remote_cache_rows // self.remote_cache_ways

    @property
    def dedupe_sets(self) -> int:
        """Sets of the dedupe table."""
        return self.dedupe_keys // self.dedupe_ways

    @property
    def sample_slots(self) -> int:
        """Slots of the largest sample: the hold buffer has room for two such samples."""
        return self.hold_vectors // 2

    @property
    def lookup_window(self) -> int:
        """Lookup beats that each of ``nodes`` requesters may have in flight to one owner.

        One eighth of the requester's share stays free. A peer that exceeds its window is detected
        before it uses the room of another peer.
        """
        share = self.lookup_beats // self.nodes
        return max(1, share - share // 8)

    @property
    def optional(self) -> tuple[bool, bool, bool, bool]:
        """Whether the NIC has the streams of training, of a reliable link, of owner-pooled bags,
        and of their comparison, as :func:`rtl.links.links` takes them."""
        return self.training, self.link, self.owner_bags > 0, self.repeat_positions > 0

    @property
    def bag_window(self) -> int:
        """Beats of bags that each requester may have in flight to one owner; see
        ``lookup_window``."""
        share = self.owner_bag_beats // self.nodes
        return share - share // 8

    @property
    def bag_words(self) -> int:
        """Words of the longest bag that pools at its owner, with its head: a packet's."""
        window = self.bag_window
        if self.training:
            # Owners may leave a quarter of the window unreported, as for partials.
            window -= window >> 2
        return 8 * min(self.net_payload_beats, self.query_beats // 2, window)

    @property
    def gradient_credits(self) -> int:
        """Beats of gradients and of returned spills, together, that the host may send ahead."""
        # Admission requires room for the longest packet, and its check is one cycle old.
        return self.gradient_beats - self.host_payload_beats - 2

    @property
    def gradient_window(self) -> int:
        """Beats of partials that a node may have in flight to each owner; see ``lookup_window``."""
        share = self.partial_beats // self.nodes
        return share - share // 8

    @property
    def net_vectors(self) -> int:
        """Vectors of ``max_dimension`` in a network packet, after their tag beat."""
        return min(32, ((self.net_payload_beats - 1) << self.vector_packing) // self.vector_beats)

    def with_fields(self, **changes: object) -> "NicConfig":
        """Return a copy with ``changes`` applied; an unknown field raises ``ValueError``."""
        known = {f.name for f in fields(self)}
        for name in changes:
            if name not in known:
                raise ValueError(f"no such field: {name} (fields: {', '.join(sorted(known))})")
        return replace(self, **changes)  # type: ignore[arg-type]


PRESETS = {
    "tiny": NicConfig(
        name="tiny", nodes=8, tables=32, max_dimension=64, local_cache_rows=64,
        local_cache_ways=4, remote_cache_rows=32, remote_cache_ways=4, remote_in_flight=64,
        misses_in_flight=16, dedupe_keys=64, dedupe_ways=4, dedupe_in_flight=16,
        scatter_entries=64, hold_vectors=128, dense_vectors=32, query_beats=32, lookup_beats=64,
        interaction_vectors=33, dot_units=2, unique_keys=64, local_gradient_keys=32,
        global_gradient_keys=64, gradient_ways=4, gradient_beats=256, partial_beats=256,
        update_rows=16),
    "kaggle": NicConfig(name="kaggle"),
    "avazu": NicConfig(name="avazu", interaction_vectors=22, dot_units=11),
    "terabyte": NicConfig(
        name="terabyte", max_dimension=64, local_cache_rows=8192, remote_cache_rows=4096,
        hold_vectors=1024, dedupe_keys=4096, unique_keys=8192, local_gradient_keys=128,
        global_gradient_keys=1024),
}
"""The included configurations. ``terabyte`` has the memory bits of ``kaggle`` at dimension 64."""


def preset(name: str) -> NicConfig:
    """Return the preset called ``name``; ``ValueError`` lists the presets."""
    if name not in PRESETS:
        raise ValueError(f"config must be one of {', '.join(PRESETS)}, not {name!r}")
    return PRESETS[name]
