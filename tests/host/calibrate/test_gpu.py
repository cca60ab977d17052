"""The GPU's calibration finds what a GPU of known times is made of."""

import sys
from dataclasses import replace

import pytest

from host.calibrate.__main__ import main
from host.calibrate.check import Check, typical_factor
from host.calibrate.gpu import default_name, find_device, measure_gpu
from host.calibrate.torch_bench import Sizes
from host.devices.software import SoftwareProfile
from host.timing.gpu import GpuProfile
from host.timing.pcie import PcieProfile
from host.toml.profile import load_profile
from host.toml.provenance import constants
from tests.host.calibrate.fake_torch import FakeTorch

GPU = GpuProfile("real", 5.0, 800.0, 64, 4, 12.0, 1.5, 0.7, 1.0, 1.0)
PCIE = PcieProfile("real", 0.42, 11.0)
SOFTWARE = SoftwareProfile("real", 9.0, 300.0, 4.0, 0.3, 6.0, 2.5, True, 7.0, True, True, 0,
                           "nccl")


@pytest.fixture
def torch():
    return FakeTorch(GPU, PCIE, SOFTWARE)


def test_finds_the_constants_of_a_known_gpu(torch):
    (gpu, pcie, eager, tuned), _ = measure_gpu(torch, "gpu_x", clock=torch.clock, repeats=3)
    assert gpu.launch_us == pytest.approx(5.0, rel=0.01)
    assert gpu.kernel_us == pytest.approx(1.5, rel=0.02)  # but for the first graph's launch
    # Large operators are large enough for what is beside them not to count.
    assert gpu.memory_bandwidth_gb_s == pytest.approx(800.0, rel=0.01)
    assert gpu.float32_tflops == pytest.approx(12.0, rel=0.01)
    assert gpu.gather_fraction == pytest.approx(0.7, rel=0.02)
    assert (gpu.stream_fraction, gpu.gemm_fraction) == (1.0, 1.0)
    assert pcie.bandwidth_gb_s == pytest.approx(11.0, rel=0.01)
    for software, graphs in ((eager, False), (tuned, True)):
        assert software.operator_us == pytest.approx(9.0)
        assert software.copy_us == pytest.approx(6.0, rel=0.02)
        assert software.synchronize_us == pytest.approx(2.5)
        assert software.graphs is graphs
    assert (eager.graph_us, tuned.graph_us) == (0.0, pytest.approx(7.0))
    assert torch.backends.cuda.matmul.allow_tf32 is False


def test_every_measured_number_says_so(torch):
    profiles, _ = measure_gpu(torch, "gpu_x", clock=torch.clock, repeats=3, samples=())
    statuses = {c.name: c.status for profile in profiles[:3] for c in constants(profile)}
    assert [profile.name for profile in profiles] == [
        "gpu_x", "pcie_x", "software_eager_x", "software_tuned_x"]
    assert {name for name, status in statuses.items() if status == "M"} == {
        "launch_us", "memory_bandwidth_gb_s", "float32_tflops", "kernel_us", "gather_fraction",
        "bandwidth_gb_s", "operator_us", "copy_us", "synchronize_us"}
    for profile in profiles:
        assert all(c.source != "the profile does not say" for c in constants(profile))


def test_checks_put_the_model_beside_the_measurement(torch):
    _, checks = measure_gpu(torch, "gpu_x", clock=torch.clock, repeats=3, samples=(32, 2048))
    names = [check.name.split()[0] for check in checks]
    assert set(names) == {"gather", "linear", "elementwise", "concat", "transpose", "pairs",
                          "flatten", "pairs_backward", "layout", "unique", "segment_sum",
                          "scatter_update"}
    assert names.count("linear") == 2 * 7
    # What the fake does as the model says must come out near; it is told nothing of the model.
    for check in checks:
        if check.name.split()[0] in ("gather", "linear", "elementwise", "concat", "transpose"):
            assert check.ratio == pytest.approx(1.0, abs=0.2), check


def test_half_of_the_models_are_off_by_less():
    checks = [Check(str(ratio), ratio, 1.0) for ratio in (0.5, 1.0, 4.0)]
    assert [check.ratio for check in checks] == [0.5, 1.0, 4.0]
    assert typical_factor(checks) == pytest.approx(2.0)


def test_no_time_is_lost_to_noise(torch):
    """Where small operators seem to take longer than large ones, rates stay above nothing."""
    profiles, _ = measure_gpu(torch, "gpu_x", clock=torch.clock, repeats=1, samples=(),
                              sizes=Sizes(1e-9))
    assert all(c.value > 0 for c in constants(profiles[0]) if c.name != "call_us")


def test_command_writes_profiles_that_load(tmp_path, monkeypatch, capsys, torch):
    monkeypatch.setitem(sys.modules, "torch", torch)
    with pytest.raises(SystemExit) as ended:
        main(["gpu", "--output", str(tmp_path), "--repeats", "1", "--scale", "0.001"])
    assert ended.value.code == 0
    stem = "fake_gpu_1_pcie"
    kinds = {"gpu": GpuProfile, "pcie": PcieProfile, "software_eager": SoftwareProfile,
             "software_tuned": SoftwareProfile}
    assert {path.name for path in tmp_path.iterdir()} == {
        *(f"{kind}_{stem}.toml" for kind in kinds), f"gpu_{stem}.csv"}
    for kind, shape in kinds.items():
        assert load_profile(tmp_path / f"{kind}_{stem}.toml", shape).name == f"{kind}_{stem}"
    lines = (tmp_path / f"gpu_{stem}.csv").read_text().splitlines()
    assert lines[0] == "operation,model_us,measured_us,ratio" and len(lines) == 1 + 4 * 18
    assert "operators are off by a factor of" in capsys.readouterr().out


def test_runs_on_a_real_torch(tmp_path):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    torch = find_device("cpu")
    found, checks = measure_gpu(torch, "gpu_none", "cpu", 1, Sizes(1e-5), samples=(8,))
    assert len(checks) == 18 and all(check.measured_us > 0 for check in checks)
    assert all(c.value > 0 for c in constants(found[0]) if c.name != "call_us")
    assert default_name(torch, "cpu") == "gpu_none"


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
        "host.calibrate: gpu needs a CUDA device, and PyTorch sees none\n")
    monkeypatch.setitem(sys.modules, "torch", None)
    assert _complaint(capsys, "gpu") == (
        "host.calibrate: gpu needs PyTorch, which is not installed\n")


@pytest.mark.parametrize("arguments, message", [
    (("gpu", "--device", "tpu"), "device must be cuda or cpu, not 'tpu'"),
    (("gpu", "--output", "/none"), "output must be a folder, not '/none'"),
    (("gpu", "--name", "a b"), "name must be of letters, digits and underscores, not 'a b'"),
    (("gpu", "--scale", "2"), "Invalid value for '--scale'"),
    (("cpu", "--output", "/none"), "output must be a folder, not '/none'"),
    (("cpu", "--name", "../x"), "name must be of letters, digits and underscores, not '../x'"),
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
        torch = FakeTorch(gpu, PCIE, SOFTWARE)
        return measure_gpu(torch, "gpu_x", clock=torch.clock, repeats=1, samples=())[0][0]

    base = found(GPU)
    assert found(replace(GPU, memory_bandwidth_gb_s=400.0)).memory_bandwidth_gb_s < 401
    assert found(replace(GPU, float32_tflops=6.0)).float32_tflops < 6.1
    assert found(replace(GPU, gather_fraction=0.35)).gather_fraction < base.gather_fraction / 1.9
