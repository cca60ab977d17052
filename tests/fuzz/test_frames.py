"""NICs in a storm of hostile frames: no hang, no changed answer, and every frame is counted.

Frames arrive at the rate of the links, beside the frames of a run. ``EMBERNIC_STORM`` sets the
number of frames of the long test (10,000,000), ``EMBERNIC_STORM_FROM`` its first seed. A cluster, a
seed and a number of frames reproduce a storm; :func:`test_storms_that_found_something` repeats
storms that found a defect.
"""

import os
from collections import Counter

import pytest
from rich.console import Console
from rich.table import Table

from tests.fuzz.clusters import CLUSTERS, NODES, Case, Ended, storm_of, with_storm
from tests.fuzz.storms import Storm
from tests.sim.training.compiled_nics import write

FOUND = (("strangers", "pooled", 7, 3_000), ("hostile peer", "pooled", 7, 3_000),
         ("strangers", "row reads", 7, 3_000), ("hostile peer", "row reads", 7, 3_000))
"""Attacks, clusters, seeds and frames of storms that found a defect."""

EACH = 20_000
"""Frames of a storm of the long test."""


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> str:
    return write(tmp_path_factory.mktemp("model"))


def strangers(case: Case, path: str, seed: int, frames: int) -> tuple[Storm, Ended, list[str]]:
    """Let strangers send ``frames`` frames; return the storm, the end of the run, and the errors:
    no answer may change, and every frame must be rejected and counted."""
    storm = storm_of(case, path, seed, frames)
    ended = with_storm(case, path, storm)
    wrong = list(ended.said)
    for node in range(NODES):
        sent = storm.sent[node].total()
        taken, honest = ended.taken(node), storm.of_the_run(node, link=False)
        if ended.counted(node) != sent:
            wrong.append(f"node {node} refused {ended.counted(node):,} of {sent:,} frames")
        if taken != honest:
            wrong.append(f"node {node} took {taken:,} frames, of {honest:,} of the run")
    return storm, ended, wrong


def peer(case: Case, path: str, seed: int, frames: int) -> tuple[Storm, Ended, list[str]]:
    """Let a node that owns no row, and looks up no row, send the others any frame.

    Lookups and vectors of others may not change. In training, a node's gradients are valid parts of
    the weights, and a step that it does not end never ends: the run must end with any result. Every
    frame is counted, except accepted packets LINK and PROBE.
    """
    storm = storm_of(case, path, seed, frames, peer=NODES - 1)
    ended = with_storm(case, path, storm, placement="0,1,0,1", mini_batch=2,
                       **({} if case.training else {"in_flight": 16}))
    wrong = [] if case.training else list(ended.said)
    for node in range(NODES):
        came = storm.of_the_run(node, link=False) + (
            storm.sent[node].total() if node in storm.sent else 0)
        left = came - ended.counted(node) - ended.taken(node)
        if not 0 <= left <= storm.links.get(node, 0):
            wrong.append(f"node {node} did not count {left:,} of {came:,} frames")
    return storm, ended, wrong


ATTACKS = {"strangers": strangers, "hostile peer": peer}


@pytest.mark.thorough
@pytest.mark.parametrize("name", CLUSTERS)
@pytest.mark.parametrize("attack", ATTACKS)
def test_some(attack, name, path):
    storm, _, wrong = ATTACKS[attack](CLUSTERS[name], path, 0, 9_000)
    assert not wrong and sum(kinds.total() for kinds in storm.sent.values()) == 9_000


@pytest.mark.parametrize(("attack", "name", "seed", "frames"), FOUND)
def test_storms_that_found_something(attack, name, seed, frames, path):
    assert not ATTACKS[attack](CLUSTERS[name], path, seed, frames)[2]


@pytest.mark.slow
def test_many(path):
    """Send ten million frames, from strangers and from a peer in turn, to each cluster in turn."""
    wanted = int(os.environ.get("EMBERNIC_STORM", "10_000_000"))
    first = int(os.environ.get("EMBERNIC_STORM_FROM", "1000"))
    rows: dict[tuple[str, str], Counter[str]] = {
        (attack, name): Counter() for name in CLUSTERS for attack in ATTACKS}
    wrong = []
    for storms in range(-(-wanted // EACH)):
        attack, name = list(rows)[storms % len(rows)]
        seed = first + storms // len(rows)
        storm, ended, found = ATTACKS[attack](CLUSTERS[name], path, seed, EACH)
        wrong += [f"{attack}, {name}, seed {seed}: {what}" for what in found]
        rows[attack, name].update({
            "frames": sum(kinds.total() for kinds in storm.sent.values()), "defects": bool(found),
            "refused": sum(map(ended.counted, range(NODES))),
            "stopped": bool(ended.said)})
    Console(width=100).print(_table(rows, first))
    assert not wrong, "\n".join(what[:400] for what in wrong[:20])


def _table(rows: dict[tuple[str, str], Counter[str]], first: int) -> Table:
    table = Table(title=f"hostile frames, seeds from {first}")
    for column in ("from", "cluster", "frames", "refused", "runs that did not finish", "defects"):
        table.add_column(column, justify="left" if column in ("from", "cluster") else "right")
    for (attack, name), counts in rows.items():
        table.add_row(attack, name, *(f"{counts[key]:,}" for key in (
            "frames", "refused", "stopped", "defects")))
    return table
