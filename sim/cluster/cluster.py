"""Cluster: nodes that exchange real packets in conservative quanta.

Every node advances by one quantum, which ends before anything that happens in it can come to
another node: over the network, the latency from MAC to MAC later, or from the front end, which
hears of answers and hands out samples. What left a node in a quantum is handed on when the quantum
ends, and can arrive only in a later one, so that the order in which nodes are advanced, or how many
threads do it, changes nothing. Cycles in which every NIC is idle do not count.
"""

from collections.abc import Callable, Sequence
from math import inf

from host.timing.network import Network
from rtl.formats import BEAT_BYTES
from sim.cluster.protocols import CrewOf, FrameExchange, NodesAdvance
from sim.cluster.watchdog import StuckError, Watchdog
from sim.engines.engine import FOREVER
from sim.job.options import PATIENCE
from sim.nic.ports import LAST_BIT, Observer
from sim.node.protocol import ClusterNode

__all__ = ["Cluster"]

IDLE_QUANTUM = 1000
"""Cycles of a quantum in which nothing can happen any more."""


class Cluster:
    """Nodes and the network between them.

    Parameters
    ----------
    nodes: the nodes, in the order of their numbers.
    network: the timing model of links and switch. exchange: hands frames through it.
    crew: makes the threads that advance the nodes. threads: nodes that run at once.
    reaction: cycles that pass at least from what a host does until that has an effect on a host's
        work through what ``run`` calls after each quantum.
    observer: sees every frame; may be changed between runs.
    patience: cycles without a beat after which ``run`` gives up.

    Members: ``quantum``, cycles after which a quantum ends in any case; ``exchange``, of frames
    between the nodes, with what it counted.
    """

    def __init__(self, nodes: Sequence[ClusterNode], network: Network, exchange: FrameExchange,
                 crew: CrewOf, threads: int = 1, *, reaction: int,
                 observer: Observer | None = None, patience: int = PATIENCE):
        if threads < 1:
            raise ValueError(f"threads must be at least 1, not {threads!r}")
        self.nodes = nodes
        self.observer = observer
        self.exchange = exchange
        self._crew = crew
        self._threads = min(threads, len(nodes))
        self.quantum = self._patience = patience
        self._holds: list[tuple[float, float, int, str]] = []
        self._reaction = reaction
        self._lookahead = network.lookahead if len(nodes) > 1 else inf
        for node in nodes:
            node.engine.set_rate(
                "net_tx", cycles_per_beat=BEAT_BYTES * network.cycles_per_byte,
                cycles_per_packet=network.overhead_cycles, last_bit=LAST_BIT, burst=64)
        self.cycle = 0

    def run(self, work_left: Callable[[], bool],
            at_quantum: Callable[[int], None] = lambda cycle: None) -> None:
        """Run until ``work_left()`` is false; ``at_quantum(cycle)`` is called after each quantum.

        ``StuckError`` when work is left and nothing is on its way with every NIC idle, or when for
        ``patience`` cycles no beat moved.
        """
        with self._crew(self._threads) as crew:
            watchdog = Watchdog(self._patience, self.cycle)
            # Hosts are ahead of their NICs by the way between them, from the start on.
            for node in self.nodes:
                node.host_quantum(self.cycle)
            while work_left():
                self._advance(crew)
                at_quantum(self.cycle)
                if all(node.quiet for node in self.nodes) and work_left():
                    raise StuckError(f"nothing moves after cycle {self.cycle:,}", self.cycle)
                watchdog.look(self.cycle, self._actions, self.nodes)

    @property
    def _actions(self) -> int:
        return self.exchange.frames + sum(node.actions for node in self.nodes)

    def hold(self, node: int, stream: str, first: float, end: float) -> None:
        """Take nothing from output ``stream`` of a node's NIC from cycle ``first`` to ``end``.

        Spans of the same stream may not overlap. ``first`` must not have passed.
        """
        self._holds = sorted([*self._holds, (first, end, node, stream)])

    def settle(self, cycles: int = 1_000_000) -> None:
        """Run until every NIC is idle and nothing is on its way, at most ``cycles``."""
        end = self.cycle + cycles
        with self._crew(1) as crew:
            self._advance(crew)
            while self.cycle < end and not all(node.quiet for node in self.nodes):
                self._advance(crew)

    def _advance(self, crew: NodesAdvance) -> None:
        """Advance every node by a quantum and hand on what left them in it."""
        end = min(self._horizon(), self.cycle + self.quantum)
        while self._holds:
            first, until, number, stream = self._holds[0]
            if first > self.cycle:
                end = min(end, int(first))
                break
            self.nodes[number].engine.hold(stream, int(min(until, FOREVER)))
            del self._holds[0]
        crew.advance(end)
        self.exchange.step(end, self.observer)
        self.cycle = end

    def _horizon(self) -> int:
        """Return the cycle before which nothing comes back of what happens from now on."""
        nic, host = map(min, zip(*(node.next_events for node in self.nodes)))
        pcie = self.nodes[0].pcie.latency
        # Frames, and what the front end tells hosts, which are ahead of their NICs by PCIe's way.
        horizon = min(min(nic, host + pcie) + self._lookahead,
                      min(nic, host - pcie) + self._reaction)
        return self.cycle + IDLE_QUANTUM if horizon == inf else int(horizon)
