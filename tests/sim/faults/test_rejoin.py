"""A restarted node rejoins: its peer accepts its new epoch, and other traffic is undisturbed.

Old packets are late in both directions; each packet of the new epoch arrives once.
"""

import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from sim.engines import Engine
from sim.faults.traffic import (
    LinkSettings,
    LinkTraffic,
    counts,
    link_ends,
    network_of,
    run_to_rest,
    send_packets,
)
from sim.host_cpp.exchange import CompiledExchange
from sim.job.fault_plan import FaultPlan
from sim.job.frame_faults import rule_of

SETTINGS = LinkSettings(timeout_first=2_000, timeout_most=4_000, tries=4)
NEAR_WRAP = (1 << 24) - 512
LATE = "delay=0.3:20us,duplicate=0.1,reorder=0.1:5us,drop=0.05"


class Restart:
    """Ends of a link, of which node ``old`` is replaced by a new end while packets are in
    flight."""

    def __init__(self, traffic: LinkTraffic, old: int, seed: int = 1):
        self.traffic, self.old, self.nodes = traffic, old, traffic.nodes
        self.engines, self.network = link_ends(traffic), network_of(traffic)
        self.exchange = CompiledExchange(self.engines, self.network)
        plan = FaultPlan.of(traffic.faults, traffic.nodes, seed)
        self.exchange.inject([rule_of(fault, 64) for fault in plan.frames], plan.seed)
        self.came: list[list[np.ndarray]] = [[] for _ in self.engines]

    @property
    def now(self) -> int:
        return self.engines[0].cycle

    def run(self, cycles: float = np.inf) -> None:
        """Run for ``cycles``, or until all is idle."""
        for node, parts in enumerate(run_to_rest(
                self.engines, self.exchange, self.network, self.now + cycles)):
            self.came[node] += [beats for beats, _ in parts]

    def restart(self, epoch: int, node: int | None = None) -> None:
        """Put a new end in place of the old one, or of ``node``; late frames still reach it."""
        node = self.old if node is None else node
        fresh = link_ends(self.traffic)[node]
        fresh.set_signal("epoch", epoch)
        fresh.run(self.now)
        self.engines[node] = fresh
        self.exchange.replace(node, fresh)

    def rejoin(self, node: int, epoch: int, back: int | None = None) -> None:
        """Let ``node`` accept the old node, or ``back``, again."""
        engine = self.engines[node]
        order(engine, self.old if back is None else back, epoch)
        while engine.get_signal("working"):
            self.run(1)
        order(engine, None, 0)

    def found(self) -> Counter[tuple[int, int, int]]:
        """Return how often each packet arrived since the last call: source, receiver, number."""
        found: Counter[tuple[int, int, int]] = Counter()
        for node, parts in enumerate(self.came):
            beats = np.concatenate(parts) if parts else np.empty((0, 17), np.uint32)
            ends = (beats[:, 16] & 1).nonzero()[0]
            found.update((int(name) >> 20, node, int(name) & 0xFFFFF) for name in beats[ends, 0])
            parts.clear()
        return found


def order(engine: Engine, node: int | None, epoch: int) -> None:
    engine.set_signal("order", 0 if node is None else 1 | node << 1 | epoch << 9)
    engine.run(engine.cycle + 1)


def once(flows, packets: int, first: int = 0) -> Counter:
    return Counter({(source, target, number): 1 for source, target in flows
                    for number in range(first, first + packets)})


@pytest.mark.thorough
@pytest.mark.parametrize("given_up", [False, True], ids=["at once", "given up"])
@pytest.mark.parametrize("first", [0, NEAR_WRAP], ids=["", "near the wrap"])
def test_a_restarted_peer_comes_back(given_up, first):
    """The window is in use in both directions when node 1 is restarted, with its numbers at the
    start."""
    packets = 700 if first else 400
    traffic = LinkTraffic(packets, (2,), "both ways", first_sequence=first, settings=SETTINGS,
                          faults=None if given_up else "delay=0.2:8us")
    restart = Restart(traffic, 1)
    send_packets(traffic, restart.engines)
    restart.run(1_500)
    restart.restart(epoch=1)
    if given_up:
        restart.run()
        assert counts(restart.engines[0], "sent")["failures"] == 1
    restart.rejoin(0, 1)
    before = restart.found()
    assert max(before.values()) == 1
    assert counts(restart.engines[0], "sent")["failures"] == 1
    send_packets(traffic, restart.engines, first=packets)
    restart.run()
    after = restart.found()
    assert once(traffic.flows, packets, packets) <= after and max(after.values()) == 1
    # Packets that were queued behind the link when node 0 gave up node 1, and are sent to the new
    # node.
    queued = {name for name in after if name[2] < packets}
    assert queued <= {(0, 1, number) for number in range(packets)} - set(before)
    assert not (given_up and queued)
    for engine in restart.engines:
        assert engine.at_rest and counts(engine, "sent")["bad_acknowledgements"] == 0
    assert counts(restart.engines[1], "sent")["failures"] == 0


@pytest.mark.thorough
@pytest.mark.parametrize("together", [True, False], ids=["together", "one after the other"])
def test_both_ends_are_restarted(together):
    """With the same epoch they need no rejoin; otherwise the first restarted node must accept the
    second again. Frames of both former selves are late, and reach both new ends."""
    traffic = LinkTraffic(200, (2,), "both ways", settings=replace(SETTINGS, tries=255),
                          faults=LATE)
    restart = Restart(traffic, 1)
    send_packets(traffic, restart.engines)
    restart.run(1_500)
    restart.restart(1)
    if together:
        restart.restart(1, node=0)
    else:
        restart.rejoin(0, 1)
        send_packets(traffic, restart.engines, first=traffic.packets)
        restart.run(1_500)
        restart.restart(2, node=0)
        restart.rejoin(1, 2, back=0)
    former = restart.found()
    last = 2 * traffic.packets
    send_packets(traffic, restart.engines, first=last)
    restart.run()
    found = restart.found()
    # Packets of node 1 that were waiting when it accepted node 0 again are sent to the new node.
    assert max((former + found).values()) == 1
    assert once(traffic.flows, traffic.packets, last) <= found
    assert {name[2] >= last or (not together and name[0] == 1) for name in found} == {True}
    for engine in restart.engines:
        assert engine.at_rest and counts(engine, "received")["bad_epochs"] > 0


@pytest.mark.thorough
def test_no_packet_between_the_others_is_later():
    """Node 0 accepts node 2 again while it sends to node 1 at the rate of the wire."""
    traffic, times = LinkTraffic(300, (2,), "one way", nodes=3), []
    for takes in (False, True):
        restart = Restart(traffic, 2)
        send_packets(traffic, restart.engines)
        restart.run(1_000)
        if takes:
            order(restart.engines[0], 2, 9)
        came = run_to_rest(restart.engines, restart.exchange, restart.network)[1]
        times.append(np.concatenate([cycles for _, cycles in came]).tolist())
        assert counts(restart.engines[0], "sent")["failures"] == takes
    assert len(times[0]) > 300 and times[0] == times[1]


def test_nothing_is_lost_between_the_others():
    """Node 2 is restarted repeatedly, in a network that delays old frames for a long time."""
    check_restarts(3, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 26))
def test_restarts_at_random_moments(seed):
    check_restarts(8, seed, nodes=3 + seed % 2, first=NEAR_WRAP if seed % 3 else 0)


def check_restarts(restarts: int, seed: int, *, nodes: int = 3, first: int = 0) -> None:
    """Restart one node ``restarts`` times, at random moments, with frames of each former self in
    flight.

    Every packet between two other nodes, and after the last restart, arrives once.
    """
    rng = random.Random(seed)
    traffic = LinkTraffic(
        rng.choice([60, 600]) if first else 60, (2, 5, 1), "all to all", nodes=nodes, faults=LATE,
        first_sequence=first,
        settings=replace(SETTINGS, tries=255, delay=rng.choice([16, 128, 2_000])))
    old = rng.randrange(nodes)
    restart = Restart(traffic, old, seed)
    others = [node for node in range(nodes) if node != old]
    between = [flow for flow in traffic.flows if old not in flow]
    send_packets(traffic, restart.engines)
    epoch, got = rng.choice([0, 253]), Counter()
    for number in range(1, restarts + 1):
        restart.run(rng.choice([0, rng.randrange(2_000), rng.randrange(12_000)]))
        epoch = (epoch + 1) % 256
        restart.restart(epoch)
        for node in rng.sample(others, len(others)):
            restart.run(rng.randrange(3_000))
            restart.rejoin(node, epoch)
        send_packets(traffic, restart.engines, first=number * traffic.packets)
        got += restart.found()
    restart.run()
    got += restart.found()
    assert max(got.values()) == 1
    assert once(between, (restarts + 1) * traffic.packets) <= got
    assert once(traffic.flows, traffic.packets, restarts * traffic.packets) <= got
    for node, engine in enumerate(restart.engines):
        assert engine.at_rest and counts(engine, "sent")["bad_acknowledgements"] == 0
        assert counts(engine, "sent")["failures"] == (0 if node == old else restarts)
    assert sum(counts(engine, "received")["bad_epochs"] for engine in restart.engines) > 0
