"""Generator of the block reference, from the docstrings of the blocks."""

import importlib
import inspect
import os
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from amaranth.lib import wiring

import rtl
from gen.documents.markdown import plain, table
from rtl.figures import latency_of, rate_of

__all__ = ["BlockText", "block_text", "blocks_markdown", "public_blocks"]

_SECTIONS = ("Parameters", "Ports", "Members", "Raises")
_RULED = re.compile(r"^(\w+)\n-{3,}$", re.MULTILINE)
_LINE = re.compile(r"^(Parameters?|Ports?|Members?|Raises): ", re.MULTILINE)
_BULLET = re.compile(r"^[*-] ", re.MULTILINE)
_ENTRY = re.compile(r"^(?P<names>[\w*]+(?:, [\w*]+)*)(?: \([^)]*\))?: ?(?P<text>.*)$")


class BlockText(NamedTuple):
    """The docstring of a block, taken apart.

    Members
    -------
    purpose: paragraphs of Markdown.
    sections: entries by section: names and text. A section that is one sentence has no names.
    """

    purpose: tuple[str, ...]
    sections: dict[str, list[tuple[str, str]]]


def public_blocks() -> Iterator[type]:
    """Yield every component of ``rtl`` whose name does not begin with ``_``, by module."""
    for found in pkgutil.walk_packages(rtl.__path__, "rtl."):
        module = importlib.import_module(found.name)
        yield from (kind for name, kind in vars(module).items()
                    if isinstance(kind, type) and issubclass(kind, wiring.Component)
                    and kind.__module__ == found.name and not name.startswith("_"))


def block_text(kind: type) -> BlockText:
    """Return the docstring of ``kind``, taken apart."""
    text = inspect.cleandoc(kind.__doc__ or "")
    # "Parameters: text" is a section of a single paragraph.
    text = _RULED.sub(r"\n\n\1\n---\n", _LINE.sub(lambda found: f"{found[1]}\n---\n", text))
    parts = re.split(r"^(\w+)\n---$", text, flags=re.MULTILINE)
    sections: dict[str, list[tuple[str, str]]] = {}
    purpose = [*map(_paragraph, filter(str.strip, parts[0].split("\n\n")))]
    for heading, body in zip(parts[1::2], parts[2::2]):
        paragraphs = body.strip("\n").split("\n\n")
        name = next((each for each in _SECTIONS if each.startswith(heading.rstrip("s"))), heading)
        sections.setdefault(name, []).extend(_entries(paragraphs[0]))
        purpose += map(_paragraph, filter(str.strip, paragraphs[1:]))
    return BlockText(tuple(purpose), sections)


def _paragraph(text: str) -> str:
    """Return a paragraph of a docstring, or its list, as Markdown."""
    if not _BULLET.match(text):
        return plain(text)
    return "\n".join(f"- {plain(item)}" for item in _BULLET.split(text)[1:])


def _entries(text: str) -> Iterator[tuple[str, str]]:
    """Yield the names and the text of each entry; a line that begins with no name goes on."""
    names, said = "", ""
    for line in text.splitlines():
        found = _ENTRY.match(line)
        if found:
            if said:
                yield names, plain(said)
            names, said = found["names"], found["text"]
        else:
            said = f"{said} {line.strip()}"
    if said:
        yield names, plain(said)


def blocks_markdown(note: str, output: Path) -> str:
    """Return ``blocks.md``: purpose, parameters, ports, latency, rate and source of every block.

    note: how the page is made.
    output: folder of the page; links to the source are relative to it.
    """
    folders: dict[str, list[type]] = {}
    for kind in public_blocks():
        folders.setdefault(".".join(kind.__module__.split(".")[:2]), []).append(kind)
    text = (f"# Blocks\n\n{note}\n\nEvery block is an Amaranth `wiring.Component`. Latencies are "
            "in cycles, from the first event to the second, while nothing else is in flight.\n")
    for folder, kinds in folders.items():
        text += f"\n## {folder}\n\n{_summary(folder)}"
        for kind in sorted(kinds, key=lambda kind: kind.__name__):
            text += _block(kind, output)
    return text


def _summary(folder: str) -> str:
    said = (importlib.import_module(folder).__doc__ or "").strip().split("\n\n")[0]
    return f"{plain(said)}\n" if said else ""


def _block(kind: type, output: Path) -> str:
    said = block_text(kind)
    path = Path(inspect.getsourcefile(kind) or "")
    source = path.relative_to(Path(rtl.__file__).parents[1]).as_posix()
    link = Path(os.path.relpath(path, output)).as_posix()
    line = inspect.getsourcelines(kind)[1]
    text = f"\n### {kind.__name__}\n\n" + "".join(f"{each}\n\n" for each in said.purpose)
    for heading, entries in said.sections.items():
        named = [(f"`{names}`", body) for names, body in entries if names]
        loose = [body for names, body in entries if not names]
        text += "".join(f"{heading}: {body}\n\n" for body in loose)
        if named:
            text += f"{table((heading.lower(), 'description'), named)}\n"
    latency = "; ".join(f"{start} → {end}: {cycles}"
                        for (start, end), cycles in latency_of(kind).items())
    figures = [("Latency", latency), ("Rate", rate_of(kind)),
               ("Source", f"[{source}]({link}#L{line}), `from {kind.__module__} import "
                          f"{kind.__name__}`")]
    return text + "".join(f"- {name}: {figure}\n" for name, figure in figures if figure)
