"""Cluster: nodes that exchange real packets in conservative quanta.

All nodes advance by one quantum at a time. A quantum is no longer than the lookahead: no event in
it can reach another node before it ends, neither over the network (the latency from MAC to MAC) nor
through the front end, which collects answers and hands out samples. Frames that leave a node in a
quantum are delivered when the quantum ends, and arrive in a later quantum. Frames that a fault
delays wait in the exchange; the next event of the exchange bounds a quantum as the next events of
NICs do. Results therefore do not depend on the order in which nodes advance, nor on the number of
threads. Cycles in which every NIC is idle are skipped.
"""

from collections.abc import Callable
from math import inf

from host.timing.network import Network
from rtl.formats import BEAT_BYTES
from sim.cluster.crew import Crew
from sim.cluster.protocols import FrameExchange
from sim.cluster.watchdog import StuckError, Watchdog
from sim.engines.engine import FOREVER
from sim.job.simulation import PATIENCE
from sim.nic.ports import LAST_BIT, Observer
from sim.node.protocol import ClusterNode

__all__ = ["Cluster"]

IDLE_QUANTUM = 1000
"""Length in cycles of a quantum when no event is pending."""


class Cluster:
    """Nodes and the network between them.

    Parameters
    ----------
    nodes: the nodes, in the order of their numbers.
    network: the timing model of links and switch.
    exchange: carries frames over the network.
    threads: nodes that run at once.
    reaction: minimum cycles from an action of a host until the callback of ``run``, which is called
        after each quantum, can make another host react to it.
    observer: sees every frame; may be changed between runs.
    patience: cycles without a beat after which ``run`` raises an error.
    without: cycles without a result after which ``run`` raises an error; never by default.

    Members
    -------
    quantum: most cycles of a quantum.
    exchange: carries frames between the nodes and counts them.
    held: end of the last stall of an output stream, by node and stream.
    """

    def __init__(self, nodes: list[ClusterNode], network: Network, exchange: FrameExchange,
                 threads: int = 1, *, reaction: int,
                 observer: Observer | None = None, patience: int = PATIENCE,
                 without: int = FOREVER):
        if threads < 1:
            raise ValueError(f"threads must be at least 1, not {threads!r}")
        self.nodes = nodes
        self.observer = observer
        self.exchange = exchange
        self._threads = min(threads, len(nodes))
        self.quantum = self._patience = patience
        self._without = without
        self._holds: list[tuple[float, float, int, str]] = []
        self.held: dict[tuple[int, str], float] = {}
        self._reaction = reaction
        self._lookahead = network.lookahead if len(nodes) > 1 else inf
        self._network = network
        for node in nodes:
            self._connect(node)
        self.cycle = 0

    def _connect(self, node: ClusterNode) -> None:
        """Give the NIC of ``node`` the rate of its link."""
        node.engine.set_rate(
            "net_tx", cycles_per_beat=BEAT_BYTES * self._network.cycles_per_byte,
            cycles_per_packet=self._network.overhead_cycles, last_bit=LAST_BIT, burst=64)

    def replace(self, node: ClusterNode) -> None:
        """Put ``node``, whose NIC is at the cluster's cycle, in place of the node with its
        number."""
        self.nodes[node.number] = node
        self._connect(node)
        self.exchange.replace(node.number, node.engine)

    def wait(self, until: int, at_quantum: Callable[[int], None] = lambda cycle: None) -> None:
        """Run up to cycle ``until``, even if all nodes are idle; ``at_quantum`` as in `run`."""
        with Crew(self.nodes, 1) as crew:
            while self.cycle < until:
                self._advance(crew, until)
                at_quantum(self.cycle)

    def run(self, work_left: Callable[[], bool],
            at_quantum: Callable[[int], None] = lambda cycle: None) -> None:
        """Run until ``work_left()`` is false; ``at_quantum(cycle)`` is called after each quantum.

        ``StuckError`` if work is left although every NIC is idle and nothing is in flight, if no
        beat has moved for ``patience`` cycles, or if no result made progress for ``without``
        cycles, regardless of other movement.
        """
        with Crew(self.nodes, self._threads) as crew:
            watchdog = Watchdog(self._patience, self._without, self.cycle)
            # From the start, hosts run ahead of their NICs by the PCIe latency.
            for node in self.nodes:
                node.host_quantum(self.cycle)
            while work_left():
                self._advance(crew, watchdog.limit)
                at_quantum(self.cycle)
                if self.cycle >= watchdog.limit and work_left():
                    watchdog.results(self.cycle, self.nodes)
                if self._waits:
                    continue
                if self._quiet and work_left():
                    raise StuckError(f"nothing moves after cycle {self.cycle:,}", self.cycle)
                watchdog.check(self.cycle, self._actions, self.nodes)

    @property
    def _waits(self) -> bool:
        """Whether a late frame waits in the exchange."""
        return self.exchange.next_event < inf

    @property
    def _quiet(self) -> bool:
        """Whether every NIC and host stays idle and nothing is in flight."""
        return not self._waits and all(node.quiet for node in self.nodes)

    @property
    def _actions(self) -> int:
        return (self.exchange.frames + self.exchange.released
                + sum(node.actions for node in self.nodes))

    def hold(self, node: int, stream: str, first: float, end: float) -> None:
        """Stall output ``stream`` of a node's NIC (never ready) from cycle ``first`` to ``end``.

        Spans of the same stream must not overlap. ``first`` must not be in the past.
        """
        self._holds = sorted([*self._holds, (first, end, node, stream)])

    def settle(self, cycles: int = 1_000_000) -> None:
        """Run until every NIC is idle and nothing is in flight, but at most ``cycles``."""
        end = self.cycle + cycles
        with Crew(self.nodes, 1) as crew:
            self._advance(crew)
            while self.cycle < end and not self._quiet:
                self._advance(crew)

    def _advance(self, crew: Crew[ClusterNode], limit: int = FOREVER) -> None:
        """Advance every node by a quantum, but not beyond cycle ``limit``, and deliver the frames
        that left the nodes in it."""
        end = min(self._horizon(), self.cycle + self.quantum, limit)
        while self._holds:
            first, until, number, stream = self._holds[0]
            if first > self.cycle:
                end = min(end, int(first))
                break
            self.nodes[number].engine.hold(stream, int(min(until, FOREVER)))
            self.held[number, stream] = until
            del self._holds[0]
        crew.each(lambda node: node.advance(end))
        self.exchange.step(end, self.observer)
        self.cycle = end

    def _horizon(self) -> int:
        """Return the earliest cycle at which an event after the current cycle can affect another
        node."""
        nic, host = map(min, zip(*(node.next_events for node in self.nodes)))
        pcie = self.nodes[0].pcie.latency
        # Frames, including late frames, take the network's lookahead. Messages of the front end to
        # hosts take the reaction time; hosts run ahead of their NICs by the PCIe latency.
        horizon = min(min(nic, host + pcie, self.exchange.next_event) + self._lookahead,
                      min(nic, host - pcie) + self._reaction)
        return self.cycle + IDLE_QUANTUM if horizon == inf else int(horizon)
