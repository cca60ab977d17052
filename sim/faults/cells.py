"""The cells of the suite: networks and faults, over bare links and over whole clusters."""

from dataclasses import dataclass, replace

from sim.faults.traffic import LinkTraffic

__all__ = ["EVERYTHING", "KINDS", "MODES", "RATES", "SIZES", "ClusterCell", "LinkCell",
           "cluster_cells", "link_cells"]

KINDS = {
    "drop": "drop={rate}", "duplicate": "duplicate={rate}", "reorder": "reorder={rate}:4us",
    "corrupt": "corrupt={rate}", "delay": "delay={rate}:20us"}
"""Faults of frames, as of ``sim run --faults``."""

EVERYTHING = ",".join(KINDS.values())
"""All of them at once."""

SIZES = {"1,430 bytes": 22, "150 bytes": 2}
"""Beats of a packet, by the name of its UDP payload."""

_ROUND_TRIPS_US = (1.0, 3.0, 10.0, 50.0)

RATES = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)

MODES = {
    "pooled": (), "interaction": ("interaction=true",),
    "unique": ("deliver=unique", "completions=true"),
    "rings": ("gpu_rings=true", "deliver=unique", "completions=true"), "training": ()}
"""Modes of a cluster, with their settings."""

_LEAST_FAULTS = 30
"""Mean number of faults for which a cell is long enough; at least 10 are required."""

_MOST_PACKETS = 1_000_000
_NODES, _CLUSTER_RATES = (2, 3, 4, 5, 6, 7, 8), (1e-3, 1e-2, 1e-1)
_FRAMES_A_SAMPLE = {2: 5, 3: 6, 4: 10, 5: 14, 6: 20, 7: 26, 8: 32}
"""Approximate frames on the network per sample, by number of nodes."""


@dataclass(frozen=True)
class LinkCell:
    """Packets between bare link ends. ``group``: part of the table; ``name``: name in the group."""

    group: str
    name: str
    traffic: LinkTraffic


@dataclass(frozen=True)
class ClusterCell:
    """A run of whole NICs and hosts. Its predictions or weights must equal those without faults.

    Members
    -------
    mode: key of :data:`MODES`.
    nodes: number of nodes.
    kind: kind of fault, ``all``, or ``calm`` without faults.
    rate: probability of a fault per frame.
    samples, mini_batch: samples of the run, and of a mini-batch.
    seed: seed of the run.
    """

    mode: str
    nodes: int
    kind: str = "calm"
    rate: float = 0.0
    samples: int = 96
    mini_batch: int = 16
    seed: int = 1

    @property
    def faults(self) -> str | None:
        """The faults, as of ``sim run --faults``."""
        if self.kind == "calm":
            return None
        text = EVERYTHING if self.kind == "all" else KINDS[self.kind]
        return f"{text.format(rate=f'{self.rate:g}')},seed={self.seed}"

    @property
    def calm(self) -> "ClusterCell":
        """The same without faults."""
        return replace(self, kind="calm", rate=0.0, seed=1)


def link_cells(short: bool = False) -> list[LinkCell]:
    """Return the cells of bare links; ``short``: those that take seconds."""
    cells = [LinkCell("no loss", f"{name}, both ways", LinkTraffic(
        2_000 if short else 20_000, (beats,), "both ways"))
        for name, beats in SIZES.items()]
    for rate in RATES[2:] if short else RATES:
        for kind in (*KINDS, "all"):
            text = (EVERYTHING if kind == "all" else KINDS[kind]).format(rate=f"{rate:g}")
            packets = max(2_000, min(_MOST_PACKETS, round(_LEAST_FAULTS / rate)))
            cells.append(LinkCell(f"{kind}", f"{rate:g}", LinkTraffic(
                packets, (2, 1, 3), "both ways", faults=text)))
    for size, beats in SIZES.items():
        for trip in _ROUND_TRIPS_US[:1] if short else _ROUND_TRIPS_US:
            for rate in (0.0, 1e-3, 1e-2, 5e-2, 1e-1):
                if short and rate not in (0.0, 1e-2):
                    continue
                packets = 4_000 if short else 20_000 if beats == 22 else 60_000
                cells.append(LinkCell(
                    f"goodput, {size}, {trip:g} us", f"{rate:g}", LinkTraffic(
                        packets, (beats,), "one way", round_trip_us=trip,
                        faults=f"drop={rate:g}" if rate else None)))
    cells += [
        LinkCell("incast", "7 to 1, 25 packets each", LinkTraffic(
            25, (22,), "incast", nodes=8, round_trip_us=2.8)),
        LinkCell("incast", "7 to 1, 2,000 packets each", LinkTraffic(
            2_000, (22,), "incast", nodes=8, round_trip_us=2.8)),
        LinkCell("incast", "7 to 1, queue of 64 KiB", LinkTraffic(
            500, (22,), "incast", nodes=8, round_trip_us=2.8, queue_bytes=65_536)),
        LinkCell("sequence", "wraps, 2^24 - 500", LinkTraffic(
            2_000, (2, 1, 3), "both ways", first_sequence=(1 << 24) - 512,
            faults=EVERYTHING.format(rate="0.02"))),
        LinkCell("window", "full, 50 us", LinkTraffic(
            10_000, (1,), "one way", round_trip_us=50.0, faults="drop=0.01")),
        LinkCell("flap", "down 200 us", LinkTraffic(
            4_000, (22,), "both ways", faults="down=100us:200us")),
        LinkCell("silent", "node 1 for ever", LinkTraffic(
            50, (22,), "all to all", nodes=3, faults="down=0us:1s@>1,down=0us:1s@1>")),
        LinkCell("all to all", "8 nodes, everything at 0.01", LinkTraffic(
            300, (22, 1, 2), "all to all", nodes=8, faults=EVERYTHING.format(rate="0.01"))),
        LinkCell("all to all", "16 nodes, everything at 0.01", LinkTraffic(
            60, (22, 1, 2), "all to all", nodes=16, faults=EVERYTHING.format(rate="0.01"))),
    ]
    return cells


def cluster_cells(short: bool = False) -> list[ClusterCell]:
    """Return the cells of whole clusters, which together have each pair of a kind of fault, a mode,
    a number of nodes and a rate; ``short``: those that take a minute."""
    kinds, modes = (*KINDS, "all"), tuple(MODES)
    cells = []
    for i, kind in enumerate(kinds):
        for j, nodes in enumerate(_NODES):
            rate = _CLUSTER_RATES[(i + 2 * j) % len(_CLUSTER_RATES)]
            mode = modes[(i + j) % len(modes)]
            per_sample = _FRAMES_A_SAMPLE[nodes]
            samples = max(48, round(_LEAST_FAULTS / (rate * per_sample)))
            cells.append(ClusterCell(mode, nodes, kind, rate, samples=samples))
    return [cell for cell in cells if cell.rate > 1e-3 and cell.nodes < 5] if short else cells
