"""Rows that NICs in RTL write for a program equal the numerics bit for bit."""

import numpy as np
import pytest

from tests.optional import absent

pytest.importorskip("torch", reason=absent("torch"))
import torch

from sim.torch.values.program_rows import ProgramRows
from tests.sim.torch.optimizers import RWSAdagrad
from tests.sim.torch.programs import ROWS, Dlrm, attached_to, mini_batches, trained

OPTIMIZERS = {"sgd": torch.optim.SGD, "rowwise-adagrad": RWSAdagrad}
RULES = pytest.mark.parametrize("rule", list(OPTIMIZERS))


def both(program, **options) -> list:
    """Run ``program()`` with numerics and RTL, compare its tensors, and return both sessions."""
    found, sessions = [], []
    for fidelity in ("model", "rtl"):
        torch.manual_seed(1)
        kept = []
        sessions.append(attached_to(lambda: kept.extend(program()), fidelity=fidelity,
                                    optimizer_on="nic", **options)[0])
        found.append([each.detach().numpy() for each in kept])
    for ours, theirs in zip(*found, strict=True):
        assert np.array_equal(ours.view(np.uint32), theirs.view(np.uint32))
    model, rtl = sessions
    assert rtl.written == model.written and rtl.written.different == 0
    assert rtl.verdicts["different"] == 0 and rtl.verdicts["equal"] > 0
    return sessions


def states_of(optimizer) -> list[torch.Tensor]:
    return [state["momentum"] for state in optimizer.state.values() if "momentum" in state]


@pytest.mark.few(1, "thorough")
@RULES
@pytest.mark.parametrize("system", ["FS", "EN"])
@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_a_model_learns_the_same(system, mode, rule):
    def program():
        model = Dlrm(sparse=True, mode=mode)
        optimizer = OPTIMIZERS[rule](model.parameters(), lr=0.1)
        losses = trained(model, mini_batches(4, keys=3), optimizer=optimizer)
        losses += trained(model, mini_batches(2, keys=3), train=False)
        return [torch.tensor(losses), *model.parameters(), *states_of(optimizer)]

    _, rtl = both(program, system=system)
    assert rtl.written.steps == 4 * len(ROWS) and rtl.verdicts == {"equal": 72, "different": 0}
    # The NICs cache the rows that they write: their caches stay on.
    assert rtl.uncached == 0 and not rtl.resets and rtl.counts["local_cache.hits"] > 0
    assert len(rtl.row_times) == 4 and min(rtl.row_times) > 0


@RULES
@pytest.mark.parametrize("dimension", [4, 32])
def test_vectors_of_other_dimensions(dimension, rule):
    def program():
        model = Dlrm(sparse=True, dimension=dimension)
        optimizer = OPTIMIZERS[rule](model.parameters(), lr=0.1)
        trained(model, mini_batches(3), optimizer=optimizer)
        return [*model.parameters(), *states_of(optimizer)]

    both(program)


def test_tables_of_different_dimensions_and_poolings():
    def program():
        bags = [torch.nn.EmbeddingBag(20, dimension, mode=mode) for dimension, mode in (
            (16, "sum"), (5, "mean"), (32, "sum"))]
        optimizer = torch.optim.SGD([bag.weight for bag in bags], lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            keys = torch.randint(0, 20, (15,))
            sum(bag(keys, torch.arange(0, 15, 3)).square().sum() for bag in bags).backward()
            optimizer.step()
        return [bag.weight for bag in bags]

    both(program)


@RULES
def test_weights_of_keys_and_long_bags(rule):
    def program():
        bags = [torch.nn.EmbeddingBag(40, 16, mode="sum", sparse=rule != "sgd") for _ in range(2)]
        optimizer = OPTIMIZERS[rule]([bag.weight for bag in bags], lr=0.1)
        keys = torch.randint(0, 40, (3, 60))
        weighted = bags[0](keys[:, :4], per_sample_weights=torch.rand(3, 4))
        (weighted.square().sum() + bags[1](keys).square().sum()).backward()
        optimizer.step()
        return [bag.weight for bag in bags]

    both(program)


@RULES
def test_gradients_of_several_passes_and_steps_of_several_optimizers(rule):
    def program():
        bags = [torch.nn.EmbeddingBag(20, 16, mode="sum", sparse=True) for _ in range(2)]
        optimizers = (OPTIMIZERS[rule](bags[0].parameters(), lr=0.1),
                      torch.optim.SGD(bags[1].parameters(), lr=0.2))
        for step in range(3):
            for optimizer in optimizers:
                optimizer.zero_grad()
            for _ in range(step + 1):  # passes, the last of which the gradients follow
                keys = torch.randint(0, 20, (8,))
                sum(bag(keys, torch.arange(8)).square().sum() for bag in bags).backward()
            for optimizer in optimizers:
                optimizer.step()
            with torch.no_grad():
                bags[0](torch.arange(20), torch.arange(20)).sum().item()
        return [*(bag.weight for bag in bags), *states_of(optimizers[0])]

    _, rtl = both(program)
    assert len(rtl.row_times) == 6


@RULES
def test_rows_that_the_program_writes_between_steps(rule):
    def program():
        bag = torch.nn.EmbeddingBag(20, 16, mode="sum", sparse=True)
        optimizer = OPTIMIZERS[rule](bag.parameters(), lr=0.1)
        for step in range(4):
            optimizer.zero_grad()
            out = bag(torch.arange(20), torch.arange(0, 20, 2))
            out.square().sum().backward()
            if step == 1:
                with torch.no_grad():
                    bag.weight += 1  # after the NICs have looked up, before they write
            optimizer.step()
        return [bag.weight, *states_of(optimizer)]

    _, rtl = both(program)
    # Off before the NICs write; cold but on again when they look up.
    assert rtl.uncached == 0 and sum(rtl.resets.values()) == 1


def test_rows_and_states_come_from_the_rtl(monkeypatch):
    def write(rows, keys, vectors, states):
        kept(rows, keys, vectors + np.float32(1), states)

    kept = ProgramRows.write
    monkeypatch.setattr(ProgramRows, "write", write)
    bag = torch.nn.EmbeddingBag(20, 16, mode="sum", _weight=torch.zeros(20, 16))
    optimizer = torch.optim.SGD(bag.parameters(), lr=1.0)

    def program():
        bag(torch.arange(3), torch.arange(3)).sum().backward()
        optimizer.step()

    session, _ = attached_to(program, fidelity="rtl", optimizer_on="nic")
    assert bag.weight[:3].eq(0).all() and session.written.different == 3


@pytest.mark.parametrize(("setting", "said"), [
    ("remote_cache=true", "remote_cache must be false with optimizer_on nic, not true"),
    ("gradient_partials=rounded", "gradient_partials must be exact with optimizer_on nic, not "
                                  "rounded"),
    ("gradient_sums=float32", "gradient_sums must be exact with optimizer_on nic, not float32"),
    ("training=false", "training must be true where NICs train, not false")])
def test_settings_with_which_nics_do_not_train(setting, said):
    bag = torch.nn.EmbeddingBag(20, 16, mode="sum")
    with pytest.raises(ValueError, match=f"^{said}$"):
        attached_to(lambda: bag(torch.arange(3), torch.arange(3)).sum(), fidelity="rtl",
                    optimizer_on="nic", set=(setting,))
