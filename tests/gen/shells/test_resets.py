"""Resets at random moments during traffic: bare NIC and shells, on the compiled engine."""

import random
from collections.abc import Iterator

import numpy as np
import pytest

from rtl.config import preset
from rtl.network.receiver import FRAME_RECEIVER_COUNTERS
from tests.gen.shells.cosim import case
from tests.gen.shells.traffic import (
    INPUTS,
    OUTPUTS,
    SAMPLES,
    Push,
    Recording,
    Target,
    record,
    was_cut,
    words_of,
)

CONFIG = preset("tiny").with_fields(dot_units=0)
SETUP = 8000
"""Cycles from the start of loading registers to the start of the traffic."""
CLOSING = {"nic": 2, "opennic": 2, "vitis": 0}
"""Cycles after a reset before the NIC takes a beat."""
RECEIVED = [name for name in FRAME_RECEIVER_COUNTERS.members if name != "beats"]
"""Counters of a receiver; each packet counts in exactly one of them."""


class Restarts:
    """A target that is loaded, sees traffic, and is reset, repeatedly."""

    def __init__(self, name: str, folder):
        case.write_samples(folder, SAMPLES)
        self.target = Target(name, CONFIG)
        self.plan, self.cuts = case.plan_of(folder), dict.fromkeys((*INPUTS, *OUTPUTS), 0)
        self.rests: dict[str, int] = {}
        self.restart()
        self.fresh: Recording = record(self.target, folder)

    def restart(self) -> None:
        """Reset, and start."""
        self.target.begin_reset()
        self.target.end_reset()
        self.start()

    def start(self) -> None:
        """After a reset, load registers, and run to the start of the traffic."""
        target = self.target
        target.align()
        begin = target.engine.cycle
        target.load(self.plan)
        assert target.engine.cycle < begin + SETUP
        target.engine.run(begin + SETUP)
        for name in OUTPUTS:
            assert not len(target.engine.pop(name)[0])

    def moment(self, rng: random.Random) -> int:
        """Return a cycle for a reset: a random one, or a cycle that cuts a packet at an input."""
        if rng.random() < 0.5:
            return rng.randrange(self.fresh.length)
        begin, beats = rng.choice([(begin, len(push.beats)) for push, begin in self._arrivals()
                                   if len(push.beats) > 1])
        return max(0, begin + rng.randrange(1, beats) - CLOSING[self.target.name])

    def _arrivals(self) -> Iterator[tuple[Push, int]]:
        """Yield the arriving packets, and the cycles of their first beats."""
        free = dict.fromkeys(INPUTS, 0)
        for push in self.fresh.pushes:
            begin = max(push.cycle, free[push.stream])  # a packet waits for the previous packet
            free[push.stream] = begin + len(push.beats)
            yield push, begin

    def replay(self, until: int) -> tuple[int, set[str]]:
        """Offer the recorded packets that begin before ``until``.

        Return the cycle at which the traffic begins, and the inputs at which a packet ends later.
        """
        engine, start = self.target.engine, self.target.engine.cycle
        cut = set()
        for push, begin in self._arrivals():
            if begin < until:
                engine.push(push.stream, push.beats, start + push.cycle)
                if begin + len(push.beats) > until:
                    cut.add(push.stream)
        return start, cut

    def serves_as_new(self) -> None:
        """Replay all of the traffic: every beat, cycle and counter is the same, except for the
        remainders that :meth:`cut` has found counted."""
        start, _ = self.replay(self.fresh.length)
        self.target.engine.run(start + self.fresh.length)
        outputs = {name: self.target.engine.pop(name) for name in OUTPUTS}
        outputs = {name: (beats, cycles - start) for name, (beats, cycles) in outputs.items()}
        found = Recording(self.fresh.pushes, outputs, self.fresh.length,
                          self.target.registers.counters())
        assert found.digest == self.fresh.digest
        assert found.counters == {name: count + self.rests.get(name, 0)
                                  for name, count in self.fresh.counters.items()}

    def cut(self, at: int, held: int) -> None:
        """Reset in cycle ``at`` of the traffic; every packet has its length and its end. The
        outputs are stalled for the last ``held`` cycles before the reset and at its beginning."""
        engine = self.target.engine
        start, cut = self.replay(at + CLOSING[self.target.name])
        engine.run(start + max(0, at - held))
        for name in OUTPUTS:
            engine.hold(name, start + at + held)
        engine.run(start + at)
        self.target.begin_reset()
        inside = {name: engine.waiting(name) for name in INPUTS}
        self.target.run(2)
        assert inside == {name: engine.waiting(name) for name in INPUTS}, "taken in reset"
        self.target.end_reset()
        self.target.run(64)
        for name in INPUTS:
            assert engine.waiting(name) == 0
            self.cuts[name] += name in cut
        for name in OUTPUTS:
            self.cuts[name] += was_cut(engine.pop(name)[0], self.fresh.outputs[name][0])
        counters = self.target.registers.counters()
        self.rests = {}
        for stream, block in zip(INPUTS, ("host_receiver", "net_receiver")):
            found = {f"{block}.{name}": counters[f"{block}.{name}"] for name in RECEIVED}
            assert sum(found.values()) == (stream in cut), "a rest counts once"
            assert not counters[f"{block}.packets"]
            self.rests |= found


def resets(name: str, folder, count: int, seed: int) -> Restarts:
    """Reset a target ``count`` times; after each reset it behaves like a new target."""
    restarts, rng = Restarts(name, folder), random.Random(seed)
    for _ in range(count):
        restarts.restart()
        restarts.cut(restarts.moment(rng), rng.choice((0, 1, 5, 30)))
        restarts.start()
        restarts.serves_as_new()
    return restarts


def test_a_few_resets(tmp_path):
    restarts = resets("nic", tmp_path, 4, seed=1)
    assert len(restarts.fresh.outputs["host_tx"][0]) > 100


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nic", "opennic", "vitis"])
def test_two_hundred_resets(name, tmp_path):
    restarts = resets(name, tmp_path, 200, seed=2)
    print(name, restarts.cuts, restarts.fresh.length, restarts.fresh.digest)
    assert min(restarts.cuts.values()) > 5


@pytest.mark.parametrize("name", [
    "nic", *(pytest.param(name, marks=pytest.mark.slow) for name in ("opennic", "vitis"))])
def test_packets_that_come_in_a_reset_are_counted(name, tmp_path):
    case.write_samples(tmp_path, SAMPLES)
    target, packets = Target(name, CONFIG), 5
    target.end_reset()
    target.begin_reset()
    for stream in INPUTS:
        target.engine.push(stream, np.concatenate([words_of(bytes(64 * 3))] * packets))
    target.run(4)
    assert all(target.engine.waiting(stream) == 3 * packets for stream in INPUTS)
    target.end_reset()
    target.run(64)
    counters = target.registers.counters()
    for block in ("host_receiver", "net_receiver"):
        assert sum(counters[f"{block}.{counter}"] for counter in RECEIVED) == packets
