"""Packets over the ends of links: each arrives once, whatever faults the network has."""

import pytest

from sim.faults.cells import EVERYTHING, KINDS
from sim.faults.traffic import LinkSettings, LinkTraffic, transfer


def _whole(traffic: LinkTraffic) -> dict:
    got = transfer(traffic)
    assert (got["delivered"], got["doubled"], got["changed"]) == (got["sent"], 0, 0)
    assert got["over"] and got["given_up"] == 0
    return got


@pytest.mark.parametrize("rate", [0.01, 0.1])
@pytest.mark.parametrize("kind", [*KINDS, "all"])
def test_each_packet_comes_once(kind, rate):
    faults = (EVERYTHING if kind == "all" else KINDS[kind]).format(rate=rate)
    got = _whole(LinkTraffic(2_000, (2, 22, 1), "both ways", faults=faults))
    assert got["injected"] >= 10


def test_without_loss_nothing_is_sent_again_at_the_rate_of_the_wire():
    for beats, payload in ((22, 1430), (2, 150)):
        got = _whole(LinkTraffic(4_000, (beats,), "both ways"))
        assert got["repeated"] == 0
        assert got["goodput"] >= 0.95 * payload / (payload + 66)


@pytest.mark.thorough
def test_sequences_wrap():
    got = _whole(LinkTraffic(2_000, (1, 2), "both ways", first_sequence=(1 << 24) - 512,
                             faults=EVERYTHING.format(rate=0.02)))
    assert got["injected"] >= 10


def test_seven_to_one_sends_nothing_again():
    got = _whole(LinkTraffic(25, (22,), "incast", nodes=8, round_trip_us=2.8))
    assert got["repeated"] <= 0.01 * got["sent"]


def test_a_full_queue_of_the_switch():
    got = _whole(LinkTraffic(100, (22,), "incast", nodes=8, queue_bytes=32_768))
    assert got["full"] >= 10


@pytest.mark.thorough
def test_sixteen_nodes():
    """Each has a window, a timeout and a share of the pool for fifteen peers."""
    got = _whole(LinkTraffic(20, (22, 1, 2), "all to all", nodes=16,
                             faults=EVERYTHING.format(rate=0.02)))
    assert got["sent"] == 16 * 15 * 20 and got["injected"] >= 10


def test_a_link_that_is_down_for_a_while():
    got = _whole(LinkTraffic(500, (22,), "both ways", faults="down=10us:300us"))
    assert got["injected"] >= 10


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("pattern", ["one way", "both ways"])
def test_directions_that_are_down_in_turn(pattern, first):
    """Without jitter all packets are sent again in the same part of the outages' period."""
    faults = ",".join(f"down={10 * turn}us:10us@{('0>1', '1>0')[(turn + first) % 2]}"
                      for turn in range(1_500))
    got = _whole(LinkTraffic(50, (2,), pattern, faults=faults))
    assert got["repeated"] > 0


def test_a_peer_that_is_silent_is_given_up_and_the_others_go_on():
    got = transfer(LinkTraffic(
        20, (22,), "all to all", nodes=3, faults="down=0us:1s@>1,down=0us:1s@1>",
        settings=LinkSettings(timeout_first=2_000, timeout_most=4_000, tries=4)))
    assert got["over"] and got["doubled"] == 0
    # Nodes 0 and 2 give up node 1, and node 1 gives up both.
    assert got["given_up"] == 4 and got["delivered"] == 2 * 20
    assert all(node["sent"]["failures"] == (2 if number == 1 else 1)
               for number, node in enumerate(got["counters"]))


def test_windows_are_full():
    """More packets than a window are in flight, some lost."""
    got = _whole(LinkTraffic(6_000, (1,), "one way", round_trip_us=50.0, faults="drop=0.01"))
    assert got["counters"][0]["sent"]["stall_window"] > 0


def test_the_same_seed_gives_the_same_transfer():
    traffic = LinkTraffic(300, (2, 1), "both ways", faults=EVERYTHING.format(rate=0.05))
    assert transfer(traffic) == transfer(traffic)


@pytest.mark.parametrize("sizes", [(22, 1), (1, 22)], ids=["small last", "large last"])
def test_sizes_in_turn(sizes):
    """Packets of the largest size in the pool beside the smallest."""
    _whole(LinkTraffic(60, sizes, "all to all", nodes=8, faults="drop=0.1,duplicate=0.1"))
