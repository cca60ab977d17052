"""Each block of ``rtl`` has a test of its own, or is listed here with a reason.

A test names a block if it imports its class and uses the name: passes it to ``made``, calls it, or
makes a variant of it.
"""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from rtl.interaction.dot_array import DotArray
from rtl.network.packet_store import VectorStore
from tests.rtl.test_figures import blocks

BESIDE = {
    "rtl.float.divide.CountDividerLane": "a CountDivider is 16 of these and their reciprocal",
    "rtl.float.multiply.FloatMultiplier": "a PlainMultiplier is one of these between recoders",
    "rtl.interaction.code_reader.CodeReader": "a VectorDecoder shows each of its beats",
    "rtl.network.link.intake.LinkIntake": "what LinkSender takes, in order and whole",
    "rtl.network.link.packet_table.PacketTable": "the records of LinkSender's packets",
    "rtl.network.link.repeat_reader.RepeatReader": "the packets that LinkSender sends again",
    "rtl.network.link.walker.Walker": "the walks of LinkSender over what is heard and overdue",
    "rtl.network.packager.Packager": "the base of RecordPackager and PartialPackager",
    "rtl.network.queue_room.QueueRoom": "the counts of OutputQueues, which shows each of them",
    "rtl.network.queue_turns.QueueTurns": "proved by itself, and the order of OutputQueues",
}
"""Blocks that are tested as part of other blocks."""


def name_of(block: type) -> str:
    return f"{block.__module__}.{block.__name__}"


def named_in(source: str) -> Iterator[type]:
    """Yield the classes of ``rtl`` that a test's source uses, imported directly or with their
    module."""
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    used = {node.id for node in nodes if isinstance(node, ast.Name)}
    members = [(node.value.id, node.attr) for node in nodes
               if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)]
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "rtl":
            module = importlib.import_module(node.module or "")
            for alias in node.names:
                name, found = alias.asname or alias.name, getattr(module, alias.name, None)
                if isinstance(found, type) and name in used:
                    yield found
                elif isinstance(found, ModuleType):
                    yield from (kind for owner, member in members if owner == name
                                and isinstance(kind := getattr(found, member, None), type))


@pytest.fixture(scope="module")
def named() -> set[str]:
    here = Path(__file__)
    return {name_of(block) for path in here.parent.rglob("*.py") if path != here
            for block in named_in(path.read_text())}


def test_every_block_has_a_test(named):
    public = {name_of(block) for block in blocks() if not block.__name__.startswith("_")}
    assert len(public) > 100
    assert sorted(public - named - BESIDE.keys()) == []


def test_what_stands_here_is_still_needed(named):
    assert BESIDE.keys() <= {name_of(block) for block in blocks()}
    assert sorted(BESIDE.keys() & named) == []


@pytest.mark.parametrize("source, found", [
    ("from rtl.network.packet_store import VectorStore", []),  # imported only
    ("from rtl.network.packet_store import VectorStore as S\nmade(S, 4)", [VectorStore]),
    ("from rtl.interaction.dot_array import DotArray\nDotArray(3)", [DotArray]),
    ("from rtl.interaction import dot_array\ndot_array.DotArray(3)", [DotArray]),
    ("from tests.rtl.network import VectorStore\nVectorStore()", []),
    ("VectorStore = 3\nprint(VectorStore)", [])])
def test_what_counts(source, found):
    assert list(named_in(source)) == found
