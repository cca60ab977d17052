"""Shares in which each distinct vector is sent once, with an index for each slot: delivery
``unique``."""

from collections.abc import Callable

import numpy as np

from host.dlrm.dlrm import pool
from host.dlrm.float32 import means
from host.dlrm.formats import FLOAT32, VectorFormat
from host.wire.indices import IndexPart, parse_indices
from host.wire.packets import Header, parse_pooled
from rtl.formats import EMPTY_INDEX, NO_SAMPLE, RecordKind
from sim.node.errors import COUNT, ProtocolError
from sim.node.step import Step

__all__ = ["UniqueShare", "UniqueShares"]


class UniqueShare:
    """The distinct vectors of a share, in the order of first use, and an index for each slot.

    Vectors and indices each arrive in order, but in any order relative to each other and to
    rejections. A sample is answered when the share is ``whole``: then :meth:`expand` pools its
    bags.

    Parameters: ``step``; ``node``, whose share it is; ``wire``, format of the vectors.

    Members: ``ended``, whether the last vector has arrived; ``endless``, whether the end was
        rejected; ``dropped``, whether the share was given up, and later packets of it are ignored.
    """

    def __init__(self, step: Step, node: int, wire: VectorFormat = FLOAT32):
        self.step, self._node, self._wire = step, node, wire
        self.first, self._last = step.shares[node:node + 2]
        kinds, self._starts = step.slot_kinds(node)
        self._empty = kinds == RecordKind.EMPTY
        ends = kinds != RecordKind.KEY
        self._bags = np.cumsum(ends) - ends  # of each slot
        self._indices = np.empty(len(self._empty), np.uint16)
        self._vectors: list[np.ndarray] = []
        self._count = self._next = 0
        self._lost: dict[int, int] = {}
        self._indexed = np.diff(self._starts) == 0
        self.ended = self.endless = self.dropped = False

    @property
    def whole(self) -> bool:
        """Whether all vectors have arrived, and the indices of every sample that is not
        rejected."""
        return self.ended and bool((self._indexed | (self._status != 0)).all())

    @property
    def _status(self) -> np.ndarray:
        return self.step.status[self.first:self._last]

    def add_vectors(self, first: int, last: bool, vectors: np.ndarray, status: int = 0) -> None:
        """Take ``vectors``, the first of which has number ``first``. With ``last``, the last vector
        is zero and only marks the end.

        ``status``: of the last vector, 0 for success.
        """
        if self.ended:
            raise ProtocolError("after their end")
        if first != self._count:
            raise ProtocolError(f"from number {first} on, after {self._count} of them")
        if last and (not len(vectors) or vectors[-1].view(np.uint32).any()):
            raise ProtocolError("that do not end with a vector of zeros")
        vectors = vectors[:len(vectors) - last]
        self._count += len(vectors)
        if self._count > len(self._empty):
            raise ProtocolError(f"of which there are {self._count}, for {len(self._empty)} slots")
        if status:
            self._lost[self._count - 1] = status
        if not self.dropped:
            self._vectors.append(vectors)
        self.ended = last

    def add_indices(self, at: int, part: IndexPart) -> None:
        """Take indices that begin in the share's sample ``at``."""
        begin, last = int(self._starts[at]) + part.first_slot, at + part.samples - 1
        end = begin + len(part.indices)
        if last >= len(self._indexed) or begin >= self._starts[at + 1]:
            raise ProtocolError("of more slots than it has")
        if not self._starts[last] < end <= self._starts[last + 1]:
            raise ProtocolError(f"of {len(part.indices)} slots, which do not end in the sample of "
                                f"the last one, {self.step.first + self.first + last}")
        if part.last != (end == self._starts[last + 1]):
            raise ProtocolError("that end a sample too early or too late")
        # A sample between two others may have been rejected, but no sample can be incomplete in the
        # middle.
        in_place = begin == self._next or (
            begin > self._next and not part.first_slot and self._next in self._starts)
        if not in_place:
            raise ProtocolError(f"from its slot {begin} on, after slot {self._next - 1}")
        if (self._status[at:last + 1] != 0).any():
            raise ProtocolError("of a rejected sample")
        if ((part.indices == EMPTY_INDEX) != self._empty[begin:end]).any():
            raise ProtocolError("that mark an empty slot as full, or a full slot as empty")
        self._indices[begin:end] = part.indices
        self._next = end
        self._indexed[at:last + part.last] = True

    def started(self, at: int) -> bool:
        """Whether an index of the share's sample ``at`` has arrived."""
        return bool(self._indexed[at]) or self._starts[at] < self._next < self._starts[at + 1]

    def expand(self, pooling: str) -> None:
        """Pool the bags of all samples that are not rejected, in the order of slots. A sample with
        a vector whose status is an error ends with the status."""
        answered = self._status == 0
        keys = np.repeat(answered, np.diff(self._starts)) & ~self._empty
        step, indices = self.step, self._indices[keys]
        vectors = np.concatenate(self._vectors)
        if (wrong := indices >= len(vectors)).any():
            raise ProtocolError(f"that name vector {indices[wrong.argmax()]} of {len(vectors)}")
        at = self.first + np.flatnonzero(answered)
        lengths, slots = (each[answered] for each in step.bag_lengths(self._node))
        if not self._wire.plain:
            of_vectors = np.zeros(len(vectors), np.int64)
            of_vectors[indices] = np.repeat(np.tile(step.tables(self._node), len(slots)),
                                            slots.reshape(-1))
            vectors = self._wire.unpacked(vectors, of_vectors)
        weights, weighted = step.slot_weights(self._node)
        pooled = pool(vectors[indices], slots.reshape(-1), "sum",
                      None if weights is None else weights[keys[~self._empty]],
                      None if weighted is None else np.tile(weighted, len(slots)))
        if pooling == "mean":
            pooled = means(pooled, lengths.reshape(-1))
        step.place_all(self._node, at, pooled.reshape(*lengths.shape, vectors.shape[1]))
        for index, status in self._lost.items():
            slots = np.flatnonzero((self._indices == index) & ~self._empty)
            lost = np.searchsorted(self._starts, slots, "right") - 1
            lost, slots = lost[answered[lost]], slots[answered[lost]]
            step.status[self.first + lost] = status
            for at, part in zip(lost, self._bags[slots] - self._bags[self._starts[lost]]):
                step.flag(self._node, int(self.first + at), int(part), status)


class UniqueShares:
    """The shares in flight at one NIC that sends each distinct vector of a share once.

    Parameters
    ----------
    node: its number.
    dimension: lanes of a vector.
    pooling: of bags, ``sum`` or ``mean``.
    find: function from a sample in flight to its step and its index in the step; None for other
        samples.
    wire: format of the vectors.

    ``sim/host_cpp/unique.h`` does the same in C++.
    """

    def __init__(self, node: int, dimension: int, pooling: str,
                 find: Callable[[int], tuple[Step, int] | None], wire: VectorFormat = FLOAT32):
        self._node, self._dimension, self._pooling, self._find = node, dimension, pooling, find
        self._wire = wire
        self._shares: dict[int, UniqueShare] = {}
        self._dropped: set[int] = set()
        self._indexed = -1

    def open(self, step: Step) -> None:
        """Start accepting vectors and indices of ``step``."""
        self._shares[step.number] = UniqueShare(step, self._node, self._wire)

    def lacks(self, step: Step) -> bool:
        """Whether any vector or index of ``step`` is still missing."""
        return step.number in self._shares

    def take_vectors(self, packet: np.ndarray, head: Header) -> Step | None:
        """Take a POOLED packet; return the step whose share it completes."""
        what = f"node {self._node} sent vectors of step {head.step}"
        if len(packet) < 2:
            raise ProtocolError(f"node {self._node} {COUNT.format(head.opcode)}")
        try:
            sample, first, last, vectors, status = parse_pooled(
                packet, head.count, self._dimension)
        except ValueError as error:
            raise ProtocolError(f"{what}: {error}") from None
        share = self._of_step(head.step)
        if share is None:
            raise ProtocolError(f"{what}, which is not in flight or has them all")
        if sample != NO_SAMPLE:
            raise ProtocolError(f"{what} for sample {sample} alone")
        for older in self._shares.values():
            if older is share:
                break
            if not (older.ended or older.endless):
                raise ProtocolError(f"{what} before the last of step {older.step.number}")
        try:
            share.add_vectors(first, last, vectors, status)
        except ProtocolError as error:
            raise ProtocolError(f"{what} {error}") from None
        return self._whole(share)

    def take_indices(self, packet: np.ndarray, head: Header) -> Step | None:
        """Take an INDICES packet; return the step whose share it completes."""
        what = f"node {self._node} sent indices"
        try:
            part = parse_indices(packet, head.count)
        except ValueError as error:
            raise ProtocolError(f"{what}: {error}") from None
        what = f"{what} of sample {part.sample}"
        found = self._find(part.sample)
        if found is None:
            raise ProtocolError(f"{what}, which is not in flight")
        step, at = found
        first, last = step.shares[self._node:self._node + 2]
        if not first <= at < last:
            raise ProtocolError(f"{what}, which it does not hold")
        if head.step != step.number & 0xFFFF:
            raise ProtocolError(f"{what} in a packet of step {head.step}")
        if step.number < self._indexed:
            raise ProtocolError(f"{what} after those of step {self._indexed}")
        self._indexed = step.number
        if step.number in self._dropped:
            return None
        share = self._shares.get(step.number)
        if share is None:
            raise ProtocolError(f"{what}, which was answered")
        try:
            share.add_indices(at - first, part)
        except ProtocolError as error:
            raise ProtocolError(f"{what} {error}") from None
        return self._whole(share)

    def refuse(self, step: Step, at: int, status: int) -> Step | None:
        """Record an error answer to the step's sample ``at``; return ``step`` if that completes the
        share."""
        share = self._shares.get(step.number)
        if share is not None and share.started(at - share.first):
            raise ProtocolError(f"sample {step.numbers[at]} was answered twice, the second "
                                f"time with error {status}")
        step.refuse(self._node, at, status)
        return None if share is None else self._whole(share)

    def refuse_end(self, step: int) -> Step | None:
        """Record that the end of a share was rejected; return its step, None if the step has
        ended."""
        share = self._of_step(step)
        if share is None or share.ended:
            return None
        share.endless = True
        return share.step

    def drop(self, step: Step) -> None:
        """Discard further packets of ``step``, which was given up."""
        self._dropped.add(step.number)
        if (share := self._shares.get(step.number)) is not None:
            share.dropped = True
            if share.ended:
                del self._shares[step.number]

    def _of_step(self, step: int) -> UniqueShare | None:
        return next((share for share in self._shares.values()
                     if share.step.number & 0xFFFF == step), None)

    def _whole(self, share: UniqueShare) -> Step | None:
        if share.dropped:
            if share.ended:
                del self._shares[share.step.number]
            return None
        if not share.whole:
            return None
        try:
            share.expand(self._pooling)
        except ProtocolError as error:
            raise ProtocolError(f"node {self._node} sent indices of step {share.step.number} "
                                f"{error}") from None
        del self._shares[share.step.number]
        return share.step
