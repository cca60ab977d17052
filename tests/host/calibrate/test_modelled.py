"""The model of the measured DLRM is that of the evaluation's systems."""

import pytest

from host.calibrate.gpu.modelled import parts, whole_us
from host.calibrate.gpu.profiles import derive_profiles
from host.calibrate.reading import Book
from host.model import MODELS
from host.systems.charge import longest_us
from host.systems.devices import Devices
from host.systems.program import Program


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("samples", [128, 2048])
@pytest.mark.parametrize("software", ["eager", "tuned"])
def test_a_whole_dlrm_takes_what_a_program_of_the_same_calls_does(software, samples, fused):
    model, found = MODELS["kaggle"], derive_profiles("gpu_x", Book())
    devices = Devices.load(1, software)
    part = parts(model, samples, fused)
    graphs = devices.software.graphs
    names = ("bottom", "lookup" if graphs else "lookups", "interaction", "top")
    program = Program(devices)
    at = program.copy("inputs", samples * (8 * model.tables + 4 * model.dense), (),
                      1 if graphs else 2)
    at = program.kernels([(name, "mlp", part[name]) for name in names], at)
    at = program.copy("predictions", 4 * samples, at, to_gpu=False)
    program.wait(at)
    assert whole_us(found, getattr(found, software), model, samples, fused) == pytest.approx(
        longest_us(program.step))
