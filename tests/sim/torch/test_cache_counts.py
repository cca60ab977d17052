"""Local cache counts of each mini-batch: present where NICs ran, and equal in sum to the NICs'
counters."""

import pytest

from tests.optional import absent

pytest.importorskip("torch", reason=absent("torch"))
import torch

from sim import api
from sim.torch.catching.capture import Capture, capturing
from sim.torch.catching.session import Session
from sim.torch.lookups.bags import Bags
from sim.torch.lookups.query import Query
from sim.torch.options import TorchOptions
from sim.torch.processes.merge import Seen, caches_of
from sim.torch.processes.nics import Served
from sim.torch.systems import SYSTEMS
from tests.sim.torch.programs import Dlrm, attached_to, mini_batches, trained

NAMES = ("hits", "accesses")


def cells(steps: list[dict]) -> list[tuple]:
    return [tuple(step[f"local_cache_{name}"] for name in NAMES) for step in steps]


def told(session) -> list[tuple]:
    """Check that the cells of the mini-batches add up, and return them."""
    found = cells(Seen.of(session, Capture(session, print)).record.steps)
    assert [sum(of) for of in zip(*found)] == [
        session.counts[f"local_cache.{name}"] for name in NAMES]
    return found


@pytest.mark.parametrize("system", ["FS", "EN"])
def test_rows_that_come_again_hit(system):
    bag, other = (torch.nn.EmbeddingBag(300, 16, mode="sum") for _ in range(2))
    keys = torch.arange(12)

    def program():
        for first in (0, 0, 20, 24):
            torch.cat([bag(keys + first, keys), other(keys + first, keys)], 1)

    session, _ = attached_to(program, fidelity="rtl", system=system,
                             set=("remote_cache=false",))
    assert told(session) == [(0, 24), (24, 24), (0, 24), (16, 24)]


def test_a_mini_batch_that_nics_look_up_in_parts_is_one():
    bags = [torch.nn.EmbeddingBag(40, 16, mode="sum") for _ in range(3)]
    keys = torch.arange(8)

    def program():
        for _ in range(3):
            for bag in bags:
                assert torch.equal(bag(keys, keys) * 2, 2 * bag.weight[keys])

    session, _ = attached_to(program, fidelity="rtl", set=("remote_cache=false",))
    assert len(session.record.steps) == 3 and sum(session.resets.values()) == 2
    # Each new table rebuilds the NICs, with cold caches.
    assert told(session) == [(0, 24), (8, 24), (24, 24)]


def test_of_a_mini_batch_without_keys_nothing_is_told():
    bag, none = torch.nn.EmbeddingBag(40, 16, mode="sum"), torch.empty(0, dtype=torch.int64)

    def program():
        for keys in (torch.arange(4), none, torch.arange(4)):
            bag(keys, keys).sum()

    session, _ = attached_to(program, fidelity="rtl", set=("remote_cache=false",))
    found = cells(Seen.of(session, Capture(session, print)).record.steps)
    assert found == [(0, 4), (None, None), (4, 4)]


@pytest.mark.parametrize("on", ["host", "nic"])
def test_training_adds_up(on):
    model = Dlrm(sparse=True)
    session, _ = attached_to(lambda: trained(model, mini_batches(5, keys=3)), fidelity="rtl",
                             optimizer_on=on)
    found = told(session)
    # PyTorch's optimizer changes rows, which switches caches off; the NICs' optimizer does not.
    assert [hits > 0 for hits, _ in found] == [False] + [on == "nic"] * 4


def test_what_was_cut_off_is_left_out():
    bag, keys = torch.nn.EmbeddingBag(40, 16, mode="sum"), torch.arange(4)

    def program():
        for _ in range(3):
            bag(keys, keys).sum()

    session = Session(TorchOptions(nodes=2, config="tiny", threads=1, fidelity="rtl",
                                   set=("remote_cache=false",)))
    with capturing(session, print):
        program()
    session.stop()
    assert cells(Seen.of(session, Capture(session, print)).record.steps) == [(0, 4), (4, 4)]


@pytest.mark.parametrize("system", ["FS", "EN", "bl-tuned"])
def test_modelled_nics_tell_of_the_mini_batches_that_are_measured(monkeypatch, system):
    monkeypatch.setattr("sim.torch.systems.SYSTEMS", {
        name: of for name, of in SYSTEMS.items() if name in (system, "bl-tuned")})
    with api.attach(nodes=2, system=system) as program:
        trained(Dlrm(), mini_batches(6), False)
    result = program.result
    found, times = cells(result["steps"]), result["systems"]["inference"]
    assert times["steps"] == [3, 4, 5] and found[:3] == [(None, None)] * 3
    of = times["rows"][0]["local_cache"]
    sums = result["mini_batches"]["inference"]["local_cache"]
    if system == "bl-tuned":
        assert found[3:] == [(None, None)] * 3 and of is None
        assert sums == {"mini_batches": 0, "hits": 0, "accesses": 0}
        return
    assert [list(counts) for counts in zip(*found[3:])] == [of[name] for name in NAMES]
    assert sums == {"mini_batches": 3} | {name: sum(of[name]) for name in NAMES}
    assert 0 < sums["hits"] <= sums["accesses"]


def test_each_process_has_the_hits_in_its_own_tables():
    """The first process is two mini-batches ahead of the second."""
    served = Served(TorchOptions(nodes=2, fidelity="rtl", config="tiny", threads=1,
                                 set=("remote_cache=false",)))
    tables = [torch.randn(rows, 16) for rows in (20, 30)]
    ones = torch.ones(4, dtype=torch.int64).numpy()

    def asked(rank: int, first: int, step: int):
        bags = Bags(tables[rank], torch.arange(first, first + 4).numpy(), ones, "sum")
        return [Query.of(bags, 0, tables[rank].numpy())], False, step

    served.answer({0: asked(0, 0, 0), 1: asked(1, 0, 0)})
    served.answer({0: asked(0, 0, 1)})
    served.answer({0: asked(0, 4, 2)})
    served.answer({0: asked(0, 4, 3), 1: asked(1, 2, 1)})
    served.session.finish()
    found = [caches_of(served.session, rank) for rank in (0, 1)]
    assert [(found[0][step, "hits"], found[0][step, "accesses"]) for step in range(4)] == [
        (0, 4), (4, 4), (0, 4), (4, 4)]
    assert [(found[1][step, "hits"], found[1][step, "accesses"]) for step in range(2)] == [
        (0, 4), (2, 4)]
    assert sum(sum(each.values()) for each in found) == sum(
        served.session.counts[f"local_cache.{name}"] for name in NAMES)
