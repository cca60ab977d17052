"""The emitted tops as Verilog in Icarus, with cocotb around them, against ``sim run``."""

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gen.shells import SHELLS
from host.dlrm.dlrm import Dlrm
from rtl.config import preset
from sim.run.report import failures
from tests.gen.shells.cosim import case
from tests.optional import absent, needs_tool

pytest.importorskip("cocotb", reason=absent("cocotb"))
pytest.importorskip("cocotbext.axi", reason=absent("cocotbext.axi"))
from find_libpython import find_libpython

pytestmark = [needs_tool("iverilog"), pytest.mark.skipif(
    find_libpython() is None, reason="Python came without the shared library that cocotb loads")]

ROOT = Path(__file__).parents[4]


@pytest.mark.long
@pytest.mark.parametrize("shell", [
    pytest.param(shell, marks=() if shell == "opennic" else pytest.mark.slow)
    for shell in sorted(SHELLS)])
def test_the_results_are_those_of_sim_run(shell, generated, tmp_path):
    from cocotb_tools.check_results import get_results
    from cocotb_tools.runner import get_runner

    config, result, answers = case.simulate(tmp_path)
    assert failures(result) == [] and result["bit_identical"] is True
    # Without a request for it, `sim run` compiles a NIC without dot interaction.
    assert replace(config, dot_units=preset("tiny").dot_units) == preset("tiny")

    top = f"tiny_{shell}"
    runner = get_runner("icarus")
    runner.build(sources=[generated("tiny", shell, link=False) / f"{top}.v"], hdl_toplevel=top,
                 build_args=["-g2012"], build_dir=tmp_path / "build", timescale=("1ns", "1ps"))
    results = runner.test(
        test_module="tests.gen.shells.cosim.bench", hdl_toplevel=top,
        build_dir=tmp_path / "build", test_dir=ROOT, results_xml=str(tmp_path / "results.xml"),
        seed=case.SEED, timescale=("1ns", "1ps"), extra_env={
            "EMBER_SHELL": shell, "EMBER_CASE": str(tmp_path), "COCOTB_LOG_LEVEL": "WARNING"})
    ran, failed = get_results(results)
    assert ran == 1 and failed == 0

    pooled = np.load(tmp_path / "pooled.npy")
    assert pooled.shape == answers.shape == (case.SAMPLES, 2, 16)
    assert pooled.tobytes() == answers.tobytes()
    predictions = Dlrm(case.model_of(tmp_path), case.SEED).predict(
        case.samples_of(tmp_path).dense, pooled)
    assert hashlib.sha256(
        predictions.astype("<f4").tobytes()).hexdigest() == result["predictions_sha256"]
