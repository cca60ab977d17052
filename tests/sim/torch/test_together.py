"""Merged observations of several processes."""

import json
from dataclasses import replace

import pytest

from tests.optional import absent

pytest.importorskip("torch", reason=absent("torch"))
import torch

from sim.torch.catching.capture import Capture
from sim.torch.processes.merge import Seen, differences, together
from sim.torch.processes.messages import plain, typed
from tests.sim.torch.programs import attached_to


def seen(rank: int, rows: tuple[int, ...], steps: int = 3, samples: int = 8,
         exchanged: bool = True) -> Seen:
    """Return the observations of a process of two, with a key per table and sample."""
    bags = [torch.nn.EmbeddingBag(count, 16, mode="sum") for count in rows]

    def program():
        for step in range(steps):
            for bag in bags:
                bag(torch.arange(samples) + step, torch.arange(samples)).sum()

    session, _ = attached_to(program)
    session.record.exchanges = steps * exchanged
    return Seen.of(session, Capture(session, print), 0, rank, 2)


def test_one_process_is_what_it_is():
    one = seen(0, (50, 20))
    assert together([one]) == replace(one, rank=None, size=1) and differences([one]) == []


def test_tables_of_processes_stand_beside_each_other():
    found = together([seen(1, (30,)), seen(0, (50, 20))])
    assert [(table["rows"], table["node"]) for table in found.tables] == [
        (50, 0), (20, 0), (30, 1)]
    assert [(step["samples"], step["lookups"]) for step in found.record.steps] == [(8, 24)] * 3
    kept = found.record.alike(False)
    assert [each.step for each in kept] == [0, 1, 2]
    assert all(each.tables == (0, 1, 2) for each in kept)
    assert [len(bags.weight) for bags in kept[0].columns] == [50, 20, 30]
    assert found.comparison.equal == [72, 0]


def test_samples_of_processes_with_copies_stand_behind_each_other():
    parts = [seen(rank, (50,), exchanged=False) for rank in range(2)]
    found = together(parts)
    assert [table["node"] for table in found.tables] == [None]
    assert [(step["samples"], step["lookups"]) for step in found.record.steps] == [(16, 16)] * 3
    assert found.record.alike(False)[0].columns[0].rows.tolist() == [*range(8)] * 2
    assert len(differences(parts)) == 1


@pytest.mark.parametrize("exchanged", [False, True])
def test_mini_batches_that_others_lack_are_counted(exchanged):
    parts = [seen(0, (50,), exchanged=exchanged), seen(1, (50,), 5, exchanged=exchanged)]
    found = together(parts)
    assert [step["lookups"] for step in found.record.steps] == [16, 16, 16, 8, 8]
    assert len(found.record.alike(False)) == 3
    assert any("3 to 5 mini-batches" in note for note in differences(parts))


def test_a_process_without_tables_is_a_node_that_holds_none():
    found = together([seen(0, ()), seen(1, (50,))])
    assert [table["node"] for table in found.tables] == [1]
    assert len(found.record.alike(False)) == 3


def test_mini_batches_of_other_samples_are_not_timed():
    found = together([seen(0, (50,)), seen(1, (50,), samples=4)])
    assert [step["lookups"] for step in found.record.steps] == [12] * 3
    assert not found.record.recent[False] and not found.record.recent[True]


def test_a_process_beside_the_group_is_said():
    lone = replace(seen(0, (40,)), rank=None, size=1)
    found = together([seen(0, (50,)), seen(1, (50,)), lone, seen(0, (50,))])
    assert [step["lookups"] for step in found.record.steps] == [16] * 3
    assert [(what, count) for (_, what), count in found.missed.items()] == [
        ("lookups of a process outside the process group", 48)]
    assert len(together([replace(seen(0, ()), rank=None, size=1), lone]).tables) == 1


def test_what_is_sent_has_no_rows():
    arrays = []
    text = json.dumps(plain(seen(0, (100_000,)), arrays))
    assert len(text) + sum(each.nbytes for each in arrays) < 10_000
    found = typed(Seen, json.loads(text), arrays)
    assert found.record.alike(False)[0].columns[0].rows[1] == 1
    assert together([found]).record.steps == together([seen(0, (100_000,))]).record.steps
