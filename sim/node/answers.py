"""Answers of a NIC to its host's samples, placed in their steps on arrival."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from host.wire.packets import Header, parse_errors, parse_headers, parse_pooled
from host.wire.results import parse_result_part, parse_results
from rtl.formats import Opcode
from sim.nic.ports import Packets
from sim.node.errors import ProtocolError
from sim.node.step import Step

__all__ = ["Answers", "Notice"]

OnRefused = Callable[[np.ndarray, np.ndarray, np.ndarray], None]

_POOLED = frozenset((Opcode.POOLED, Opcode.ERRORS))
_RESULTS = frozenset((Opcode.RESULTS, Opcode.RESULT_PART, Opcode.ERRORS))


class Notice(NamedTuple):
    """A packet that the host must act on when it arrives.

    Members: ``at``, its index among the packets; ``head``, its header; ``completed``, the steps
    whose shares at this node it completes.
    """

    at: int
    head: Header
    completed: Sequence[Step]


class Answers:
    """Receiver of the answers of one NIC.

    Parameters
    ----------
    number: of the node.
    dimension: of a vector.
    interaction: whether the NIC answers with interaction results instead of pooled vectors.
    refused: called with the samples, steps and statuses of an ERRORS packet.

    Members: ``steps``, those in flight with a share at this node, by number; ``errors``, sample and
    status of each refusal; ``answering``, opcodes of packets that only answer samples.

    ``sim/native/answers.h`` does the same in C++.
    """

    def __init__(self, number: int, dimension: int, *, interaction: bool,
                 refused: OnRefused = lambda samples, steps, statuses: None):
        self._number, self._dimension, self._tell_refused = number, dimension, refused
        self.answering = _RESULTS if interaction else _POOLED
        self._credits = 0, 0
        self.steps: dict[int, Step] = {}
        self.errors: list[tuple[int, int]] = []

    def open(self, step: Step) -> None:
        """Start accepting answers to ``step``."""
        self.steps[step.number] = step

    def close(self, step: Step) -> None:
        """Stop accepting answers to ``step``."""
        del self.steps[step.number]

    def take(self, packets: Packets) -> list[Notice]:
        """Place the answers in ``packets``, in order, and return the packets that the host must act
        on: those of other opcodes, and those that complete a share or change the credits.

        Nothing reads an answer before its step is done, so placing it need not wait for PCIe.
        ``ProtocolError`` or ``ValueError`` for unexpected answers.
        """
        notices = []
        heads = parse_headers(packets.beats[packets.starts])
        for at, (head, start, end) in enumerate(zip(heads, packets.starts, packets.ends)):
            completed = self._place(packets.beats[start:end], head)
            credits = head.credit, head.acknowledge
            if completed or credits != self._credits or head.opcode not in self.answering:
                self._credits = credits
                notices.append(Notice(at, head, completed))
        return notices

    def find(self, sample: int) -> tuple[Step, int] | None:
        """Return the step that holds ``sample``, numbered modulo 2^32, and its index there."""
        for step in self.steps.values():
            at = sample - step.first & 0xFFFFFFFF
            if at < len(step.samples):
                return step, at
        return None

    def _place(self, packet: np.ndarray, head: Header) -> Sequence[Step]:
        """Place a packet's answers; return the steps whose shares they complete."""
        opcode = head.opcode
        if opcode not in self.answering:
            return ()
        if opcode == Opcode.POOLED:
            return self._part(*parse_pooled(packet, head.count, self._dimension))
        if opcode == Opcode.RESULT_PART:
            return self._part(*parse_result_part(packet, head.count))
        if opcode == Opcode.RESULTS:
            return [step for sample, result in zip(*parse_results(packet, head.count))
                    for step in self._part(int(sample), 0, True, result)]
        found = parse_errors(packet, head.count)
        self._tell_refused(found["sample"], found["step"], found["status"])
        return [step for refused in zip(found["sample"].tolist(), found["status"].tolist())
                for step in self._refuse(*refused)]

    def _part(self, sample: int, first: int, last: bool, parts: np.ndarray) -> Sequence[Step]:
        """Place parts of the answer to a sample; ``last`` marks the part that ends it."""
        found = self.find(sample)
        if found is None:
            raise ProtocolError(
                f"node {self._number} answered sample {sample}, which is not in flight")
        step, at = found
        if last != step.place(self._number, at, first, parts):
            raise ProtocolError(f"sample {step.numbers[at]} ended after {step.filled[at]} of "
                                f"{step.answers.shape[1]} parts")
        return self._completed(step)

    def _refuse(self, sample: int, status: int) -> Sequence[Step]:
        self.errors.append((sample, status))
        found = self.find(sample)
        if found is None:
            return ()
        step, at = found
        step.refuse(self._number, at, status)
        return self._completed(step)

    def _completed(self, step: Step) -> Sequence[Step]:
        return () if step.left[self._number] else (step,)
