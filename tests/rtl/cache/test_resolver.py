"""Resolver: each decision is carried out once, in order, by the answer of the miss table."""

import random
from collections import deque

import pytest

from rtl.cache.resolver import Resolver
from tests.rtl.power_up import powered_up
from tests.support import made, receiver, sender, simulate

ROWS, IN_FLIGHT, NODES = 16, 8, 6
APPEND, OPERATION = (Resolver.LATENCY["decision", name] for name in ("append", "operation"))


def resolver() -> Resolver:
    return made(Resolver, 12, 8, rows=ROWS, in_flight=IN_FLIGHT)


class Resolved:
    """Decisions of a cache whose vectors arrive late; the test models miss table and scatter lists.

    A slot takes another key at any time, so a hit may be on a finished fetch, or on one whose id
    serves another slot now.
    """

    def __init__(self, seed: int, *, idle: float, stall: float, free: float, arrive: float,
                 cycles: int = 1500):
        self.rng, self.idle = random.Random(seed), idle
        self.free, self.arrive, self.cycles = free, arrive, cycles
        self.table: dict[int, tuple[int, int]] = {}  # id: slot, allocated
        self.given: list[dict] = []
        self.kept: dict[int, dict] = {}  # by slot: the key, and the id and phase of its last fetch
        self.nodes, self.started = NODES, deque()
        self.operations, self.appended, self.done, self.counted = [], [], [], 0
        self.expected_operations, self.expected_appends, self.expected_done = [], [], []
        self.blocked = {"full": 0, "node": 0}
        self.dut = resolver()
        simulate(powered_up(self.dut), self.bench, background=[
            receiver(self.dut.operations, self.operations, 1 << 30, stall=stall, seed=seed)])
        assert [self.of(item, bool(item["miss"])) for item in self.operations] == (
            self.expected_operations)
        assert self.appended == self.expected_appends
        assert self.done == self.expected_done and len(self.done) == len(self.given)

    def decide(self) -> dict:
        """Return the next decision; no decision opens an outstanding id."""
        rng = self.rng
        slot, free = rng.randrange(ROWS), [k for k in range(IN_FLIGHT) if k not in self.table]
        decision = {"key": rng.getrandbits(12), "meta": len(self.given) & 0xFF, "slot": slot,
                    "hit": 0, "allocate": 0, "phase": rng.getrandbits(1), "id": 0}
        if free and (not self.kept or rng.random() < 0.4):
            decision |= {"id": rng.choice(free), "allocate": int(rng.random() < 0.8)}
            if decision["allocate"]:
                self.kept[slot] = decision
        elif self.kept:
            slot = rng.choice(sorted(self.kept))
            decision |= {"hit": 1} | {
                name: self.kept[slot][name] for name in ("key", "slot", "phase", "id")}
        else:
            return {}
        return decision

    async def bench(self, ctx):
        dut, rng = self.dut, self.rng
        offered: dict = {}
        asked, history = False, []
        for cycle in range(self.cycles + 400):
            over = cycle >= self.cycles
            # The answer to the query of the previous cycle.
            ctx.set(dut.waiting, int(asked))
            ctx.set(dut.space, int(self.nodes > 0))
            if not offered and not over and rng.random() >= self.idle:
                offered = self.decide()
                if offered:
                    ctx.set(dut.decisions.payload, offered)
            ctx.set(dut.decisions.valid, int(bool(offered)))
            goes = bool(offered) and ctx.get(dut.decisions.ready)
            id_, slot, opens = ctx.get(dut.id), ctx.get(dut.slot), ctx.get(dut.open)
            asked = self.table.get(id_) == (slot, 1)
            assert opens == bool(goes and not offered["hit"])
            blocked = ctx.get(dut.blocked)
            assert blocked.valid == (bool(offered) and not goes)
            if blocked.valid:
                assert blocked.full or not self.nodes
                self.blocked["full" if blocked.full else "node"] += 1
            self.nodes_move(ctx, cycle)
            if goes:
                assert (id_, slot) == (offered["id"], offered["slot"])
                self.expect(offered, asked)
                self.given.append(offered)
            if opens:
                assert id_ not in self.table
                assert (ctx.get(dut.allocated), ctx.get(dut.phase)) == (
                    offered["allocate"], offered["phase"])
                self.table[id_] = slot, offered["allocate"]
            done = ctx.get(dut.done)
            if done.valid:
                self.done.append((done.decision.meta, done.pending))
            idle = ctx.get(dut.idle)
            assert not idle or not (goes or done.valid or ctx.get(dut.operations.valid))
            history.append(idle)
            if goes:
                offered = {}
            # A vector arrives.
            if self.table and rng.random() < self.arrive:
                del self.table[rng.choice(sorted(self.table))]
            await ctx.tick()
        assert all(history[-100:])

    def nodes_move(self, ctx, cycle: int):
        """Take and release nodes of the scatter lists, as reserved."""
        dut = self.dut
        add, unused = ctx.get(dut.add), ctx.get(dut.unused)
        assert not (add and unused)
        if add or unused:
            assert cycle - self.started.popleft() >= APPEND
            self.nodes += unused
        if add:
            self.appended.append(
                (ctx.get(dut.add_first), ctx.get(dut.add_id), ctx.get(dut.add_meta)))
        if ctx.get(dut.reserve):
            assert self.nodes > 0, "nodes are reserved only while there is space"
            self.nodes -= 1
            self.started.append(cycle)
        # Another list is output.
        held = NODES - self.nodes - len(self.started)
        if held and self.rng.random() < self.free:
            self.nodes += 1

    def expect(self, decision: dict, waits: bool):
        hit, waits = decision["hit"], waits and decision["hit"]
        if not waits:
            self.expected_operations.append(self.of(decision, not hit))
        if waits or not hit:
            self.expected_appends.append((1 - hit, decision["id"], decision["meta"]))
        self.expected_done.append((decision["meta"], int(waits)))

    @staticmethod
    def of(item, miss: bool) -> tuple:
        """Return the relevant part of an operation: a hit reads a slot, a miss fetches a key."""
        return (miss, item["meta"], *((item["id"], item["key"]) if miss else (item["slot"],)))


@pytest.mark.parametrize("idle, stall, free, arrive, waits", [
    (0.0, 0.0, 1.0, 0.5, set()), (0.3, 0.3, 0.4, 0.2, {"node"}), (0.0, 0.9, 1.0, 0.3, {"full"}),
    (0.0, 0.7, 0.1, 0.3, {"full", "node"}), (0.5, 0.0, 0.05, 0.05, {"node"})])
def test_decisions_are_carried_out_once_and_in_order(idle, stall, free, arrive, waits):
    run = Resolved(int(100 * (idle + stall + free)), idle=idle, stall=stall, free=free,
                   arrive=arrive)
    assert len(run.given) > 100 and {pending for _, pending in run.done} == {0, 1}
    assert waits <= {reason for reason, cycles in run.blocked.items() if cycles}


def hits(count: int) -> list[dict]:
    return [{"key": n, "meta": n, "hit": 1, "slot": n % ROWS} for n in range(count)]


@pytest.mark.parametrize("space, each", [(1, 1), (0, 3)])
def test_rate_and_latency_of_hits(space, each):
    """One a cycle; one in three while no node is free, which a hit of an arrived vector needs not.
    """
    dut, taken, count = resolver(), [], 30

    async def bench(ctx):
        ctx.set(dut.space, space)
        await sender(dut.decisions, hits(count))(ctx)

    cycles = simulate(dut, bench, receiver(dut.operations, taken, count), limit=500)
    assert [item["meta"] for item in taken] == list(range(count))
    assert cycles <= each * count + OPERATION + 2
    assert each == 1 or cycles >= each * (count - 1)
