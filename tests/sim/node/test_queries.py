"""Queries are sent as the NIC's credits allow."""

import numpy as np
import pytest

from rtl.config import preset
from sim.node.queries import Queries


class Asked:
    """A step whose share has the given number of beats of queries."""

    def __init__(self, beats: int):
        self.first, self.number, self.starts = 0, 0, {}
        self._records = np.zeros(8 * beats, np.uint64)

    def queries(self, node: int) -> np.ndarray:
        return self._records

    def items(self, node: int) -> None:
        return None

    def sends(self, node: int) -> bool:
        return True


CONFIG = preset("tiny")


def made(beats: int) -> tuple[Queries, list[int]]:
    sent: list[int] = []
    queries = Queries(0, CONFIG, 1, lambda packet, now: sent.append(len(packet) - 1),
                      lambda step, now: None)
    queries.add(Asked(beats), 0.0)  # type: ignore[arg-type]
    queries.send(0.0)
    return queries, sent


def test_no_more_is_in_flight_than_the_buffer_holds():
    queries, sent = made(10 * CONFIG.query_beats)
    assert CONFIG.query_beats // 2 <= sum(sent) <= CONFIG.query_beats and queries.waiting


@pytest.mark.parametrize("laps", [0, 3])
def test_an_overtaken_credit_reports_nothing(laps):
    """A packet gets its credit before it is queued: a newer credit may overtake it."""
    queries, sent = made(10 * CONFIG.query_beats + laps * 65536)
    while sum(sent) < laps * 65536 + 2 * CONFIG.query_beats:
        queries.consumed(sum(sent) & 0xFFFF)
        queries.send(0.0)
    before, consumed = sum(sent), sum(sent)
    queries.consumed(consumed & 0xFFFF)
    queries.consumed(consumed - 5 & 0xFFFF)
    queries.send(0.0)
    assert before < sum(sent) <= consumed + CONFIG.query_beats
    queries.consumed(sum(sent) & 0xFFFF)
    more = sum(sent)
    queries.send(0.0)
    assert sum(sent) > more
