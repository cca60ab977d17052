"""Bags with their gradients: their words in packets, from the host and in lists to the GPU."""

from dataclasses import dataclass

import numpy as np

from host.samples import segment_indices
from host.wire.bags import BagList, bag_heads, bag_words, parse_bags
from host.wire.packets import query_packets, record_fields
from rtl.formats import LANDING_BITS, GradientHead, Opcode, words_of

__all__ = ["BagGradients", "gradient_bag_packets", "split_lists"]

_MARK = np.uint64(1 << GradientHead["gradient"].offset)
_SOURCE = np.uint64(GradientHead["source"].offset)


@dataclass(frozen=True, eq=False)
class BagGradients:
    """Bags with gradients.

    Members
    -------
    bags: the bags; the landing is the number of the bag's sample in the share of its node.
    sources: node of each bag: int64 ``[n]``.
    vectors: gradient of each bag: float32 ``[n, dimension]``, or uint32 ``[n, lanes]`` in another
        format.
    """

    bags: BagList
    sources: np.ndarray
    vectors: np.ndarray

    def __len__(self) -> int:
        return len(self.bags)

    @property
    def words(self) -> np.ndarray:
        """The words of the bags back to back, with ``sources`` in the heads: uint64."""
        plain, heads = bag_words(self.bags), self._heads(0)
        plain[heads] |= _MARK | self.sources.astype(np.uint64) << _SOURCE
        each = self.vectors.shape[1] // 2
        found = np.zeros(len(plain) + each * len(self), np.uint64)
        of_vectors = np.zeros(len(found), bool)
        ends = np.append(heads, len(plain))[1:] + each * np.arange(len(self))
        of_vectors[segment_indices(ends, np.full(len(self), each))] = True
        found[~of_vectors] = plain
        found[of_vectors] = np.ascontiguousarray(self.vectors).view("<u8").reshape(-1)
        return found

    @property
    def places(self) -> np.ndarray:
        """Place of each head in :attr:`words`: int64 ``[n]``."""
        return self._heads(self.vectors.shape[1] // 2)

    def _heads(self, more: int) -> np.ndarray:
        sizes = 1 + more + words_of(self.bags.lengths, self.bags.wide.astype(np.int64), 0)
        return np.cumsum(sizes) - sizes


def gradient_bag_packets(gradients: BagGradients, *, node: int, step: int,
                         payload_beats: int) -> list[np.ndarray]:
    """Return the BAG_GRADIENTS packets of ``gradients``, each bag whole.

    ``ValueError`` if a bag exceeds a packet, or a sample's number its field.
    """
    if len(gradients) and int(gradients.bags.landings.max()) >> LANDING_BITS:
        raise ValueError(f"samples of a node's share must be at most {1 << LANDING_BITS} in "
                         f"training with tables that pool at their owner, not "
                         f"{int(gradients.bags.landings.max()) + 1}")
    return query_packets(gradients.words, node=node, step=step, payload_beats=payload_beats,
                         items=gradients.places, opcode=Opcode.BAG_GRADIENTS)


def split_lists(words: np.ndarray, dimension: int) -> tuple[np.ndarray, BagGradients]:
    """Split the ``words`` of a list: return those of bags without gradients, and the bags with
    gradients of ``dimension`` lanes.

    ``ValueError`` as of :func:`host.wire.bags.parse_bags`, and for a gradient of a weighted bag.
    """
    fields, each = record_fields(GradientHead, words), dimension // 2
    marked = fields["gradient"].astype(bool)
    begins, sizes = bag_heads(fields, each * marked)
    mine, ends = marked[begins], begins + sizes
    if (heavy := mine & fields["weighted"][begins].astype(bool)).any():
        raise ValueError(f"bag {heavy.argmax()} of a list has weights and a gradient")
    of_gradients = np.zeros(len(words), bool)
    of_gradients[segment_indices(begins[mine], sizes[mine])] = True
    of_vectors = np.zeros(len(words), bool)
    of_vectors[segment_indices(ends[mine] - each, np.full(int(mine.sum()), each))] = True
    return words[~of_gradients], BagGradients(
        parse_bags(words[of_gradients & ~of_vectors]), fields["source"][begins[mine]].astype(
            np.int64), words[of_vectors].astype("<u8").view("<f4").reshape(-1, dimension))
