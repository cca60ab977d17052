"""Dense vectors that a host sends to a NIC that computes the interaction, and their timing."""

from collections.abc import Callable
from functools import partial
from math import inf

import numpy as np

from host.model import Model
from host.timing.gpu import GpuMlp, GpuProfile
from host.wire.packets import Header, gpu_vectors, parse_records
from rtl.formats import DenseRecord, Opcode
from sim.node.events import EventQueue
from sim.node.step import Step

__all__ = ["DenseVectors", "bottom_operations"]


def bottom_operations(model: Model) -> int:
    """Return the float32 operations of a sample's bottom MLP: two per weight."""
    return 2 * sum(inputs * outputs for inputs, outputs in model.bottom_layers)


class DenseVectors:
    """The bottom MLP on one NIC's GPU, and the NIC's requests for its outputs.

    The MLP of a share starts when the first of its queries is sent. Its outputs are consecutive in
    GPU memory, and the NIC reads them by DMA without a copy kernel. A request is answered when it
    has arrived and the outputs exist.

    Parameters
    ----------
    node: its number, for packets.
    gpu: the profile.
    operations: float32 operations per sample.
    payload_beats: beats of a packet after its header.
    events: of the host.
    find: function from a sample in flight to its step and its index in the step; None for other
        samples.
    send: function that sends a packet at a given time.
    awake: function from the time of a read to the time when it happens; infinite for never.
    """

    def __init__(self, node: int, gpu: GpuProfile, operations: int,
                 payload_beats: int, events: EventQueue,
                 find: Callable[[int], tuple[Step, int] | None],
                 send: Callable[[np.ndarray, float], None], awake: Callable[[float], float]):
        self._node, self._payload_beats = node, payload_beats
        self._mlp = GpuMlp(gpu, operations)
        self._events, self._find, self._send, self._awake = events, find, send, awake
        self._ready: dict[int, float] = {}
        self.waiting = 0
        """Dense vectors requested but not yet sent."""
        self.rows = 0
        """Dense vectors sent so far."""

    def begin(self, step: Step, now: float) -> None:
        """Start the MLP of this node's share of ``step``."""
        samples = step.shares[self._node + 1] - step.shares[self._node]
        self._ready[step.number] = self._mlp.run(now, samples)

    def end(self, step: Step) -> None:
        """Forget an answered share."""
        self._ready.pop(step.number, None)

    def take_requests(self, packet: np.ndarray, head: Header, now: float) -> None:
        """Take a list of requests; ``ValueError`` if it names samples of another node."""
        wanted = parse_records(DenseRecord, packet[1:], head.count)
        samples = wanted["sample"].astype(np.int64)
        found = self._find(int(samples[0])) if head.count else None
        if found is None:
            raise ValueError(f"dense vectors were requested of {head.count} samples, the first of "
                             f"which is not in flight")
        step = found[0]
        places = samples - step.first & 0xFFFFFFFF
        first, last = step.shares[self._node:self._node + 2]
        outside = (places < first) | (places >= last)
        if outside.any():
            raise ValueError(f"the dense vector of sample {samples[outside.argmax()]} was "
                             f"requested by a node that does not hold the sample")
        self.waiting += head.count
        # The outputs of a share that was given up are already in memory.
        if (read := self._awake(max(now, self._ready.get(step.number, now)))) < inf:
            self._events.at(read, partial(self._answer, step, places,
                                          wanted["landing"].astype(np.uint16)))

    def _answer(self, step: Step, places: np.ndarray, landings: np.ndarray, now: float) -> None:
        assert step.dense is not None
        self.waiting -= len(places)
        self.rows += len(places)
        for packet in gpu_vectors(
                landings, step.dense[places], node=self._node, step=step.number,
                payload_beats=self._payload_beats, opcode=Opcode.DENSE_VECTORS):
            self._send(packet, now)
