"""Proof of room in the pool, without bound: claims never exceed it, and each peer keeps its own
share.

Packets have at most two beats, for two peers. The pool has four beats to spare, and two or six
shared beats besides the shares of the peers, so claims compete for the shared part. A user that was
told of room claims then, or in any cycle until another claim, as the sender's intake does.
Induction needs an invariant: each count is the true one, except for updates in flight, which count
as a claim until they have arrived.
"""

import pytest
from amaranth.hdl import Array, Cat, Mux, Signal, Value

from rtl.network.link.frame_pool import FramePool
from rtl.network.link.pool_room import PoolRoom
from tests.formal.bench import Bench
from tests.formal.induction import by_induction
from tests.formal.prove import prove
from tests.formal.shown import LOCALS, ShownRam
from tests.mutants import variant

NODES, MOST = 2, 2
FEW, MORE = 10, 14
"""Beats of a pool."""
SETTLED = 5
"""Cycles from a changed count until its effect is reported."""
DEPTH = 16
ROOM, TOLD = ("half_", "own_", "within_the_pool"), ("told", "stays", "idle")
"""Statement that a mutant breaks: room for an admitted packet, or its admission."""


class Room:
    """The block, users that claim, keep and return beats at any time, and statements about both.

    Members
    -------
    used: beats of each peer.
    claims: claims of each peer.
    seen: the user was told of room since the last claim.
    still: cycles in which no count changed.
    """

    def __init__(self, *edits: tuple[str, str], beats: int):
        self.bench = bench = Bench()
        m = bench.m
        self.free, self.half = beats - FramePool.SPARE, max(beats // 2, MOST)
        self.shared = self.free - NODES * MOST
        shown = ("        return m\n", f"        {LOCALS.format('inside')}return m\n")
        self.dut = dut = variant(PoolRoom, *edits, shown, Ram=ShownRam)(NODES, beats, MOST)
        dut._MustUse__silence = True  # elaborated here, because statements refer to its registers
        m.submodules.dut = dut.elaborate(None)
        node, keeps, gives = (bench.free(name=name) for name in ("node", "keeps", "gives"))
        kept_node, kept_beats = bench.free(name="kept_node"), bench.free(2, "kept_beats")
        given_node, given_beats = bench.free(name="given_node"), bench.free(2, "given_beats")
        self.used, self.claims = used, claims = tuple(
            [Signal(range(beats + 1), name=f"{name}{k}") for k in range(NODES)]
            for name in ("used", "claims"))
        self.seen, told = Signal(NODES), Signal()
        claim, self.keep, give = Signal(), Signal(), Signal()
        keep = self.keep
        m.d.comb += [
            told.eq(dut.fits | self.seen.bit_select(node, 1)), dut.node.eq(node),
            claim.eq(told & bench.free(name="claims")), dut.claim.eq(claim),
            keep.eq(keeps & (Array(claims)[kept_node] != 0) & (kept_beats != 0)
                    & (kept_beats <= MOST)),
            dut.kept.valid.eq(keep), dut.kept.node.eq(kept_node), dut.kept.beats.eq(kept_beats),
            dut.freed.valid.eq(gives & (given_beats != 0) & (given_beats <= MOST)
                               & (given_beats <= Array(used)[given_node])),
            dut.freed.payload.node.eq(given_node), dut.freed.payload.beats.eq(given_beats),
            give.eq(dut.freed.valid & dut.freed.ready),
        ]
        for k in range(NODES):
            keeps_k, gives_k = keep & (kept_node == k), give & (given_node == k)
            m.d.sync += [
                claims[k].eq(claims[k] + (claim & (node == k)) - keeps_k),
                used[k].eq(used[k] + Mux(keeps_k, kept_beats, 0) - Mux(gives_k, given_beats, 0)),
                self.seen[k].eq(~claim & (self.seen[k] | (dut.fits & (node == k))))]
        self._counts()
        self._told(node, claim, give)

    def _counts(self) -> None:
        """State that beats exist for all claims and uses, and for every peer without any."""
        bench, used, claims = self.bench, self.used, self.claims
        for k in range(NODES):
            bench.always(f"half_{k}", used[k] + MOST * claims[k] <= self.half)
        total = sum(used) + MOST * sum(claims)
        bench.always("within_the_pool", total <= self.free)
        # The reserve of each peer without beats: the beats of one packet.
        for k in range(NODES):
            mine = used[k] + MOST * claims[k]
            bench.always(f"own_{k}", (mine != 0) | (total - mine + MOST <= self.free))

    def _told(self, node: Value, claim: Value, give: Value) -> None:
        """State that a packet with room waits only for updates of the counts."""
        bench, dut, m, used = self.bench, self.dut, self.bench.m, self.used
        calm, before, asked, kept = Signal(), Signal(), Signal(), Signal(2)
        m.d.comb += calm.eq(
            ~claim & ~self.keep & ~give & (node == before) & (sum(self.claims) == 0))
        m.d.sync += [before.eq(node), asked.eq(dut.fits & ~claim), kept.eq(Cat(self.keep, kept))]
        self.beyond = sum(Mux(each > MOST, each - MOST, 0) for each in used)
        mine = Array(used)[node]
        fits = (mine == 0) | (
            (mine + MOST <= self.half) & (self.beyond + MOST <= self.shared))
        self.kept, self.still = kept, Signal(range(SETTLED + 1))
        m.d.sync += self.still.eq(Mux(calm, Mux(
            self.still == SETTLED, SETTLED, self.still + 1), 0))
        bench.always("told", ~(calm & (self.still == SETTLED) & fits) | dut.fits)
        # The room remains, except that a packet counts as a claim and as kept until its count has
        # arrived.
        bench.always("stays", ~(asked & (node == before)) | dut.fits | kept[1])
        bench.always("idle", ~dut.idle | (sum(self.claims) != 0) | (dut.fits == fits))

    def invariant(self) -> None:
        """State the values of the counts and of the updates in flight, to make all statements
        inductive."""
        bench, used, claims, inside = self.bench, self.used, self.claims, self.dut.inside
        event, (first, second), settles = inside["event"], inside["track"], inside["settles"]
        was, now, old, new = (inside[name] for name in ("was", "now", "old", "new"))
        shift, beyond, swept = inside["shift"], inside["beyond"], inside["swept"]
        counts = self.bench.m.submodules.dut.submodules
        claimed = sum(claims)
        for k in range(NODES):
            cell, here = counts.used.cells[k], event.valid & (event.node == k)
            known = swept | (inside["address"] > k)
            bench.always(f"same_{k}", ~known | (cell == counts.used_copy.cells[k]))
            bench.always(f"count_{k}", ~known | (cell + Mux(here & event.kept, event.beats, 0) == (
                used[k] + Mux(here & ~event.kept, event.beats, 0))))
            bench.always(f"seen_{k}", ~self.seen[k] | ((used[k] == 0) & (claimed == 0)) | (
                (self.beyond + MOST * claimed + MOST <= self.shared)
                & (used[k] + MOST * claimed + MOST <= self.half)))
            bench.always(f"unused_{k}", swept | (used[k] + claims[k] == 0))
        stages = [event.valid, first.valid, second.valid, inside["moves"]]
        bench.always("swept", swept | ~Cat(stages, self.seen).any())
        kept = [event.valid & event.kept, first.valid & first.kept, second.valid & second.kept,
                settles]
        bench.always("kept", (self.kept[0] == kept[0]) & (self.kept[1] == kept[1]))
        bench.always("claims", inside["claims"] == claimed + sum(kept))
        bench.always("own", inside["own"] == MOST - self.half - 1 + MOST * inside["claims"])
        # All shared beats, except for updates in flight.
        seen = sum(Mux(cell > MOST, cell - MOST, 0) for cell in counts.used.cells)
        before, after = (Mux(each > MOST, each - MOST, 0) for each in (was, now))
        coming = Mux(first.valid, after - before, 0)
        bench.always("shared", ~swept | (
            inside["shared"] + coming + Mux(second.valid, beyond, 0) + shift
            == MOST - self.shared - 1 + seen + MOST * inside["claims"]))
        bench.always("unshared", swept | (inside["shared"] == MOST - self.shared - 1))
        # An update in flight is of a packet of at most that many beats.
        bench.always("event", ~event.valid | (
            (event.beats != 0) & (event.beats <= MOST) & (event.node < NODES)
            & (event.kept | (event.beats <= Array(counts.used.cells)[event.node]))))
        for name, valid, is_kept, less, more in (
                ("first", first.valid, first.kept, was, now),
                ("second", second.valid, second.kept, old, new)):
            low = 0 if name == "first" else -MOST
            bench.always(name, ~valid | (
                (less >= low) & (more >= low) & (less <= low + self.half + MOST)
                & (more <= low + self.half + MOST) & Mux(
                    is_kept, (less <= more) & (more - less <= MOST),
                    (more <= less) & (less - more <= MOST))))
        bench.always("shift", Mux(settles, (shift >= 0) & (shift <= MOST), (
            shift <= 0) & (shift >= -MOST)) & (inside["moves"] | ((shift == 0) & ~settles)))
        # One claim may use a peer's own beats: that of its first packet, without any other.
        first_claim = Bench.any_of(
            (claimed == 1) & (claims[k] == 1) & (used[k] == 0) for k in range(NODES))
        bench.always("room", self.beyond + MOST * claimed <= (
            self.shared + Mux(first_claim, MOST, 0)))
        for age, stage in enumerate(stages, 1):
            bench.always(f"still_{age}", (self.still < age) | ~stage)
        bench.always("still", swept | (self.still <= inside["address"]))


@pytest.mark.thorough
@pytest.mark.parametrize("beats", [FEW, MORE])
def test_pool_room(beats):
    made = Room(beats=beats)
    made.invariant()
    verdict = by_induction(made.bench)
    assert verdict.holds, verdict


@pytest.mark.few(3)
@pytest.mark.parametrize("old, new, what, beats", [
    ("(claims == 0))", "1)", ROOM, FEW),
    ("shared.eq(shared + shift + step)", "shared.eq(shared + shift)", ROOM, FEW),
    ("settles.eq(track[1].valid & track[1].kept)", "settles.eq(track[1].valid)", ROOM, FEW),
    ("settles.eq(track[1].valid & track[1].kept)", "settles.eq(track[0].valid & track[0].kept)",
     ROOM, MORE),
    ("Mux(settles, 0, most)", "0", ROOM, MORE),
    ("self.claim, Mux(settles,", "self.claim & ~settles, Mux(settles,", ROOM, MORE),
    ("init=most - self._shared - 1", "init=most - self._shared - 2", ROOM, FEW),
    ("init=most - half - 1", "init=most - half - 2", ROOM, MORE),
    ("Mux(old < 0, 0, old)", "old", TOLD, FEW),
    ("Mux(event.kept, before + event.beats, before - event.beats)", "before + event.beats",
     TOLD, FEW),
    ("self.freed.ready.eq(~self.kept.valid & swept)", "self.freed.ready.eq(swept)", TOLD, FEW),
], ids=["first-of-two", "not-shared", "given-as-kept", "settled-early", "claim-not-counted",
        "claim-lost", "one-more", "one-more-of-a-peer", "own-as-shared", "never-given",
        "gift-lost"])
def test_broken_pool_room(old, new, what, beats):
    bench = Room((old, new), beats=beats).bench
    bench.broken = {name: each for name, each in bench.broken.items() if name.startswith(what)}
    verdict = prove(bench, depth=DEPTH)
    assert not verdict.holds, verdict
