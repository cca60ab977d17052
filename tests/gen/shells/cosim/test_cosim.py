"""The emitted tops alone, as Verilog in Icarus, with cocotb around them."""

import shutil
from pathlib import Path

import pytest

from gen.generate import generate
from gen.shells import SHELLS
from rtl.config import preset

pytest.importorskip("cocotb", reason="cocotb is not installed")
pytest.importorskip("cocotbext.axi", reason="cocotbext-axi is not installed")
if shutil.which("iverilog") is None:
    pytest.skip("iverilog is not installed", allow_module_level=True)

ROOT = Path(__file__).parents[4]


@pytest.mark.slow
@pytest.mark.parametrize("shell", sorted(SHELLS))
def test_the_results_are_those_of_the_reference(shell, tmp_path):
    from cocotb_tools.check_results import get_results
    from cocotb_tools.runner import get_runner

    generate(preset("tiny"), tmp_path / "plugin", shell=shell)
    top = f"tiny_{shell}"
    runner = get_runner("icarus")
    runner.build(sources=[tmp_path / "plugin" / f"{top}.v"], hdl_toplevel=top,
                 build_args=["-g2012"], build_dir=tmp_path / "build", timescale=("1ns", "1ps"))
    results = runner.test(
        test_module="tests.gen.shells.cosim.bench", hdl_toplevel=top,
        build_dir=tmp_path / "build", test_dir=ROOT, results_xml=str(tmp_path / "results.xml"),
        extra_env={"EMBER_SHELL": shell}, timescale=("1ns", "1ps"))
    ran, failed = get_results(results)
    assert ran == 1 and failed == 0
