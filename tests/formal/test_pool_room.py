"""Proof of room in the pool, bounded: claims take no more than it has, and leave each its own.

There are ten beats here and four to spare, packets of at most two and two peers, so that two beats
are shared.
"""

import pytest
from amaranth.hdl import Mux, Signal

from rtl.network.link.frame_pool import FramePool
from rtl.network.link.pool_room import PoolRoom
from tests.formal.bench import Bench
from tests.formal.mutants import broken
from tests.formal.prove import prove

NODES, MOST, BEATS = 2, 2, 10
FREE = BEATS - FramePool.SPARE
HALF = max(BEATS // 2, MOST)
CLAIMS = 3
SETTLED = 5
"""Cycles from a count that changed until what follows from it is told."""


def room(dut: PoolRoom) -> Bench:
    """Return a bench that claims, keeps and gives back beats of two peers at any time."""
    bench = Bench()
    m = bench.m
    m.submodules.dut = dut
    node, keeps, gives = (bench.free(name=name) for name in ("node", "keeps", "gives"))
    kept_node, kept_beats = bench.free(name="kept_node"), bench.free(2, "kept_beats")
    given_node, given_beats = bench.free(name="given_node"), bench.free(2, "given_beats")
    used, claims = ([Signal(range(BEATS + 1), name=f"{name}{k}") for k in range(NODES)]
                    for name in ("used", "claims"))
    # Who asks may change its mind only with an answer, so a packet claims in the cycle it may.
    claim, keep, give = Signal(), Signal(), Signal()
    claims_of, used_of = Mux(kept_node, claims[1], claims[0]), Mux(given_node, used[1], used[0])
    m.d.comb += [
        dut.node.eq(node), claim.eq(dut.fits & bench.free(name="claims") & (
            claims[0] + claims[1] < CLAIMS)), dut.claim.eq(claim),
        keep.eq(keeps & (claims_of != 0) & (kept_beats != 0) & (kept_beats <= MOST)),
        dut.kept.valid.eq(keep), dut.kept.node.eq(kept_node), dut.kept.beats.eq(kept_beats),
        dut.freed.valid.eq(gives & (given_beats != 0) & (given_beats <= MOST)
                           & (given_beats <= used_of)),
        dut.freed.payload.node.eq(given_node), dut.freed.payload.beats.eq(given_beats),
        give.eq(dut.freed.valid & dut.freed.ready),
    ]
    for k in range(NODES):
        keeps_k, gives_k = keep & (kept_node == k), give & (given_node == k)
        m.d.sync += [
            claims[k].eq(claims[k] + (claim & (node == k)) - keeps_k),
            used[k].eq(used[k] + Mux(keeps_k, kept_beats, 0) - Mux(gives_k, given_beats, 0))]
        bench.always(f"half_{k}", used[k] + MOST * claims[k] <= HALF)
    total = Signal(range(4 * BEATS))
    m.d.comb += total.eq(sum(used) + MOST * sum(claims))
    bench.always("within_the_pool", total <= FREE)
    # What is left to each peer that has nothing: the beats of one packet.
    for k in range(NODES):
        mine = used[k] + MOST * claims[k]
        others = total - mine
        bench.always(f"own_{k}", (mine != 0) | (others + MOST <= FREE))
    # A packet that has room waits for nothing but the count's way. Nobody else changes counts.
    calm, before = Signal(), Signal()
    m.d.comb += calm.eq(~claim & ~keep & ~give & (node == before) & (sum(claims) == 0))
    m.d.sync += before.eq(node)
    mine = Mux(node, used[1], used[0])
    shared = sum(Mux(used[k] > MOST, used[k] - MOST, 0) for k in range(NODES))
    fits = (mine == 0) | ((mine + MOST <= HALF) & (shared + MOST <= FREE - NODES * MOST))
    still = Signal(range(SETTLED + 1))
    m.d.sync += still.eq(Mux(calm, Mux(still == SETTLED, SETTLED, still + 1), 0))
    bench.always("told", ~(calm & (still == SETTLED) & fits) | dut.fits)
    # It stays so: whoever asks need not claim at once.
    asked = Signal()
    m.d.sync += asked.eq(dut.fits & ~claim)
    bench.always("stays", ~(asked & (node == before)) | dut.fits)
    bench.always("idle", ~dut.idle | (sum(claims) != 0) | (dut.fits == fits) | (node != before))
    return bench


DEPTH = 16


def test_pool_room():
    verdict = prove(room(PoolRoom(NODES, BEATS, MOST)), depth=DEPTH)
    assert verdict.holds, verdict


@pytest.mark.few(3)
@pytest.mark.parametrize("old, new, what", [
    ("(claims == 0))", "1)", "half_"),
    ("shared.eq(shared + shift + step)", "shared.eq(shared + shift)", "within_the_pool"),
    ("settles.eq(track[1].valid & track[1].kept)", "settles.eq(track[1].valid)", "own_"),
    ("init=most - self._shared - 1", "init=most - self._shared - 2", "within_the_pool"),
    ("Mux(old < 0, 0, old)", "old", "told"),
    ("Mux(event.kept, before + event.beats, before - event.beats)", "before + event.beats",
     "told"),
    ("self.freed.ready.eq(~self.kept.valid & swept)", "self.freed.ready.eq(swept)", "told"),
], ids=["first-of-two", "not-shared", "given-as-kept", "one-more", "own-as-shared", "never-given",
        "gift-lost"])
def test_broken_pool_room(old, new, what):
    verdict = prove(room(broken(PoolRoom, old, new)(NODES, BEATS, MOST)), depth=DEPTH)
    assert any(name.startswith((what, "idle", "stays")) for name in verdict.broken), verdict
