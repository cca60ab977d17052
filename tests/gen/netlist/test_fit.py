"""Fit of a design to a die: a warning with the figure and its limit."""

import pytest

from gen import __main__ as command
from gen.documents.generate import generate
from gen.netlist.fit import SLR, oversize_warnings
from rtl.config import preset
from tests.gen.designs import Bank


def memory(style, depth, width=72, count=1):
    return [{"width": width, "depth": depth, "style": style}] * count


@pytest.mark.parametrize("memories, lines", [
    (memory("ultra", 4096, count=320), []),
    (memory("ultra", 4096, count=321),
     ["the memories alone use 321 UltraRAMs, 100.3% of the 320 of an SLR of the U280"]),
    (memory("block", 512, count=672), []),
    (memory("block", 512, count=672) + memory("block", 512, width=36),
     ["the memories alone use 672.5 BRAM36, 100.1% of the 672 of an SLR of the U280"]),
    # 64 x 7 bits are 8 LUTs.
    (memory("distributed", 64, width=7, count=54_000), []),
    (memory("distributed", 64, width=7, count=60_000) + memory("ultra", 4096, count=640),
     ["the memories alone use 480,000 LUTs, 111.1% of the 432,000 of an SLR of the U280",
      "the memories alone use 640 UltraRAMs, 200.0% of the 320 of an SLR of the U280"])])
def test_memories(memories, lines):
    assert oversize_warnings(memories, None) == lines


def test_a_report_counts_instead():
    fits = dict(SLR)
    assert oversize_warnings(memory("ultra", 4096, count=1000), {"total": fits}) == []
    assert oversize_warnings([], {"total": {**fits, "lut": 500_000, "dsp": 3_073}}) == [
        "the design uses 500,000 LUTs, 115.7% of the 432,000 of an SLR of the U280",
        "the design uses 3,073 DSPs, 100.0% of the 3,072 of an SLR of the U280"]


def big(_config):
    """Return a memory of LUTs and a memory of block RAM, of 2 Mi bytes each."""
    return Bank(depth=1 << 21)


def test_generate_warns(tmp_path, capsys, monkeypatch):
    """Both the function and the command line warn; the command line succeeds."""
    done = generate(preset("tiny"), tmp_path, build=big)
    # 7 of 8 bits are 8 LUTs for each 64 words, so 8 bits 16; then 8 trees of multiplexers.
    cells = 16 * (1 << 15)
    trees = 8 * sum(-(-(1 << 15) // 4 ** level) for level in range(1, 9))
    line, = done["warnings"]
    assert line == (f"the memories alone use {cells + trees:,} LUTs, "
                    f"{100 * (cells + trees) / 432_000:.1f}% of the 432,000 of an SLR of the U280")
    monkeypatch.setattr(command, "generate", lambda *_args, **_options: done)
    assert command.main(["--config", "tiny", "--output", str(tmp_path)]) == 0
    assert f"warning: {line}\n" in capsys.readouterr().err
