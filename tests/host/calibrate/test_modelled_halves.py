"""The model of EN's measured graphs is that of the evaluation's systems."""

import pytest

from host.calibrate.gpu.items.en import CASES, HALVES, PER_GRAPH
from host.calibrate.gpu.modelled import checks
from host.calibrate.gpu.modelled_halves import GraphModel
from host.calibrate.gpu.profiles import derive_profiles
from host.calibrate.reading import Book, number
from host.devices import dense_work, embedding_work
from host.model import MODELS
from host.systems.charge import longest_us
from host.systems.devices import Devices
from host.systems.program import Program
from host.systems.shared_graph import in_one_graph
from host.systems.stage import Step

FOUND = derive_profiles("gpu_x", Book())
"""The profiles that ship."""


def _step(samples: int, waits: bool) -> Step:
    """Return a program of the same calls."""
    model, program = MODELS["kaggle"], Program(Devices.load(1, "tuned"))
    keys = samples * model.tables
    copied = program.copy("inputs", 4 * samples * model.dense + (0 if waits else 8 * keys), ())
    bottom = program.kernels([("bottom", "mlp", dense_work.mlp(
        samples, model.bottom_layers, 1))], copied)
    if waits:
        there = program.wait_for_flag(())
        work = embedding_work.expanded_interaction(samples, model, keys, keys, 2 * keys, 2)
    else:
        there = program.kernels([("lookup", "embedding_lookup", (embedding_work.gather(
            keys, keys, model.dimension, model.tables, True),))], copied)
        work = dense_work.interaction(samples, model, 2)
    program.kernels([("interaction", "irregular", work), ("top", "mlp", (
        *dense_work.mlp(samples, model.top_layers, 1), dense_work.elementwise(samples),
        dense_work.elementwise(samples)))], (*there, *bottom))
    return program.step


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("samples", [32, 512])
def test_a_graph_takes_what_a_program_of_the_same_calls_does(samples, waits):
    model, step = GraphModel(FOUND, MODELS["kaggle"], samples, waits, None), _step(samples, waits)
    assert model.alone_us() == pytest.approx(longest_us(step) + FOUND.pcie.one_way_us)
    for each in PER_GRAPH:
        shared = in_one_graph([step] * each)
        (call,) = (stage.us for stage in shared.stages if "cpu" in stage.resources)
        assert model.call_us(each) == pytest.approx(call)
        assert model.replay_us(each) >= model.replay_us(1) / each
        assert model.interval_us(each) >= model.call_us(each) / each


def test_only_en_waits_for_a_word():
    tuned, en = (GraphModel(FOUND, MODELS["kaggle"], 32, waits, 3.0) for waits in (False, True))
    assert tuned.latency_us() is None
    assert GraphModel(FOUND, MODELS["kaggle"], 32, True, None).latency_us() is None
    found = en.latency_us()
    assert found is not None and 3.0 < found < 3.0 + en.alone_us()


def test_what_was_measured_has_its_model_beside_it():
    book = Book()
    book.add(number("release.poll_us", 3.0, "given", "us"))
    names = [f"en.{name}.{samples}.{kind}.{each}.interval_us" for name, samples, _ in CASES
             for kind in HALVES for each in PER_GRAPH]
    for name in (*names, "en.kaggle.32.en.1.latency_us"):
        book.add(number(name, 7.0, "given", "us"))
    said = checks(FOUND, book)
    assert len(said) == len(names) + 1 and all(each.measured_us == 7.0 for each in said)
    assert {each.name.split()[-4] for each in said} == {"interval,", "latency,"}
