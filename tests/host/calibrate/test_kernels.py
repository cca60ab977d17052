"""The CUDA kernels compile for every GPU, and run on a driver for tests, see ``fake_cuda.cpp``."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from host.calibrate.gpu import compile as compiling
from host.calibrate.gpu.compile import compile_kernel, kernel_sources, target_of
from host.calibrate.reading import Missing
from sim.engines.toolchain import compiler
from tests.optional import absent

HERE = Path(__file__).parent
ROOT = HERE.parents[2]


@pytest.fixture(scope="module")
def nvrtc():
    found = pytest.importorskip("cuda.bindings.nvrtc", reason=absent("cuda.bindings.nvrtc"))
    try:
        compiling.supported_targets(found)
    except Missing as missing:
        pytest.skip(str(missing))
    return found


def test_there_is_a_source_for_each_kernel():
    assert kernel_sources() == ["embedding", "expand", "gather", "released", "resident",
                                "stores", "touch"]


@pytest.mark.parametrize("capability", [75, 80, 90])
@pytest.mark.parametrize("source", kernel_sources())
def test_kernels_compile(nvrtc, source, capability):
    text = compile_kernel(nvrtc, source, f"compute_{capability}").decode()
    assert f".target sm_{capability}" in text and ".visible .entry" in text
    assert compile_kernel(nvrtc, source, f"sm_{capability}").startswith(b"\x7fELF")


def test_what_does_not_compile_is_a_reason(nvrtc, tmp_path, monkeypatch):
    (tmp_path / "wrong.cu").write_text('extern "C" __global__ void wrong() { this is wrong; }')
    monkeypatch.setattr(compiling, "_folder", lambda: tmp_path)
    with pytest.raises(Missing, match=r"wrong\.cu does not compile for compute_80: wrong\.cu\(1\)"):
        compile_kernel(nvrtc, "wrong", "compute_80")


def test_targets():
    assert target_of(90, [75, 80, 90]) == "sm_90"
    assert target_of(120, [75, 80, 90]) == "compute_90"
    with pytest.raises(Missing, match=r"NVRTC does not support compute capability 6\.1"):
        target_of(61, [75, 80, 90])


CHECKS = (
    "gathers_rows", "pools_bags", "expands_pools_and_interacts", "a_branch_waits_for_its_word",
    "stores_then_says_so", "a_graph_does_its_actions_in_order",
    "a_resident_kernel_serves_lists", "a_resident_kernel_leaves_when_nobody_asks",
    "graphs_wait_for_a_flag_that_is_late", "the_drivers_errors_are_reasons",
    "whole_graphs_of_both_systems_are_timed", "graphs_that_predict_otherwise_are_missing",
    "graphs_that_do_not_wait_are_missing", "words_that_never_come_end_a_graph",
    "items_yield_what_they_say")


@pytest.fixture(scope="module")
def said(nvrtc, tmp_path_factory):
    """Return the results of the checks of ``on_fake_driver``."""
    pytest.importorskip("torch", reason=absent("torch"))
    folder = tmp_path_factory.mktemp("fake_cuda")
    subprocess.run([*compiler(), "-std=c++17", "-O1", "-fno-sanitize=undefined", "-shared", "-fPIC",
                    "-pthread", "-I", str(ROOT / "host/calibrate/kernels"), "-o",
                    str(folder / "libcuda.so.1"), str(HERE / "fake_cuda.cpp")], check=True,
                   timeout=300)
    done = subprocess.run([sys.executable, "-m", "tests.host.calibrate.on_fake_driver"], cwd=ROOT,
                          env={**os.environ, "LD_LIBRARY_PATH": str(folder)}, text=True,
                          capture_output=True, timeout=1200)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert set(found) == set(CHECKS)
    return found


@pytest.mark.parametrize("check", CHECKS)
def test_on_a_driver_made_for_tests(said, check):
    assert said[check] is None, said[check]
