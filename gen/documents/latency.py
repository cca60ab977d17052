"""Generator of the latency page: latency and throughput stated in the blocks' docstrings."""

from collections.abc import Mapping

from amaranth.lib import wiring

from gen.documents.docstrings import latency_text
from gen.documents.markdown import plain, table

__all__ = ["latency_markdown"]


def latency_markdown(name: str, blocks: Mapping[str, wiring.Component], note: str) -> str:
    """Return ``latency.md``: the cycles stated in the docstring of each of ``blocks``.

    Blocks of one class share a row. Blocks without them (counters outside the path) are left out.
    """
    rows: dict[str, list[str]] = {}
    for label, block in _flat(blocks):
        rows.setdefault(f"{type(block).__module__}.{type(block).__name__}", []).append(label)
    kinds = {f"{type(b).__module__}.{type(b).__name__}": type(b) for _, b in _flat(blocks)}
    text = f"# Latency of the blocks of `{name}`\n\n{note}\n\n"
    text += ("In cycles of 4 ns at 250 MHz, by the docstring of each block; `python -m sim "
             "bench` measures most of them and compares. Latencies add up along a path, "
             "whose throughput is that of its slowest block.\n\n")
    return text + table(("blocks", "class", "latency and throughput"), (
        (", ".join(f"`{label}`" for label in labels), f"`{kind}`", plain(said))
        for kind, labels in rows.items() if (said := latency_text(kinds[kind]))))


def _flat(blocks: Mapping[str, wiring.Component]) -> list[tuple[str, wiring.Component]]:
    """Return the blocks by name; composite blocks are replaced by their parts."""
    found: list[tuple[str, wiring.Component]] = []
    for label, block in blocks.items():
        inner = getattr(block, "blocks", None)
        found += _flat(inner) if inner else [(label, block)]
    return found
