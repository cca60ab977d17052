"""Links in a hierarchy: loads, latencies and queues."""

from collections import Counter

import numpy as np
import pytest

from host.devices.ring import Ring
from host.devices.topology import Level, Topology, TopologyProfile
from host.timing.network import NetworkProfile
from host.toml.profile import load_profile
from tests.host.devices.devices import FLAT, HOSTS

THREE = TopologyProfile("three", (Level("a", 2, 50.0, 1.0, True), Level("b", 3, 10.0, 3.0),
                                  Level("c", 4, 20.0, 5.0)))


def plain_link_us(profile, traffic):
    """Return the time of the busiest link of each level, with one message after another."""
    sizes = [1]
    for level in profile.levels:
        sizes.append(sizes[-1] * level.joins)
    links: Counter = Counter()
    for source in range(profile.endpoints):
        for destination in range(profile.endpoints):
            for k in range(len(profile.levels)):
                if source // sizes[k] != destination // sizes[k]:
                    links[k, source // sizes[k], "up"] += traffic[source][destination]
                    links[k, destination // sizes[k], "down"] += traffic[source][destination]
    return [max(size for (level, *_), size in links.items() if level == k)
            / (profile.levels[k].bandwidth_gb_s * 1e3) for k in range(len(profile.levels))]


@pytest.mark.parametrize("profile", [FLAT, HOSTS, THREE])
def test_loads_are_those_of_a_plain_count(profile):
    topology = Topology(profile)
    traffic = np.random.default_rng(1).integers(0, 10**6, (topology.endpoints,) * 2).astype(float)
    assert topology.link_us(traffic) == pytest.approx(plain_link_us(profile, traffic))


def test_latency_is_that_of_the_lowest_common_level():
    topology = Topology(THREE)
    assert (THREE.endpoints, THREE.hosts) == (24, 12)
    assert [topology.one_way_us(0, other) for other in (0, 1, 2, 5, 6, 23)] == [0, 1, 3, 3, 5, 5]
    traffic = np.zeros((24, 24))
    assert topology.furthest_us(traffic) == 0
    traffic[4, 5] = 1
    assert topology.furthest_us(traffic) == 1.0
    traffic[7, 0] = 1
    assert topology.furthest_us(traffic) == 5.0


def test_messages_queue_at_every_link():
    topology = Topology(HOSTS)
    # Inside a host: 100,000 bytes take 2 us, and 1 us of latency.
    assert topology.send(0.0, 0, 1, 100_000) == 3.0
    # To the other host: the head waits until 0's link is free; the slower link takes 10 us.
    assert topology.send(0.0, 0, 2, 100_000) == 2 + 10 + 3
    # The link between the hosts is busy until 12, for any sender; 2's own link is free by then.
    assert topology.send(0.0, 1, 3, 100_000) == 12 + 10 + 3
    # The opposite direction is free.
    assert topology.send(0.0, 2, 0, 100_000) == 10 + 3
    assert topology.send(5.0, 3, 3, 100_000) == 5.0
    topology.clear()
    assert topology.send(0.0, 0, 2, 100_000) == 13.0


def test_many_into_one_wait_for_its_link():
    topology = Topology(FLAT)
    assert [topology.send(0.0, source, 0, 10_000) for source in (1, 2, 3)] == [3.0, 4.0, 5.0]


@pytest.mark.parametrize("profile", [FLAT, HOSTS, THREE])
def test_queues_never_beat_the_busiest_link_and_a_good_order_comes_near(profile):
    topology, nodes = Topology(profile), profile.endpoints
    traffic = topology.uniform(50_000)
    ends = [topology.send(0.0, source, (source + turn) % nodes, 50_000)
            for turn in range(1, nodes) for source in range(nodes)]
    bound = topology.link_us(traffic).max()
    assert bound < max(ends) < 2.5 * bound


def test_links_of_a_group_carry_equal_parts_of_its_endpoints():
    network = load_profile("ethernet_100g_switch", NetworkProfile)
    inside = load_profile("topology_dgx_a100", TopologyProfile).levels
    one, four, eight = (Topology(TopologyProfile.of(network, 2, inside=inside, nics=nics))
                        for nics in (1, 4, 8))
    rate = 12.5e3 * 1472 / 1538
    traffic = one.uniform(rate)
    assert [each.link_us(traffic)[1] for each in (one, four, eight)] == pytest.approx(
        [8 * 8, 2 * 8, 8])
    assert one.link_us(traffic)[0] == eight.link_us(traffic)[0] == pytest.approx(15 * rate / 240e3)
    # A single GPU has its own link only.
    alone = np.zeros((16, 16))
    alone[0, 8:] = rate
    assert one.link_us(alone)[1] == eight.link_us(alone)[1] == pytest.approx(8)
    # Messages of two GPUs wait for each other only at a shared link.
    for topology, end in ((one, 2.0), (eight, 1.0)):
        ends = [topology.send(0.0, gpu, 8 + gpu, rate) for gpu in (0, 1)]
        assert ends[1] == pytest.approx(end + network.one_way_us, rel=0.06)
    # Rings share the links.
    assert Ring(one, 1e9).moving_us == pytest.approx(8 * Ring(eight, 1e9).moving_us, rel=1e-6)


def test_one_level_of_a_network():
    network = load_profile("ethernet_100g_switch", NetworkProfile)
    profile = TopologyProfile.of(network, 16)
    assert profile.endpoints == profile.hosts == 16
    # 1,472 of 1,538 bytes: the goodput p / (p + 66).
    assert profile.levels[0].bandwidth_gb_s == pytest.approx(12.5 * 1472 / 1538)
    assert profile.levels[0].one_way_us == network.one_way_us


def test_the_topologies_of_128_that_ship():
    spine = load_profile("topology_leaf_spine", TopologyProfile)
    assert spine.endpoints == spine.hosts == 128
    assert [level.joins for level in spine.levels] == [16, 8]
    zionex = load_profile("topology_zionex", TopologyProfile)
    assert (zionex.endpoints, zionex.hosts) == (128, 16)


@pytest.mark.parametrize("make, message", [
    (lambda: Level("x", 0, 1.0, 1.0), "joins must be at least 1"),
    (lambda: Level("x", 1, 0.0, 1.0), "bandwidth_gb_s must be above 0"),
    (lambda: Level("x", 1, 1.0, 0.0), "one_way_us must be above 0"),
    (lambda: Level("x", 1, 1.0, 1.0, links=0), "links must be at least 1"),
    (lambda: TopologyProfile("x", (Level("a", 4, 1.0, 1.0), Level("b", 2, 1.0, 1.0, links=3))),
     r"levels\[1\].links must divide the 4 endpoints of a group, not 3"),
    (lambda: TopologyProfile("x", ()), "levels must contain"),
    (lambda: TopologyProfile("x", (Level("a", 5000, 1.0, 1.0),)), "levels must join at most 4096"),
    (lambda: TopologyProfile("x", (Level("a", 2, 1.0, 1.0), Level("b", 2, 1.0, 1.0, True))),
     r"levels\[1\].local must be false"),
    (lambda: Topology(FLAT).link_us(np.zeros((3, 3))), "traffic must be .* 4 by 4"),
    (lambda: Topology(FLAT).link_us(-np.ones((4, 4))), "traffic must be .* 4 by 4"),
])
def test_what_cannot_be_is_refused(make, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        make()
