"""A restarted node with another epoch is not confused with its former self."""

import pytest

from sim.faults.traffic import (
    LinkSettings,
    LinkTraffic,
    counts,
    link_ends,
    network_of,
    run_to_rest,
    send_packets,
)
from sim.host_cpp.exchange import CompiledExchange

TRAFFIC = LinkTraffic(400, (2,), "both ways", settings=LinkSettings(
    timeout_first=2_000, timeout_most=4_000, tries=4))


@pytest.mark.parametrize("epoch", [1, 255])
def test_nothing_of_it_is_admitted(epoch):
    engines, network = link_ends(TRAFFIC), network_of(TRAFFIC)
    send_packets(TRAFFIC, engines)
    before = run_to_rest(engines, CompiledExchange(engines, network), network,
                         engines[0].cycle + 1_500)
    fresh = link_ends(TRAFFIC)[1]
    fresh.set_signal("epoch", epoch)
    fresh.run(engines[0].cycle)
    engines[1] = fresh
    send_packets(TRAFFIC, engines, only=1)
    behind = run_to_rest(engines, CompiledExchange(engines, network), network)
    assert before[0] and before[1] and not any(len(part[0]) for part in behind[1])
    # Late packets of the former self may still arrive, each once; then both nodes give up each
    # other.
    names = [tuple(beat[:2]) for part in (*before[0], *behind[0]) for beat in part[0].tolist()
             if beat[0] >> 20 == 1]
    assert len(names) == len(set(names))
    for engine in engines:
        assert counts(engine, "received")["bad_epochs"] > 0
        assert counts(engine, "sent")["failures"] == engine.get_signal("given_up") == 1
        assert engine.at_rest


def test_with_the_same_new_epoch_both_go_on():
    engines, network = link_ends(TRAFFIC), network_of(TRAFFIC)
    for engine in engines:
        engine.set_signal("epoch", 7)
    send_packets(TRAFFIC, engines)
    came = run_to_rest(engines, CompiledExchange(engines, network), network)
    assert [sum(len(part[0]) for part in node) for node in came] == [1200, 1200]
