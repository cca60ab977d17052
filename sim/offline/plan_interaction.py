"""What the interaction on the NIC costs it and its host port, for the plan."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from host.dlrm.interaction import ResultLayout
from host.model import Model
from rtl.config import NicConfig, beats_of
from rtl.formats import BEAT_BYTES, SAMPLES_PER_BEAT

__all__ = ["InteractionCost"]


@dataclass(frozen=True)
class InteractionCost:
    """Of a sample whose interaction is on the NIC.

    Members
    -------
    beats: of a result.
    cycles: between two samples, at least: the beats of its vectors and of its result pass one a
        cycle, and of every slice of 16 lanes ``dot_units`` pairs are begun in one.
    payload: beats behind the header of a packet to the host.
    """

    beats: int
    cycles: int
    payload: int

    @classmethod
    def of(cls, config: NicConfig, model: Model) -> InteractionCost:
        """Return that of a NIC and a model; ``dot_units`` of an interaction dot is not 0."""
        layout, vectors = ResultLayout.of(model), model.tables + 1
        slices = beats_of(model.dimension)
        cycles = max(vectors * slices, layout.beats)
        if model.interaction == "dot":
            cycles = max(cycles, slices * -(-(layout.width - layout.head) // config.dot_units))
        return cls(layout.beats, cycles, config.host_payload_beats)

    @property
    def together(self) -> int:
        """Results that share a packet; 0 where one alone takes several."""
        return max((k for k in range(1, self.payload)
                    if k * self.beats - -k // SAMPLES_PER_BEAT <= self.payload), default=0)

    def result_bytes(self, sizes: np.ndarray) -> int:
        """Return the bytes of packets of so many results each."""
        if self.together:
            return BEAT_BYTES * int((1 - -sizes // SAMPLES_PER_BEAT + sizes * self.beats).sum())
        parts = -(-self.beats // (self.payload - 1))  # each behind a tag beat
        return BEAT_BYTES * int(sizes.sum()) * (2 * parts + self.beats)
