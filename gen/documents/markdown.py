"""Markdown helpers: tables and references."""

import re
from collections.abc import Iterable, Sequence

__all__ = ["plain", "table"]

_ROLE = re.compile(r":\w+:`~?(?:[\w.]*\.)?(\w+)`")


def table(columns: Sequence[str], rows: Iterable[Sequence[object]],
          right: Sequence[int] = ()) -> str:
    """Return a table. Columns whose numbers are in ``right`` are right-aligned."""
    rules = ["--:" if k in right else "---" for k in range(len(columns))]
    lines = [columns, rules, *rows]
    return "".join(f"| {' | '.join(_cell(value) for value in line)} |\n" for line in lines)


def _cell(value: object) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")


def plain(text: str) -> str:
    """Return a docstring's text as a line of Markdown, with roles and backquotes converted."""
    return " ".join(_ROLE.sub(r"`\1`", text).replace("``", "`").split())
