"""Whole mini-batches on one H100: graphs, launching threads, and a DLRM operator by operator.

The graphs contain the GPU's half of a mini-batch (:mod:`host.calibrate.gpu.halves`). Our half is
composed like the systems, with the same constants.
"""

from collections.abc import Iterator
from dataclasses import replace

from host.devices.embedding_work import expanded_interaction, gather
from host.measurements.readings import h100_us
from host.model import MODELS
from host.systems.dense import Dense
from host.systems.devices import Devices
from host.systems.program import Program
from host.systems.stage import Step
from sim.evaluation.built import interval_us
from sim.experiments.checks.check import Check, Comparison, percent
from sim.experiments.checks.composed import even_plan, paper_step_us, work_of

__all__ = ["comparison", "half"]

_GPU, _LINK = "gpu_h100", "pcie_h100"
_BOUND = 0.25
_ANSWER_US = 8.0
"""From a launch to the NIC's word, as in the measurement."""
_CASES = (("kaggle", 32), ("terabyte", 512))
_IN_FLIGHT = 16


def comparison() -> Comparison:
    """Return the eager DLRM, and graphs: alone, in flight, and by several threads."""
    eager = [Check(f"DLRM of Kaggle, operator by operator, {samples:,} samples",
                   _eager_us(samples), h100_us()[f"dlrm.kaggle.{samples}.eager_us"], "us", _BOUND,
                   1, samples, _GPU) for samples in (128, 2048)]
    checks = [*eager, *_launches(), *_graphs(), *_threads()]
    return Comparison.of(
        "H100 whole steps", "Whole mini-batches on an H100", "H100, whole steps",
        "Whole steps, because errors of parts add up in them. The bound is that of the V100's "
        "inference.", checks, _conclusion(checks))


def half(name: str, samples: int, waits: bool, threads: int = 1) -> Step:
    """Return the GPU's half of a mini-batch and its calls.

    waits: True for EN, which waits for the NIC's word; False for ``bl-tuned``, which looks up all
        tables and has no exchange.
    """
    model = MODELS[name]
    d = replace(Devices.load(1, "tuned_h100", _GPU, link=_LINK), threads=threads)
    work = work_of(model, even_plan(model, 1, (1,) * model.tables), samples, (1,) * model.tables)
    program, dense, keys = Program(d), Dense(work, d.kernels), samples * model.tables
    at = program.copy("inputs", 4 * samples * model.dense + (0 if waits else 8 * keys), ())
    if not waits:
        at = program.kernels([("lookup", "embedding_lookup", [
            gather(keys, keys, model.dimension, fused=True)])], at)
    at = program.kernels([dense.bottom()], at)
    if waits:
        launched = next(number for number, stage in enumerate(program.step.stages)
                        if stage.name == "graph")
        word = program.step.add("NIC", "embedding_lookup", _ANSWER_US, after=[launched])
        at = program.wait_for_flag((*at, word))
    at = program.kernels([
        ("expand", "mlp", expanded_interaction(samples, model, keys, keys, 2 * keys, d.kernels)),
        dense.top()[-1]], at)
    dense.predictions(program, at)
    return program.step


def _eager_us(samples: int) -> float:
    model = MODELS["kaggle"]
    hot = (1,) * model.tables
    return paper_step_us(work_of(model, even_plan(model, 1, hot), samples, hot), _GPU,
                         "eager_h100", _LINK)


def _launches() -> Iterator[Check]:
    """Yield the host's time of a launch."""
    for name, samples in _CASES:
        us = Devices.load(1, "tuned_h100", _GPU).software.graph_us
        for count in (1, 8):
            for kind in ("en", "tuned"):
                yield _check(f"launch of a graph of {count}, {_words(name, samples, kind)}",
                             count * us, f"en.{name}.{samples}.{kind}.{count}.call_us", samples)


def _graphs() -> Iterator[Check]:
    """Yield times without those of ``bl-tuned``'s graphs of 1, which give constants."""
    for name, samples in _CASES:
        for kind, counts in (("en", (1, 2, 4, 8)), ("tuned", (2, 4, 8))):
            step, words = half(name, samples, kind == "en"), _words(name, samples, kind)
            if kind == "en":  # Words are there: no wait for the NIC.
                yield _check(f"alone, {words}", interval_us([_answered(step)], 1),
                             f"en.{name}.{samples}.{kind}.1.alone_us", samples, _BOUND)
            for count in counts:
                yield _check(f"interval, {_IN_FLIGHT} in flight, graphs of {count}, {words}",
                             interval_us([step], _IN_FLIGHT, count),
                             f"en.{name}.{samples}.{kind}.{count}.interval_us", samples, _BOUND)


def _answered(step: Step) -> Step:
    return Step([replace(stage, us=0.0) if stage.name == "NIC" else stage
                 for stage in step.stages], step.calls)


def _threads() -> Iterator[Check]:
    for name, samples in (*_CASES[:1], ("kaggle", 128), *_CASES[1:]):
        for flight, several in ((4, (1,)), (8, (1,)), (_IN_FLIGHT, (1, 2, 4))):
            for threads in several:
                yield _check(f"interval, {flight} in flight, {threads} launching threads, "
                             f"{_words(name, samples, 'tuned')}",
                             interval_us([half(name, samples, False, threads)], flight),
                             f"threads.{name}.{samples}.{flight}.{threads}_us", samples, _BOUND)


def _words(name: str, samples: int, kind: str) -> str:
    return f"{name}, {samples} samples, {'EN' if kind == 'en' else 'bl-tuned'}"


def _check(name: str, ours: float, reading: str, samples: int, bound: float | None = None) -> Check:
    return Check(name, ours, h100_us()[reading], "us", bound, 1, samples, _GPU)


def _conclusion(checks: list[Check]) -> str:
    found = h100_us()
    small, large = ([found[f"threads.{name}.16.{threads}_us"] for threads in (1, 2, 4)]
                    for name in ("kaggle.32", "kaggle.128"))
    single, tensor = (found[f"en.kaggle.32.{form}en.1.interval_us"] for form in ("", "tf32."))
    slow = [check.error for check in checks if "interval" in check.name]
    return (f"Cause of the error of the DLRM: an operator of the whole program costs the host "
            f"{found['dlrm.kaggle.128.eager_call_us'] / _operators():.0f} us, the constant from "
            "loops over one operator is "
            f"{Devices.load(1, 'eager_h100', _GPU).software.operator_us:.0f} us. Views, slices and "
            "Python between operators are not modelled. Bottleneck at 32 samples and 16 in flight: "
            f"with one thread, launching ({small[0]:.1f} us); with two or four threads, kernels "
            f"({small[1]:.1f} and {small[2]:.1f} us). In another run one thread launched a graph "
            f"per {tensor:.1f} us with TF32, so kernels limit the {single:.1f} us with float32. At "
            f"128 samples ({large[0]:.1f}, {large[1]:.1f} and {large[2]:.1f} us) and on Terabyte, "
            "kernels limit with any number of threads. The interval still falls from 8 to 16 in "
            "flight; more than 16 were not measured. Kernels of several mini-batches disturb each "
            "other; the constants of this effect come from bl-tuned's graphs of one mini-batch. "
            f"Causes of the other errors of intervals ({percent(min(slow))} to "
            f"{percent(max(slow))}): single kernels of large mini-batches are too fast, the run "
            "with several threads is up to 12 % slower than the run of the constants, one thread "
            "launches irregularly, and kernels in a graph start later. Launches of Terabyte's "
            "graphs take up to twice the constant.")


def _operators() -> int:
    """Return the operators of the DLRM in our model: calls of the host."""
    software = Devices.load(1, "eager_h100", _GPU).software
    return round(_eager_us(128) / software.operator_us)
