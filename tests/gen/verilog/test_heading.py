"""Emitted files begin with the version, the tools and the command that reproduces them."""

import shlex

import pytest

from gen import __main__ as command
from gen.base.settings import configure
from gen.documents.generate import generate
from gen.verilog.convert import to_verilog
from gen.verilog.heading import gen_command, with_headings
from rtl.config import PRESETS, preset
from tests.gen.designs import Bank


def test_files_begin_with_it(tmp_path):
    folders = tmp_path / "a", tmp_path / "b"
    config = preset("tiny").with_fields(nodes=2)
    for folder in folders:
        generate(config, folder, build=lambda _config: Bank())
    for name, comment in (("tiny.v", "//"), ("tiny.vivado.tcl", "#")):
        first, tools, made = (folders[0] / name).read_text().splitlines()[:3]
        assert first.startswith(f"{comment} EmberNIC ")
        assert tools.startswith(f"{comment} Tools: amaranth 0.5.") and "osys" in tools
        assert made == f"{comment} Made by: {gen_command(config)}" and "--set nodes=2" in made
        assert (folders[0] / name).read_bytes() == (folders[1] / name).read_bytes()
    # The engines compile and cache the text without the heading.
    text = (folders[0] / "tiny.v").read_text()
    assert text.split("\n", 3)[3] == to_verilog(Bank(), "tiny").text


def test_only_formats_with_comments():
    files = {"a.json": "{}", "b/a.vh": "x", "kernel.xml": "<?xml", "README.md": "# a"}
    headed = with_headings(files, "make")
    assert [name for name in files if headed[name] != files[name]] == ["b/a.vh"]
    assert headed["b/a.vh"].endswith("// Made by: make\nx")


@pytest.mark.parametrize("name, settings, shell, options", [
    *((name, [], "none", {}) for name in PRESETS),
    ("tiny", ["nodes=2", "training=true"], "opennic", {"functions": 2}),
    ("kaggle", ["name=mine", "net_framing=udp"], "none", {}),
    ("tiny", ["link=false"], "vitis", {})])
def test_the_command_makes_it_again(name, settings, shell, options, tmp_path, monkeypatch):
    """The command line in the heading gives the configuration, shell and options."""
    asked = {}

    def record(config, output, **choices):
        asked.update(config=config, output=str(output), **choices)
        raise ValueError("recorded")

    config = configure(preset(name).with_fields(link=shell != "none"), settings)
    words = shlex.split(gen_command(config, shell, options))
    assert words[:3] == ["python", "-m", "gen"] and words[-2:] == ["--output", "FOLDER"]
    monkeypatch.setattr(command, "generate", record)
    assert command.main(words[3:]) == 2
    assert (asked["config"], asked["shell"], asked["options"]) == (config, shell, options)
