"""Words of bags, and a splitter of packets in Python."""

import random

import numpy as np

from host.wire.packets import pack_records
from rtl.formats import BagHead, QueryBag, QueryRecord, RecordKind, words_of

__all__ = ["DCNV2_BAGS", "bad_row", "bag", "bags_of", "beats_of_packet", "outgoing", "record",
           "segments_of"]

DCNV2_BAGS = (3, 2, 1, 2, 6, 1, 1, 1, 1, 7, 3, 8, 1, 6, 9, 5, 1, 1, 1, 12, 100, 27, 10, 3, 1, 1)
"""Keys of a sample of MLPerf's DLRM-DCNv2 in each table."""


def bag(rng: random.Random, keys: int, *, query: bool = True, wide: int = 0,
        weighted: int = 0) -> list[int]:
    """Return the words of a bag: its head, and random rows and weights."""
    fields = {"keys": keys, "wide": wide, "weighted": weighted, "table": rng.getrandbits(12)}
    head = (pack_records(QueryBag, kind=RecordKind.KEY_END, bag=1, **fields) if query else
            pack_records(BagHead, landing=rng.getrandbits(16), **fields))
    return [int(head[0]), *(rng.getrandbits(64) for _ in range(words_of(keys, wide, weighted)))]


def record(rng: random.Random) -> list[int]:
    """Return the word of a random record of a query."""
    return [int(pack_records(QueryRecord, row=rng.getrandbits(36), table=rng.getrandbits(12),
                             kind=np.uint64(rng.randrange(4)))[0])]


def beats_of_packet(words: list[int], user, fresh: int = 0) -> list[dict]:
    """Return the beats of a packet of ``words``."""
    firsts = range(0, len(words), 8)
    return [{"data": sum(word << 64 * k for k, word in enumerate(words[first:first + 8])),
             "records": len(words[first:first + 8]), "last": int(first == firsts[-1]),
             "fresh": fresh if first == 0 else 0, "user": user} for first in firsts]


def segments_of(words: list[int], user, most: int, plain: bool = True,
                whole: bool = True) -> list[dict]:
    """Return the items of a packet of ``words``, as a SegmentSplit outputs them.

    whole: false if the packet continues, but its later beats do not arrive.
    """
    items, at = [], 0
    beats = [beat["data"] for beat in beats_of_packet(words, user)]
    while at < len(words):
        head = words[at]
        keys, wide, weighted = head & 0xFFFF, head >> 16 & 1, head >> 17 & 1
        is_bag = not plain or head >> 48 & 7 == (4 | RecordKind.KEY_END)
        size = 1 + words_of(keys, wide, weighted) if is_bag else 1
        long, keys = int(size > most), keys if is_bag else 0
        first, past = at, len(words) + 1 if long else at + size
        end = min(len(words), past)
        while at < end:
            stop = min(end, at // 8 * 8 + 8)
            cut = int(whole and stop == len(words) < past)
            items.append({
                "segment": {
                    "words": beats[at // 8], "first": at % 8, "size": stop - at,
                    "head": int(is_bag and at == first), "tail": int(stop == past or cut),
                    "keys": keys},
                "record": head, "plain": int(not is_bag), "cut": cut, "long": long,
                "beat_last": int(stop % 8 == 0 or stop == len(words)), "user": user})
            rows = stop - at - (at == first)
            keys = max(0, keys - (rows if wide else 2 * rows))
            at = stop
    return items


def bad_row(segment: dict, rows: int, wide: int) -> bool:
    """Return whether ``segment`` contains a row beyond ``rows``, or a bit above a wide row."""
    begin, stop = segment["first"] + segment["head"], segment["first"] + segment["size"]
    words = [segment["words"] >> 64 * k & (1 << 64) - 1 for k in range(begin, stop)]
    found = words if wide else [half for word in words for half in (word & 0xFFFFFFFF, word >> 32)]
    return any(row >= rows for row in found[:segment["keys"]])


def outgoing(rng: random.Random, words: list[int], destination: int, step: int, *,
             first: int | None = None) -> list[dict]:
    """Return the OutgoingSegments of a bag of ``words``.

    first: word of a beat at which the bag begins; random by default. The other words of the beats
    are random.
    """
    at = rng.randrange(8) if first is None else first
    before = [rng.getrandbits(64) for _ in range(at)]
    after = [rng.getrandbits(64) for _ in range(-(at + len(words)) % 8)]
    beats = beats_of_packet([*before, *words, *after], 0)
    keys, wide, items = words[0] & 0xFFFF, words[0] >> 16 & 1, []
    left = keys
    for number, beat in enumerate(beats):
        head, tail = number == 0, number == len(beats) - 1
        start, stop = at if head else 0, 8 - len(after) if tail else 8
        items.append({
            "segment": {"words": beat["data"], "first": start, "size": stop - start,
                        "head": int(head), "tail": int(tail), "keys": left},
            "destination": destination, "step": step, "words": len(words)})
        rows = stop - start - head
        left = max(0, left - (rows if wide else 2 * rows))
    return items


def bags_of(words: list[int]) -> list[list[int]]:
    """Split the words of a packet into bags; the last bag must end with the packet."""
    bags, at = [], 0
    while at < len(words):
        head = words[at]
        size = 1 + words_of(head & 0xFFFF, head >> 16 & 1, head >> 17 & 1)
        assert at + size <= len(words), "a bag is cut by its packet"
        bags.append(words[at:at + size])
        at += size
    return bags
