"""The generated SmartNIC: its description is correct, and its Verilog is clean."""

import json
import subprocess
from pathlib import Path

import pytest

from gen.__main__ import main
from gen.verilog.convert import to_verilog
from gen.verilog.lint import lint
from rtl.config import preset
from rtl.interaction.interaction import Interaction
from tests.optional import needs_tool


@pytest.fixture(scope="module")
def files(generated):
    """Generate it for a shell, to share the result with other tests."""
    folder = generated("tiny", "opennic")
    return folder / "tiny_opennic.v", json.loads((folder / "tiny_opennic.json").read_text())


@pytest.mark.slow
@needs_tool("iverilog")
def test_icarus_reads_the_bare_one(generated):
    subprocess.run(["iverilog", "-g2012", "-t", "null", "-s", "tiny",
                    str(generated("tiny") / "tiny.v")], check=True)


@pytest.mark.slow
def test_ports_of_the_bare_one(generated):
    document = json.loads((generated("tiny") / "tiny.json").read_text())
    ports = {port["name"]: port for port in document["ports"]}
    for stream, taken in (("net_rx", "input"), ("host_rx", "input"), ("net_tx", "output"),
                          ("host_tx", "output")):
        assert ports[f"{stream}__valid"]["direction"] == taken
        assert ports[f"{stream}__payload"]["width"] > 512
    assert ports["idle"] == {"name": "idle", "width": 1, "direction": "output"}
    assert ports["time"] == {"name": "time", "width": 32, "direction": "input"}


@pytest.mark.thorough
def test_registers(files):
    registers = files[1]["registers"]
    addresses = [register["address"] for register in registers]
    assert len(registers) > 20 and len(set(addresses)) == len(addresses)
    assert all(address % 4 == 0 for address in addresses)
    assert all(register["description"] for register in registers)


def test_memories_are_owned(files):
    memories = files[1]["memories"]
    text = Path(files[0]).read_text()
    # Only the owned modules contain arrays: no array has initial values.
    assert text.count("[0:CELLS-1]") == 3
    assert " [0:" not in text.replace("[0:CELLS-1]", "")
    stored = sum(memory["bits"] for memory in memories if memory["style"] == "ultra")
    configuration = files[1]["configuration"]
    assert stored >= configuration["local_cache_rows"] * configuration["max_dimension"] * 32


def test_float_units_are_converted_once(files):
    counts = {module["name"]: module["instances"] for module in files[1]["modules"]}
    assert counts["tiny_opennic_float_adder"] >= 16
    assert counts["tiny_opennic_recoder"] == 16
    assert "dot_interaction" in Path(files[0]).read_text()


def test_no_dot_units(tmp_path):
    """Convert the interaction alone: converting the whole NIC is slow."""
    config = preset("tiny").with_fields(dot_units=0)
    verilog = to_verilog(Interaction(config), "interaction")
    assert not any("recoder" in module for module in verilog.modules)
    assert "dot_interaction" not in verilog.text
    path = tmp_path / "interaction.v"
    path.write_text(verilog.text)
    lint([path], "interaction")


@pytest.mark.slow
def test_no_dot_units_in_the_nic(tmp_path):
    assert main(["--config", "tiny", "--set", "dot_units=0", "--output", str(tmp_path)]) == 0
    document = json.loads((tmp_path / "tiny.json").read_text())
    assert not any("recoder" in module["name"] for module in document["modules"])
    assert "dot_interaction" not in (tmp_path / "tiny.v").read_text()
    lint([tmp_path / "tiny.v"], "tiny")


@pytest.mark.thorough
def test_kaggle_is_small_enough(generated):
    """Check the NIC with its shell, to share the result with other tests."""
    assert (generated("kaggle", "vitis") / "kaggle_vitis.v").stat().st_size < 10_000_000
