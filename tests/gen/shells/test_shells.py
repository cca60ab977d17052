"""The shells' folders: the shells' ports, files that their tools can read, rejected options."""

import json
import re
import shutil
import subprocess
from xml.etree import ElementTree as Xml

import pytest

from gen import __main__ as command
from gen.documents.generate import generate
from gen.shells import SHELLS
from rtl.config import preset
from tests.gen.shells.designs import Storing
from tests.gen.tcl import run_tcl
from tests.optional import needs_tool

# box_250mhz.sv of open-nic-shell, with one function, QDMA and MAC: name, width, direction. A user
# module takes one of the reset pairs and no ref_clk_100mhz.
_AXIL = [("awvalid", 1, "input"), ("awaddr", 32, "input"), ("awready", 1, "output"),
         ("wvalid", 1, "input"), ("wdata", 32, "input"), ("wready", 1, "output"),
         ("bvalid", 1, "output"), ("bresp", 2, "output"), ("bready", 1, "input"),
         ("arvalid", 1, "input"), ("araddr", 32, "input"), ("arready", 1, "output"),
         ("rvalid", 1, "output"), ("rdata", 32, "output"), ("rresp", 2, "output"),
         ("rready", 1, "input")]
_OTHER = {"input": "output", "output": "input"}
_AXIS = [("tvalid", 1), ("tdata", 512), ("tkeep", 64), ("tlast", 1), ("tuser_size", 16),
         ("tuser_src", 16), ("tuser_dst", 16)]
OPENNIC = {f"s_axil_{name}": (width, way) for name, width, way in _AXIL} | {
    f"{stream}_{name}": (width, way)
    for stream, way in (("s_axis_qdma_h2c", "input"), ("m_axis_qdma_c2h", "output"),
                        ("m_axis_adap_tx_250mhz", "output"), ("s_axis_adap_rx_250mhz", "input"))
    for name, width in _AXIS} | {
    f"{stream}_tready": (1, _OTHER[way])
    for stream, way in (("s_axis_qdma_h2c", "input"), ("m_axis_qdma_c2h", "output"),
                        ("m_axis_adap_tx_250mhz", "output"), ("s_axis_adap_rx_250mhz", "input"))
} | {"mod_rstn": (1, "input"), "mod_rst_done": (1, "output"), "axil_aclk": (1, "input"),
     "axis_aclk": (1, "input")}
# A Vitis kernel; the names of its streams to the UDP kernel are those in networklayer.v.
VITIS = {"ap_clk": (1, "input"), "ap_rst_n": (1, "input"), "interrupt": (1, "output"),
         "s_axi_control_wstrb": (4, "input")} | {
    f"s_axi_control_{name}": (17 if name in ("awaddr", "araddr") else width, way)
    for name, width, way in _AXIL} | {
    f"{stream}_{name}": (width, way)
    for stream, way, more in (
        ("s_axis_net", "input", [("tdest", 16), ("tuser", 96)]),
        ("m_axis_net", "output", [("tdest", 16)]), ("s_axis_host", "input", []),
        ("m_axis_host", "output", []))
    for name, width in [("tdata", 512), ("tkeep", 64), ("tlast", 1), ("tvalid", 1), *more]} | {
    f"{stream}_tready": (1, way) for stream, way in (
        ("s_axis_net", "output"), ("m_axis_net", "input"), ("s_axis_host", "output"),
        ("m_axis_host", "input"))}
PORTS = {"opennic": OPENNIC, "vitis": VITIS}
PRESET = {"opennic": "tiny", "vitis": "kaggle"}
"""One preset per shell, shared with other tests."""


@pytest.fixture(scope="module", params=sorted(SHELLS))
def made(request, generated):
    """Return a shell's name, and the folder with its preset for the shell."""
    return request.param, generated(PRESET[request.param], request.param)


def test_ports(made):
    shell, folder = made
    described = json.loads((folder / f"{PRESET[shell]}_{shell}.json").read_text())
    assert described["shell"] == shell
    assert {port["name"]: (port["width"], port["direction"]) for port in described["ports"]} \
        == PORTS[shell]


@pytest.mark.thorough
@needs_tool("iverilog")
def test_icarus_reads_it(made):
    shell, folder = made
    subprocess.run(["iverilog", "-g2012", "-t", "null", "-s", f"{PRESET[shell]}_{shell}",
                    str(folder / f"{PRESET[shell]}_{shell}.v")], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("made", sorted(SHELLS), indirect=True, scope="module")
def test_again_into_the_same_folder_gives_the_same_bytes(made, tmp_path):
    shell, kept = made
    folder = tmp_path / "again"
    shutil.copytree(kept, folder)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    # As the command does for a shell.
    generate(preset(PRESET[shell]).with_fields(link=True), folder, shell=shell)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_streams_leave_from_registers(made):
    """Signals between dies are outputs of registers."""
    shell, folder = made
    described = json.loads((folder / f"{PRESET[shell]}_{shell}.json").read_text())
    stages = ("host_rx.stage", "net_rx.stage", "host_tx.stage", "net_tx.stage")
    assert not any(memory["name"].startswith(stages) for memory in described["memories"])
    assert sum("_rx__stage" in module["name"] or "_tx__stage" in module["name"]
               for module in described["modules"]) == 8


def test_synchronizers(made):
    """The shell has one module per synchroniser, of one bit and two stages. ``test_constraints.py``
    checks the bounds of the crossings."""
    shell, folder = made
    text = (folder / f"{PRESET[shell]}_{shell}.v").read_text()
    synchronizers = text.count('(* ASYNC_REG = "TRUE" *)\n  reg crossed0 ')
    assert synchronizers == {"opennic": 4, "vitis": 0}[shell]


@pytest.mark.parametrize("made", ["opennic"], indirect=True, scope="module")
def test_opennic_folder(made):
    """Check the files that ``build.tcl`` reads of a plugin, and the instance in the box."""
    _, folder = made
    box = folder / "box_250mhz"
    assert {path.name for path in box.iterdir()} == {
        "box_250mhz_address_map.v", "box_250mhz_address_map_inst.vh",
        "box_250mhz_axi_crossbar.tcl", "user_plugin_250mhz_inst.vh"}
    assert "read_verilog -quiet -sv tiny_opennic.v" in (
        folder / "build_box_250mhz.tcl").read_text()
    instance = (box / "user_plugin_250mhz_inst.vh").read_text()
    assert dict(re.findall(r"^  \.(\w+)\(([\w\[\]]+)\)", instance, re.MULTILINE)) == {
        name: {"mod_rstn": "mod_rstn[0]", "mod_rst_done": "mod_rst_done[0]"}.get(name, name)
        for name in OPENNIC}
    assert "MAX_PKT_LEN < 4160" in instance and "mod_rst_done[15:1]" in instance


@pytest.mark.parametrize("made", ["vitis"], indirect=True, scope="module")
def test_kernel_xml(made):
    _, folder = made
    root = Xml.parse(folder / "kernel.xml").getroot()
    assert root.attrib == {"versionMajor": "1", "versionMinor": "6"}
    kernel = root.find("kernel")
    assert kernel is not None and kernel.get("hwControlProtocol") == "ap_ctrl_hs"
    assert kernel.get("name") == "kaggle_vitis" and kernel.get("language") == "ip_c"
    ports = {port.get("name"): port.attrib for port in kernel.iter("port")}
    assert ports["s_axi_control"]["range"] == "0x20000"
    modes = {"s_axis_net": "read_only", "m_axis_net": "write_only", "s_axis_host": "read_only",
             "m_axis_host": "write_only"}
    assert {name: port["mode"] for name, port in ports.items() if name != "s_axi_control"} == modes
    assert all(ports[name]["dataWidth"] == "512" for name in modes)
    arguments = {arg.get("name"): arg.attrib for arg in kernel.iter("arg")}
    assert arguments["packets"]["offset"] == "0x10"
    assert [arg["id"] for arg in arguments.values()] == list("01234")
    assert all(arguments[name]["addressQualifier"] == "4" for name in modes)


@needs_tool("tclsh")
def test_tcl_runs(made, tmp_path):
    """Run each script from begin to end, recording the vendor's commands."""
    shell, kept = made
    folder = tmp_path / "made"
    shutil.copytree(kept, folder)
    assert (folder / "package_kernel.tcl").exists() == (shell == "vitis")
    for script in sorted(folder.rglob("*.tcl")):
        done = run_tcl(script, tmp_path)
        assert done.returncode == 0 and done.stderr == ""
        for line in done.stdout.splitlines():
            # The files that a script reads exist.
            for name in re.findall(r"\S+\.(?:v|xdc|xml)\b", line):
                assert (script.parent / name).exists(), line
        if script.name == "package_kernel.tcl":
            calls = [line.split()[0] for line in done.stdout.splitlines()]
            assert calls[-1] == "package_xo" and "ipx::package_project" in calls
            for name in ("s_axis_net", "m_axis_net", "s_axis_host", "m_axis_host",
                         "s_axi_control"):
                assert f"ipx::associate_bus_interfaces -busif {name} -clock ap_clk" in done.stdout


def test_vivado_is_asked_what_it_alone_can_tell(made):
    """The script contains the top's clocks and constraints, and the README names it."""
    shell, folder = made
    name = f"{PRESET[shell]}_{shell}.vivado.tcl"
    text = (folder / name).read_text()
    clocks = dict(re.findall(r"create_clock -name (\w+) -period ([\d.]+) \[get_ports \1\]", text))
    assert clocks == {"opennic": {"axis_aclk": "4.000", "axil_aclk": "8.000"},
                      "vitis": {"ap_clk": "4.000"}}[shell]
    assert all(PORTS[shell][clock] == (1, "input") for clock in clocks)
    assert re.findall(r"read_xdc \$here/(\S+)", text) == sorted(
        path.name for path in folder.glob("*.xdc"))
    assert f"vivado -mode batch -source {name}" in (folder / "README.md").read_text()


def test_opennic_with_more_of_each(tmp_path):
    """Generate streams of 2 x 2 functions and of 2 MACs, side by side, for a small design."""
    described = generate(preset("tiny"), tmp_path, shell="opennic", build=lambda _: Storing(()),
                         options={"functions": 2, "qdma": 2, "macs": 2})
    times = {"s_axis_qdma_h2c": 4, "m_axis_qdma_c2h": 4, "m_axis_adap_tx_250mhz": 2,
             "s_axis_adap_rx_250mhz": 2}
    assert {port["name"]: (port["width"], port["direction"]) for port in described["ports"]} == {
        name: (width * next((count for stream, count in times.items()
                             if name.startswith(stream)), 1), way)
        for name, (width, way) in OPENNIC.items()}
    readme = (tmp_path / "README.md").read_text()
    assert "-num_phys_func 2 -num_qdma 2 -num_cmac_port 2" in readme
    instance = (tmp_path / "box_250mhz" / "user_plugin_250mhz_inst.vh").read_text()
    for name in ("NUM_PHYS_FUNC", "NUM_QDMA", "NUM_CMAC_PORT"):
        assert f"if ({name} != 2)" in instance


@pytest.mark.parametrize("arguments, text", [
    (["--shell", "corundum"], "shell must be one of none, opennic, vitis, not 'corundum'"),
    (["--shell", "opennic", "--set", "net_framing=udp"],
     "net_framing must be ethernet with shell opennic, not 'udp'"),
    (["--shell", "vitis", "--set", "nodes=32", "--set", "partial_beats=256"],
     "nodes must be at most 16 with shell vitis, .*, not 32"),
    (["--shell", "opennic", "--functions", "5"], "functions must be between 1 and 4, not 5"),
    (["--shell", "opennic", "--qdma", "0"], "qdma must be between 1 and 2, not 0"),
    (["--shell", "opennic", "--macs", "3"], "macs must be between 1 and 2, not 3"),
    (["--shell", "opennic", "--macs", "two"], "Invalid value for '--macs': .*"),
    (["--shell", "vitis", "--macs", "2"], "macs is not an option of Vitis RTL kernel"),
    (["--macs", "2"], "macs requires a shell: add --shell"),
    (["--set", "net_framing=atm"], "net_framing must be ethernet or udp, not 'atm'")])
def test_bad_choices(tmp_path, capsys, arguments, text):
    assert command.main(["--config", "tiny", "--output", str(tmp_path / "o"), *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and re.fullmatch(f"error: {text}\n", captured.err)
    assert not (tmp_path / "o").exists()


def test_a_folder_that_holds_something_else(tmp_path, capsys):
    (tmp_path / "thesis.tex").write_text("")
    assert command.main(["--config", "tiny", "--shell", "opennic", "--output",
                         str(tmp_path)]) == 2
    assert "with thesis.tex" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
