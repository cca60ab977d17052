"""Both exchanges with the same traffic, made by hand."""

import numpy as np

from host.timing.network import Network, NetworkProfile
from host.wire.packets import field_place
from sim.cluster.exchange import Exchange
from sim.host_cpp.exchange import CompiledExchange
from sim.job.fault_plan import FaultPlan
from sim.job.frame_faults import rule_of
from sim.nic.ports import DATA_WORDS, with_framing
from tests.sim.edges import Edge, same

__all__ = ["Both", "frame_to", "set_field", "traffic_of"]


class Both:
    """Both exchanges with the same traffic."""

    def __init__(self, profile: NetworkProfile, nodes: int):
        self.networks = [Network(profile, nodes) for _ in range(2)]
        self.edges = [[Edge("net_tx", "net_rx") for _ in range(nodes)] for _ in range(2)]
        self.seen: list[list] = [[], []]
        self.exchanges = [kind(edges, network) for kind, edges, network in zip(
            (Exchange, CompiledExchange), self.edges, self.networks)]

    def step(self, now: int, sent: list[tuple[np.ndarray, np.ndarray]], observed: bool = True):
        for edges in self.edges:
            for edge, one in zip(edges, sent):
                edge.send(*one)
        for exchange, seen in zip(self.exchanges, self.seen):
            exchange.step(now, seen.extend if observed else None)

    def inject(self, text: str, seed: int, start: int = 0) -> None:
        """Inject faults, in the form of the command line."""
        for exchange in self.exchanges:
            exchange.inject([rule_of(fault, start) for fault in FaultPlan.of(
                text, len(self.edges[0])).frames], seed)

    def compare(self) -> None:
        counts = [(e.frames, e.frame_bytes, e.lost_frames, e.full_frames, e.released, e.next_event,
                   e.injected) for e in self.exchanges]
        assert counts[0] == counts[1]
        assert all(map(same, *self.edges))
        assert np.array_equal(self.networks[0].free, self.networks[1].free)
        assert [frame[:2] for frame in self.seen[0]] == [frame[:2] for frame in self.seen[1]]
        for (*_, frame), (*_, other) in zip(*self.seen):
            assert frame.shape == other.shape == (len(frame), DATA_WORDS)
            assert np.array_equal(frame, other)


def frame_to(rng: np.random.Generator, destination: int) -> np.ndarray:
    data = rng.integers(0, 1 << 32, (rng.integers(1, 24), DATA_WORDS), dtype=np.uint32)
    set_field(data, "destination", destination)
    return with_framing(data)


def set_field(beats: np.ndarray, name: str, value: int) -> None:
    """Set a field of a frame's header."""
    bit, width = field_place(name)
    beats[0, bit // 32] &= ~np.uint32((1 << width) - 1 << bit % 32)
    beats[0, bit // 32] |= np.uint32(value << bit % 32)


def traffic_of(rng: np.random.Generator, nodes: int, frames: int, highest: int
             ) -> tuple[np.ndarray, np.ndarray]:
    """Return the beats of a node; some cycles carry none."""
    beats = np.concatenate([frame_to(rng, rng.integers(0, highest)) for _ in range(frames)])
    return beats, np.cumsum(rng.choice([1, 1, 1, 2, 40], len(beats))).astype(np.uint64)
