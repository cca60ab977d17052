"""The message of a stuck cluster names the causes: every silent node, and no healthy peer."""

import pytest

from sim.cluster.causes import causes_of, explanation, node_names, step_waits


def state(node: int, **changed) -> dict:
    owed = {"gpu": 0, "host": 0, "peers": 0, "written": 0} | changed.pop("owed", {})
    return {"node": node, "channels": [], "owed": owed, "owing": [], "silent": [],
            "counting": [], "given_up": [], "link_epoch": None, "bad_acknowledgements": 0,
            "lookups_for": 0, "unanswered": 4, "unsent": 0, "queries_waiting": 0,
            "gradients_waiting": 0, "step_open": False, "step_waits": ("sums", [])} | changed


def said(*states: dict) -> str:
    return explanation(causes_of(states))


def channel(name: str, last: int | None) -> dict:
    return {"name": name, "valid": True, "ready": False, "last": last}


@pytest.mark.parametrize(("nodes", "words"), [
    ([3], "node 3"), ([2, 1], "nodes 1 and 2"), ([7, 0, 4], "nodes 0, 4 and 7")])
def test_nodes_in_words(nodes, words):
    assert node_names(nodes) == words


@pytest.mark.parametrize("silent", [{1}, {1, 2}, {0, 1, 2, 3}])
@pytest.mark.parametrize(("change", "words"), [
    ({"unsent": 3}, "the host of node {} does not send 3 packets"),
    ({"owed": {"gpu": 5}}, "node {} waits for 5 rows of its GPU"),
    ({"owed": {"gpu_bags": 5}}, "node {} waits for 5 vectors of bags of its GPU"),
    ({"owed": {"host": 5}}, "the host of node {} owes 5 dense vectors"),
    ({"owed": {"written": 5}}, "5 rows and states that node {} sent its host"),
    ({"silent": ["gpu"]}, "the GPU of node {} completes no gather"),
    ({"silent": ["host"]}, "the host of node {} is silent"),
    ({"silent": ["network"]}, "the network takes nothing from node {}"),
    ({"channels": [channel("net_tx", 7)]}, "the network takes nothing from node {} since cycle 7"),
    ({"channels": [channel("host_tx", None)]}, "the host of node {} takes nothing from its NIC e"),
])
def test_every_silent_node_is_named_and_no_other(silent, change, words):
    told = said(*(state(node, **(change if node in silent else {"owed": {"peers": 2}}))
                  for node in range(4)))
    assert [node for node in range(4) if words.format(node) in told] == sorted(silent)
    assert told.count(";") == len(silent) - 1


def test_nodes_that_owe_vectors_of_bags_are_named():
    told = said(state(0, owed={"peer_bags": 3}, owing=[2]), state(1, owed={"peer_bags": 1}))
    assert "node 0 waits for 3 vectors of bags of other nodes (node 2)" in told
    credit = said(state(0, counting=["bag_packager.stall_credit"]), state(1, owed={"peers": 1}))
    assert credit == ("bags of node 0 wait for credit of their owner, which has returned too few "
                      "credits")


def test_of_many_silent_nodes_each_is_named():
    told = said(*(state(node, silent=["gpu"]) for node in range(8)))
    assert told.count("completes no gather") == 4
    assert told.endswith("; likewise nodes 4, 5, 6 and 7")


def test_parts_of_different_kinds_are_named_together():
    told = said(state(0, owed={"peers": 3}), state(1, unsent=1), state(2, owed={"gpu": 2}))
    assert "the host of node 1" in told and "node 2 waits for 2 rows of its GPU" in told
    assert "node 0" not in told


def test_a_part_is_named_once():
    told = said(state(0, unsent=1, silent=["host"], owed={"gpu": 2}))
    assert told == "the host of node 0 does not send 1 packets to its NIC"


@pytest.mark.parametrize(("given_up", "culprit", "others"), [
    ([[1], [0, 2], [1]], 1, ", as has node 2"), ([[2], [2], []], 2, ", as has node 1"),
    ([[], [0], []], 0, ""), ([[2], [2], [0, 1, 3], [2]], 2, ", as have nodes 1 and 3")])
def test_the_peer_that_most_nodes_have_given_up_is_the_culprit(given_up, culprit, others):
    """A disconnected node gives up every healthy peer."""
    states = [state(node, given_up=peers) for node, peers in enumerate(given_up)]
    told = said(*states)
    assert f"has given up node {culprit}, which did not" in told and told.endswith(f"sent{others}")
    assert told.count("given up") == 1
    assert causes_of(states)[0]["peer"] == culprit


def test_two_peers_that_are_given_up_are_both_named():
    told = said(*(state(node, given_up=peers) for node, peers in enumerate(
        ([2, 3], [2, 3], [0, 1, 3], [0, 1, 2]))))
    assert told.count("node 0 has given up node ") == 2
    assert "given up node 2" in told and "given up node 3" in told
    assert "given up node 0" not in told and "given up node 1" not in told


@pytest.mark.parametrize(("epochs", "wrong", "words"), [
    ((7, 7, 6), 2, "link_epoch of node 2 is 6, of nodes 0 and 1 7"),
    ((3, 9, 9), 0, "link_epoch of node 0 is 3, of nodes 1 and 2 9"),
    ((6, 7), 0, "link_epoch of node 0 is 6, of node 1 7"),
    ((0, 255), 1, "link_epoch of node 1 is 255, of node 0 0"),
])
def test_a_node_with_its_old_epoch_is_named_and_not_its_healthy_peer(epochs, wrong, words):
    """If two epochs have equally many nodes, the older epoch, modulo 256, is wrong."""
    nodes = range(len(epochs))
    states = [state(node, link_epoch=epoch, given_up=[
        peer for peer in nodes if epochs[peer] != epoch]) for node, epoch in enumerate(epochs)]
    told = said(*states)
    assert told.startswith(words) and "given up" not in told
    assert causes_of(states)[0]["peer"] == wrong


def test_a_node_restarted_with_the_epoch_of_its_peers_is_named():
    told = said(state(0, link_epoch=7, given_up=[1]),
                state(1, link_epoch=7, bad_acknowledgements=3))
    assert "node 1" in told and "restarted" in told
    assert "node 0" not in told


@pytest.mark.parametrize(("owing", "words"), [
    ([1], "node 0 waits for 2 vectors of other nodes (node 1)"),
    ([], "node 0 waits for 2 vectors of other nodes")])
def test_peers_that_owe_vectors(owing, words):
    states = state(0, owed={"peers": 2}, owing=owing), state(1)
    assert said(*states) == words
    assert causes_of(states)[0]["peer"] == (owing[0] if owing else None)


def test_a_node_that_nobody_hears_is_the_culprit():
    told = said(state(0, owed={"peers": 2}, owing=[2]), state(1, owed={"peers": 2}, owing=[2]),
                state(2, owed={"peers": 2}, owing=[0, 1]))
    assert told.count("(node 2)") == 2 and "node 2 waits" not in told


def test_a_step_waits_first_for_sums_and_names_their_nodes():
    """Nodes that wait for rows depend on nodes that wait for sums."""
    told = said(state(0, unanswered=0, step_open=True, step_waits=("rows", [1])),
                state(1, unanswered=0, step_open=True, step_waits=("sums", [0, 2])),
                state(2, unanswered=0, step_open=True, step_waits=("rows", [1])))
    assert told.startswith("node 1 ") and "sums of nodes 0 and 2" in told and "rows" not in told


def _counted(ends: int, complete: int, over: int) -> dict[str, int]:
    return {"gradient_sender.ends": ends, "step_counter.steps": complete,
            "step_barrier.steps": over}


@pytest.mark.parametrize(("counters", "unwritten", "lost", "waits"), [
    # Step 2 is open; sums of node 1 are missing everywhere.
    ([(3, 2, 2), (2, 2, 2), (3, 2, 2)], [], [], [("sums", [1])] * 3),
    # Rows of node 1 are missing: it waits for sums itself, or has not written the rows.
    ([(3, 3, 2), (3, 2, 2), (3, 3, 2)], [], [], [("rows", [1]), ("sums", []), ("rows", [1])]),
    ([(3, 3, 2), (3, 3, 2), (3, 3, 2)], [1], [], [("rows", [1])] * 3),
    # A node that is one step ahead does not wait for sums of the previous step.
    ([(3, 3, 3), (3, 3, 2), (3, 3, 3)], [], [], [("sums", [0, 1, 2]), ("rows", []),
                                                 ("sums", [0, 1, 2])]),
    # The network lost the frames of node 0.
    ([(3, 2, 2), (3, 2, 2), (3, 3, 2)], [], [0], [("sums", [0]), ("sums", [0]), ("rows", [0])]),
])
def test_nodes_whose_part_of_a_step_is_missing(counters, unwritten, lost, waits):
    found = [step_waits(node, [_counted(*counts) for counts in counters], unwritten, lost)
             for node in range(3)]
    assert found == waits


def test_nothing_waits():
    assert said(state(0, unanswered=0), state(1, unanswered=0)) == ""
