"""NICs in a process that answers other processes: turns and answers."""

from threading import Thread

import numpy as np
import pytest

from tests.optional import absent

pytest.importorskip("torch", reason=absent("torch"))
import torch

from sim.torch.lookups.bags import Bags
from sim.torch.lookups.query import Query
from sim.torch.options import TorchOptions
from sim.torch.processes.nics import Served, Turns
from sim.torch.values.asked import AskedUpdate
from sim.torch.values.rows import Part, Update
from sim.torch.values.rules import Rule


def taken(turns: Turns, size: int) -> list[int] | None:
    """Return the processes of the next turn; None if it is incomplete."""
    found = []
    thread = Thread(target=lambda: found.append(turns.next(size)), daemon=True)
    thread.start()
    thread.join(0.2)
    return sorted(found[0] or ()) if found else None


def test_a_turn_is_complete_when_all_have_asked():
    turns = Turns()
    turns.ask(0, 0, [], False)
    turns.ask(1, 0, [], False)
    assert taken(turns, 2) == [0, 1]


@pytest.mark.parametrize("passes", ["come", "leave", "wait"])
def test_a_turn_does_not_wait_for_a_process_that_waits_for_the_others(passes):
    turns = Turns()
    turns.ask(0, 3, [], False)
    if passes == "come":
        turns.come(1, 4)
    else:
        getattr(turns, passes)(1)
    assert taken(turns, 2) == [0]


def test_a_turn_waits_for_a_process_that_has_come_no_further():
    turns, found = Turns(), []
    turns.come(1, 3)
    turns.ask(0, 3, [], False)
    waiting = Thread(target=lambda: found.append(turns.next(2)), daemon=True)
    waiting.start()
    waiting.join(0.2)
    assert not found
    turns.ask(1, 3, [], False)
    waiting.join(10)
    assert sorted(found[0]) == [0, 1]


def test_a_process_that_waited_is_waited_for_again_when_it_is_heard_of():
    turns = Turns()
    turns.wait(1)
    turns.come(1, 1)
    turns.come(0, 1)
    turns.ask(0, 1, [], False)
    assert taken(turns, 2) is None


def test_who_asks_after_a_later_collective_has_a_later_turn():
    turns = Turns()
    turns.come(1, 1)
    turns.ask(1, 1, [], False)
    turns.ask(0, 0, [], False)
    assert taken(turns, 2) == [0]
    turns.come(0, 1)
    turns.come(0, 2)
    assert taken(turns, 2) == [1]
    turns.leave(0)
    turns.leave(1)
    assert taken(turns, 2) == []


def test_vectors_are_of_the_rows_that_come_with_a_query():
    served = Served(TorchOptions(nodes=2, fidelity="rtl", config="tiny", threads=1))
    tables = [torch.randn(rows, 16) for rows in (20, 30)]
    keys = [torch.tensor([1, 2, 1, 5]), torch.tensor([29, 0, 3, 3])]
    for step in range(3):
        for table in tables:
            table += step
        asked = {rank: ([Query.of(Bags(table, keys[rank].numpy(), torch.tensor([2, 2]).numpy(),
                                       "sum"), 0, table.numpy())], step > 0, step)
                 for rank, table in enumerate(tables)}
        found = served.answer(asked)
        for rank, table in enumerate(tables):
            expected = table[keys[rank]].view(2, 2, 16).sum(1)
            assert torch.equal(torch.from_numpy(found[rank][0]), expected)
    served.session.finish()
    assert served.session.verdicts == {"equal": 6, "different": 0}
    assert served.session.owners == [0, 1] and served.session.uncached == 2


@pytest.mark.parametrize("rule", ["sgd", "rowwise-adagrad"])
def test_rows_are_written_as_the_numerics_write_them(rule):
    """Two processes look up and update, a third only looks up; each sends its rows."""
    served = Served(TorchOptions(nodes=3, fidelity="rtl", optimizer_on="nic", config="tiny",
                                 threads=1))
    tables = [torch.randn(rows, 16) for rows in (20, 30, 9)]
    states = [np.zeros(len(table), np.float32) for table in tables]
    lengths = np.array([2, 1, 3])
    for step in range(3):
        keys = [np.random.default_rng(step).integers(0, len(table), 6) for table in tables]
        bags = [Bags(table, own, lengths, "mean") for table, own in zip(tables, keys)]
        found = served.answer({rank: ([Query.of(each, 0, each.weight.numpy())], step == 2, step)
                               for rank, each in enumerate(bags)})
        assert sorted(found) == [0, 1, 2]
        updates = {rank: Update(Rule(rule, 0.1), [Part(
            0, tables[rank].numpy(), lambda own=states[rank]: own,
            [(bags[rank], torch.randn(3, 16).numpy())])], 16) for rank in (0, 1)}
        written = served.answer({rank: (AskedUpdate.of(each), False, step)
                                 for rank, each in updates.items()})
        for rank, update in updates.items():
            rows, after = update.rule.apply(update.old, update.old_states, update.sums)
            assert np.array_equal(written[rank][0], rows)
            if rule != "sgd":
                assert np.array_equal(written[rank][1], after)
            tables[rank].numpy()[update.rows(0)] = rows
            states[rank][update.rows(0)] = after
    served.session.finish()
    assert served.session.verdicts == {"equal": 9, "different": 0}
    assert len(served.session.row_times) == 3
