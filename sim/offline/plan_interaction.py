"""Cost of the interaction on the NIC, in its cycles and on its host port, for the plan."""

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
    """Cost of a sample whose interaction is computed on the NIC.

    Members
    -------
    beats: of a result.
    cycles: at least, between two samples: beats of vectors and of results pass at one per cycle,
        and ``dot_units`` pairs start per cycle for every slice of 16 lanes.
    payload: beats after the header of a packet to the host.
    """

    beats: int
    cycles: int
    payload: int

    @classmethod
    def of(cls, config: NicConfig, model: Model) -> InteractionCost:
        """Return the cost for a NIC and a model; interaction dot needs ``dot_units`` above 0."""
        layout, vectors = ResultLayout.of(model), model.tables + 1
        slices = beats_of(model.width)
        cycles = max(vectors * slices, layout.beats)
        if model.interaction == "dot":
            cycles = max(cycles, slices * -(-(layout.width - layout.head) // config.dot_units))
        return cls(layout.beats, cycles, config.host_payload_beats)

    @property
    def results_per_packet(self) -> int:
        """Most results of a packet; 0 if one result takes several packets."""
        return max((k for k in range(1, self.payload)
                    if k * self.beats - -k // SAMPLES_PER_BEAT <= self.payload), default=0)

    def result_bytes(self, sizes: np.ndarray) -> int:
        """Return the bytes of packets with ``sizes`` results each."""
        if self.results_per_packet:
            return BEAT_BYTES * int((1 - -sizes // SAMPLES_PER_BEAT + sizes * self.beats).sum())
        parts = -(-self.beats // (self.payload - 1))  # each after a tag beat
        return BEAT_BYTES * int(sizes.sum()) * (2 * parts + self.beats)
