"""Generator of the block diagram of the NIC, a Mermaid flowchart of its streams."""

from collections.abc import Mapping

from amaranth.lib import wiring

__all__ = ["diagram_markdown"]

_EDGES = {"net_tx": "net_assembler", "host_tx": "host_assembler"}
"""Block that drives each output of the NIC. An input of the NIC is a node of the diagram."""


def diagram_markdown(name: str, channels: Mapping[str, str],
                     blocks: Mapping[str, wiring.Component], note: str) -> str:
    """Return ``nic.md``: a node for each block, and an arrow for each pair of connected blocks.

    channels: streams of the NIC, see :func:`rtl.monitor.channels.channel_map`.
    blocks: components by name. Other nodes are outside the NIC, or join, split or queue streams.
    """
    streams: dict[tuple[str, str], list[str]] = {}
    for channel, target in channels.items():
        source, _, port = channel.partition(".")
        streams.setdefault((_EDGES.get(source, source), target), []).append(port or source)
    nodes = dict.fromkeys(node for edge in streams for node in edge)
    lines = ["flowchart TB", *(f'  {node}["{_label(node, blocks)}"]' for node in nodes),
             *(f'  {source} -->|"{"<br/>".join(ports)}"| {target}'
               for (source, target), ports in streams.items())]
    text = "\n".join(lines)
    return (f"# Blocks and streams of `{name}`\n\n{note}\n\nThe label of an arrow is the names of "
            f"the streams between two blocks.\n\n```mermaid\n{text}\n```\n")


def _label(node: str, blocks: Mapping[str, wiring.Component]) -> str:
    """Return the label of a node: its name, and for a block its folder in ``rtl``."""
    if node not in blocks:
        return node
    return f"{node}<br/>rtl/{type(blocks[node]).__module__.split('.')[1]}"
