"""Bags of owner-pooled tables: their words in queries and lists, and their pooled vectors.

The weights of a weighted bag follow its rows, two per word, see :data:`rtl.formats.BagHead`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from host.distinct import distinct
from host.dlrm.dlrm import pool_rounded
from host.dlrm.formats import FLOAT32, VectorFormat
from host.samples import Samples, segment_indices
from host.wire.packets import gpu_vectors, pack_records, record_fields
from rtl.config import LANES, ROW_BITS
from rtl.formats import (
    BagHead,
    Opcode,
    QueryBag,
    QueryRecord,
    RecordKind,
    SampleRecord,
    words_of,
)

__all__ = ["NARROW_ROWS", "BagList", "ReadRows", "bag_heads", "bag_keys", "bag_queries",
           "bag_vectors", "bag_words", "parse_bags", "pooled_bags"]

NARROW_ROWS = 1 << 32
"""Most rows of a table whose bags have two rows per word; bags of larger tables are wide."""

ReadRows = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Returns the vectors, float32 ``[k, dimension]``, of keys by table and row, int64 ``[k]`` each."""


@dataclass(frozen=True, eq=False)
class BagList:
    """Bags in the order of their words.

    Members
    -------
    tables: table of each bag: int64 ``[n]``.
    lengths: keys of each bag, at least 1: int64 ``[n]``.
    rows: rows of all bags, concatenated: int64 ``[lengths.sum()]``.
    landings: landing of each bag: int64 ``[n]``.
    wide: whether a bag has one row per word, not two: bool ``[n]``.
    weights: weight of each row, float32 ``[lengths.sum()]``; None if no bag is weighted.
    weighted: whether a bag uses its weights: bool ``[n]``; None if no bag is weighted.
    """

    tables: np.ndarray
    lengths: np.ndarray
    rows: np.ndarray
    landings: np.ndarray
    wide: np.ndarray
    weights: np.ndarray | None = None
    weighted: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.tables)

    @property
    def key_tables(self) -> np.ndarray:
        """The table of each key: int64 ``[lengths.sum()]``."""
        return np.repeat(self.tables, self.lengths)

    @property
    def with_weights(self) -> np.ndarray:
        """Whether each bag is weighted: bool ``[n]``."""
        return np.zeros(len(self), bool) if self.weighted is None else self.weighted

    @property
    def weight_count(self) -> int:
        """Weights that its bags use."""
        return int(self.lengths[self.with_weights].sum())


def bag_words(bags: BagList) -> np.ndarray:
    """Return the words of ``bags`` back to back, each bag after its head: uint64."""
    weighted = bags.with_weights
    sizes = 1 + words_of(bags.lengths, bags.wide, weighted)
    heads = np.cumsum(sizes) - sizes
    words = np.zeros(int(sizes.sum()), np.uint64)
    words[heads] = pack_records(BagHead, keys=bags.lengths, wide=bags.wide, weighted=weighted,
                                table=bags.tables, landing=bags.landings)
    _put_keys(words, heads + 1, bags.lengths, bags.wide, bags.rows, bags.weights, weighted)
    return words


def _put_keys(words: np.ndarray, firsts: np.ndarray, lengths: np.ndarray, wide: np.ndarray,
              rows: np.ndarray, weights: np.ndarray | None, weighted: np.ndarray) -> None:
    """Write the rows of bags, and the weights of ``weighted`` bags, into ``words``, of each bag
    from the word in ``firsts`` on."""
    _put(words, *_row_places(firsts, lengths, wide), rows)
    if weights is not None:
        _put(words, *_weight_places(firsts, lengths, wide, weighted),
             weights[np.repeat(weighted, lengths)].view(np.uint32))


def _put(words: np.ndarray, place: np.ndarray, shift: np.ndarray, values: np.ndarray) -> None:
    """Write each of ``values`` into the word ``place``, from its bit ``shift`` on, 0 or 32."""
    for half in (0, 32):
        mine = shift == half
        words[place[mine]] |= values[mine].astype(np.uint64) << np.uint64(half)


def _weight_places(firsts: np.ndarray, lengths: np.ndarray, wide: np.ndarray,
                   weighted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the word and the lowest bit of each weight of the ``weighted`` bags."""
    firsts = (firsts + words_of(lengths, wide, 0))[weighted]
    return _row_places(firsts, lengths[weighted], np.zeros(len(firsts), bool))


def _row_places(firsts: np.ndarray, lengths: np.ndarray,
                wide: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the word and the lowest bit of each row of bags: int64 ``[lengths.sum()]`` each."""
    key = segment_indices(np.zeros(len(lengths), np.int64), lengths)
    pair = np.repeat(~wide, lengths).astype(np.int64)
    return np.repeat(firsts, lengths) + (key >> pair), 32 * (key & pair)


def bag_heads(fields: Mapping[str, np.ndarray], more: np.ndarray | int = 0,
              ) -> tuple[np.ndarray, np.ndarray]:
    """Return the place of each head in a list, and the words of its bag: int64 ``[n]``.

    fields: the fields of each word, read as a head. more: words of a bag besides its head, rows and
    weights, if the word is its head.

    ``ValueError`` if the words end inside a bag.
    """
    sizes = 1 + more + words_of(*(
        fields[name].astype(np.int64) for name in ("keys", "wide", "weighted")))
    found, at = [], 0
    while at < len(sizes):
        found.append(at)
        at += int(sizes[at])
    heads = np.array(found, np.int64)
    if at > len(sizes):
        raise ValueError(f"bag {len(heads) - 1} of a list has {sizes[heads[-1]]} words, "
                         f"but {len(sizes) - heads[-1]} are left")
    return heads, sizes[heads]


def parse_bags(words: np.ndarray) -> BagList:
    """Return the bags in ``words``, uint64 ``[n]``.

    ``ValueError`` if the words end inside a bag, or a bag has no keys, several parts, or a row of
    more bits than a row has.
    """
    fields = record_fields(BagHead, words)
    heads, _ = bag_heads(fields)
    head = {name: values[heads].astype(np.int64) for name, values in fields.items()}
    for name in ("part", "more"):
        if head[name].any():
            raise ValueError(f"bag {head[name].argmax()} of a list has several parts")
    lengths, wide = head["keys"], head["wide"].astype(bool)
    if not lengths.all():
        raise ValueError(f"bag {lengths.argmin()} of a list has no keys")
    place, shift = _row_places(heads + 1, lengths, wide)
    bits = np.where(np.repeat(wide, lengths), np.uint64(0xFFFF_FFFF_FFFF_FFFF),
                    np.uint64(0xFFFF_FFFF))
    rows = words[place] >> shift.astype(np.uint64) & bits
    if (rows >> np.uint64(ROW_BITS)).any():
        raise ValueError(f"a bag of a list has row {int(rows.max()):#x}, above {ROW_BITS} bits")
    weights, weighted = None, head["weighted"].astype(bool)
    if weighted.any():
        weights = np.ones(len(rows), np.float32)
        place, shift = _weight_places(heads + 1, lengths, wide, weighted)
        weights[np.repeat(weighted, lengths)] = (
            words[place] >> shift.astype(np.uint64)).astype(np.uint32).view(np.float32)
    return BagList(head["table"], lengths, rows.astype(np.int64), head["landing"], wide,
                   weights, None if weights is None else weighted)


def bag_keys(words: int, wide: bool, weighted: bool) -> int:
    """Return the most keys of a bag of at most ``words`` words without its head, see
    :func:`rtl.formats.words_of`."""
    if not weighted:
        return words if wide else 2 * words
    return 2 * words // 3 if wide else 2 * (words // 2)


def bag_queries(samples: Samples, first_sample: int, owner_pooled: np.ndarray,
                sent: np.ndarray | None = None, weighted: np.ndarray | None = None,
                ) -> tuple[np.ndarray, np.ndarray]:
    """Return the query words of ``samples``, and the places of their items: uint64, int64.

    A sample is a head and its slots in order. A bag of an owner-pooled table is a single slot: a
    `QueryBag`, the rows, and the weights of a weighted bag. Other slots are as in
    :func:`host.wire.packets.query_records`. A packet may begin at any item: a head, a record or a
    bag.

    owner_pooled: rows of each owner-pooled table by its number, 0 for other tables: int64
    ``[tables]``. sent: as of :func:`host.wire.packets.query_records`. weighted: whether the bags of
    each table by its number have weights: bool ``[tables]``; None for no table.

    ``ValueError`` if a sample has too many slots, or weights are missing.
    """
    n, columns = samples.bag_lengths.shape
    here = np.ones(n * columns, bool) if sent is None else sent.reshape(-1)
    lengths = samples.bag_lengths.reshape(-1).astype(np.int64)
    begins = samples.bag_offsets[:-1]
    tables = np.zeros(len(lengths), np.int64)
    tables[lengths > 0] = samples.tables[begins[lengths > 0]]
    bag = here & (lengths > 0) & (owner_pooled[tables] > 0)
    wide = owner_pooled[tables] > NARROW_ROWS
    heavy = np.zeros(len(bag), bool) if weighted is None else bag & weighted[tables]
    if samples.weights is None and heavy.any():
        raise ValueError(f"weights must be given for table {tables[heavy.argmax()]}, whose bags "
                         f"have weights, not None")
    slots = (here * np.where(bag, 1, np.maximum(lengths, 1))).reshape(n, columns).sum(axis=1)
    most, bits = int(slots.max(initial=0)), SampleRecord.members["slots"]
    if most >> bits:
        raise ValueError(f"slots of a sample must fit {bits} bits, not {most!r}")
    sizes = here * np.where(bag, 1 + words_of(lengths, wide, heavy), np.maximum(lengths, 1))
    headed = slots > 0
    firsts = np.cumsum(sizes) - sizes + np.repeat(np.cumsum(headed), columns)
    words = np.zeros(int(sizes.sum()) + np.count_nonzero(headed), np.uint64)

    sample_words = sizes.reshape(n, columns).sum(axis=1)[headed] + 1
    heads = np.cumsum(sample_words) - sample_words
    words[heads] = pack_records(
        SampleRecord, sample=(np.flatnonzero(headed) + first_sample) & 0xFFFFFFFF,
        slots=slots[headed], kind=np.full(len(heads), RecordKind.SAMPLE))

    full, empty = here & ~bag & (lengths > 0), firsts[here & (lengths == 0)]
    of_bag, of_key = np.repeat(bag, lengths), np.repeat(full, lengths)
    places = segment_indices(firsts[full], lengths[full])
    kinds = np.full(len(places), RecordKind.KEY)
    kinds[np.cumsum(lengths[full]) - 1] = RecordKind.KEY_END
    words[places] = pack_records(QueryRecord, row=samples.rows[of_key],
                                 table=samples.tables[of_key], kind=kinds)
    words[empty] = pack_records(QueryRecord, kind=np.full(len(empty), RecordKind.EMPTY))

    words[firsts[bag]] = pack_records(
        QueryBag, keys=lengths[bag], wide=wide[bag], weighted=heavy[bag], table=tables[bag],
        kind=np.full(int(bag.sum()), RecordKind.KEY_END), bag=np.ones(int(bag.sum()), np.int64))
    _put_keys(words, firsts[bag] + 1, lengths[bag], wide[bag], samples.rows[of_bag],
              None if samples.weights is None else samples.weights[of_bag], heavy[bag])
    return words, np.sort(np.concatenate((heads, places, empty, firsts[bag])))


def pooled_bags(bags: BagList, read: ReadRows, pooling: str = "sum",
                wire: VectorFormat = FLOAT32, at_owner: np.ndarray | None = None) -> np.ndarray:
    """Return the pooled vector of each bag: float32 ``[n, dimension]``; see
    :func:`host.dlrm.dlrm.pool_rounded`. ``at_owner``: None if all bags pool at their owner."""
    return pool_rounded(read(bags.key_tables, bags.rows), bags.lengths, pooling, bags.weights,
                        bags.weighted, wire, bags.tables,
                        np.ones(len(bags), bool) if at_owner is None else at_owner)


def bag_vectors(bags: BagList, read: ReadRows, beats: np.ndarray, *, node: int, step: int,
                payload_beats: int, wire: VectorFormat = FLOAT32) -> list[np.ndarray]:
    """Return the GPU_BAGS packets with the sums of ``bags``; the landings are the tags.

    beats: beats of a vector of each table, int64 ``[tables]``. A packet has vectors of one size,
    short vectors first. wire: format of the vectors.
    """
    vectors = wire.packed(pooled_bags(bags, read), bags.tables)
    sizes, packets = beats[bags.tables], []
    for size in distinct(sizes):
        mine = sizes == size
        packets += gpu_vectors(
            bags.landings[mine].astype(np.uint16), vectors[mine, :size * LANES], node=node,
            step=step, payload_beats=payload_beats, opcode=Opcode.GPU_BAGS,
            final_beat=int(size) - 1)
    return packets
