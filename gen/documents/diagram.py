"""Block diagram of the NIC as SVG, from its streams: :func:`rtl.monitor.channels.channel_map`."""

import itertools
from collections.abc import Mapping
from xml.sax.saxutils import escape

from amaranth.lib import wiring

from gen.documents.layers import Layout, layered
from rtl.monitor.channels import channel_map

__all__ = ["nic_diagram"]

Point = tuple[float, float]

_EDGES = {"net_tx": "net_assembler", "host_tx": "host_assembler"}
"""The block that drives each edge of the NIC; an edge driven from outside has its own box."""

_OUTSIDE = ("host", "network", "host_rx", "net_rx", "host_tx", "net_tx")

_COLOURS = {
    "network": "#cfe3f7", "query": "#fde3c3", "cache": "#d5ecd0", "dedupe": "#f6d5e5",
    "interaction": "#e3daf3", "delivery": "#cdebe8", "rings": "#ead9c6", "training": "#f6e7a8",
    "stream": "#e6e6e6",
}
"""Colours by a block's folder in ``rtl``; blocks that only pass streams on are ``stream``."""

_FONT, _HEIGHT, _STEP, _MARGIN = 13, 26, 66, 12
_ASIDE = 7
"""Distance from the middle of a box of a stream that has another in the opposite direction."""


def nic_diagram(name: str, training: bool, blocks: Mapping[str, wiring.Component]) -> str:
    """Return an SVG of the blocks and streams, with one line for all streams between two blocks.

    Hovering over a line shows their names. ``blocks``: components by name, for colours.
    """
    streams: dict[tuple[str, str], list[str]] = {}
    for channel, target in channel_map(training).items():
        source = _EDGES.get(channel, channel.split(".")[0])
        streams.setdefault((source, target), []).append(channel)
    nodes = dict.fromkeys(node for edge in streams for node in edge)
    widths = {node: 7.3 * len(node) + 16 for node in nodes}
    layout = layered(list(streams), widths, last=("host", "network"), gap=34, joint=24)
    width = max(layout.x[node] + widths[node] / 2 for node in nodes) + 2 * _MARGIN
    width = max(width, *(x + _MARGIN for way in layout.ways.values() for x, _ in way))
    bottom = _y(max(layout.rank.values())) + _HEIGHT + _MARGIN
    ways = {edge: _points(layout, edge, _ASIDE if edge[::-1] in streams else 0)
            for edge in streams}
    parts = [_line(ways[edge], channels) for edge, channels in streams.items()]
    parts += [_box(node, layout, widths[node], _folder(node, blocks)) for node in nodes]
    taken = [(layout.x[node] + _MARGIN, _y(layout.rank[node]) + _HEIGHT / 2, widths[node], _HEIGHT)
             for node in nodes]
    parts += [_text(ways[edge], _label(channels), taken) for edge, channels in streams.items()]
    parts += _legend(dict.fromkeys(_folder(node, blocks) for node in nodes), bottom)
    size = f"{width:.0f} {bottom + 34:.0f}"
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" '
            f'width="{width:.0f}" height="{bottom + 34:.0f}" font-family="Helvetica, Arial, '
            f'sans-serif" font-size="{_FONT}">\n<title>Blocks and streams of {escape(name)}'
            '</title>\n<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#555"/></marker></defs>\n'
            '<style>.s{font-size:10.5px;fill:#0550ae;text-anchor:middle;paint-order:stroke;'
            'stroke:#fff;stroke-width:3px}</style>\n'
            '<rect width="100%" height="100%" fill="#fff"/>\n' + "\n".join(parts) + "\n</svg>\n")


def _folder(node: str, blocks: Mapping[str, wiring.Component]) -> str:
    """Return the folder of a block's class, "" for a node outside the NIC."""
    if node in _OUTSIDE:
        return ""
    folder = type(blocks[node]).__module__.split(".")[1] if node in blocks else "stream"
    return folder if folder in _COLOURS else "stream"


def _y(rank: float) -> float:
    return _MARGIN + rank * _STEP


def _box(node: str, layout: Layout, width: float, folder: str) -> str:
    x, y = layout.x[node] + _MARGIN - width / 2, _y(layout.rank[node])
    fill, round_ = (_COLOURS[folder], 4) if folder else ("#fff", 13)
    return (f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{_HEIGHT}" rx="{round_}" '
            f'fill="{fill}" stroke="#444"/><text x="{x + width / 2:.1f}" y="{y + 17.5:.1f}" '
            f'text-anchor="middle">{escape(node)}</text>')


def _points(layout: Layout, edge: tuple[str, str], aside: float) -> list[Point]:
    """Return the points of the line of ``edge``: at its source, its joints, and its target."""
    way = layout.ways[edge]
    down = way[0][1] < way[-1][1]
    points = []
    for k, (x, rank) in enumerate(way):
        middle = _y(rank) + _HEIGHT / 2
        if k in (0, len(way) - 1):
            middle += (_HEIGHT / 2) * (1 if (k == 0) == down else -1)
        points.append((x + _MARGIN + (aside if down else -aside), middle))
    return points


def _line(points: list[Point], channels: list[str]) -> str:
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in itertools.pairwise(points):
        middle = (y0 + y1) / 2
        path += f"C{x0:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {y1:.1f}"
    return (f'<path d="{path}" fill="none" stroke="#777" stroke-width="1.2" '
            f'marker-end="url(#tip)"><title>{escape(", ".join(channels))}</title></path>')


def _text(points: list[Point], label: str, taken: list[tuple[float, float, float, float]]) -> str:
    """Return ``label`` on the line, near its source, overlapping no other; extend ``taken``."""
    width, height = 5.7 * len(label) + 4, 12
    places = [_between(one, other, t) for one, other in itertools.pairwise(points)
              for t in (0.6, 0.7, 0.5, 0.8, 0.4, 0.9, 0.3)]
    free = (place for place in places if not any(
        abs(place[0] - x) < (width + w) / 2 and abs(place[1] - y) < (height + h) / 2
        for x, y, w, h in taken))
    x, y = next(free, places[0])
    if not label:
        return ""
    taken.append((x, y, width, height))
    return f'<text x="{x:.1f}" y="{y + 3.5:.1f}" class="s">{escape(label)}</text>'


def _between(one: Point, other: Point, t: float) -> Point:
    """Return the point at ``t``, 0 to 1, of the curve of :func:`_line` between two points."""
    (x0, y0), (x1, y1) = one, other
    ease = 3 * t * t - 2 * t ** 3
    level = y0 * (1 - t) ** 3 + 3 * (y0 + y1) / 2 * t * (1 - t) + y1 * t ** 3
    return x0 + (x1 - x0) * ease, level


def _label(channels: list[str]) -> str:
    """Return the ports of ``channels`` without redundant ones; a header and its payload form a
    packet."""
    ports = [channel.split(".")[-1] for channel in channels]
    if all(port.split("_")[-1] in ("headers", "payload", "header", "out") for port in ports):
        return "packets"
    ports = [port for port in ports if port not in ("o", *_OUTSIDE)]
    return ", ".join(ports) if len(ports) < 4 else f"{len(ports)} streams"


def _legend(folders, top: float) -> list[str]:
    parts, x = [], float(_MARGIN)
    for folder in folders:
        if folder:
            text = "join, split, queue" if folder == "stream" else f"rtl/{folder}"
            parts.append(f'<rect x="{x:.1f}" y="{top + 8:.1f}" width="14" height="14" rx="3" '
                         f'fill="{_COLOURS[folder]}" stroke="#444"/><text x="{x + 20:.1f}" '
                         f'y="{top + 20:.1f}">{text}</text>')
            x += 38 + 7 * len(text)
    return parts
