"""Attacks on training: the weights are the same, and attacking frames are rejected and counted."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from rtl.formats import Opcode, StepKind, StepRecord
from sim.run.backend import choose
from sim.training.train import Training
from tests.rtl.network.frames import Frame, record_payload
from tests.sim.training.compiled_nics import options, write
from tests.wire.attacked import Attack, Attacked, Sent
from tests.wire.forging import as_node, as_stranger, read

pytestmark = pytest.mark.thorough

Address = Callable[[Frame], Frame]


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> str:
    return write(tmp_path_factory.mktemp("model"))


def trained(path: str, attack: Attack) -> tuple[dict, int, Counter[str]]:
    """Train with ``attack`` on the network; return the result, the attacker's frames, and the
    counters."""
    given, exchanges = options(path, samples=16, patience=20_000), []

    def exchange(engines, network) -> Attacked:
        exchanges.append(Attacked(engines, network, attack))
        return exchanges[0]

    result = Training(given, replace(choose(given.run), exchange=exchange)).execute()
    counters: Counter[str] = Counter()
    for node in result["counters"]:
        counters.update(node)
    return result, exchanges[0].sent, counters


@pytest.fixture(scope="module")
def calm(path) -> dict:
    result, _, counters = trained(path, lambda *frame: [])
    assert result["complete"] and result["bit_identical"]
    assert not any(counters[name] for name in ("step_counter.bad_steps", "step_counter.bad_counts"))
    return result


def end(count: int, address: Address) -> Attack:
    """Announce ``count`` partials of each step, after the first frame of the step."""
    told = set()

    def attack(cycle: int, source: int, destination: int, beats: np.ndarray) -> list[Sent]:
        frame = read(beats)
        if frame.opcode != Opcode.PARTIALS or (source, destination, frame.step) in told:
            return []
        told.add((source, destination, frame.step))
        record = StepRecord.const({"count": count, "kind": StepKind.END}).as_bits()
        return [Sent(cycle, source, destination, address(Frame(
            opcode=Opcode.STEPS, source=source, destination=destination, step=frame.step, count=1,
            payload=record_payload([record]))))]

    return attack


def extra(address: Address) -> Attack:
    """Send the values of the first PARTIALS a second time."""
    seen = []

    def attack(cycle: int, source: int, destination: int, beats: np.ndarray) -> list[Sent]:
        frame = read(beats)
        if frame.opcode != Opcode.PARTIALS or seen:
            return []
        seen.append(frame)
        return [Sent(cycle, source, destination, address(replace(frame, credit=0)))]

    return attack


@pytest.mark.parametrize("attack", [lambda address: end(0, address),
                                    lambda address: end((1 << 32) - 1, address), extra],
                         ids=["END of none", "END of 2^32 - 1", "PARTIALS"])
def test_a_stranger_is_refused(path, calm, attack):
    result, sent, counters = trained(path, attack(as_stranger))
    assert result["complete"] and result["weights_sha256"] == calm["weights_sha256"]
    assert counters["net_receiver.foreign"] == sent > 0


def test_an_end_of_more_than_may_come_is_refused(path, calm):
    """The peer's own END still counts: steps end with the same rows."""
    result, sent, counters = trained(path, end((1 << 32) - 1, as_node))
    assert result["complete"] and result["weights_sha256"] == calm["weights_sha256"]
    assert counters["step_counter.bad_steps"] == sent > 0


def test_partials_beyond_those_announced_are_counted(path):
    """A peer may add any values to sums; the comparison with the reference finds them."""
    result, sent, counters = trained(path, extra(as_node))
    assert sent == 1 and not result["bit_identical"]
    assert counters["step_counter.bad_counts"] + counters["step_counter.bad_steps"] > 0
