"""Resets of training NICs with a link: no packet is cut, and the NICs train like new NICs."""

import random

import numpy as np
import pytest

from rtl.network.receiver import FRAME_RECEIVER_COUNTERS
from sim.cluster.exchange import Exchange
from sim.engines import Engine
from sim.host_cpp.numerics import COMPILED
from sim.nic.build import RtlNic
from sim.run.backend import Backend
from sim.training.train import Training
from tests.gen.shells.traffic import INPUTS, OUTPUTS, is_last, was_cut
from tests.sim.training.compiled_nics import options, write

ALIGNED = 1 << 12
"""A training begins at a multiple of this many cycles: the NIC's deadlines depend on ``time``."""
SETTLED = 2000
"""Cycles from the end of a reset until all waiting traffic has ended."""
MEASURED = ("wall_seconds", "cpu_seconds", "node_cycles_per_second", "node_cycles")
SAME = ("weights_sha256", "predictions_sha256", "loss")
RESTS = [f"{stream.replace('rx', 'receiver')}.{name}" for stream in INPUTS
         for name in FRAME_RECEIVER_COUNTERS.members if name not in ("packets", "beats")]
"""Counters of the rests of packets that a reset has cut."""


class Life:
    """Inputs and outputs of the NIC on ``engine`` in a training.

    outputs: beats of each output stream.
    length: cycles.
    busy: cycles in which a beat entered or left.
    """

    def __init__(self, engine: Engine, monkeypatch):
        self._engine, self._calls = engine, []
        self._pushes = {name: [] for name in INPUTS}
        self._pops = {name: [] for name in OUTPUTS}
        push, pop, access, set_rate = engine.push, engine.pop, engine._access, engine.set_rate

        def pushed(stream, payloads, cycles=0):
            due = np.maximum(np.broadcast_to(cycles, len(payloads)), engine.cycle)
            self._pushes[stream].append((np.array(payloads), due))
            push(stream, payloads, cycles)

        def popped(stream):
            beats, cycles = pop(stream)
            self._pops[stream].append((beats, cycles))
            return beats, cycles

        def accessed(addr, data, cycle, is_write):
            due = max(cycle, engine.cycle)
            self._calls.append((due, lambda again: again._access(addr, data, due, is_write)))
            access(addr, data, cycle, is_write)

        def rated(*given, **named):
            self._calls.append((0, lambda again: again.set_rate(*given, **named)))
            set_rate(*given, **named)

        for name, method in (("push", pushed), ("pop", popped), ("_access", accessed),
                             ("set_rate", rated)):
            monkeypatch.setattr(engine, name, method)

    def end(self, again: Engine) -> None:
        """End the life; a second NIC, ``again``, shows when it took each beat."""
        self.length = self._engine.cycle
        left = {name: [np.concatenate(parts) for parts in zip(*pops)]
                for name, pops in self._pops.items()}
        self.outputs = {name: beats for name, (beats, _) in left.items()}
        self._inputs = {name: [np.concatenate(parts) for parts in zip(*pushes)]
                        for name, pushes in self._pushes.items()}
        self._offer(again, self.length, {name: len(beats)
                                         for name, (beats, _) in self._inputs.items()})
        waiting = []
        for cycle in range(self.length):
            again.run(cycle)
            waiting.append([again.waiting(name) for name in INPUTS])
        self._taken = {name: counts[0] - counts
                       for name, counts in zip(INPUTS, np.array(waiting).T)}
        came = [np.flatnonzero(np.diff(taken)) for taken in self._taken.values()]
        self.busy = np.unique(np.concatenate(came + [cycles for _, cycles in left.values()]))

    def replay(self, engine: Engine, until: int) -> None:
        """Run ``engine`` up to cycle ``until``; the rest of a started packet waits."""
        counts = {}
        for name, taken in self._taken.items():
            ends = np.flatnonzero(is_last(self._inputs[name][0])) + 1
            counts[name] = int(ends[np.searchsorted(ends, taken[until])]) if taken[until] else 0
        self._offer(engine, until, counts)
        engine.run(until)

    def _offer(self, engine: Engine, until: int, counts: dict[str, int]) -> None:
        for due, call in self._calls:
            if due < until:
                call(engine)
        for name, count in counts.items():
            beats, cycles = self._inputs[name]
            engine.push(name, beats[:count], cycles[:count])


class Lives:
    """Trainings on two NICs after a reset in the middle of an earlier training.

    lives: records of the NICs in the earlier training.
    first: result on NICs that are reset before any traffic.
    cuts: packets cut, by stream.
    """

    def __init__(self, folder, monkeypatch, seed: int):
        self._folder, self._patch, self._rng = folder, monkeypatch, random.Random(seed)
        self._new = RtlNic.instance
        self.lives: list[Life] = []
        self.cuts = dict.fromkeys((*INPUTS, *OUTPUTS), 0)

        def recorded(model, *, skip=True):
            engine, registers = self._new(model, skip=skip)
            self.lives.append(Life(engine, monkeypatch))
            return engine, registers

        model, result = self._train(recorded)
        for life in self.lives:
            life.end(self._new(model)[0])
        self.first = self.again(0)
        assert self.first["bit_identical"]
        assert all(self.first[name] == result[name] for name in SAME)

    def again(self, moment: int | None = None) -> dict:
        """Return the result on new NICs that were reset in cycle ``moment`` of their lives.

        None selects random cycles in which the NICs are busy.
        """
        lives = iter(self.lives)

        def reset(model, *, skip=True):
            engine, registers = self._new(model, skip=skip)
            life = next(lives)
            at = int(self._rng.choice(life.busy)) if moment is None else moment
            self._reset(engine, life, at)
            return engine, registers

        return self._train(reset)[1]

    def _reset(self, engine: Engine, life: Life, moment: int) -> None:
        life.replay(engine, moment)
        rests = {name: engine.waiting(name) for name in INPUTS}
        engine.reset(True)
        engine.run(engine.cycle + 10)
        engine.reset(False)
        engine.run(engine.cycle + SETTLED)
        assert engine.get_signal("swept") and not engine.get_signal("working")
        engine.read_results()
        for name in INPUTS:
            assert not engine.waiting(name)
            self.cuts[name] += rests[name] > 0
        for name in OUTPUTS:
            self.cuts[name] += was_cut(engine.pop(name)[0], life.outputs[name])
        engine.run(-(-(life.length + 2 * SETTLED) // ALIGNED) * ALIGNED)

    def _train(self, instance) -> tuple[RtlNic, dict]:
        models = []

        def noted(model, **named):
            models.append(model)
            return instance(model, **named)

        self._patch.setattr(RtlNic, "instance", noted)
        given = options(write(self._folder), settings=("link=true",), samples=24)
        result = Training(given, Backend(given.run, COMPILED, exchange=Exchange)).execute(
            lambda *progress: None)
        for name in MEASURED:
            result.pop(name, None)
        for counters in result["counters"]:
            for name in RESTS:
                del counters[name]
        return models[0], result


@pytest.mark.slow
def test_resets(tmp_path, monkeypatch):
    lives = Lives(tmp_path, monkeypatch, seed=2)
    for _ in range(25):
        assert lives.again() == lives.first
    assert min(lives.cuts.values()) > 1, lives.cuts
