"""Faults of frames: their effect and frequency, equal in both exchanges."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest

from host.timing.network import NetworkProfile
from host.toml.profile import load_profile
from sim.job.frame_faults import FaultKind
from sim.nic.ports import DATA_WORDS, KEEP_WORDS
from tests.sim.cluster.both import Both, frame_to, set_field, traffic_of

DROP, DUPLICATE, REORDER, CORRUPT, DELAY, DOWN = FaultKind
SWITCH = load_profile("ethernet_100g_switch", NetworkProfile)
DIRECT = load_profile("ethernet_100g_direct", NetworkProfile)
OPCODE = 2


def _run(text: str, *, profile: NetworkProfile = SWITCH, nodes: int = 3, frames: int = 60,
         seed: int = 1, quanta: int = 1, start: int = 0) -> Both:
    """Carry traffic through both exchanges, which must agree, in quanta drawn from ``quanta``."""
    both = Both(profile, nodes)
    both.inject(text, seed, start)
    rng, lengths = np.random.default_rng(7), np.random.default_rng(quanta)
    traffic = [traffic_of(rng, nodes, frames, nodes) for _ in range(nodes)]
    for beats, _ in traffic:
        for first in [0, *(beats[:, KEEP_WORDS.stop].nonzero()[0] + 1)[:-1]]:
            set_field(beats[first:], "opcode", OPCODE + int(first) % 2)
    end = max(int(cycles[-1]) for _, cycles in traffic) + 1
    now = 0
    while now < end or both.exchanges[0].next_event < inf:
        until = now + int(lengths.integers(1, both.networks[0].lookahead))
        chosen = [(cycles >= now) & (cycles < until) for _, cycles in traffic]
        now = until
        both.step(now, [(beats[some], cycles[some])
                        for (beats, cycles), some in zip(traffic, chosen)])
    both.compare()
    return both


def _received(both: Both) -> list[list[bytes]]:
    """Return the frames that each node received, in order."""
    found = []
    for edge in both.edges[1]:
        beats = np.concatenate([beats for beats, _ in edge.received])
        ends = beats[:, KEEP_WORDS.stop].nonzero()[0] + 1
        found.append([part.tobytes() for part in np.split(beats[:, :DATA_WORDS], ends[:-1])])
    return found


@pytest.fixture(scope="module")
def calm() -> list[list[bytes]]:
    return _received(_run("drop=0"))


@pytest.mark.parametrize("profile", [SWITCH, DIRECT], ids=["switch", "direct"])
def test_both_exchanges_agree_under_every_fault_at_once(profile):
    both = _run("drop=0.1,duplicate=0.1,reorder=0.3:3us,corrupt=0.1,delay=0.2:1us@0>,"
                "drop-lookups=0.5@1>2,delay=#3+5-8:2us,down=1us:1us@2", profile=profile)
    kinds = {kind for kind, *_ in both.exchanges[1].injected}
    assert kinds == set(FaultKind)


def test_no_rate_is_no_fault(calm):
    both = _run("drop=0,duplicate=0,corrupt=0")
    assert both.exchanges[0].injected == {}
    assert _received(both) == calm


@pytest.mark.parametrize("rate", [1e-2, 0.1, 0.5])
@pytest.mark.parametrize("kind", ["drop", "duplicate", "reorder", "corrupt"])
def test_rates_are_kept(kind, rate):
    both = _run(f"{kind}={rate}", frames=700)
    done = sum(both.exchanges[0].injected.values())
    expected = rate * both.exchanges[0].frames
    assert abs(done - expected) < 4 * (expected * (1 - rate)) ** 0.5 + 1


def test_a_quantum_changes_nothing():
    text = "drop=0.1,duplicate=0.1,reorder=0.5:3us,corrupt=0.1"
    one, other = (_run(text, quanta=seed) for seed in (1, 2))
    for edge, again in zip(one.edges[1], other.edges[1]):
        for part, others in zip(zip(*edge.received), zip(*again.received)):
            assert np.array_equal(np.concatenate(part), np.concatenate(others))
    assert one.exchanges[0].injected == other.exchanges[0].injected


def test_another_seed_is_another_draw(calm):
    one, again, other = (_received(_run("drop=0.2", seed=seed)) for seed in (1, 1, 2))
    assert one == again != other


def test_lost_frames_are_those_counted(calm):
    both = _run("drop=0.2@0>1,drop=0.1")
    lost = sum(map(len, calm)) - sum(map(len, _received(both)))
    assert lost == sum(both.exchanges[0].injected.values()) > 0


def test_a_script_picks_frames_of_a_pair_and_opcode():
    both = _run("drop-vectors=#2+4-5@0>1,duplicate=#1@1>2")
    assert both.exchanges[0].injected == {(DROP, 0, 1, OPCODE): 3, (
        DUPLICATE, 1, 2, next(code for kind, _, _, code in both.exchanges[0].injected
                              if kind == DUPLICATE)): 1}


def test_one_bit_is_flipped(calm):
    received = _received(_run("corrupt=1"))
    bits = set()
    for mine, others in zip(received, calm):
        for frame, good in zip(mine, others):
            flipped = np.flatnonzero(np.unpackbits(
                np.frombuffer(frame, np.uint8) ^ np.frombuffer(good, np.uint8)))
            assert len(flipped) == 1
            bits.add(int(flipped[0]))
    assert len(bits) > 100 and min(bits) < 64 and max(bits) > 8 * 512


def test_a_copy_follows_its_frame(calm):
    for mine, good in zip(_received(_run("duplicate=1")), calm):
        assert sorted(mine) == sorted([*good, *good])


def test_overtaken_frames_come_later(calm):
    for mine, good in zip(_received(_run("reorder=0.5:20us")), calm):
        assert sorted(mine) == sorted(good)
        assert mine != good


def test_a_delay_is_exact():
    both = Both(SWITCH, 2)
    both.inject("delay=#2:40ns,delay=#3:1ms", seed=0)
    frame = frame_to(np.random.default_rng(3), 1)[-1:].copy()
    set_field(frame, "destination", 1)
    none = frame[:0], np.zeros(0, np.uint64)
    for cycle in (100, 400):
        both.step(cycle + 1, [(frame, np.full(1, cycle, np.uint64)), none])
    assert both.exchanges[0].next_event == both.exchanges[1].next_event == 410
    both.step(701, [(frame, np.full(1, 700, np.uint64)), none])
    assert both.exchanges[0].next_event == 250_700
    both.step(250_701, [none, none])
    both.compare()
    assert both.exchanges[0].next_event == inf
    times = [int(cycles[-1]) for _, cycles in both.edges[1][1].received]
    assert [time - times[0] for time in times] == [0, 310, 250_600]


def test_a_link_is_down_from_a_cycle_to_a_cycle():
    both = Both(SWITCH, 2)
    both.inject("down=1us:2us@0>1", seed=0, start=1000)
    frame = frame_to(np.random.default_rng(3), 1)[-1:].copy()
    set_field(frame, "destination", 1)
    back = frame.copy()
    set_field(back, "destination", 0)
    for cycle in (1249, 1250, 1749, 1750):
        time = np.full(1, cycle, np.uint64)
        both.step(cycle + 1, [(frame, time), (back, time)])
    both.compare()
    assert [len(edge.received) for edge in both.edges[0]] == [4, 2]
    assert list(both.exchanges[0].injected.values()) == [2]


def test_a_full_queue_drops():
    """A queue of 1,600 bytes keeps the frames that fit, in order; no other frame is lost."""
    profile = replace(SWITCH, queue_bytes=1600)
    wide = _run("drop=0", profile=SWITCH, nodes=5)
    both = _run("drop=0", profile=profile, nodes=5)
    assert wide.exchanges[0].full_frames == 0
    assert 0 < both.exchanges[0].full_frames < both.exchanges[0].frames
    received, every = _received(both), _received(wide)
    assert sum(map(len, every)) - sum(map(len, received)) == both.exchanges[0].full_frames
    for mine, others in zip(received, every):
        left = iter(others)
        assert all(frame in left for frame in mine)  # in the same order


def test_a_queue_takes_its_bytes():
    both = Both(replace(SWITCH, queue_bytes=2 * (64 + 24) + 1454), 5)
    frame = frame_to(np.random.default_rng(3), 1)[-1:].copy()
    set_field(frame, "destination", 0)
    both.step(101, [(frame, np.full(1, 100, np.uint64)) for _ in range(5)])
    both.compare()
    assert both.exchanges[0].full_frames == 0
    long = np.repeat(frame, 23, axis=0)
    long[:-1, KEEP_WORDS.stop] = 0
    both.step(201, [(long, np.full(23, 200, np.uint64)) for _ in range(5)])
    both.compare()
    assert both.exchanges[0].full_frames == 4
