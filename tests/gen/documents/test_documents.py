"""Generated documents: complete, correct, and up to date in docs/kaggle."""

import json
import random
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import asdict
from pathlib import Path

import pytest
from amaranth.lib import data

from gen.documents import documents, renew_command
from gen.documents.__main__ import main
from gen.documents.docstrings import attribute_docs, members_text
from gen.documents.fields import descriptor_pieces, layout_fields
from gen.documents.generate import build_nic
from gen.documents.wire_format import record_layouts
from rtl import formats
from rtl.cache import EmbeddingCache
from rtl.config import NicConfig, preset
from rtl.format_notes import CODES, FIELDS, PACKETS
from rtl.formats import HeaderBeat, Opcode, Status, TableDescriptor
from rtl.monitor.channels import channel_map
from rtl.network.opcodes import BAG_GRADIENTS, BAGS, READS, RECORDS, RINGS, TRAINING, vectors_of
from tests.gen.timing.reports import small_report

KEPT = Path(__file__).parents[3] / "docs" / "kaggle"
REPORT = {"name": "tiny", "available": {"lut": 400}, "not_estimated": {
    "what": ["timing"], "tool": "Vivado", "script": "tiny.vivado.tcl"}, "total": {
    "lut": 100, "ff": 3, "bram36": 0.5, "uram": 0, "dsp": 0, "depth": 7, "path": {
        "from": {"signal": "a.b", "source": "rtl/a.py:1"}, "to": {"signal": "c", "source": ""}}},
    "blocks": [{"name": "tiny__part", "instances": 2, "lut": 50, "ff": 1, "bram36": 0, "uram": 0,
                "dsp": 0, "depth": 7}]}


@pytest.fixture(scope="module")
def kaggle():
    return documents("kaggle")


@pytest.fixture(scope="module")
def training():
    return documents("tiny", ["training=true"], REPORT)


@pytest.mark.parametrize("name", ["registers.md", "registers.h", "registers.json",
                                  "wire-format.md", "nic.md"])
def test_committed_documents_match_the_source(kaggle, name):
    renew = renew_command("kaggle", output="docs/kaggle")
    assert (KEPT / name).read_text() == kaggle[name], f"out of date; generate it again: {renew}"


def test_registers(kaggle):
    registers = build_nic(preset("kaggle")).registers
    described = json.loads(kaggle["registers.json"])["registers"]
    assert [(r["name"], r["address"], r["reset"]) for r in described] == [
        (r.name, r.address, r.reset) for r in registers]
    text = kaggle["registers.md"]
    addresses = re.findall(r"^\| (0x[0-9a-f]{4}) \|", text, re.MULTILINE)
    assert [int(address, 16) for address in addresses] == [r.address for r in registers]
    # What docstrings of the blocks and of NicConfig say has come along.
    assert "cycles in which the oldest slot waits for its vector" in text
    assert "ways of a set of the remote cache" in text


@pytest.mark.parametrize("which", ["kaggle", "training"])
def test_header_compiles_and_is_right(which, request, tmp_path):
    text = request.getfixturevalue(which)["registers.h"]
    config = preset("kaggle") if which == "kaggle" else preset("tiny").with_fields(training=True)
    defined = re.findall(r"^#define (\w+)", text, re.MULTILINE)
    assert len(set(defined)) == len(defined)
    checks = []
    for register in build_nic(config).registers:
        macro = f"EMBER_{register.name.upper().replace('.', '_')}"
        checks.append(f"{macro} == {register.address}u")
        if register.access == "rw":
            checks += [f"{macro}_RESET == {register.reset}u", f"{macro}_LOW == {register.low}u",
                       f"{macro}_HIGH == {register.high}u",
                       f"{macro}_MASK == {(1 << register.width) - 1}u"]
    checks += [f"EMBER_OPCODE_{code.name} == {int(code)}u" for code in Opcode]
    for piece in descriptor_pieces():
        macro, width = f"EMBER_DESCRIPTOR_{piece.name.upper()}", piece.high - piece.low + 1
        checks += [f"{macro}_WORD == {piece.word}u",
                   f"{macro}_MASK >> {macro}_SHIFT == {(1 << width) - 1}u"]
    (tmp_path / "registers.h").write_text(text)
    (tmp_path / "check.c").write_text(
        '#include "registers.h"\n#include "registers.h"\n'
        + "".join(f'_Static_assert({check}, "");\n' for check in checks))
    subprocess.run([sys.executable, "-m", "ziglang", "cc", "-std=c11", "-Wall", "-Wextra",
                    "-pedantic", "-Werror", "-c", "-o", "check.o", "check.c"], cwd=tmp_path,
                   check=True, capture_output=True)


def test_descriptor_pieces_are_the_descriptor():
    """A descriptor put together from its pieces is what the layout makes of the fields."""
    rng = random.Random(1)
    fields = {name: rng.getrandbits(shape) for name, shape in TableDescriptor.members.items()
              if not name.startswith("reserved")}
    words = [0] * 5
    for piece in descriptor_pieces():
        value = fields[re.sub(r"_\d$", "", piece.name)] >> piece.first
        words[piece.word] |= (value & ((1 << (piece.high - piece.low + 1)) - 1)) << piece.low
    wanted = TableDescriptor.const(fields).as_value().value
    assert sum(word << 32 * k for k, word in enumerate(words)) == wanted


@pytest.mark.parametrize("name", ["HeaderBeat", *record_layouts()])
def test_every_bit_of_a_record_is_told(kaggle, name):
    fields = list(layout_fields(name, getattr(formats, name)))
    at = 0
    for field in fields:
        assert field.offset == at and field.meaning, field
        at += field.width
    assert at == getattr(formats, name).size
    shown = kaggle["wire-format.md"].split(
        "## Header beat" if name == "HeaderBeat" else f"### {name}\n")[1].split("\n#")[0]
    assert shown.count("\n| ") == len(fields) + 2
    assert name == "HeaderBeat" or attribute_docs(formats)[name].split()[0] in shown


def test_notes_are_of_what_there_is(kaggle):
    assert list(PACKETS) == list(Opcode) and list(CODES) == list(Status)
    known = set()
    for name, layout in vars(formats).items():
        if isinstance(layout, data.StructLayout):
            known |= {field for key in layout.members for field in (key, f"{name}.{key}")}
    assert FIELDS.keys() <= known
    assert HeaderBeat.members.keys() - {"ember"} <= FIELDS.keys()
    taken = set()
    for framing, edge in (("network", "NIC to NIC"), ("host", "host to NIC")):
        own = (RECORDS[framing], *vectors_of(framing, bags=True), *BAGS[framing].values())
        for code in own:
            assert PACKETS[code].sender == edge and not PACKETS[code].training
        taken |= set(own)
        for code in (TRAINING[framing] | BAG_GRADIENTS[framing]).values():
            assert PACKETS[code].sender == edge and PACKETS[code].training
            taken.add(code)
    taken |= {Opcode.LINK, Opcode.PROBE}  # of the link alone: no parser takes them
    for code in (*RINGS["host"].values(), *READS["host"]):
        assert PACKETS[code].sender == "host to NIC" and not PACKETS[code].training
        taken.add(code)
    assert {code for code, packet in PACKETS.items() if packet.sender != "NIC to host"} == taken
    for code in Opcode:
        assert f"| {int(code):#04x} | {code.name} |" in kaggle["wire-format.md"]


def test_latencies(kaggle, training):
    for text in (kaggle["latency.md"], training["latency.md"]):
        rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| `")]
        assert rows and all(len(row) == 4 for row in rows)
        assert all(re.search(r": \*\*\w", row[2]) or re.search(r"\d", row[3]) for row in rows)
    assert "`row_updater`" in training["latency.md"] and "`step_barrier`" in training["latency.md"]
    # Those of a block that is made of others are theirs.
    [row] = [line for line in kaggle["latency.md"].splitlines() if line.startswith("| `dedupe`")]
    assert all(f"{start} → {end}: **{cycles}**" in row
               for (start, end), cycles in EmbeddingCache.LATENCY.items())
    assert row.endswith(f" | {EmbeddingCache.RATE} |")


def test_members_of_a_docstring():
    members = members_text(NicConfig)
    assert members.keys() >= {"nodes", "dot_units", "update_rows"}
    assert members["dot_units"].endswith("0 omits the dot interaction.")


@pytest.fixture(scope="module")
def linked():
    return documents("tiny", ["link=true"])


@pytest.fixture(scope="module")
def bags():
    return documents("tiny", ["owner_bags=16"])


@pytest.mark.parametrize("which, options", [
    ("kaggle", (False, False, False)), ("training", (True, False, False)),
    ("linked", (False, True, False)), ("bags", (False, False, True))])
def test_diagram(which, options, request):
    """Each line is of Mermaid's grammar; arrows are the streams, between nodes that are defined."""
    text = request.getfixturevalue(which)["nic.md"]
    [block] = re.findall(r"^```mermaid\nflowchart TB\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    node, edge = r'  (\w+)\["([\w/]|<br/>)+"\]', r'  (\w+) -->\|"((?:\w|<br/>)+)"\| (\w+)'
    nodes, edges = set(), []
    for line in block.splitlines():
        if found := re.fullmatch(node, line):
            nodes.add(found[1])
        else:
            edges.append(re.fullmatch(edge, line).groups())
    assert {end for source, _, target in edges for end in (source, target)} == nodes
    assert not nodes & {"end", "graph", "subgraph", "style", "click", "default", "class"}
    drivers = {"net_assembler": "net_tx", "host_assembler": "host_tx"}
    streams = [(drivers[source] if port == drivers.get(source) else
                source if port == source else f"{source}.{port}", target)
               for source, ports, target in edges for port in ports.split("<br/>")]
    assert sorted(streams) == sorted(channel_map(*options).items())


def test_resources(training, kaggle):
    assert "resources.md" not in kaggle
    text = training["resources.md"]
    assert "Not estimated: timing. Run `tiny.vivado.tcl`" in text
    assert "| LUT | 100 | 400 | 25.0 % |" in text and "| `part` | 2 | 50 | 1 | 0 |" in text
    assert "**7 LUTs**" in text and "`a.b` (rtl/a.py:1) to `c`." in text
    assert "--set training=true --report" in text


@pytest.fixture(scope="module")
def timed():
    return documents("tiny", timing=small_report("tiny"))


def test_timing(timed, kaggle):
    assert "timing.md" not in kaggle and "timing.svg" not in kaggle
    text = timed["timing.md"]
    assert "`python -m gen --config tiny --timing --output DIR`, then " in text
    assert "| pessimistic | 600 + 40 √n |" in text and "| optimistic | 150 |" in text
    # One block, which reaches 250 MHz with optimistic nets only.
    assert "1 blocks:\n\n- 0 have slack with pessimistic nets" in text
    assert "- 0 miss 250 MHz even with optimistic nets.\n- 1 are undecided" in text
    assert "1 blocks miss 250 MHz in the middle case" in text
    assert "| pessimistic | 125 | 8,000 | -4,000 | -4,667 | 1 | 1 | 9,000 |" in text
    assert "| `part` | 2 | 125 | 200 | 400 | 132 / 217 / 476 | 6 | `part.ram` | `part.c" in text
    assert "| ember_ram | read_data[3] | 1,003 | 3,936 | 9 | `part.ram` | rtl/part.py:6 |" in text
    assert "| FDRE | CE | 61 | 0 | 0 | `part.count` | rtl/part.py:7 |" in text
    assert "| port | ff | reset | 3 | -5,000 | -2,000 | 500 |" in text
    assert "| `part.count` | rtl/part.py:7 | 6 | 100 | 300 |  |" in text
    assert "| `rst` | 2,000 | 0 | 0 | 2,000 |" in text and "| none | 9 |" in text
    assert "3 nets have more than 225 loads" in text and "With training" not in text


def test_timing_with_training():
    """A block that misses 250 MHz even with optimistic nets is named."""
    training = small_report("tiny")
    training["blocks"][0]["name"] = "tiny__trainer"
    report = small_report("tiny")
    report["blocks"][0]["optimistic"]["mhz"] = 249.9
    text = documents("tiny", timing=report, timing_training=training)["timing.md"]
    assert re.search(r"1 .*optimistic nets \(`part`\)", text)
    assert "--set training=true --timing --output TRAINING`, then" in text
    assert "--timing-training TRAINING/tiny.timing.json`." in text
    first, second = text.split("## With training")
    assert "`part` | 2 |" in first and "`trainer` | 2 |" in second


def test_timing_picture(timed):
    """A mark of each case for each block, at its MHz; the same bytes each time."""
    space = "{http://www.w3.org/2000/svg}"
    root = ElementTree.fromstring(timed["timing.svg"])
    words = ["".join(text.itertext()).strip() for text in root.iter(f"{space}text")]
    assert {"part", "250", "300", "pessimistic nets", "middle nets", "optimistic nets"} <= set(
        words)
    assert "tiny: estimated from the netlist, not placed" in words
    assert documents("tiny", timing=small_report("tiny"))["timing.svg"] == timed["timing.svg"]


def test_command(tmp_path, capsys):
    report = tmp_path / "report.json"
    report.write_text(json.dumps(REPORT))
    arguments = ["--config", "tiny", "--output", str(tmp_path / "new" / "docs")]
    timing = tmp_path / "timing.json"
    timing.write_text(json.dumps(small_report("tiny")))
    assert main([*arguments, "--report", str(report), "--timing", str(timing),
                 "--timing-training", str(timing)]) == 0
    written = capsys.readouterr().out.split()
    wanted = documents("tiny", report=REPORT, timing=small_report("tiny"),
                       timing_training=small_report("tiny"))
    assert written == [str(tmp_path / "new" / "docs" / name) for name in (*wanted, "blocks.md")]
    assert all(Path(path).read_text() == wanted[Path(path).name] for path in written[:-1])


def test_reports_in_the_output_folder_are_read(tmp_path, capsys):
    """They must be of the same configuration."""
    for name, report in (("report", REPORT), ("timing", small_report("tiny"))):
        (tmp_path / f"tiny.{name}.json").write_text(json.dumps(report))
    described = tmp_path / "tiny.json"
    arguments = ["--config", "tiny", "--output", str(tmp_path)]
    described.write_text(json.dumps({"configuration": asdict(preset("tiny"))}))
    assert main(arguments) == 0
    wanted = documents("tiny", report=REPORT, timing=small_report("tiny"))
    assert capsys.readouterr().out.split() == [str(tmp_path / name)
                                               for name in (*wanted, "blocks.md")]
    assert all((tmp_path / name).read_text() == text for name, text in wanted.items())
    assert main([*arguments, "--set", "nodes=3"]) == 2
    assert "tiny.json has another configuration" in capsys.readouterr().err
    described.unlink()
    assert main(arguments) == 0 and "resources.md" not in capsys.readouterr().out


def test_the_report_is_not_written_over(tmp_path, capsys):
    report = tmp_path / "resources.md"
    report.write_text(json.dumps(REPORT))
    assert main(["--config", "tiny", "--output", str(tmp_path), "--report", str(report)]) == 2
    assert "resources.md of output must be another file than" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [report] and json.loads(report.read_text()) == REPORT


@pytest.mark.parametrize("arguments, report, text", [
    (["--config", "huge"], None, "config must be one of tiny, .*, not 'huge'"),
    (["--set", "nodes=0"], None, "nodes must be between 1 and 64, not 0"),
    (["--config", "kaggle"], json.dumps(REPORT), "report must be a report of kaggle, not 'tiny'"),
    (["--config", "tiny"], '{"name": "tiny"}', "report must be a file of .* --report: .*'blocks'"),
    (["--config", "tiny"], '["a",\n 1.]', r"\S+report.json:2:3: Expecting"),
    (["--config", "tiny"], None, "Missing option '--output'")])
def test_bad_usage(tmp_path, capsys, arguments, report, text):
    if report is not None:
        (tmp_path / "report.json").write_text(report)
        arguments = [*arguments, "--report", str(tmp_path / "report.json")]
    if "Missing" not in text:
        arguments = [*arguments, "--output", str(tmp_path / "out")]
    assert main(arguments) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and re.search(f"^error: {text}", lines[0])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("option, content, text", [
    ("--timing", '{"name": "kaggle"}', "timing must be a report of tiny, not 'kaggle'"),
    ("--timing", '{"name": "tiny"}', "timing must be a file of .* --timing: .*'assump"),
    ("--timing", "[1]", r"timing must be a report of tiny, not \[1\]"),
    ("--timing-training", '{"name": "tiny"}', "timing_training requires timing: add --timing")])
def test_bad_timing(tmp_path, capsys, option, content, text):
    (tmp_path / "timing.json").write_text(content)
    assert main(["--config", "tiny", "--output", str(tmp_path / "out"), option,
                 str(tmp_path / "timing.json")]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and re.search(f"^error: {text}", lines[0])
    assert not (tmp_path / "out").exists()
