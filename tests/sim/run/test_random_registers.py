"""Registers that hold anything at power-up: the reset, through its tree, is all that a NIC needs."""

import re
from dataclasses import replace

import pytest

from rtl.config import preset
from rtl.nic import SmartNic
from sim.engines import verilator
from sim.engines.verilator import load_verilator
from sim.job.options import RunOptions
from sim.nic.build import NicModel
from sim.nic.registers import RegisterFile
from sim.run.report import failures
from sim.run.run import run
from sim.training.train import train

_INITIAL = re.compile(r"^(  reg (?:signed )?(?:\[\d+:0\] )?\S+ +)= \d+'\w+;$", re.MULTILINE)
_MEASURED = ("wall_seconds", "cpu_seconds", "node_cycles_per_second")


def _powered_up(monkeypatch, config):
    """Return ``config``'s NIC, no register of which has an initial value: Verilator draws them."""
    translated = verilator.translated

    def without(*arguments):
        translation = translated(*arguments)
        text, count = _INITIAL.subn(r"\1;", translation.text)
        assert count > 1000 and not re.search(r"^  reg .*=", text, re.MULTILINE)
        return replace(translation, text=text)

    monkeypatch.setattr(verilator, "translated", without)
    # A gated block gets no reset: it begins with its initial values.
    return load_verilator(SmartNic(config), "powered_up", f"SmartNic({config!r})",
                          clock_gating=False)


@pytest.mark.long
@pytest.mark.parametrize("training", [False, True], ids=["inference", "training"])
def test_no_register_needs_an_initial_value(monkeypatch, training):
    config = replace(preset("tiny"), training=training)
    start, samples = (train, 16) if training else (run, 24)
    options = RunOptions.of(config="tiny", samples=samples, mini_batch=8, nodes=2, threads=1)
    model, results = _powered_up(monkeypatch, config), [start(options)]

    for seed in (1, 99):
        def instance(self, *, skip=True, seed=seed):
            assert self.config == config
            engine = model.instance(skip=skip, random_init=seed)
            return engine, RegisterFile(engine, self.registers)

        monkeypatch.setattr(NicModel, "instance", instance)
        results.append(start(options))
    for result in results:
        assert failures(result) == []
        for name in _MEASURED:
            result.pop(name, None)
    assert results[0] == results[1] == results[2]
