"""Operations on exact sums, and their expected results."""

from dataclasses import dataclass

import numpy as np

from host.dlrm.exact import ExactSum, exact_sums, nearest, split
from tests.rtl.float.cases import SPECIAL

__all__ = ["KINDS", "MINUS_ZERO", "PATTERNS", "Script", "beat", "beats_of", "exact_word",
           "random_script", "terms_of_kind"]

MINUS_ZERO = 0x80000000


def _gaussian(shape, rng):
    return rng.standard_normal(shape).astype(np.float32).view(np.uint32)


def _any_finite(shape, rng):
    bits = rng.integers(0, 1 << 32, shape, dtype=np.uint32)
    return np.where(bits >> 23 & 0xFF == 0xFF, bits & np.uint32(0xBFFFFFFF), bits)


def _any(shape, rng):
    return rng.integers(0, 1 << 32, shape, dtype=np.uint32)


def _subnormal(shape, rng):
    bits = rng.integers(0, 1 << 32, shape, dtype=np.uint32)
    return bits & np.uint32(0x80FFFFFF)


def _huge(shape, rng):
    """Close to the largest number, mostly of one sign: sums exceed it and return."""
    bits = rng.integers(0, 1 << 25, shape, dtype=np.uint32) + np.uint32(0x7D800000)
    return np.where(rng.random(shape) < 0.3, bits | np.uint32(MINUS_ZERO), bits)


def _cancelling(shape, rng):
    """Numbers of which every second one cancels the previous one, or nearly so."""
    bits = _any_finite(shape, rng)
    pairs = len(bits) // 2
    little = rng.integers(0, 4, (pairs, *shape[1:]), dtype=np.uint32) == 0
    bits[1:2 * pairs:2] = bits[:2 * pairs:2] ^ np.uint32(MINUS_ZERO) ^ little
    return bits


def _edges(shape, rng):
    finite = SPECIAL[SPECIAL < 0x7F800000]
    signs = rng.integers(0, 2, shape, dtype=np.uint32) << np.uint32(31)
    return rng.choice(finite, shape) | signs


def _zeros(shape, rng):
    return np.where(rng.random(shape) < 0.1, np.uint32(0), np.uint32(MINUS_ZERO))


def _infinite(shape, rng):
    bits = _gaussian(shape, rng)
    which = rng.random(shape)
    for limit, special in ((0.02, 0x7F800000), (0.04, 0xFF800000), (0.045, 0x7F800001)):
        bits = np.where(which < limit, np.uint32(special), bits)
        which = np.where(which < limit, 1, which)
    return bits


KINDS = {"gaussian": _gaussian, "any_finite": _any_finite, "any": _any, "subnormal": _subnormal,
         "huge": _huge, "cancelling": _cancelling, "edges": _edges, "zeros": _zeros,
         "infinite": _infinite}


def terms_of_kind(kind: str, terms: int, lanes: int, seed: int) -> np.ndarray:
    """Return bits of ``terms`` binary32 for each of ``lanes``: uint32 [terms, lanes]."""
    return KINDS[kind]((terms, lanes), np.random.default_rng(seed)).astype(np.uint32)


PATTERNS = {
    "same": lambda n, entries, rng: np.zeros(n, int),
    "pairs": lambda n, entries, rng: np.arange(n) // 2 % entries,
    "every_second": lambda n, entries, rng: np.arange(n) % 2,
    "every_third": lambda n, entries, rng: np.arange(n) % 3,
    "every_fourth": lambda n, entries, rng: np.arange(n) % 4,
    "every_fifth": lambda n, entries, rng: np.arange(n) % 5,
    "few": lambda n, entries, rng: rng.integers(0, 3, n),
    "uniform": lambda n, entries, rng: rng.integers(0, entries, n),
    "power_law": lambda n, entries, rng: (entries ** rng.random(n)).astype(int) - 1,
}
"""Patterns of the entries of the operations."""


@dataclass
class Script:
    """Operations of a table: arrays by operation, and the sums that are taken, in order."""

    entry: np.ndarray
    data: np.ndarray
    add: np.ndarray
    first: np.ndarray
    take: np.ndarray
    meta: np.ndarray

    def __post_init__(self):
        self.taken: list[tuple[int, list[ExactSum]]] = []
        rows: dict[int, list[int]] = {}
        columns = [column.tolist() for column in (
            self.entry, self.add, self.first, self.take, self.meta)]
        for n, (entry, add, first, take, meta) in enumerate(zip(*columns)):
            if take:
                values = self.data[rows.pop(entry)].view(np.float32)
                self.taken.append((meta, exact_sums(values)))
            if first:
                rows[entry] = []
            if add:
                rows.setdefault(entry, []).append(n)

    def items(self) -> list[dict]:
        """Return the payloads of the operations; an operation that takes and adds becomes two."""
        payloads = []
        for e, d, a, f, t, m in zip(self.entry, self.data, self.add, self.first, self.take,
                                    self.meta):
            operation = {"entry": int(e), "data": beat(d), "meta": int(m)}
            if t:
                payloads.append(operation | {"first": 0, "take": 1})
            if a:
                payloads.append(operation | {"first": int(f or t), "take": 0})
        return payloads


def random_script(operations: int, entries: int, pattern: str, kinds: list[str], lanes: int,
                  seed: int, take: float = 0.1) -> Script:
    """Return a script in which each entry, and each of its sums, has terms of one of ``kinds``.

    A tenth of the taking operations add no term; at the end all entries are taken.
    """
    rng = np.random.default_rng(seed)
    entry = PATTERNS[pattern](operations, entries, rng)
    add, first, takes = np.ones(operations, int), np.zeros(operations, int), np.zeros(
        operations, int)
    data = np.zeros((operations, lanes), np.uint32)
    groups: list[list[int]] = []
    held: dict[int, list[int]] = {}
    for n, where in enumerate(entry.tolist()):
        if where not in held:
            first[n] = 1
        elif rng.random() < take:
            takes[n] = 1
            del held[where]
            if rng.random() < 0.1:
                add[n] = 0
                continue
        if where not in held:
            held[where] = []
            groups.append(held[where])
        held[where].append(n)
    for number, group in enumerate(groups):
        data[group] = terms_of_kind(rng.choice(kinds), len(group), lanes, seed + number)
    left = np.array(sorted(held), int)
    none = np.zeros_like(left)

    def with_end(column, end):
        return np.concatenate([column, end])

    return Script(
        with_end(entry, left), with_end(data, np.zeros((len(left), lanes), np.uint32)),
        with_end(add, none), with_end(first, none), with_end(takes, none + 1),
        np.arange(operations + len(left)))


def exact_word(total: ExactSum) -> int:
    """Return the bits of :data:`rtl.float.exact.EXACT`."""
    return (total.value & (1 << 298) - 1) | total.plus << 298 | total.minus << 299 | (
        total.other << 300)


def beat(words) -> int:
    """Return ``words`` of 32 bits as one number, the first lowest."""
    return sum(int(word) << 32 * lane for lane, word in enumerate(words))


def beats_of(sums: list[ExactSum], splitting: bool) -> list[int]:
    """Return the beats that a table outputs for the ``sums`` of an entry."""
    if not splitting:
        return [beat(nearest(total) for total in sums)]
    terms = [split(total) for total in sums]
    filler = [0 if total.other else MINUS_ZERO for total in sums]
    return [beat(lane[k] if k < len(lane) else zero for lane, zero in zip(terms, filler))
            for k in range(max(map(len, terms)))]
