"""The compiled and the Python exchange deliver the same bytes in the same cycles."""

import numpy as np
import pytest

from host.timing.network import Network, NetworkProfile
from host.toml.profile import load_profile
from host.wire.packets import field_place
from sim.cluster.exchange import Exchange
from sim.native.exchange import CompiledExchange
from sim.nic.ports import DATA_WORDS, with_framing
from tests.sim.edges import Edge, same


class _Both:
    """Both exchanges, given the same traffic."""

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

    def compare(self) -> None:
        counts = [(e.frames, e.frame_bytes, e.lost_frames) for e in self.exchanges]
        assert counts[0] == counts[1]
        assert all(map(same, *self.edges))
        assert np.array_equal(self.networks[0].free, self.networks[1].free)
        assert [frame[:2] for frame in self.seen[0]] == [frame[:2] for frame in self.seen[1]]
        for (*_, frame), (*_, other) in zip(*self.seen):
            assert frame.shape == other.shape == (len(frame), DATA_WORDS)
            assert np.array_equal(frame, other)


def _frame(rng: np.random.Generator, destination: int) -> np.ndarray:
    data = rng.integers(0, 1 << 32, (rng.integers(1, 24), DATA_WORDS), dtype=np.uint32)
    bit, width = field_place("destination")
    data[0, bit // 32] &= ~np.uint32((1 << width) - 1 << bit % 32)
    data[0, bit // 32] |= np.uint32(destination << bit % 32)
    return with_framing(data)


def _traffic(rng: np.random.Generator, nodes: int, frames: int, highest: int
             ) -> tuple[np.ndarray, np.ndarray]:
    """Return the beats of a node; some cycles carry none."""
    beats = np.concatenate([_frame(rng, rng.integers(0, highest)) for _ in range(frames)])
    return beats, np.cumsum(rng.choice([1, 1, 1, 2, 40], len(beats))).astype(np.uint64)


@pytest.mark.parametrize(("profile", "nodes"), [
    ("ethernet_100g_switch", 1), ("ethernet_100g_switch", 5), ("ethernet_100g_direct", 3)])
def test_compiled_is_python(profile, nodes):
    """Frames that span quanta, ties in time, and destinations that do not exist."""
    rng = np.random.default_rng(nodes)
    both = _Both(load_profile(profile, NetworkProfile), nodes)
    traffic = [_traffic(rng, nodes, 150, nodes + 1) for _ in range(nodes)]
    end = max(int(cycles[-1]) for _, cycles in traffic) + 1
    now = 0
    while now < end:
        # No longer than the lookahead, so no frame is delivered too late.
        until = now + int(rng.integers(1, both.networks[0].lookahead))
        chosen = [(cycles >= now) & (cycles < until) for _, cycles in traffic]
        now = until
        both.step(now, [(beats[some], cycles[some])
                        for (beats, cycles), some in zip(traffic, chosen)], bool(now % 3))
    both.compare()
    assert both.exchanges[0].frames == 150 * nodes
    assert 0 < both.exchanges[0].lost_frames < 150 * nodes
    assert len(both.seen[0]) > 50
    waits = np.diff(np.concatenate([one for _, one in both.edges[1][0].received]).astype(np.int64))
    assert (waits == 1).any() and (waits > 2).any()
    # Direct cables do not contend with each other.
    assert (waits >= 0).all() == (profile == "ethernet_100g_switch")


def test_opcodes_are_counted_apart():
    rng = np.random.default_rng(4)
    both = _Both(load_profile("ethernet_100g_switch", NetworkProfile), 2)
    for exchange in both.exchanges:
        exchange.count_opcodes((1, 2))
    sizes: dict[int, list[int]] = {1: [], 2: [], 3: []}
    last = {(code, step): 0 for code in sizes for step in range(3)}
    now = 0
    for _ in range(40):
        code, step = int(rng.integers(1, 4)), int(rng.integers(2))
        frame = _frame(rng, 1)
        for name, value in (("opcode", code), ("step", step)):
            bit, width = field_place(name)
            frame[0, bit // 32] &= ~np.uint32((1 << width) - 1 << bit % 32)
            frame[0, bit // 32] |= np.uint32(value << bit % 32)
        none = frame[:0], np.zeros(0, np.uint64)
        cycles = np.arange(now, now + len(frame), dtype=np.uint64)
        both.step(now + len(frame), [(frame, cycles), none])
        now += len(frame)
        sizes[code].append(64 * len(frame))
        last[code, step] = now - 1
    for exchange in both.exchanges:
        for code in (1, 2):
            assert exchange.opcode_counts(code, 3) == (len(sizes[code]), sum(sizes[code]),
                                              [last[code, step] for step in range(3)])
        assert exchange.frames == sum(map(len, sizes.values()))


def test_frames_at_once_go_in_the_order_of_the_nodes():
    both = _Both(load_profile("ethernet_100g_switch", NetworkProfile), 3)
    rng = np.random.default_rng(1)
    frames = [_frame(rng, 1) for _ in range(3)]
    both.step(200, [(frame, np.arange(100 - len(frame), 100, dtype=np.uint64))
                    for frame in frames])
    both.compare()
    beats = both.edges[1][1].received[0][0]
    assert np.array_equal(beats, np.concatenate(frames))
    assert [source for _, source, _ in both.seen[1]] == [0, 1, 2]


def test_what_comes_too_late_is_refused():
    both = _Both(load_profile("ethernet_100g_switch", NetworkProfile), 2)
    frame = _frame(np.random.default_rng(2), 1)
    for edges, exchange, network in zip(both.edges, both.exchanges, both.networks):
        edges[0].send(frame, np.full(len(frame), 7, np.uint64))
        first = 7 + network.lookahead + 2  # 64 bytes at 50 a cycle
        with pytest.raises(RuntimeError, match=f"net_rx of node 1 was given a beat for cycle "
                                               f"{first} in cycle 9999"):
            exchange.step(9999)
