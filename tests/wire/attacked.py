"""Runs of `tiny` NICs on a network with an attacker who listens and sends."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappush
from typing import NamedTuple

import numpy as np

from host.timing.network import Network
from sim.cluster.exchange import Exchange
from sim.cluster.frame_faults import FrameFaults
from sim.engines import Engine
from sim.job.options import RunOptions
from sim.run.backend import choose
from sim.run.run import Run
from tests.rtl.network.frames import Frame
from tests.wire.forging import words

__all__ = ["Attack", "Attacked", "Outcome", "Sent", "run_attacked"]

Found = tuple[int, int, int, np.ndarray]


class Sent(NamedTuple):
    """A frame of the attacker: cycle, node behind whose link it is sent, destination, and beats."""

    cycle: int
    behind: int
    to: int
    frame: Frame | np.ndarray


Attack = Callable[[int, int, int, np.ndarray], list[Sent]]
"""Function from each honest frame that leaves (cycle, source, destination, beats) to the frames
that the attacker sends."""


class Attacked(Exchange):
    """An exchange whose network also carries the attacker's frames."""

    def __init__(self, engines: Sequence[Engine], network: Network, attack: Attack):
        super().__init__(engines, network)
        self._faults = FrameFaults((), 0)
        self._attack = attack
        self.sent = 0

    def inject(self, rules, seed) -> None:
        assert not rules

    def _with_faults(self, now: int, found: Sequence[Found],
                     faults: FrameFaults) -> Iterator[Found]:
        for cycle, source, destination, beats in found:
            for at, behind, to, frame in self._attack(cycle, source, destination, beats):
                self.sent += 1
                heappush(self._waiting, (max(at, cycle), behind, next(self._order), to,
                                         words(frame) if isinstance(frame, Frame) else frame))
        return super()._with_faults(now, found, faults)


@dataclass(frozen=True)
class Outcome:
    """Outcome of an attacked run.

    Members
    -------
    kind: ``same``, all samples have the bits of the undisturbed run; ``stuck``, some have no
        result, and the others are right; ``wrong``, some have other bits.
    sent: frames of the attacker.
    counters: of all NICs.
    stuck: message of the watchdog.
    """

    kind: str
    sent: int
    counters: Counter[str] = field(repr=False)
    stuck: str = ""


OPTIONS = {"config": "tiny", "nodes": 4, "samples": 48, "mini_batch": 12, "in_flight": 2,
           "placement": "row", "threads": 1, "patience": 20_000}


def run_attacked(attack: Attack, **options) -> Outcome:
    """Run with ``attack`` on the network; ``options`` are added to :data:`OPTIONS`."""
    given = RunOptions.of(**OPTIONS | options)
    exchanges: list[Attacked] = []

    def exchange(engines: Sequence[Engine], network: Network) -> Attacked:
        exchanges.append(Attacked(engines, network, attack))
        return exchanges[0]

    result = Run(given, replace(choose(given), exchange=exchange)).execute()
    counters: Counter[str] = Counter()
    for node in result["counters"]:
        counters.update(node)
    kind = ("wrong" if result["results"]["different"] else
            "same" if result["bit_identical"] and result["complete"] else "stuck")
    assert kind != "stuck" or result["stuck"]
    return Outcome(kind, exchanges[0].sent, counters, result["stuck"] or "")
