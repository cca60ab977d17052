"""Timing model of a ring all-reduce of the MLPs' gradients."""

from host.model import Model
from host.timing.network import Network

__all__ = ["RingAllReduce", "weight_bytes"]


def weight_bytes(model: Model) -> int:
    """Return the bytes of the gradients of all weights and biases, float32 each."""
    return 4 * model.mlp_parameters


class RingAllReduce:
    """All-reduce of ``size`` bytes over ``nodes`` nodes.

    A ring: each node sends ``size / nodes`` bytes to the next, ``nodes - 1`` times to sum and as
    often again to distribute the sums (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms
    for clusters of workstations", J. Parallel Distrib. Comput. 69, 2009). All links are used at
    once, in one direction, without other traffic; each turn waits for the latency of the network.
    Bytes are those of full frames with their overhead.

    Parameters
    ----------
    network: of the nodes. payload, header: bytes of a full frame for data, and for headers.

    Members: ``cycles``, the duration; ``bytes`` of the frames that leave all nodes together.

    Raises ``ValueError`` for less than one node or byte.
    """

    def __init__(self, network: Network, nodes: int, size: int, payload: int = 1408,
                 header: int = 64):
        for name, value in (("nodes", nodes), ("size", size)):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, not {value!r}")
        turns = 2 * (nodes - 1)
        part = -(-size // nodes)
        frames = -(-part // payload)
        self.bytes = turns * nodes * (part + frames * header)
        self.cycles = turns * (network.lookahead + frames * network.overhead_cycles
                               + (part + frames * header) * network.cycles_per_byte)
