"""The GPU's calibration finds the constants of a GPU with known times."""

import json
import sys
from dataclasses import replace
from signal import SIGINT

import pytest

from gen.base.signals import Interrupted
from host.calibrate.__main__ import main
from host.calibrate.gpu.device import Device, Sizes
from host.calibrate.gpu.plan import ITEMS, run
from host.calibrate.gpu.profiles import derive_profiles
from host.calibrate.reading import Book, Missing
from host.devices.software import SoftwareProfile
from host.timing.gpu import GpuProfile
from host.timing.pcie import PcieProfile
from host.toml.profile import load_profile
from host.toml.provenance import constants
from tests.host.calibrate.fake_torch import FakeTorch

GPU = GpuProfile("real", 5.0, 800.0, 64, 4, 12.0, 1.5, 0.7, 1.0, 1.0)
PCIE = PcieProfile("real", 0.42, 11.0)
SOFTWARE = SoftwareProfile("real", 9.0, 300.0, 4.0, 0.3, 6.0, 2.5, True, 7.0, True, True, 2,
                           "nccl")


@pytest.fixture
def torch(monkeypatch):
    def driver(capability):
        raise Missing("a fake")
    monkeypatch.setattr("host.calibrate.gpu.device.Driver", driver)
    return FakeTorch(GPU, PCIE, SOFTWARE)


def _measured(torch, *items, repeats=3, sizes=None):
    """Return the readings of ``items`` of a fake GPU."""
    device, book = Device(torch, "cuda", repeats, sizes, torch.clock, Missing("a fake")), Book()
    run(device, items, book)
    assert set(book.missing) <= {"graph.driver"}
    return book


def test_finds_the_constants_of_a_known_gpu(torch):
    found = derive_profiles("gpu_x", _measured(torch, "rates", "graph"))
    gpu, pcie = found.gpu, found.pcie
    assert gpu.launch_us == pytest.approx(5.0, rel=0.01)
    assert gpu.kernel_us == pytest.approx(1.5)
    # Large operators dominate the operators beside them.
    assert gpu.memory_bandwidth_gb_s == pytest.approx(800.0, rel=0.01)
    assert gpu.float32_tflops == pytest.approx(12.0, rel=0.01)
    assert gpu.gather_fraction == pytest.approx(0.7, rel=0.02)
    assert (gpu.stream_fraction, gpu.gemm_fraction) == (1.0, 1.0)
    assert pcie.bandwidth_gb_s == pytest.approx(11.0, rel=0.01)
    for software, graphs in ((found.eager, False), (found.tuned, True)):
        assert software.operator_us == pytest.approx(9.0)
        assert software.copy_us == pytest.approx(6.0)
        assert software.synchronize_us == pytest.approx(2.5)
        assert software.graphs is graphs
    assert (found.eager.graph_us, found.tuned.graph_us) == (0.0, pytest.approx(7.0))
    assert torch.backends.cuda.matmul.allow_tf32 is False


def test_every_measured_number_says_so(torch):
    profiles = derive_profiles("gpu_x", _measured(torch, "rates", "graph")).all
    statuses = {c.name: c.status for profile in profiles[:3] for c in constants(profile)}
    assert [profile.name for profile in profiles] == [
        "gpu_x", "pcie_x", "software_eager_x", "software_tuned_x"]
    assert {name for name, status in statuses.items() if status == "M"} == {
        "launch_us", "memory_bandwidth_gb_s", "float32_tflops", "kernel_us", "gather_fraction",
        "bandwidth_gb_s", "operator_us", "copy_us", "synchronize_us"}
    for profile in profiles:
        assert all(c.source != "the profile does not say" for c in constants(profile))


def test_no_time_is_lost_to_noise(torch):
    """If small operators seem slower than large operators, rates stay positive; the times of the
    host thread are no part of a GPU, and 0."""
    book = _measured(torch, "rates", repeats=1, sizes=Sizes(1e-9))
    gpu = derive_profiles("gpu_x", book).gpu
    assert all(c.value > 0 for c in constants(gpu) if c.name not in ("call_us", "pace_us"))


def _run(*arguments):
    with pytest.raises(SystemExit) as ended:
        main(["gpu", "--repeats", "1", "--scale", "0.001", *arguments])
    assert ended.value.code == 0


def test_command_writes_profiles_that_load(tmp_path, monkeypatch, capsys, torch):
    monkeypatch.setitem(sys.modules, "torch", torch)
    _run("--output", str(tmp_path), "--only", "device,rates,graph")
    stem = "fake_gpu_1_pcie"
    kinds = {"gpu": GpuProfile, "pcie": PcieProfile, "software_eager": SoftwareProfile,
             "software_tuned": SoftwareProfile}
    assert {path.name for path in tmp_path.iterdir()} == {
        *(f"{kind}_{stem}.toml" for kind in kinds),
        f"gpu_{stem}_readings.csv", f"gpu_{stem}_readings.json"}
    for kind, shape in kinds.items():
        assert load_profile(tmp_path / f"{kind}_{stem}.toml", shape).name == f"{kind}_{stem}"
    assert "host.calibrate: graph.driver is missing: a fake\n" in capsys.readouterr().err
    whole = json.loads((tmp_path / f"gpu_{stem}_readings.json").read_text())
    assert whole["machine"]["gpu"] == "Fake GPU-1 (PCIe)"
    values = {entry["name"]: entry["value"] for entry in whole["readings"]}
    assert values["device.multiprocessors"] == 72
    assert [entry["name"] for entry in whole["missing"]] == ["graph.driver"]


def test_an_item_is_measured_again_and_the_others_are_kept(tmp_path, monkeypatch, capsys, torch):
    monkeypatch.setitem(sys.modules, "torch", torch)
    _run("--output", str(tmp_path), "--only", "rates,graph")
    path = tmp_path / "gpu_fake_gpu_1_pcie_readings.json"
    before = Book.read(path)
    _run("--output", str(tmp_path), "--only", "graph")
    after = Book.read(path)
    assert set(after.readings) == set(before.readings)
    same = {name for name in after.readings if after.readings[name] == before.readings[name]}
    assert {name for name in after.readings if name.startswith("rates.")} <= same
    assert "graph.14.python_us" not in same
    torch.__version__ = "another"
    capsys.readouterr()
    assert "torch must be" in _complaint(capsys, "gpu", "--scale", "0.001", "--output",
                                              str(tmp_path), "--only", "graph")


def _complaint(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said


def test_without_cuda_it_says_so(monkeypatch, capsys, torch):
    torch.cuda.is_available = lambda: False
    monkeypatch.setitem(sys.modules, "torch", torch)
    assert _complaint(capsys, "gpu") == (
        "host.calibrate: gpu requires a CUDA device, but PyTorch found no device\n")
    monkeypatch.setitem(sys.modules, "torch", None)
    assert _complaint(capsys, "gpu") == (
        "host.calibrate: host.calibrate gpu requires PyTorch: install the extra in "
        "the repository with pip install --editable '.[torch]'\n")


@pytest.mark.parametrize("arguments, message", [
    (("gpu", "--device", "tpu"), "device must be cuda or cpu, not 'tpu'"),
    (("gpu", "--output", "/none"), "output must be an existing folder, not '/none'"),
    (("gpu", "--name", "a b"), "name must consist of letters, digits and underscores"),
    (("gpu", "--scale", "2"), "Invalid value for '--scale'"),
    (("gpu", "--only", "launch,all"), f"only must be one of {', '.join(ITEMS)}, not 'all'"),
    (("gpu", "--budget", "0"), "Invalid value for '--budget'"),
    (("cpu", "--output", "/none"), "output must be an existing folder, not '/none'"),
    (("cpu", "--name", "../x"), "name must consist of letters, digits and underscores"),
    (("cpu", "--repeats", "0"), "Invalid value for '--repeats'"),
    (("tpu",), "No such command 'tpu'"),
])
def test_mistakes_are_one_line(arguments, message, monkeypatch, capsys, torch, tmp_path):
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.chdir(tmp_path)
    assert _complaint(capsys, *arguments).startswith(f"host.calibrate: {message}")
    assert not list(tmp_path.iterdir())


def test_a_gpu_that_is_slower_measures_slower():
    def found(gpu):
        book = _measured(FakeTorch(gpu, PCIE, SOFTWARE), "rates", repeats=1)
        return derive_profiles("gpu_x", book).gpu

    base = found(GPU)
    assert found(replace(GPU, memory_bandwidth_gb_s=400.0)).memory_bandwidth_gb_s < 401
    assert found(replace(GPU, float32_tflops=6.0)).float32_tflops < 6.1
    assert found(replace(GPU, gather_fraction=0.35)).gather_fraction < base.gather_fraction / 1.9


def test_an_interrupted_command_keeps_what_it_has(tmp_path, monkeypatch, capsys, torch):
    def interrupted(device):
        raise Interrupted(SIGINT)

    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(ITEMS, "graph", interrupted)
    with pytest.raises(SystemExit) as ended:
        main(["gpu", "--output", str(tmp_path), "--name", "x", "--scale", "0.001", "--only",
              "device,rates,graph,branches"])
    assert ended.value.code == 130
    assert capsys.readouterr().err.endswith("host.calibrate: stopped by SIGINT\n")
    book = Book.read(tmp_path / "gpu_x_readings.json")
    assert "rates.call_us" in book and not book.missing
