"""Answers of a NIC to its host's samples, placed in their steps on arrival."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from host.dlrm.formats import FLOAT32, VectorFormat
from host.wire.packets import Header, parse_errors, parse_headers, parse_pooled
from host.wire.results import parse_result_part, parse_results
from rtl.formats import END_SAMPLE, Opcode
from sim.nic.ports import Packets
from sim.node.completions import Completions
from sim.node.errors import ProtocolError
from sim.node.step import Step
from sim.node.unique import UniqueShares

__all__ = ["Answers", "Notice"]

OnRefused = Callable[[np.ndarray, np.ndarray, np.ndarray], None]

_POOLED = frozenset((Opcode.POOLED, Opcode.ERRORS))
_UNIQUE = frozenset((Opcode.POOLED, Opcode.INDICES, Opcode.ERRORS))
_RESULTS = frozenset((Opcode.RESULTS, Opcode.RESULT_PART, Opcode.ERRORS))


class Notice(NamedTuple):
    """A packet that the host must act on when it arrives.

    Members: ``at``, its index in the packets; ``head``, its header; ``completed``, the steps whose
        shares at this node it completes.
    """

    at: int
    head: Header
    completed: Sequence[Step]


class Answers:
    """Receiver of the answers of one NIC.

    Parameters
    ----------
    number: of the node.
    dimension: lanes of a vector, or its values if the NIC pools.
    interaction: whether the NIC answers with interaction results instead of pooled vectors.
    refused: callback, called with the samples, steps and statuses of an ERRORS packet.
    pooling: ``sum`` or ``mean`` if the NIC sends each distinct vector of a share once; else None.
    completions: the ring to which the NIC writes a word when a share is complete. Without the ring,
        a share is complete with its last answer.
    wire: format of the vectors that the host pools.

    If a NIC completes a share without all answers, the share is given up: samples without an answer
    get the status of the completion word, and their late answers are discarded. Without
    completions, a share is given up if its end is rejected.

    Members
    -------
    steps: steps in flight with a share at this node, by number.
    errors: sample and status of each rejected sample.
    answering: opcodes of packets that only answer samples.
    placed: cycle of the NIC in which the last awaited part of an answer, or a rejection, left it;
        -1 before the first.

    ``sim/host_cpp/answers.h`` does the same in C++.
    """

    def __init__(self, number: int, dimension: int, *, interaction: bool,
                 refused: OnRefused = lambda samples, steps, statuses: None,
                 pooling: str | None = None, completions: Completions | None = None,
                 wire: VectorFormat = FLOAT32):
        self._number, self._dimension, self._tell_refused = number, dimension, refused
        self._unique = pooling and UniqueShares(number, dimension, pooling, self.find, wire)
        self._completions = completions
        self.answering = _RESULTS if interaction else _UNIQUE if pooling else _POOLED
        if completions is not None:
            self.answering |= {Opcode.COMPLETION}
        self._credits = 0, 0
        self._places, self.placed = 0, -1
        self.steps: dict[int, Step] = {}
        self._given_up: dict[int, Step] = {}
        self._lost: dict[int, int] = {}
        self.errors: list[tuple[int, int]] = []

    def open(self, step: Step) -> None:
        """Start accepting answers to ``step``."""
        self.steps[step.number] = step
        if self._unique and step.sends(self._number):
            self._unique.open(step)

    def close(self, step: Step) -> None:
        """Stop accepting answers to ``step``."""
        del self.steps[step.number]

    def take(self, packets: Packets) -> list[Notice]:
        """Place the answers in ``packets``, in order.

        Return the packets that the host must act on: packets that complete a share or change the
        credits, and all packets that do not answer samples. Answers are placed without waiting for
        PCIe, because no answer is read before its step ends. ``ProtocolError`` or ``ValueError``
        for unexpected answers.
        """
        notices = []
        heads = parse_headers(packets.beats[packets.starts])
        for at, (head, start, end) in enumerate(zip(heads, packets.starts, packets.ends)):
            places = self._places
            completed = self._place(packets.beats[start:end], head)
            if completed or self._places != places:
                self.placed = packets.cycles[at]
            credits = head.credit, head.acknowledge
            if completed or credits != self._credits or head.opcode not in self.answering:
                self._credits = credits
                notices.append(Notice(at, head, completed))
        return notices

    def find(self, sample: int) -> tuple[Step, int] | None:
        """Return the step of ``sample``, numbered modulo 2^32, and its index in the step.

        The step is in flight or was given up; None for a sample of any other step.
        """
        for steps in (self.steps, self._given_up):
            for step in steps.values():
                at = sample - step.first & 0xFFFFFFFF
                if at < len(step.samples):
                    return step, at
        return None

    def _place(self, packet: np.ndarray, head: Header) -> Sequence[Step]:
        """Place a packet's answers; return the steps whose shares they complete."""
        opcode = head.opcode
        if opcode not in self.answering:
            return ()
        if opcode == Opcode.COMPLETION:
            return self._complete(packet, head)
        if self._unique and opcode != Opcode.ERRORS:
            take = (self._unique.take_vectors if opcode == Opcode.POOLED else
                    self._unique.take_indices)
            self._places += 1
            return self._completed(take(packet, head))
        if opcode == Opcode.POOLED:
            return self._part(*parse_pooled(packet, head.count, self._dimension))
        if opcode == Opcode.RESULT_PART:
            return self._part(*parse_result_part(packet, head.count))
        if opcode == Opcode.RESULTS:
            return [step for sample, result in zip(*parse_results(packet, head.count))
                    for step in self._part(int(sample), 0, True, result)]
        found = parse_errors(packet, head.count)
        self._tell_refused(found["sample"], found["step"], found["status"])
        return [step for refused in zip(*(found[name].tolist() for name in (
                    "sample", "step", "status"))) for step in self._refuse(*refused)]

    def _part(self, sample: int, first: int, last: bool, parts: np.ndarray,
              status: int = 0) -> Sequence[Step]:
        """Place parts of the answer to a sample; ``last`` marks its final part. A nonzero
        ``status`` ends the sample with an error."""
        found = self.find(sample)
        if found is None:
            raise ProtocolError(
                f"node {self._number} answered sample {sample}, which is not in flight")
        step, at = found
        if step.number in self._given_up:
            return ()
        self._places += 1
        complete = step.place(self._number, at, first, parts)
        if status:
            self._lost[sample] = status
            step.flag(self._number, at, first + len(parts) - 1, status)
        if last != complete:
            raise ProtocolError(f"sample {step.numbers[at]} ended after {step.filled[at]} of "
                                f"{step.answers.shape[1]} parts")
        if last:
            step.status[at] = self._lost.pop(sample, 0)
        return self._completed(None if step.left[self._number] else step)

    def _refuse(self, sample: int, number: int, status: int) -> Sequence[Step]:
        """Record that a sample, or the end of a share, is rejected in the step with this number."""
        self.errors.append((sample, status))
        if self._unique and sample == END_SAMPLE:
            step = self._unique.refuse_end(number)
            if step is None or step.number in self._given_up or self._completions is not None:
                return ()
            return self._give_up(step, status)
        found = self.find(sample)
        if found is None or found[0].number in self._given_up:
            return ()
        step, at = found
        self._places += 1
        if self._unique:
            return self._completed(self._unique.refuse(step, at, status))
        step.refuse(self._number, at, status)
        return self._completed(None if step.left[self._number] else step)

    def _complete(self, packet: np.ndarray, head: Header) -> Sequence[Step]:
        """Take the completion word of a step, and return the step."""
        assert self._completions is not None
        step, status = self._completions.take(packet, head)
        if not step.left[self._number] and not (self._unique and self._unique.lacks(step)):
            return (step,)
        if not status:
            raise ProtocolError(f"node {self._number} completed step {step.number} without an "
                                f"error, before all of its answers")
        return self._give_up(step, status)

    def _give_up(self, step: Step, status: int) -> Sequence[Step]:
        self._given_up[step.number] = step
        step.give_up(self._number, status)
        if self._unique:
            self._unique.drop(step)
        return (step,)

    def _completed(self, step: Step | None) -> Sequence[Step]:
        """Return ``step``, all of whose answers have arrived, unless a completion word must
        follow."""
        return () if step is None or self._completions is not None else (step,)
