"""The choice of the node that pools each table: network bytes at the requester and at the owner.

A bag is **foreign** if another node than its requester owns rows of it. Pooled at the requester, a
foreign bag costs a lookup and a vector for each row that the remote cache misses. Pooled at the
owner, it costs its head, its rows, the weights of a weighted bag, and one vector. In training,
partial sums of its rows travel back; or its head, its rows and its gradient, pooled at the owner.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from host.batching.repeats import REPEATS, sent_bags
from host.distinct import distinct
from host.placement.lru import LruCaches
from host.placement.reduction import reduction
from host.placement.shard import Placement, ShardPlan, key_hash
from host.samples import KEY_ROW_BITS, Samples, share_sizes
from host.wire.bags import NARROW_ROWS, bag_keys
from rtl.config import NicConfig
from rtl.formats import (
    BEAT_BYTES,
    RECORD_BITS,
    RECORDS_PER_BEAT,
    TABLE_BITS,
    TAG_BITS,
    TAGS_PER_BEAT,
    DescriptorKind,
    PoolPlace,
    words_of,
)

__all__ = ["ForeignBags", "PoolBytes", "Wire", "bag_bound", "choose_pools", "most_keys",
           "pool_obstacles", "sent_one_by_one"]

_WORD, _TAG = RECORD_BITS // 8, TAG_BITS // 8
_KEY_BITS = KEY_ROW_BITS + TABLE_BITS


@dataclass(frozen=True)
class Wire:
    """Bytes on the network.

    Members
    -------
    vector_bytes: bytes of a vector, without its tag.
    vectors: most vectors of a packet; 0 leaves out the headers of packets.
    words: most words of a packet of lookups or bags; 0 leaves out the headers of packets.
    bag_beats: beats of a bag's vector of each table; empty for vectors of ``vector_bytes``.
    """

    vector_bytes: int
    vectors: int = 0
    words: int = 0
    bag_beats: tuple[int, ...] = ()

    @property
    def bag_bytes(self) -> int | np.ndarray:
        """Bytes of a bag's vector: of any table, or int64 ``[tables]``."""
        return np.minimum(self.vector_bytes, BEAT_BYTES * np.array(self.bag_beats)) if (
            self.bag_beats) else self.vector_bytes

    @property
    def bag_vectors(self) -> int | np.ndarray:
        """Most vectors of bags in a packet: of any table, or int64 ``[tables]``."""
        if not self.bag_beats:
            return self.vectors
        room = (self.words // RECORDS_PER_BEAT - 1) * BEAT_BYTES  # one beat has the tags
        return np.clip(room // self.bag_bytes, 1, TAGS_PER_BEAT)

    def requester_bytes(self, missed_rows: np.ndarray) -> np.ndarray:
        """Return the payload bytes of each table that pools at the requester: int64."""
        return missed_rows * (self.vector_bytes + _TAG + _WORD)

    def owner_bytes(self, bags: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Return the payload bytes of each table that pools at the owner: int64.

        words: words of all bags of a table, heads included.
        """
        return bags * (self.bag_bytes + _TAG) + words * _WORD

    def partial_bytes(self, partials: np.ndarray) -> np.ndarray:
        """Return the bytes of ``partials`` of gradients of each table, each a vector with a record
        per beat, and of headers: int64."""
        size = self.vector_bytes + _WORD * -(-self.vector_bytes // BEAT_BYTES)
        return partials * size + self._headers(partials * size)

    def gradient_bytes(self, bags: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Return the bytes of the ``bags`` of each table with their gradients, and of headers:
        int64. ``words``: of the bags, without gradients."""
        size = _WORD * words + bags * self.vector_bytes
        if not self.words:
            return size
        # A bag does not cross packets.
        fit = np.maximum(1, self.words * _WORD * bags // np.maximum(size, 1))
        return size + -(-bags // fit) * BEAT_BYTES

    def _headers(self, size: np.ndarray) -> np.ndarray:
        return size // (self.words * _WORD) * BEAT_BYTES if self.words else np.zeros_like(size)

    def vector_headers(self, vectors: np.ndarray, fit: int | np.ndarray) -> np.ndarray:
        """Return the bytes of headers and of unused tags in full packets of ``fit`` vectors, which
        contain ``vectors``: int64."""
        if not self.vectors:
            return np.zeros_like(vectors)
        return vectors * (2 * BEAT_BYTES - _TAG * fit) // fit

    def word_headers(self, words: np.ndarray) -> np.ndarray:
        """Return the bytes of headers in full packets with ``words`` of lookups or bags: int64."""
        return words * BEAT_BYTES // self.words if self.words else np.zeros_like(words)


@dataclass(frozen=True)
class PoolBytes:
    """Network traffic of each table, all int64 ``[tables]``.

    Members
    -------
    missed_rows: rows that the remote caches miss. For tables pooled at the owner: the rows if all
        tables pooled at the requester.
    requester_bytes, owner_bytes: payload if the table pools there: records, words, tags, vectors.
    requester_headers, owner_headers: headers of full packets and unused tags; 0 where the `Wire`
        leaves them out.
    requester_gradients, owner_gradients: gradients with headers if the table pools there; 0 in
        inference.
    """

    missed_rows: np.ndarray
    requester_bytes: np.ndarray
    owner_bytes: np.ndarray
    requester_headers: np.ndarray
    owner_headers: np.ndarray
    requester_gradients: np.ndarray
    owner_gradients: np.ndarray

    @classmethod
    def of(cls, wire: Wire, bags: np.ndarray, words: np.ndarray, missed_rows: np.ndarray,
           partials: np.ndarray | None = None,
           sent: tuple[np.ndarray, np.ndarray] | None = None) -> "PoolBytes":
        """Return the bytes of tables with foreign ``bags`` of ``words`` words; ``partials``: see
        `ForeignBags`, None in inference. ``sent``: bags with gradients and their words, None for
        ``bags`` and ``words``; see :func:`sent_one_by_one`."""
        none = np.zeros_like(bags)
        return cls(missed_rows, wire.requester_bytes(missed_rows), wire.owner_bytes(bags, words),
                   wire.vector_headers(missed_rows, wire.vectors) + wire.word_headers(missed_rows),
                   wire.vector_headers(bags, wire.bag_vectors) + wire.word_headers(words),
                   *((none, none) if partials is None else
                     (wire.partial_bytes(partials),
                      wire.gradient_bytes(*(sent or (bags, words))))))

    @property
    def at_requester(self) -> np.ndarray:
        """All bytes, pooled at the requester: int64 ``[tables]``."""
        return self.requester_bytes + self.requester_headers + self.requester_gradients

    @property
    def at_owner(self) -> np.ndarray:
        """All bytes, pooled at the owner: int64 ``[tables]``."""
        return self.owner_bytes + self.owner_headers + self.owner_gradients

    def chosen(self, pools: Sequence[PoolPlace]) -> np.ndarray:
        """Return all bytes of each table at its pool place: int64 ``[tables]``."""
        return np.where(np.array(pools) == PoolPlace.OWNER, self.at_owner, self.at_requester)


class ForeignBags:
    """Foreign bags and keys of mini-batches under a plan.

    The pool places of the plan have no effect. The keys are held for :meth:`missed_rows`: 10 bytes
    a key.

    Parameters
    ----------
    plan: owners of the rows.
    mini_batches: samples of each mini-batch, over all nodes.
    repeats: repeated bags that are not sent, one of `host.batching.repeats.REPEATS`; they count as
        empty.
    reducer: NICs that sum the gradients of rows, in training; None in inference.

    Members, int64 ``[tables]`` and sums over all shares of all mini-batches; a share is the part of
    a mini-batch of one node
    -------
    bags: bags with a foreign row; empty bags are never foreign. node_bags: of each requester,
        ``[nodes, tables]``.
    keys: foreign keys. node_keys: of each requester.
    rows: distinct foreign rows per share and mini-batch.
    words: words of the foreign bags, heads included, if they pool at their owner.
    longest: keys of the longest bag, foreign or not.
    partials: partial sums of gradients to other nodes if all tables pool at the requester; None
        without a ``reducer``.

    ``samples``: samples of the mini-batches.
    """

    def __init__(self, plan: ShardPlan, mini_batches: Iterable[Samples] = (),
                 repeats: str = REPEATS[0], reducer: NicConfig | None = None):
        tables = len(plan.tables)
        self.plan, self._repeats, self._reducer = plan, repeats, reducer
        self.partials = None if reducer is None else np.zeros(tables, np.int64)
        self.samples = 0
        self.rows, self.words, self.longest = (np.zeros(tables, np.int64) for _ in range(3))
        self.node_bags, self.node_keys = (
            np.zeros((plan.nodes, tables), np.int64) for _ in range(2))
        self._wide = np.array([table.rows > NARROW_ROWS for table in plan.tables], np.int64)
        self._held: list[tuple[np.ndarray, np.ndarray]] = []
        for batch in mini_batches:
            self.add(batch)

    @property
    def bags(self) -> np.ndarray:
        return self.node_bags.sum(axis=0)

    @property
    def keys(self) -> np.ndarray:
        return self.node_keys.sum(axis=0)

    def add(self, batch: Samples) -> None:
        """Add a mini-batch."""
        self.samples += len(batch)
        nodes, tables = self.plan.nodes, len(self.plan.tables)
        batch = sent_bags(batch, nodes, self._repeats)
        lengths = batch.bag_lengths.astype(np.int64)
        np.maximum(self.longest, lengths.max(axis=0, initial=0), out=self.longest)
        requester = batch.requesters(nodes)
        foreign = self.plan.owner_of(batch.tables, batch.rows, requester) != requester
        full = lengths.reshape(-1) > 0
        bag = np.zeros(lengths.size, bool)
        if len(foreign):
            bag[full] = np.logical_or.reduceat(foreign, batch.bag_offsets[:-1][full])
        bag = bag.reshape(lengths.shape)
        bounds = np.cumsum((0, *share_sizes(len(batch), nodes)))
        self.node_bags += [bag[first:end].sum(axis=0) for first, end in pairwise(bounds)]
        self.words += np.where(bag, 1 + words_of(lengths, self._wide, self.plan.weighted),
                               0).sum(axis=0)
        self.node_keys += np.bincount(
            requester[foreign] * tables + batch.tables[foreign],
            minlength=nodes * tables).reshape(nodes, tables)
        node, key = requester[foreign].astype(np.uint8), batch.keys[foreign]
        every = distinct(node.astype(np.int64) << _KEY_BITS | key)
        self.rows += np.bincount(_table(every), minlength=tables)
        self._held.append((node, key))
        if self._reducer is not None and self.partials is not None:
            self.partials += reduction(batch, self.plan, self._reducer).foreign

    def missed_rows(self, looked_up: np.ndarray, sets: int, ways: int) -> np.ndarray:
        """Return the foreign rows of each table that LRU remote caches miss: int64 ``[tables]``.

        looked_up: tables whose keys enter the caches, bool ``[tables]``; 0 rows for other tables.
        sets, ways: size of a node's remote cache, which is empty at first; 0 sets miss every key.
        """
        if not sets:
            return np.where(looked_up, self.keys, 0)
        return self.missed_by(LruCaches(sets, ways, self.plan.nodes), looked_up)

    def missed_by(self, caches: LruCaches, looked_up: np.ndarray) -> np.ndarray:
        """Return :meth:`missed_rows` of ``caches``, which keep their rows."""
        found = np.zeros(len(looked_up), np.int64)
        for _, table, _ in self._missed(caches, looked_up):
            found += np.bincount(table, minlength=len(found))
        return found

    def missed_pairs(self, looked_up: np.ndarray, sets: int, ways: int) -> np.ndarray:
        """Return :meth:`missed_rows` of each pair of nodes: int64 ``[requester, owner, tables]``.
        """
        nodes, tables = self.plan.nodes, len(looked_up)
        found = np.zeros(nodes * nodes * tables, np.int64)
        for node, table, row in self._missed(LruCaches(sets, ways, nodes), looked_up):
            owner = self.plan.owner_of(table, row, node)
            found += np.bincount((node * nodes + owner) * tables + table, minlength=len(found))
        return found.reshape(nodes, nodes, tables)

    def _missed(self, caches: LruCaches, looked_up: np.ndarray,
                ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield requester, table and row of the keys that ``caches`` miss, by mini-batch."""
        for node, key in self._held:
            table = _table(key)
            entered = looked_up[table]
            node, key, table = node[entered].astype(np.int64), key[entered], table[entered]
            row = key & ((1 << KEY_ROW_BITS) - 1)
            missed = ~caches.access(node, key_hash(table, row), key)
            yield node[missed], table[missed], row[missed]

    def bytes_of(self, wire: Wire, pools: Sequence[PoolPlace], sets: int, ways: int) -> PoolBytes:
        """Return the bytes of each table with its place in ``pools``.

        sets, ways: as in :meth:`missed_rows`.
        """
        owner = np.array(pools) == PoolPlace.OWNER
        missed = self.missed_rows(~owner, sets, ways)
        if owner.any():
            every = self.missed_rows(np.ones(len(owner), bool), sets, ways)
            missed = np.where(owner, every, missed)
        return PoolBytes.of(wire, self.bags, self.words, missed, self.partials, self.sent)

    @property
    def sent(self) -> tuple[np.ndarray, np.ndarray]:
        """Foreign bags with gradients, and their words, if all tables pool at their owner: int64
        ``[tables]`` each."""
        return sent_one_by_one(self.plan, self.bags, self.words, self.keys)


def sent_one_by_one(plan: ShardPlan, bags: np.ndarray, words: np.ndarray,
                    keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the bags with gradients of each table, and their words: each of the ``keys`` of a
    weighted table is sent as a bag of a head and a row."""
    return np.where(plan.weighted, keys, bags), np.where(plan.weighted, 2 * keys, words)


def _table(keys: np.ndarray) -> np.ndarray:
    """Return the table of each key, which may have a node above its table: int64 ``[n]``."""
    return keys >> KEY_ROW_BITS & ((1 << TABLE_BITS) - 1)


def choose_pools(foreign: ForeignBags, wire: Wire, obstacles: Sequence[str | None],
                 sets: int, ways: int, needed: np.ndarray | None = None) -> list[PoolPlace]:
    """Return the pool place of each table that needs the fewest network bytes, headers and, in
    training, gradients included.

    At first all tables pool at the requester. Then tables that need fewer bytes at the owner move
    there, and the caches are computed again for the remaining tables, until no table moves. Fewer
    tables in an LRU cache never cause more misses, so each round reduces the bytes. A table without
    a difference stays at the requester.

    obstacles: :func:`pool_obstacles`; a table with an obstacle stays at the requester.
    sets, ways: size of a node's remote cache, see :meth:`ForeignBags.missed_rows`.
    needed: tables that pool at their owner for any bytes, bool ``[tables]``; None for no table.
    """
    free = np.array([obstacle is None for obstacle in obstacles])
    owner = np.zeros(len(free), bool) if needed is None else needed & free
    while True:
        missed = foreign.missed_rows(~owner, sets, ways)
        costs = PoolBytes.of(wire, foreign.bags, foreign.words, missed, foreign.partials,
                             foreign.sent)
        moved = free & ~owner & (costs.at_owner < costs.at_requester)
        if not moved.any():
            return [PoolPlace.OWNER if place else PoolPlace.REQUESTER for place in owner]
        owner |= moved


def most_keys(config: NicConfig, table: Placement) -> int:
    """Return the most keys of a bag of ``table`` if it pools at its owner."""
    return bag_keys(config.bag_words - 1, table.rows > NARROW_ROWS, table.weighted)


def pool_obstacles(plan: ShardPlan, config: NicConfig,
                   longest: Sequence[int]) -> list[str | None]:
    """Return the reason for which each table cannot pool at its owner, None where it can.

    longest: keys of the longest bag of each table.
    """
    return [f"its rows are hashed over {table.owners} nodes"
            if table.kind == DescriptorKind.ROW else
            f"its bags must have at most {most_keys(config, table)} keys "
            f"{bag_bound(config)}, not {keys}"
            if keys > most_keys(config, table) else None
            for table, keys in zip(plan.tables, longest)]


def bag_bound(config: NicConfig) -> str:
    """Return the size of the NIC that bounds a bag: ``with field value``."""
    beats = config.bag_words // RECORDS_PER_BEAT
    name = next((name for name, size in (("net_payload_beats", config.net_payload_beats),
                                         ("query_beats", config.query_beats // 2))
                 if size == beats), "owner_bag_beats")
    return f"with {name} {getattr(config, name)}"
