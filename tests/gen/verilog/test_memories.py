"""The owned memories: the vendor's macro is equivalent to the behavioural memories."""

import re
import subprocess

import pytest

from gen.base.tools import BuildError, run_verilator
from gen.verilog.convert import to_verilog
from gen.verilog.lint import WAIVED
from gen.verilog.memories import XPM_DEFINE, XPM_TWIN, memory_text
from tests.gen.designs import Bank
from tests.optional import needs_tool

MODULES = ("ember_ram", "ember_ram_async", "ember_ram_piped")
SIZES = [("ember_ram", style, width, depth)
         for style, width, depth in (("auto", 9, 5), ("distributed", 1, 2), ("block", 40, 16),
                                     ("ultra", 72, 7), ("auto", 8, 1))]
SIZES += [("ember_ram_async", "distributed", width, depth)
          for width, depth in ((1, 2), (33, 6), (5, 1))]
SIZES += [("ember_ram_piped", style, width, depth)
          for style, width, depth in (("distributed", 1, 2), ("block", 40, 16), ("block", 8, 1))]
SIZES += [("ember_ram_piped 3", "ultra", width, depth) for width, depth in ((72, 7), (8, 1))]
NO_ICARUS = needs_tool("iverilog")


def bench(module, latency, style, width, depth, cycles=2000):
    """Return Verilog that drives ``module`` and its other form, ``plain_...``, and a model of
    both."""
    bits = max(1, (depth - 1).bit_length())
    enable = ".read_en(re)," if latency else ""
    enable += ".output_en(oe)," if latency > 1 else ""
    more = f", .LATENCY({latency})" if latency > 1 else ""
    memories = "".join(
        f'{name} #(.WIDTH({width}), .DEPTH({depth}), .ADDR_BITS({bits}), .STYLE("{style}"){more}) '
        f"{label} (.clk(clk), .write_en(we), .write_addr(wa), .write_data(wd), {enable} "
        f".read_addr(ra), .read_data(q_{label}));\n"
        for name, label in ((module, "macro"), (f"plain_{module[6:]}", "plain")))
    return f"""
module bench;
    reg clk = 0, we = 0, re = 0, oe = 0;
    reg [{bits - 1}:0] wa = 0, ra = 0;
    reg [{width - 1}:0] wd = 0, expected, first, passed;
    reg [{width - 1}:0] model [0:{depth - 1}];
    wire [{width - 1}:0] q_macro, q_plain;
    integer i, seed = 1, wrong = 0, collisions = 0;
    {memories}
    task check;
        if (q_macro !== expected || q_plain !== expected) wrong = wrong + 1;
    endtask
    initial begin
        for (i = 0; i < {cycles}; i = i + 1) begin
            we = i < {depth} || ($random(seed) & 3) != 0;
            wa = i < {depth} ? i : $unsigned($random(seed)) % {depth};
            wd = {{$random(seed), $random(seed), $random(seed)}};
            re = i >= {depth} && ($random(seed) & 3) != 0;
            oe = i < {depth} + 8 || ($random(seed) & 3) != 0;
            ra = ($random(seed) & 1) ? wa : $unsigned($random(seed)) % {depth};
            if (we && re && wa == ra) collisions = collisions + 1;
            #1;
            if ({latency} == 0 && i > {depth}) begin expected = model[ra]; check; end
            if ({latency} > 1 && oe) expected = {latency} == 2 ? first : passed;
            passed = first;
            if (re) first = model[ra];
            if ({latency} == 1) expected = first;
            clk = 1;
            if (we) model[wa] = wd;
            #1;
            if ({latency} > 0 && i > {depth} + 8) check;
            clk = 0;
        end
        $display("wrong %0d collisions %0d", wrong, collisions);
        $finish;
    end
endmodule
"""


def simulated(tmp_path, module, style, width, depth, macro):
    """Run the bench with Icarus and return what it printed; ``macro`` is the text of the macro.

    ``module`` may be followed by its latency.
    """
    module, _, latency = module.partition(" ")
    latency = int(latency or {"ember_ram": 1, "ember_ram_async": 0, "ember_ram_piped": 2}[module])
    plain = memory_text(module).replace("EMBER_RAM", "PLAIN_RAM").replace("EMBER_XPM", "NEVER")
    files = {"macro.v": f"`define {XPM_DEFINE}\n{memory_text(module)}", "twin.v": macro,
             "plain.v": plain.replace(f"module {module} ", f"module plain_{module[6:]} "),
             "bench.v": bench(module, latency, style, width, depth)}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    subprocess.run(["iverilog", "-g2012", "-s", "bench", "-o", "bench", *files], cwd=tmp_path,
                   check=True, capture_output=True)
    return subprocess.run(["vvp", "-n", "bench"], cwd=tmp_path, check=True, capture_output=True,
                          text=True).stdout


@NO_ICARUS
@pytest.mark.parametrize("module, style, width, depth", SIZES)
def test_macro_and_behaviour_are_alike(tmp_path, module, style, width, depth):
    shown = simulated(tmp_path, module, style, width, depth, XPM_TWIN.read_text())
    wrong, collisions = map(int, re.fullmatch(r"wrong (\d+) collisions (\d+)\n", shown).groups())
    assert wrong == 0 and collisions > 500


@NO_ICARUS
@pytest.mark.parametrize("module, old, new", [
    ("ember_ram", "word <= cells[addrb]", "word <= ena && addra == addrb ? dina : cells[addrb]"),
    ("ember_ram", "else if (enb)", "else"),
    ("ember_ram_piped", "else if (regceb)", "else"),
    ("ember_ram_piped 3", "word : passed", "word : word"),
    ("ember_ram_async", "doutb = cells[addrb]", "doutb = ena && addra == addrb ? dina : "
                                                "cells[addrb]")])
def test_a_memory_that_differs_is_seen(tmp_path, module, old, new):
    twin = XPM_TWIN.read_text()
    assert old in twin
    shown = simulated(tmp_path, module, "distributed", 9, 5, twin.replace(old, new))
    assert int(shown.split()[1]) > 100


@NO_ICARUS
@pytest.mark.parametrize("old, new", [
    ('"read_first"', '"write_first"'), ("READ_LATENCY_B(1)", "READ_LATENCY_B(4)"),
    ("MEMORY_SIZE(WIDTH * DEPTH)", "MEMORY_SIZE(DEPTH)"), ("BYTE_WRITE_WIDTH_A(WIDTH)",
                                                           "BYTE_WRITE_WIDTH_A(3)")])
def test_parameters_the_macro_refuses_are_refused(tmp_path, monkeypatch, old, new):
    text = memory_text("ember_ram")
    assert old in text
    monkeypatch.setitem(globals(), "memory_text", lambda _module: text.replace(old, new))
    shown = simulated(tmp_path, "ember_ram", "block", 9, 5, XPM_TWIN.read_text())
    assert "parameters that the macro refuses" in shown


def test_the_macro_lints(tmp_path):
    """Lint the memories in Verilator, with and without the macro, including ports."""
    (tmp_path / "bank.v").write_text(to_verilog(Bank(), "bank").text)
    flags = ["--lint-only", "-Wall", *(f"-Wno-{name}" for name in WAIVED), "-Wno-PINCONNECTEMPTY",
             "--no-timing", "--top-module", "bank", "bank.v", f"-D{XPM_DEFINE}"]
    run_verilator([*flags, str(XPM_TWIN)], cwd=tmp_path)
    with pytest.raises(BuildError, match="xpm_memory_sdpram"):
        run_verilator(flags, cwd=tmp_path)


def test_what_is_included_is_there():
    for module in MODULES:
        assert "`include" not in memory_text(module)
        assert memory_text(module).count("initial begin : randomize") == 1
