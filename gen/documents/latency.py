"""Generator of the latency page, from the blocks' ``LATENCY`` and ``RATE``."""

from collections.abc import Mapping

from amaranth.lib import wiring

from gen.documents.markdown import table
from rtl.figures import latency_of, rate_of

__all__ = ["latency_markdown"]


def latency_markdown(name: str, blocks: Mapping[str, wiring.Component], note: str) -> str:
    """Return ``latency.md``: the latency and the rate of each block.

    Blocks of the same class share a row. Blocks without latency and rate are omitted.
    """
    rows: dict[str, list[str]] = {}
    for label, block in _flat(blocks):
        rows.setdefault(f"{type(block).__module__}.{type(block).__name__}", []).append(label)
    kinds = {f"{type(b).__module__}.{type(b).__name__}": type(b) for _, b in _flat(blocks)}
    text = f"# Latency of the blocks of `{name}`\n\n{note}\n\n"
    text += ("Latencies are in cycles (4 ns at 250 MHz) of an idle block, from `LATENCY` of its "
             "class; rates are from `RATE`. `python -m sim bench` measures most of the blocks. The "
             "latency of a path is the sum of its blocks' latencies, its rate that of its slowest "
             "block.\n\n")
    return text + table(("blocks", "class", "latency in cycles", "rate"), (
        (", ".join(f"`{label}`" for label in labels), f"`{kind}`", _latency(kinds[kind]),
         rate_of(kinds[kind]))
        for kind, labels in rows.items() if latency_of(kinds[kind]) or rate_of(kinds[kind])))


def _latency(kind: type) -> str:
    return "; ".join(f"{start} → {end}: **{cycles}**"
                     for (start, end), cycles in latency_of(kind).items())


def _flat(blocks: Mapping[str, wiring.Component]) -> list[tuple[str, wiring.Component]]:
    """Return the blocks by name, with composite blocks replaced by their parts."""
    found: list[tuple[str, wiring.Component]] = []
    for label, block in blocks.items():
        inner = getattr(block, "blocks", None)
        found += _flat(inner) if inner else [(label, block)]
    return found
