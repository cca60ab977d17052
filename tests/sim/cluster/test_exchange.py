"""The compiled and the Python exchange deliver the same bytes in the same cycles."""

import numpy as np
import pytest

from host.timing.network import NetworkProfile
from host.toml.profile import load_profile
from tests.sim.cluster.both import Both, frame_to, set_field, traffic_of


@pytest.mark.parametrize(("profile", "nodes"), [
    ("ethernet_100g_switch", 1), ("ethernet_100g_switch", 5), ("ethernet_100g_direct", 3)])
def test_compiled_is_python(profile, nodes):
    """Frames that span quanta, ties in time, and destinations that do not exist."""
    rng = np.random.default_rng(nodes)
    both = Both(load_profile(profile, NetworkProfile), nodes)
    traffic = [traffic_of(rng, nodes, 150, nodes + 1) for _ in range(nodes)]
    end = max(int(cycles[-1]) for _, cycles in traffic) + 1
    now = 0
    while now < end:
        # No longer than the lookahead, so no frame is delivered too late.
        until = now + int(rng.integers(1, both.networks[0].lookahead))
        chosen = [(cycles >= now) & (cycles < until) for _, cycles in traffic]
        now = until
        both.step(now, [(beats[some], cycles[some])
                        for (beats, cycles), some in zip(traffic, chosen)], bool(now % 3))
    both.compare()
    assert both.exchanges[0].frames == 150 * nodes
    assert 0 < both.exchanges[0].lost_frames < 150 * nodes
    assert len(both.seen[0]) > 50
    waits = np.diff(np.concatenate([one for _, one in both.edges[1][0].received]).astype(np.int64))
    assert (waits == 1).any() and (waits > 2).any()
    # Direct cables do not contend with each other.
    assert (waits >= 0).all() == (profile == "ethernet_100g_switch")


def test_opcodes_are_counted_apart():
    rng = np.random.default_rng(4)
    both = Both(load_profile("ethernet_100g_switch", NetworkProfile), 2)
    for exchange in both.exchanges:
        exchange.count_opcodes((1, 2))
    sizes: dict[int, list[int]] = {1: [], 2: [], 3: []}
    last = {(code, step): 0 for code in sizes for step in range(3)}
    now = 0
    for _ in range(40):
        code, step = int(rng.integers(1, 4)), int(rng.integers(2))
        frame = frame_to(rng, 1)
        set_field(frame, "opcode", code)
        set_field(frame, "step", step)
        none = frame[:0], np.zeros(0, np.uint64)
        cycles = np.arange(now, now + len(frame), dtype=np.uint64)
        both.step(now + len(frame), [(frame, cycles), none])
        now += len(frame)
        sizes[code].append(64 * len(frame))
        last[code, step] = now - 1
    for exchange in both.exchanges:
        for code in (1, 2):
            assert exchange.opcode_counts(code, 3) == (len(sizes[code]), sum(sizes[code]),
                                              [last[code, step] for step in range(3)])
        assert exchange.frames == sum(map(len, sizes.values()))


def test_frames_at_once_go_in_the_order_of_the_nodes():
    both = Both(load_profile("ethernet_100g_switch", NetworkProfile), 3)
    rng = np.random.default_rng(1)
    frames = [frame_to(rng, 1) for _ in range(3)]
    both.step(200, [(frame, np.arange(100 - len(frame), 100, dtype=np.uint64))
                    for frame in frames])
    both.compare()
    beats = both.edges[1][1].received[0][0]
    assert np.array_equal(beats, np.concatenate(frames))
    assert [source for _, source, _ in both.seen[1]] == [0, 1, 2]


def test_what_comes_too_late_is_refused():
    both = Both(load_profile("ethernet_100g_switch", NetworkProfile), 2)
    frame = frame_to(np.random.default_rng(2), 1)
    for edges, exchange, network in zip(both.edges, both.exchanges, both.networks):
        edges[0].send(frame, np.full(len(frame), 7, np.uint64))
        first = 7 + network.lookahead + 2  # 64 bytes at 50 per cycle
        with pytest.raises(RuntimeError, match=f"net_rx of node 1 was given a beat for cycle "
                                               f"{first} in cycle 9999"):
            exchange.step(9999)
