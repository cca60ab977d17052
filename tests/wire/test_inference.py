"""Attacks on inference: the bits are the same, and attacking frames are rejected and counted."""

from functools import partial

import pytest

from rtl.formats import Opcode
from tests.sim.linked import LINKED
from tests.wire.attacked import run_attacked
from tests.wire.attacks import (
    GuessedPlaces,
    LivePlaces,
    LookupsAsNode,
    NotOwned,
    SeenPlaces,
    Twice,
)
from tests.wire.forging import as_node, as_stranger

FEW = range(4)


@pytest.mark.thorough
@pytest.mark.parametrize("attack", [
    LookupsAsNode, NotOwned, GuessedPlaces, SeenPlaces, LivePlaces])
def test_a_stranger_is_refused(attack):
    """Each of its frames counts as foreign only, whatever node it claims to be."""
    for seed in FEW:
        outcome = run_attacked(attack(seed, as_stranger))
        assert outcome.kind == "same" and outcome.sent > 0
        assert outcome.counters["net_receiver.foreign"] == outcome.sent
        assert not any(count for name, count in outcome.counters.items() if name.endswith((
            "bad_fills", "bad_table", "bad_row", "bad_owner", "over_credit", "bad_node")))


@pytest.mark.few(1, "thorough")
@pytest.mark.parametrize("settings", [
    (), ("remote_cache=false", "requester_merge=false"), ("output_queues=true",)])
def test_a_peer_does_not_answer_for_another(settings):
    """The peer knows the tags of the owner's requests, and answers before the owner does."""
    for seed in FEW:
        outcome = run_attacked(SeenPlaces(seed, as_node, node=-1), settings=settings)
        assert outcome.kind == "same" and outcome.sent > 0
        assert outcome.counters["remote_cache.bad_fills"] > 0


@pytest.mark.thorough
def test_places_of_another_lap_are_not_owed():
    """Vectors with tags of another lap are rejected, even from the node that owes an answer."""
    for seed in FEW:
        outcome = run_attacked(GuessedPlaces(seed, as_node))
        assert outcome.kind == "same" and outcome.sent == 4
        assert outcome.counters["remote_cache.bad_fills"] == 64


@pytest.mark.thorough
def test_who_has_an_owners_addresses_can_guess_places():
    """The attacker need not listen: a tag has 16 bits, and soon after reset each is on its first
    lap."""
    assert "wrong" in {run_attacked(GuessedPlaces(seed, as_node, lap=1)).kind for seed in FEW}


@pytest.mark.thorough
def test_an_honest_frame_of_vectors_twice():
    """Duplicate a frame up to 40 us later, when most of its ids are in use again."""
    for seed in range(12):
        outcome = run_attacked(Twice(seed))
        assert outcome.kind == "same" and outcome.sent == 1
        assert outcome.counters["remote_cache.bad_fills"] > 0


@pytest.mark.thorough
@pytest.mark.parametrize("opcode", [Opcode.VECTORS, Opcode.LOOKUPS])
def test_an_honest_frame_twice_with_a_link(opcode):
    for seed in FEW:
        outcome = run_attacked(Twice(seed, opcode), settings=LINKED)
        assert outcome.kind == "same"
        assert outcome.counters["link_receiver.duplicates"] == outcome.sent == 1


@pytest.mark.thorough
@pytest.mark.parametrize("attack", [
    LookupsAsNode, NotOwned, partial(Twice, opcode=Opcode.LOOKUPS)])
def test_lookups_beyond_a_peers_own_may_end_a_run_but_change_nothing(attack):
    """An attacker with a peer's addresses may use up the peer's room at an owner. Every result is
    right, and a run that waits for dropped lookups reports it."""
    for seed in FEW:
        outcome = run_attacked(attack(seed) if isinstance(attack, partial)
                               else attack(seed, as_node))
        assert outcome.kind == "same" or (outcome.kind == "stuck" and outcome.stuck)
