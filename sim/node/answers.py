"""Answers to the samples of a host: which step they belong to, put in their places as they come."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from host.wire.packets import Header, parse_errors, parse_headers, parse_pooled
from host.wire.results import parse_result_part, parse_results
from rtl.formats import Opcode
from sim.nic.ports import Packets
from sim.node.errors import ProtocolError
from sim.node.step import Step

__all__ = ["Answers", "Told"]

Refused = Callable[[np.ndarray, np.ndarray, np.ndarray], None]

_POOLED = frozenset((Opcode.POOLED, Opcode.ERRORS))
_RESULTS = frozenset((Opcode.RESULTS, Opcode.RESULT_PART, Opcode.ERRORS))


class Told(NamedTuple):
    """A packet that a host has to do something about when it reaches it.

    Members: ``at``, which of the packets; ``head``, its header; ``completed``, the steps whose
    shares at this node it answers the last samples of.
    """

    at: int
    head: Header
    completed: Sequence[Step]


class Answers:
    """Takes the answers of one NIC.

    Parameters
    ----------
    number: of the node.
    dimension: of a vector.
    interaction: whether the NIC answers with results of the interaction, not with pooled vectors.
    refused: is told samples, steps and statuses of an ERRORS packet.

    Members: ``steps``, those under way with a share at this node, by number; ``errors``, sample and
    status of each refusal; ``answering``, opcodes of packets that only answer samples.

    ``native/answers.h`` does the same in C++.
    """

    def __init__(self, number: int, dimension: int, *, interaction: bool,
                 refused: Refused = lambda samples, steps, statuses: None):
        self._number, self._dimension, self._tell_refused = number, dimension, refused
        self.answering = _RESULTS if interaction else _POOLED
        self._credits = 0, 0
        self.steps: dict[int, Step] = {}
        self.errors: list[tuple[int, int]] = []

    def open(self, step: Step) -> None:
        """Take answers to ``step`` from now on."""
        self.steps[step.number] = step

    def close(self, step: Step) -> None:
        """Take no answers to ``step`` any more."""
        del self.steps[step.number]

    def take(self, packets: Packets) -> list[Told]:
        """Put the answers in ``packets`` in place, in their order, and return what else there is:
        packets of other kinds, and those that end a share or whose credits are not the last's.

        Nobody looks at answers before their step is done, so that they need not wait for PCIe.
        ``ProtocolError`` or ``ValueError`` for answers to what was not asked.
        """
        told = []
        heads = parse_headers(packets.beats[packets.starts])
        for at, (head, start, end) in enumerate(zip(heads, packets.starts, packets.ends)):
            completed = self._place(packets.beats[start:end], head)
            credits = head.credit, head.acknowledge
            if completed or credits != self._credits or head.opcode not in self.answering:
                self._credits = credits
                told.append(Told(at, head, completed))
        return told

    def find(self, sample: int) -> tuple[Step, int] | None:
        """Return the step that holds ``sample``, whose number wraps at 2^32, and its place."""
        for step in self.steps.values():
            at = sample - step.first & 0xFFFFFFFF
            if at < len(step.samples):
                return step, at
        return None

    def _place(self, packet: np.ndarray, head: Header) -> Sequence[Step]:
        """Take a packet's answers; return the steps whose shares they complete."""
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
        """Take parts of the answer to a sample, the last of which ends it where ``last``."""
        found = self.find(sample)
        if found is None:
            raise ProtocolError(
                f"node {self._number} answered sample {sample}, which is not under way")
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
