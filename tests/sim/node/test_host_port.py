"""The host's port, compiled and in Python: both take and give the same bytes in the same cycles."""

import numpy as np
import pytest

from sim.native.host_port import CompiledHostPort
from sim.nic.ports import DATA_WORDS, with_framing
from sim.node.host_port import HostPort
from tests.sim.edges import Edge, same

RATE, LATENCY = 1 / 51.2, 105


@pytest.fixture
def ports():
    edges = [Edge("host_tx", "host_rx") for _ in range(2)]
    return edges, [kind(edge, 3, RATE, LATENCY) for kind, edge in zip(
        (HostPort, CompiledHostPort), edges)]


def _packets(rng: np.random.Generator, count: int) -> list[np.ndarray]:
    return [rng.integers(0, 1 << 32, (rng.integers(1, 30), DATA_WORDS), dtype=np.uint32)
            for _ in range(count)]


def test_packets_are_taken_whole(ports):
    """Packets that begin in one quantum and end in another, and quanta without any."""
    edges, both = ports
    rng = np.random.default_rng(1)
    packets = _packets(rng, 120)
    beats = np.concatenate([with_framing(packet) for packet in packets])
    cycles = np.cumsum(rng.choice([1, 2, 90], len(beats))).astype(np.uint64)
    taken, times, first = [], [], 0
    while first < len(beats):
        last = first + int(rng.integers(0, 60))
        for edge in edges:
            edge.send(beats[first:last], cycles[first:last])
        one, other = (port.take() for port in both)
        assert one.starts == other.starts and one.ends == other.ends
        assert one.cycles == other.cycles
        assert all(data.shape[1] == DATA_WORDS for data in (one.beats, other.beats))
        for start, end, cycle in zip(other.starts, other.ends, other.cycles):
            assert np.array_equal(one.beats[start:end], other.beats[start:end])
            taken.append(other.beats[start:end])
            times.append(cycle)
        first = last
    assert len(taken) == len(packets) and all(map(np.array_equal, taken, packets))
    assert times == cycles[np.cumsum(list(map(len, packets))) - 1].tolist()


def test_packets_are_given_in_their_cycles(ports):
    edges, both = ports
    rng = np.random.default_rng(2)
    for now in range(0, 10_000, 500):
        packets = _packets(rng, int(rng.integers(1, 9)))
        starts = now + np.sort(rng.uniform(0, 500, len(packets)))
        for port in both:
            port.give(packets, starts.tolist(), now)
    assert same(*edges)
    for edge in edges:
        edge.received.clear()
    packet = _packets(rng, 1)[0][:1].repeat(3, axis=0)
    for port in both:
        port.give([packet, packet[:1]], [1000.5, 1100.0], 1106)
    assert same(*edges)
    beats, cycles = edges[1].received[0]
    # 64 bytes take 1.25 cycles, then PCIe's way.
    assert cycles.tolist() == [1107, 1108, 1110, 1207]
    assert np.array_equal(beats, np.concatenate((with_framing(packet), with_framing(packet[:1]))))


def test_what_comes_too_late_is_refused(ports):
    edges, both = ports
    for port in both:
        with pytest.raises(RuntimeError, match="host_rx of node 3 was given a beat for cycle 107 "
                                               "in cycle 108"):
            port.give([np.zeros((1, DATA_WORDS), np.uint32)], [0.5], 108)
    assert not edges[0].received and not edges[1].received
