"""The block reference: every public block, from its docstring."""

import re
from pathlib import Path

import pytest
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from gen.documents.__main__ import main
from gen.documents.blocks import block_text, blocks_markdown, public_blocks
from rtl.cache import EmbeddingCache
from rtl.dedupe.table import DedupeTable
from tests.rtl.test_figures import blocks

pytestmark = pytest.mark.every


class Doubler(wiring.Component):
    """Double a number.

    It never waits:

    * for ``i``;
    * for a reader of
      ``o``.

    Parameters: ``width``, bits of the number,
    at least 1.

    Ports
    -----
    i, o: the number, and
        its double.
    idle.

    Both are unsigned.
    """

    idle: Out(1)


def test_a_docstring_is_taken_apart():
    said = block_text(Doubler)
    assert said.purpose == ("Double a number.", "It never waits:",
                            "- for `i`;\n- for a reader of `o`.", "Both are unsigned.")
    assert said.sections == {"Parameters": [("", "`width`, bits of the number, at least 1.")],
                             "Ports": [("i, o", "the number, and its double. idle.")]}


def test_every_public_block_is_there_with_its_source(tmp_path):
    page = blocks_markdown("A note.", tmp_path)
    assert page.startswith("# Blocks\n\nA note.\n")
    named = {kind.__name__ for kind in blocks() if not kind.__name__.startswith("_")}
    assert set(re.findall(r"^### (\w+)$", page, re.MULTILINE)) == named and len(named) > 100
    links = re.findall(r"^- Source: \[[\w./]+\]\(([^)#]+)#L\d+\)", page, re.MULTILINE)
    assert len(links) == len(list(public_blocks()))
    assert all((tmp_path / link).is_file() for link in links)
    cache = page.partition("\n### EmbeddingCache\n")[2].partition("\n### ")[0]
    for name in ("key_bits", "lookups", "counters"):
        assert f"| `{name}` |" in cache
    for path, cycles in EmbeddingCache.LATENCY.items():
        assert f"{path[0]} → {path[1]}: {cycles}" in cache


def test_the_dedupe_table_names_its_sizes():
    [(names, text)] = block_text(DedupeTable).sections["Parameters"]
    assert names == "config" and "`dedupe_keys`" in text


def test_the_command_writes_it(tmp_path, capsys):
    assert main(["--config", "tiny", "--output", str(tmp_path)]) == 0
    assert "### EmbeddingCache" in (tmp_path / "blocks.md").read_text(encoding="utf-8")
    assert str(Path(tmp_path / "blocks.md")) in capsys.readouterr().out
