"""All-to-all and all-reduce by MPI and NCCL, worked out by hand; figures of 128 GPUs."""

from dataclasses import replace

import numpy as np
import pytest

from host.devices.cost import Cost
from host.devices.mpi import MpiCollectives
from host.devices.nccl import NcclCollectives, NcclProfile
from host.devices.ring import Ring
from host.devices.topology import Level, Topology, TopologyProfile
from host.timing.all_reduce import RingAllReduce
from host.timing.clock import CYCLE_NS
from host.timing.network import Network, NetworkProfile
from host.toml.profile import load_profile
from tests.host.devices.devices import FLAT, HOSTS, MPI, NCCL

ONE = TopologyProfile("one", (Level("switch", 1, 10.0, 2.0),))


def test_mpi_posts_messages_in_turn_and_moves_their_bytes_at_once():
    topology = Topology(FLAT)
    cost = MpiCollectives(MPI, topology).all_to_all(topology.uniform(40_000))
    # Three messages of 3 us, 2 us of latency, 120,000 bytes at 10,000 per microsecond.
    assert cost == Cost(9 + 2 + 12.0, 11.0, {"link": 12.0, "cpu": 9.0})


def test_mpi_counts_only_peers_that_have_bytes():
    topology = Topology(FLAT)
    traffic = np.zeros((4, 4))
    traffic[1, 1] = 1e9  # its own bytes are not sent
    mpi = MpiCollectives(MPI, topology)
    assert mpi.all_to_all(traffic) == Cost()
    traffic[1, 2] = traffic[3, 2] = 10_000  # two messages to receive, 20,000 bytes into one link
    assert mpi.all_to_all(traffic).us == 6 + 2 + 2


def test_a_framework_calls_mpi_once_for_each_collective():
    topology = Topology(FLAT)
    plain, called = (MpiCollectives(MPI, topology, call_us=us) for us in (0.0, 20.0))
    for cost, other in ((plain.all_reduce(4000), called.all_reduce(4000)),
                        (plain.all_to_all(topology.uniform(9)), called.all_to_all(
                            topology.uniform(9)))):
        assert (other.us, other.overhead_us, other.busy["cpu"]) == pytest.approx(
            (cost.us + 20, cost.overhead_us + 20, cost.busy["cpu"] + 20))
    assert called.all_to_all(np.zeros((4, 4))) == Cost()
    with pytest.raises(ValueError, match="call_us must be at least 0, not -1"):
        MpiCollectives(MPI, topology, call_us=-1)


def test_nccl_groups_peers():
    topology = Topology(FLAT)
    nccl = NcclCollectives(NCCL, topology)
    # 1,000 bytes use LL, half of whose bytes are data; three peers are two rounds.
    small = nccl.all_to_all(topology.uniform(1000))
    assert small == Cost(4 + 2 * 3 + 0.6, 10.0, {"link": 0.6})
    large = nccl.all_to_all(topology.uniform(40_000))
    assert large.us == 8 + 2 * 9 + 12
    assert nccl.all_to_all(np.eye(4)) == Cost()


def test_nccl_hops_inside_a_host_are_its_own():
    topology = Topology(HOSTS)
    nccl = NcclCollectives(NCCL, topology)
    inside = np.zeros((4, 4))
    inside[0, 1] = inside[2, 3] = 100_000
    assert nccl.all_to_all(inside).us == 8 + 2 + 2
    # One round to the two peers outside and one inside; a host sends 400,000 bytes.
    assert nccl.all_to_all(topology.uniform(100_000)).us == 8 + 9 + 2 + 40


def test_ring_counts_turns_and_hosts():
    ring = Ring(Topology(HOSTS), 400_000)
    assert (ring.turns, ring.outside, ring.part) == (6, 2, 100_000)
    # In each turn, one part of 100,000 bytes leaves a host, at 10,000 per microsecond.
    assert (ring.part_us, ring.moving_us) == (10.0, 60.0)
    with pytest.raises(ValueError, match="size must be at least 1, not 0"):
        Ring(Topology(HOSTS), 0)


def test_all_reduce():
    assert MpiCollectives(MPI, Topology(HOSTS)).all_reduce(400_000) == Cost(
        6 * 3 + 6 * 3 + 60.0, 36.0, {"link": 60.0, "cpu": 18.0})
    nccl = NcclCollectives(NCCL, Topology(HOSTS))
    # Simple 8 + 2 * 9 + 4 * 2 + 60, LL128 10 + 2 * 4 + 4 * 1 + 80, LL 4 + 2 * 3 + 4 * 0.5 + 120.
    assert nccl.all_reduce(400_000).us == 94.0
    # A hundredth of it: 34.6, 22.8 and 13.2.
    assert nccl.all_reduce(4_000).us == pytest.approx(4 + 6 + 2 + 1.2)
    for lonely in (MpiCollectives(MPI, Topology(ONE)), NcclCollectives(NCCL, Topology(ONE))):
        assert lonely.all_reduce(1000) == Cost()


@pytest.mark.parametrize("nodes", [2, 3, 4, 16])
def test_all_reduce_moves_what_the_ring_of_the_nic_simulation_does(nodes):
    network = load_profile("ethernet_100g_switch", NetworkProfile)
    size, payload, header = 1408 * 40 * nodes, 1408, 64
    wire = RingAllReduce(Network(network, nodes), nodes, size, payload, header)
    topology = Topology(TopologyProfile.of(network, nodes, payload, header))
    cost = MpiCollectives(replace(MPI, message_us=0.0), topology).all_reduce(size)
    # The latency of the NIC's link is in whole cycles.
    assert cost.us == pytest.approx(wire.cycles * CYCLE_NS / 1000, rel=2e-3)


@pytest.mark.parametrize("kind", ["mpi", "nccl"])
def test_more_bytes_and_more_nodes_take_longer(kind):
    def library(nodes):
        topology = Topology(TopologyProfile.of(load_profile(
            "ethernet_100g_switch", NetworkProfile), nodes))
        made = (MpiCollectives(MPI, topology) if kind == "mpi"
                else NcclCollectives(load_profile("nccl_network", NcclProfile), topology))
        return made, topology

    made, topology = library(4)
    sizes = [made.all_to_all(topology.uniform(size)).us for size in (1, 100, 10**4, 10**6, 10**8)]
    assert sizes == sorted(sizes)
    sums = [made.all_reduce(size).us for size in (1, 100, 10**4, 10**6, 10**8)]
    assert sums == sorted(sums)
    for one, more in ((2, 4), (4, 8), (8, 128)):
        (few, its), (many, theirs) = library(one), library(more)
        assert few.all_to_all(its.uniform(10**5)).us < many.all_to_all(theirs.uniform(10**5)).us


def test_128_gpus_beside_the_figures_of_zionex():
    """With 256 MB per GPU: all-to-all about 7 GB/s of about 10.5 achievable, all-reduce about 60
    GB/s.

    Both figures are unverified. The model has no congestion, and must be above them. It cannot
    exceed the links of its profile.
    """
    size = 256e6
    nccl = NcclCollectives(load_profile("nccl_network", NcclProfile),
                           Topology(load_profile("topology_zionex", TopologyProfile)))
    exchanged = size / nccl.all_to_all(nccl.topology.uniform(size / 128)).us / 1e3
    summed = 2 * 127 / 128 * size / nccl.all_reduce(size).us / 1e3
    print(f"128 GPUs, 256 MB each: all-to-all {exchanged:.1f} GB/s a GPU (ZionEX about 7), "
          f"all-reduce {summed:.1f} GB/s of bus (ZionEX about 60)")
    # 120 of 128 parts leave a host, whose eight GPUs share 84 GB/s.
    assert 7 < exchanged < 10.5 * 128 / 120
    assert 60 < summed < 84


def test_two_switch_levels_bind_where_the_upper_has_less():
    topology = Topology(load_profile("topology_leaf_spine", TopologyProfile))
    assert topology.link_us(topology.uniform(1000)) == pytest.approx(
        [127 / 11.96, 16 * 112 / 95.7])


def test_an_exchange_by_rail_has_fewer_peers():
    nccl = load_profile("nccl_network", NcclProfile)
    topology = Topology(load_profile("topology_zionex", TopologyProfile))
    rng = np.random.default_rng(1)
    direct, rail = (NcclCollectives(nccl, topology, by_rail) for by_rail in (False, True))
    small = rng.integers(1, 100, (128, 128)).astype(float)
    # 15 rounds of 8 peers; by rail two, and another base.
    hop = nccl.hop_ll_us
    assert direct.all_to_all(small).overhead_us == pytest.approx(
        nccl.base_ll_us + 15 * hop + nccl.local_hop_ll_us)
    assert rail.all_to_all(small).overhead_us == pytest.approx(
        2 * nccl.base_ll_us + 2 * hop + nccl.local_hop_ll_us)
    assert rail.further_us(small) == pytest.approx(15 / 8 * hop + 7 / 8 * nccl.local_hop_ll_us)
    # Same bytes of the network. Inside a host the bytes of a GPU go to the seven others.
    busiest = direct.topology.link_us(small)[1] / nccl.ll_fraction
    inside = (small.sum(axis=1).max() / 300e3) / nccl.ll_fraction
    assert busiest < rail.all_to_all(small).work_us < busiest + 2 * inside
    # Where the bytes of the second move would take longer than its rounds save, it is left out.
    pair = Topology(replace(topology.profile, levels=(topology.profile.levels[0], replace(
        topology.profile.levels[1], joins=2))))
    large = pair.uniform(1e7)
    assert NcclCollectives(nccl, pair, True).all_to_all(large) == NcclCollectives(
        nccl, pair).all_to_all(large)
