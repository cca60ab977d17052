"""Clusters whose NICs get hostile frames at the rate of their links, beside the frames of a run."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from host.wire.packets import parse_headers
from rtl.formats import BEAT_BYTES, Opcode
from sim.engines import Engine
from sim.host_cpp.exchange import CompiledExchange
from sim.nic.ports import Observer
from tests.fuzz.frames import Changed, Frames, beats_of

__all__ = ["Storm", "stormy"]

_OF_LINKS = (Opcode.LINK, Opcode.PROBE)
"""Packets that end in the link receiver, which does not count them."""


@dataclass
class Storm:
    """Hostile frames of a cluster, sent and to be sent.

    Members
    -------
    frames: source of frames, by node that gets any.
    limit: frames for each node.
    sent: frames sent to a node, by kind.
    links: packets LINK and PROBE among them.
    honest: frames of the run, by node and opcode.
    """

    frames: dict[int, Frames]
    limit: int

    def __post_init__(self) -> None:
        self.sent: dict[int, Counter[str]] = {node: Counter() for node in self.frames}
        self.left = dict.fromkeys(self.frames, self.limit)
        self.honest: Counter[tuple[int, int]] = Counter()
        self.links: Counter[int] = Counter()

    def next(self, node: int) -> Changed:
        """Return the next frame to ``node``, which must have frames left."""
        frame = self.frames[node].next()
        self.left[node] -= 1
        self.sent[node][frame.kind] += 1
        self.links[node] += frame.data[43] in _OF_LINKS
        return frame

    def rest(self, engines: Sequence[Engine]) -> None:
        """Send all remaining frames at once, after a run that ended early."""
        for node, left in self.left.items():
            for _ in range(left):
                engine, beats = engines[node], beats_of([self.next(node)])
                engine.push("net_rx", beats, engine.cycle)
                engine.run(engine.cycle + len(beats))

    def of_the_run(self, node: int, link: bool) -> int:
        """Return how many frames of the run arrived at ``node``: frames of the links, or all
        others."""
        return sum(count for (to, opcode), count in self.honest.items()
                   if to == node and (opcode in _OF_LINKS) == link)


def stormy(storm: Storm) -> type:
    """Return an exchange that carries the storm: each node's link is never empty."""

    class Stormy(CompiledExchange):
        def __init__(self, engines, network):
            super().__init__(engines, network)
            self._network = network

        def step(self, now: int, observer: Observer | None = None) -> None:
            def seen(frames) -> None:
                if frames:
                    heads = parse_headers(np.stack([frame[0] for *_, frame in frames]))
                    storm.honest.update((head.destination, head.opcode) for head in heads)
                if observer is not None:
                    observer(frames)

            super().step(now, seen)
            network = self._network
            for node in storm.frames:
                free = max(now + network.lookahead, float(network.free[0, node]))
                # The next frames of the run arrive behind the frames that fill the link until then.
                end = now + 2 * network.lookahead
                made: list[Changed] = []
                starts: list[float] = []
                while free < end and storm.left[node]:
                    frame = storm.next(node)
                    made.append(frame)
                    starts.append(free)
                    free += (len(frame.data) + network.overhead_bytes) * network.cycles_per_byte
                if not made:
                    continue
                network.free[0, node] = free
                beats = beats_of(made)
                lengths = np.array([len(frame.data) // BEAT_BYTES for frame in made])
                before = (lengths.cumsum() - lengths).repeat(lengths)
                cycles = np.array(starts).repeat(lengths) + (
                    np.arange(1, len(beats) + 1) - before) * BEAT_BYTES * network.cycles_per_byte
                self._engines[node].push("net_rx", beats, np.ceil(cycles).astype(np.uint64))

    return Stormy
