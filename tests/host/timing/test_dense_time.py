import numpy as np
import pytest

from host.model import Model
from host.timing.all_reduce import RingAllReduce, weight_bytes
from host.timing.dense_time import DenseOperations, DenseTime
from host.timing.gpu import GpuProfile
from host.timing.network import Network, NetworkProfile

MODEL = Model((50, 60, 70), 4, 3, (8, 4), (5, 1))
GPU = GpuProfile("test", launch_us=4.0, memory_bandwidth_gb_s=100.0, access_bytes=64, streams=1,
                 float32_tflops=0.001)


def test_operations_are_those_of_matrix_products():
    operations = DenseOperations.of(MODEL)
    # Bottom: 3 to 8 to 4; top: 4 + 6 pairs of 4 vectors to 5 to 1.
    assert operations.bottom == 2 * (3 * 8 + 8 * 4)
    assert operations.top == 3 * 2 * (10 * 5 + 5 * 1) + 6 * 2 * 4 + 6 * 2 * 2 * 4
    assert operations.backward == 2 * 2 * (3 * 8 + 8 * 4) - 2 * 3 * 8
    cat = DenseOperations.of(Model((50, 60, 70), 4, 3, (8, 4), (5, 1), interaction="cat"))
    assert cat.top == 3 * 2 * (16 * 5 + 5 * 1)


def test_times_are_launches_and_operations():
    time, operations = DenseTime(GPU, MODEL), DenseOperations.of(MODEL)
    # 0.001 Tflop/s are 4 operations per cycle; a launch is 1,000 cycles.
    assert time.bottom(10, 8) == pytest.approx(1010 + 8 * operations.bottom / 4)
    assert time.top(10, 8) == pytest.approx(1010 + 8 * operations.top / 4)
    assert time.backward(10, 8) == pytest.approx(10 + 8 * operations.backward / 4)
    assert time.weights(10) == pytest.approx(1010 + 2 * MODEL.mlp_parameters / 4)


def ring(nodes, size, payload):
    """Send the parts of a ring turn by turn; return frames' bytes and whether all have the sum."""
    values = np.random.default_rng(1).integers(1, 100, (nodes, nodes))
    held, sent, part = values.copy(), 0, -(-size // nodes)
    for turn in range(2 * (nodes - 1)):
        before = held.copy()
        for node in range(nodes):
            at = (node - turn) % nodes
            to = (node + 1) % nodes
            held[to, at] = before[node, at] + (values[to, at] if turn < nodes - 1 else 0)
            sent += part + 64 * -(-part // payload)
    return sent, (held == values.sum(axis=0)).all()


@pytest.mark.parametrize("nodes", [1, 2, 5])
def test_a_ring_moves_these_bytes(nodes):
    network = Network(NetworkProfile("test", 1.0, 100.0, 24, True), nodes)
    found = RingAllReduce(network, nodes, 10_000, payload=1408)
    sent, summed = ring(nodes, 10_000, 1408)
    assert summed and found.bytes == sent
    part = -(-10_000 // nodes)
    frames = -(-part // 1408)
    wire = part + frames * (64 + 24)
    assert found.cycles == pytest.approx(2 * (nodes - 1) * (250 + wire / 50))  # 50 bytes per cycle


def test_weights_are_float32():
    assert weight_bytes(MODEL) == 4 * (4 * 8 + 9 * 4 + 11 * 5 + 6 * 1)
    with pytest.raises(ValueError, match="nodes must be at least 1, not 0"):
        RingAllReduce(Network(NetworkProfile("test", 1.0, 100.0, 24, True), 1), 0, 4)
