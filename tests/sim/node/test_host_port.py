"""The host port: packets are read whole, and written in the cycles of their arrival."""

import numpy as np
import pytest

from sim.nic.ports import DATA_WORDS, with_framing
from sim.node.host_port import HostPort
from tests.sim.edges import Edge

RATE, LATENCY = 1 / 51.2, 105


@pytest.fixture
def edge():
    return Edge("host_tx", "host_rx")


@pytest.fixture
def port(edge):
    return HostPort(edge, 3, RATE, LATENCY)


def _packets(rng: np.random.Generator, count: int) -> list[np.ndarray]:
    return [rng.integers(0, 1 << 32, (rng.integers(1, 30), DATA_WORDS), dtype=np.uint32)
            for _ in range(count)]


def test_packets_are_taken_whole(edge, port):
    """Packets span quanta, and some quanta contain no packet."""
    rng = np.random.default_rng(1)
    packets = _packets(rng, 120)
    beats = np.concatenate([with_framing(packet) for packet in packets])
    cycles = np.cumsum(rng.choice([1, 2, 90], len(beats))).astype(np.uint64)
    taken, times, first = [], [], 0
    while first < len(beats):
        last = first + int(rng.integers(0, 60))
        edge.send(beats[first:last], cycles[first:last])
        got = port.take()
        assert got.beats.shape[1] == DATA_WORDS
        taken += [got.beats[start:end] for start, end in zip(got.starts, got.ends)]
        times += got.cycles
        first = last
    assert len(taken) == len(packets) and all(map(np.array_equal, taken, packets))
    assert times == cycles[np.cumsum(list(map(len, packets))) - 1].tolist()


def test_packets_are_given_in_their_cycles(edge, port):
    packet = _packets(np.random.default_rng(2), 1)[0][:1].repeat(3, axis=0)
    port.give([packet, packet[:1]], [1000.5, 1100.0], 1106)
    beats, cycles = edge.received[0]
    # 64 bytes take 1.25 cycles, then PCIe's latency.
    assert cycles.tolist() == [1107, 1108, 1110, 1207]
    assert np.array_equal(beats, np.concatenate((with_framing(packet), with_framing(packet[:1]))))


def test_a_late_packet_is_refused(edge, port):
    with pytest.raises(RuntimeError, match="host_rx of node 3 was given a beat for cycle 107 "
                                           "in cycle 108"):
        port.give([np.zeros((1, DATA_WORDS), np.uint32)], [0.5], 108)
    assert not edge.received
