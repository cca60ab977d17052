"""Timing model of a ring all-reduce of the MLPs' gradients."""

from host.model import Model
from host.timing.network import Network

__all__ = ["RingAllReduce", "weight_bytes"]


def weight_bytes(model: Model) -> int:
    """Return the bytes of the gradients of all weights and biases, float32 each."""
    return 4 * model.mlp_parameters


class RingAllReduce:
    """All-reduce of ``size`` bytes over ``nodes`` nodes in a ring.

    Each node sends ``size / nodes`` bytes to the next node: ``nodes - 1`` times to reduce, and as
    often to distribute the sums (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for
    clusters of workstations", J. Parallel Distrib. Comput. 69, 2009). All links carry traffic
    concurrently, in a single direction, without other traffic; each turn waits for the network
    latency. Bytes are those of full frames with overhead.

    Parameters
    ----------
    network: network of the nodes.
    payload, header: bytes of data and of headers in a full frame.

    Members
    -------
    cycles: duration.
    bytes: bytes of all frames sent.

    Raises ``ValueError`` for fewer than one node or byte.
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
