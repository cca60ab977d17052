"""Positions of the keys and items of a TOML file, for error messages."""

from __future__ import annotations

import re
import tomllib
from os import PathLike
from typing import TYPE_CHECKING

from host.errors import InputError

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["MOST_PARTS", "Path", "Places", "check_keys"]

Path = tuple[str | int, ...]
"""Keys and indices from the top level down, such as ``("tables", 2, "rows")``."""

MOST_PARTS = 64
"""Parts of a dotted key. What reads TOML takes the square of their number in memory."""

_PART = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
_LONG_KEY = re.compile(rf"(?<![A-Za-z0-9_-]){_PART}(?:[ \t]*\.[ \t]*{_PART}){{{MOST_PARTS},}}")

_TABLES = {"table", "table_array_element"}


def check_keys(path: str | PathLike[str], text: str) -> None:
    """Raise `InputError` for a key of more than `MOST_PARTS` parts in the TOML ``text``."""
    found = _LONG_KEY.search(text)
    if found:
        before = text[:found.start()]
        raise InputError(path, before.count("\n") + 1,
                         len(before[before.rfind("\n") + 1:].encode()) + 1,
                         f"a key must have at most {MOST_PARTS} parts, not more")


class Places:
    """Lines and columns of the keys, tables and list items of a TOML text.

    Parameters: ``text``, which :mod:`tomllib` has accepted.
    """

    def __init__(self, text: str):
        # Files without errors are read where the parser is not installed: on a lent machine, say.
        import tree_sitter_toml
        from tree_sitter import Language, Parser

        self._at: dict[Path, tuple[int, int]] = {}
        self._elements: dict[Path, int] = {}
        raw = text.encode()
        self.end = (raw.count(b"\n") + 1, 1)
        """Line and column of the end of the file, the place of a missing key."""
        root = Parser(Language(tree_sitter_toml.language())).parse(raw).root_node
        for node in root.named_children:
            if node.type == "pair":
                self._pair((), node)
            elif node.type in _TABLES:
                self._table(node)

    def of(self, path: Path) -> tuple[int, int]:
        """Return line and column of ``path``, both from 1 (the column in bytes), or of its nearest
        enclosing element in the file; the start of the file for the file itself."""
        while path not in self._at and path:
            path = path[:-1]
        return self._at.get(path, (1, 1))

    def _mark(self, path: Path, node: Node) -> None:
        self._at.setdefault(path, (node.start_point.row + 1, node.start_point.column + 1))

    def _table(self, node: Node) -> None:
        head, *pairs = node.named_children
        path: Path = ()
        *outer, last = _leaves(head)
        for leaf in outer:
            path = self._inside((*path, _name(leaf)))
            self._mark(path, leaf)
        path = (*path, _name(last))
        self._mark(path, last)
        if node.type == "table_array_element":
            self._elements[path] = self._elements.get(path, -1) + 1
            path = self._inside(path)
            self._mark(path, last)
        for pair in pairs:
            if pair.type == "pair":
                self._pair(path, pair)

    def _inside(self, path: Path) -> Path:
        """Return ``path``, or the latest element of the array of tables that it names."""
        return (*path, self._elements[path]) if path in self._elements else path

    def _pair(self, path: Path, node: Node) -> None:
        key, value = (child for child in node.named_children if child.type != "comment")
        for leaf in _leaves(key):
            path = (*path, _name(leaf))
            self._mark(path, leaf)
        self._value(path, value)

    def _value(self, path: Path, node: Node) -> None:
        items = [child for child in node.named_children if child.type != "comment"]
        if node.type == "inline_table":
            for pair in items:
                self._pair(path, pair)
        elif node.type == "array":
            for index, item in enumerate(items):
                self._mark((*path, index), item)
                self._value((*path, index), item)


def _leaves(key: Node) -> list[Node]:
    """Return the parts of a possibly dotted key, at most `MOST_PARTS`."""
    if key.type != "dotted_key":
        return [key]
    return [leaf for part in key.named_children for leaf in _leaves(part)]


def _name(leaf: Node) -> str:
    text = (leaf.text or b"").decode()
    if leaf.type == "quoted_key":
        return next(iter(tomllib.loads(f"{text} = 0")))
    return text
