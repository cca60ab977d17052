"""Registers have random values at power-up: the reset, through its tree, suffices for a NIC."""

import re
from dataclasses import replace

import pytest

from rtl.nic import SmartNic
from sim.engines import verilator
from sim.engines.translate import translated
from sim.engines.verilator import load_verilator
from sim.job.options import RunOptions
from sim.nic.build import RtlNic
from sim.nic.registers import RegisterFile
from sim.run.report import failures
from sim.run.run import run
from sim.training.train import train
from tests.sim.training.compiled_nics import options as training_options
from tests.sim.training.compiled_nics import write

_INITIAL = re.compile(r"^(  reg (?:signed )?(?:\[\d+:0\] )?\S+ +)= \d+'\w+;$", re.MULTILINE)
_MODULE = re.compile(r"^module (\w+)\(.*?^endmodule", re.MULTILINE | re.DOTALL)
_GUARDS = 3
"""Modules of guards at the edges of the NIC."""
_MEASURED = ("wall_seconds", "cpu_seconds", "node_cycles_per_second")


def _without_initial_values(*arguments):
    translation, counts = translated(*arguments), []

    def module(match):
        if match[1].endswith("_guard"):  # it survives resets
            return match[0]
        text, count = _INITIAL.subn(r"\1;", match[0])
        assert not re.search(r"^  reg .*=", text, re.MULTILINE)
        counts.append(count)
        return text

    text = _MODULE.sub(module, translation.text)
    assert sum(counts) > 1000 and translation.text.count("_guard(") == _GUARDS
    return replace(translation, text=text)


@pytest.mark.slow
@pytest.mark.parametrize("training", [False, pytest.param(True, marks=pytest.mark.slow)],
                         ids=["inference", "training"])
def test_no_register_needs_an_initial_value(tmp_path, monkeypatch, training):
    if training:
        start, chosen = train, training_options(write(tmp_path), samples=24)
    else:
        start, chosen = run, RunOptions.of(
            config="tiny", samples=24, mini_batch=8, nodes=2, threads=1)
    results = [start(chosen)]
    # Verilator draws the value of a register that has no initial value.
    monkeypatch.setattr(verilator, "translated", _without_initial_values)
    for seed in (1, 99):
        def instance(self, *, skip=True, seed=seed):
            # A gate begins with its initial values.
            model = load_verilator(SmartNic(self.config), "powered_up",
                                   f"SmartNic({self.config!r})", clock_gating=False)
            engine = model.instance(skip=skip, random_init=seed)
            return engine, RegisterFile(engine, self.registers)

        monkeypatch.setattr(RtlNic, "instance", instance)
        results.append(start(chosen))
    for result in results:
        assert result["bit_identical"] and (training or failures(result) == [])
        for name in _MEASURED:
            result.pop(name, None)
    assert results[0] == results[1] == results[2]
