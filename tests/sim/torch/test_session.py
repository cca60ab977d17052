"""NICs return a program's vectors from its own rows, and the program's results stay the same."""

import gc
from dataclasses import replace

import numpy as np
import pytest

from tests.optional import absent

pytest.importorskip("torch", reason=absent("torch"))
import torch
from torch.multiprocessing.reductions import StorageWeakRef

from host.wire.rows import GivenRows
from sim.host_cpp.node import CompiledNode
from sim.node.node import Node
from sim.run.backend import choose
from sim.torch.lookups.tables import Tables
from sim.torch.values.nics import LookupNics
from tests.sim.torch.programs import ROWS, Dlrm, attached_to, mini_batches, trained

FIDELITIES = pytest.mark.parametrize("fidelity", ["model", "rtl"])


@FIDELITIES
@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_one_key_bags_leave_every_loss_as_it_is(fidelity, train, sparse):
    batches, losses = mini_batches(5), []
    session, missed = attached_to(lambda: losses.extend(trained(
        Dlrm(sparse=sparse), batches, train)), fidelity=fidelity)
    assert losses == trained(Dlrm(sparse=sparse), batches, train)
    assert not missed
    kind = "training" if train else "inference"
    assert [step["workload"] for step in session.record.steps] == [kind] * 5
    assert sum(step["lookups"] for step in session.record.steps) == 5 * 12 * len(ROWS)
    assert session.gradients == train * 5 * 12 * len(ROWS)
    assert session.comparison.equal == session.comparison.bags == [5 * 12 * len(ROWS), 0]
    if fidelity == "rtl":
        assert session.verdicts == {"equal": 60, "different": 0}
        assert len(session.latencies) == 5 and not session.resets
        assert session.uncached == (4 if train else 0)
        assert (session.counts["local_cache.hits"] > 0) == (not train)


@pytest.mark.parametrize("system", ["FS", "EN"])
@pytest.mark.parametrize("pooling", ["sum", "mean"])
def test_bags_of_several_keys_in_rtl(system, pooling):
    model, batches = Dlrm(mode=pooling), mini_batches(3, keys=3)
    session, _ = attached_to(lambda: trained(model, batches, False), fidelity="rtl", system=system)
    assert session.verdicts == {"equal": 36, "different": 0}
    assert session.comparison.bags[1] == 3 * 12 * len(ROWS)
    assert session.comparison.most < 1e-6


def test_shares_with_more_slots_than_indices_are_pooled(monkeypatch):
    """12 samples on 4 nodes are 3 bags of 3 keys per share and table."""
    for place in ("sim.torch.catching.session", "sim.torch.values.nics"):
        monkeypatch.setattr(f"{place}.MOST_INDICES", 3 * 3 * len(ROWS) - 1)
    model, batches = Dlrm(mode="sum"), [*mini_batches(1), *mini_batches(2, keys=3)]
    session, _ = attached_to(lambda: trained(model, batches, False), fidelity="rtl", system="EN")
    assert session.verdicts == {"equal": 36, "different": 0}
    assert session.pooled == 2 and session.resets == {"a larger share": 1}


def test_vectors_are_those_that_the_rtl_returns(monkeypatch):
    monkeypatch.setattr(Tables, "rows", property(lambda tables: GivenRows(tuple(
        table.values + np.float32(1) for table in tables.all))))
    bag, out = torch.nn.EmbeddingBag(20, 16, mode="sum"), []
    keys = torch.tensor([3, 4, 5])

    def program():
        out.append(bag(keys, torch.arange(3)) * 1)

    session, _ = attached_to(program, fidelity="rtl")
    assert torch.equal(out[0], bag.weight[keys] + 1)
    assert session.verdicts == {"equal": 0, "different": 3}


def test_rows_that_the_program_writes_between_mini_batches():
    bag = torch.nn.EmbeddingBag(20, 16, mode="sum", _weight=torch.zeros(20, 16))
    keys, seen = torch.tensor([3, 4, 5, 3]), []

    def program():
        with torch.no_grad():
            for step in range(6):
                out = bag(keys, torch.arange(4))
                if step < 3:
                    bag.weight[3] += 1  # before the vectors of this mini-batch are read
                seen.append(out.sum().item())

    session, _ = attached_to(program, fidelity="rtl")
    assert seen == [0, 32, 64, 96, 96, 96]
    assert session.verdicts["different"] == 0
    assert session.resets == {"rows that PyTorch has stopped changing": 1}


def test_tables_of_one_forward_pass_are_one_mini_batch():
    session, _ = attached_to(lambda: trained(Dlrm(), mini_batches(2), False), fidelity="rtl")
    assert [step["bags"] for step in session.record.steps] == [12 * len(ROWS)] * 2
    assert len(session.latencies) == 2


def test_a_program_that_reads_each_vector_at_once():
    model, (_, indices, offsets) = Dlrm(), mini_batches(1)[0]

    def program():
        for _ in range(2):
            for bag, *each in zip(model.bags, indices, offsets):
                assert torch.equal(bag(*each) * 2, 2 * bag.weight[each[0]])

    session, _ = attached_to(program, fidelity="rtl")
    assert session.verdicts == {"equal": 2 * 12 * len(ROWS), "different": 0}
    # Reads of vectors do not change its mini-batches.
    assert [step["bags"] for step in session.record.steps] == [12 * len(ROWS)] * 2
    assert session.resets == {"a table that they did not hold": len(ROWS) - 1}


def test_a_table_looked_up_twice_in_a_forward_pass():
    bag = torch.nn.EmbeddingBag(20, 16, mode="sum")
    keys, out = [torch.tensor([1, 2]), torch.tensor([2, 2])], []

    def program():
        out.extend(torch.cat([bag(each, torch.arange(2)) for each in keys], 1).detach())

    session, _ = attached_to(program, fidelity="rtl")
    assert torch.equal(torch.stack(out), torch.cat([bag.weight[each] for each in keys], 1))
    assert len(session.tables.all) == 1 and session.record.steps[0]["unique"] == 2


def test_sum_and_mean_tables_beside_each_other():
    summed, mean = (torch.nn.EmbeddingBag(20, 16, mode=mode) for mode in ("sum", "mean"))
    keys, offsets = torch.arange(9), torch.tensor([0, 4, 4])
    session, _ = attached_to(
        lambda: torch.cat([summed(keys, offsets), mean(keys, offsets)], 1), fidelity="rtl")
    assert session.verdicts == {"equal": 3, "different": 0}


@FIDELITIES
def test_weights_of_keys_are_multiplied_on_the_host(fidelity):
    bag = torch.nn.EmbeddingBag(20, 16, mode="sum")
    keys, weights, out = torch.arange(12).view(4, 3), torch.rand(4, 3), []
    session, _ = attached_to(
        lambda: out.append(bag(keys, per_sample_weights=weights).detach() + 0), fidelity=fidelity)
    assert torch.equal(out[0], bag(keys, per_sample_weights=weights))
    assert session.weighted == 1 and session.verdicts["different"] == 0


def test_dimensions_that_the_nic_lacks_are_padded():
    model, losses = Dlrm(dimension=10), []
    session, _ = attached_to(lambda: losses.extend(trained(model, mini_batches(2), False)),
                             fidelity="rtl")
    assert losses == trained(model, mini_batches(2), False)
    assert session.tables.dimension == 16
    assert [table.to_json()["padding"] for table in session.tables.all] == [6] * len(ROWS)


def test_a_mini_batch_without_samples_and_bags_without_keys():
    bag = torch.nn.EmbeddingBag(20, 16, mode="sum")
    none, out = torch.empty(0, dtype=torch.int64), []

    def program():
        out.append(bag(none, none) + 1)
        out.append(bag(none, torch.zeros(3, dtype=torch.int64)) + 1)

    session, _ = attached_to(program, fidelity="rtl")
    assert out[0].shape == (0, 16) and torch.equal(out[1], torch.ones(3, 16))
    assert session.verdicts == {"equal": 3, "different": 0}


@pytest.mark.parametrize("system", ["FS", "EN"])
def test_hosts_in_python_and_compiled_ones_give_the_same(monkeypatch, system):
    """Tables of several dimensions, including a table with strided values."""
    torch.manual_seed(7)
    weights = [torch.rand(20, 16), torch.rand(10, 20).t(), torch.rand(9, 3),
               torch.rand(50, 32)[:, ::2]]
    keys, offsets = torch.arange(9).roll(4), torch.tensor([0, 2, 2, 3, 7])
    found, kinds = [], []

    def program():
        for _ in range(3):
            vectors = [torch.nn.functional.embedding_bag(keys, each, offsets, mode="mean")
                       for each in weights]
            found.append(torch.cat(vectors, 1))

    def made(hosts: bool) -> tuple:
        monkeypatch.setattr("sim.torch.values.nics.choose", lambda options: replace(
            choose(options), compiled_hosts=hosts))
        session, _ = attached_to(program, fidelity="rtl", system=system)
        return session.latencies, session.counts, session.verdicts

    init = LookupNics.__init__

    def watched(nics: LookupNics, *of) -> None:
        init(nics, *of)
        kinds.append({type(node) for node in nics.simulation.cluster.nodes})

    monkeypatch.setattr(LookupNics, "__init__", watched)
    assert made(True) == made(False)
    assert kinds == [{CompiledNode}, {Node}]
    assert all(torch.equal(each, found[0]) for each in found)


@pytest.mark.parametrize("fidelity", ["model", "rtl"])
def test_tables_end_with_the_program_s_last_reference(fidelity):
    """A new table of the same line and shape gets the number of a dropped table."""
    ones, keys, alive = torch.ones(50, 16), torch.arange(8), []

    def program():
        for number in range(3):
            table = ones * number
            storage = StorageWeakRef(table.untyped_storage())
            out = torch.nn.functional.embedding_bag(keys, table, keys, mode="sum")
            assert (out == number).all()
            del table
            alive.append(storage)

    session, _ = attached_to(program, fidelity=fidelity)
    gc.collect()  # retired NICs
    assert all(each.expired() for each in alive)
    assert sum(step["lookups"] for step in session.record.steps) == 24
    assert fidelity == "rtl" or len(session.tables.all) == 1
    assert session.verdicts == {"equal": 24 if fidelity == "rtl" else 0, "different": 0}


@FIDELITIES
def test_a_table_whose_storage_is_resized(fidelity):
    bag = torch.nn.EmbeddingBag(50, 16, mode="sum", _weight=torch.ones(50, 16))
    keys, found = torch.arange(8), []

    def program():
        for number in range(2):
            found.append(bag(keys, keys).sum().item())
            storage = bag.weight.untyped_storage()
            storage.resize_(0)
            taken = torch.empty(1000 * number + 1)  # where the memory was, perhaps
            storage.resize_(50 * 16 * 4)
            with torch.no_grad():
                bag.weight.fill_(number + 2)
            del taken
        dropped = bag(keys, keys)
        dropped.untyped_storage().resize_(0)  # before it was read

    session, _ = attached_to(program, fidelity=fidelity)
    assert found == [128.0, 256.0]
    assert len(session.tables.all) == 1 and session.verdicts["different"] == 0
