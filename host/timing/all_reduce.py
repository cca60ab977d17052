"""All-reduce of the MLPs' gradients in a ring of nodes, by formula."""

from host.model import Model
from host.timing.network import Network

__all__ = ["RingAllReduce", "weight_bytes"]


def weight_bytes(model: Model) -> int:
    """Return the bytes of the gradients of all weights and biases, float32 each."""
    return 4 * model.mlp_parameters


class RingAllReduce:
    """Sum ``size`` bytes of each of ``nodes`` nodes, so that each of them has the sums.

    A ring: ``size / nodes`` bytes go from each node to the next, ``nodes - 1`` times to be summed
    and as often again to be handed round (Patarasuk and Yuan, "Bandwidth optimal all-reduce
    algorithms for clusters of workstations", J. Parallel Distrib. Comput. 69, 2009). All links are
    used at once, in one direction, and nothing else is on them; each turn waits for the latency of
    the network. Bytes are those of full frames with their overhead.

    Parameters
    ----------
    network: of the nodes. payload, header: bytes of a full frame for data, and for headers.

    Members: ``cycles`` that it takes, ``bytes`` of frames that leave all nodes together.

    ``ValueError`` for less than one node or byte.
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
