"""``optimizer_on nic``: NICs update the rows in place of PyTorch."""

from math import fsum

import numpy as np
import pytest

from tests.optional import absent

pytest.importorskip("torch", reason=absent("torch"))
import torch

from sim import api
from tests.sim.torch.programs import ROWS, Dlrm, attached_to, mini_batches, trained

RATE = 0.1
KEYS, OFFSETS = torch.tensor([3, 1, 3, 3, 7, 1, 9]), torch.tensor([0, 2, 2, 3, 5])
LENGTHS = np.array([2, 0, 1, 2, 2])


def bag_of(**options) -> torch.nn.EmbeddingBag:
    torch.manual_seed(1)
    return torch.nn.EmbeddingBag(10, 16, **{"mode": "sum"} | options)


def factors(seed: int) -> torch.Tensor:
    """Return gradients of the bags."""
    return torch.randn(5, 16, generator=torch.Generator().manual_seed(seed))


def updated(rows: np.ndarray, *gradients: np.ndarray, mode: str = "sum") -> np.ndarray:
    """Return the rows that a NIC writes: exact sum, product and difference, each rounded once."""
    terms: dict[int, list] = {}
    for each in gradients:
        bags = each / np.maximum(LENGTHS, 1).astype(np.float32)[:, None] if mode == "mean" else each
        for key, gradient in zip(KEYS.tolist(), np.repeat(bags, LENGTHS, axis=0)):
            terms.setdefault(key, []).append(gradient)
    rows = rows.copy()
    for key, found in terms.items():
        total = np.array([fsum(map(float, lane)) for lane in zip(*found)], np.float32)
        rows[key] = rows[key] - np.float32(RATE) * total
    return rows


def attached_on_nic(program, **options):
    return attached_to(program, optimizer_on="nic", **options)[0]


@pytest.mark.parametrize("mode", ["sum", "mean"])
@pytest.mark.parametrize("sparse", [False, True])
def test_rows_are_those_of_a_nic(mode, sparse):
    bag = bag_of(mode=mode, sparse=sparse)
    before, gradients = bag.weight.detach().numpy().copy(), [factors(1), factors(2)]
    optimizer = torch.optim.SGD(bag.parameters(), lr=RATE)

    def program():
        for each in gradients:
            optimizer.zero_grad()
            (bag(KEYS, OFFSETS) * each).sum().backward()
            optimizer.step()
            assert bag.weight.grad is not None

    session = attached_on_nic(program)
    for each in gradients:
        before = updated(before, each.numpy(), mode=mode)
    assert np.array_equal(bag.weight.detach().numpy(), before)
    found = session.written.to_json()
    assert (found["steps"], found["rows"]) == (2, 2 * 4)
    assert 0 <= found["equal"] <= 8 and found["most_difference"] < 1e-6


@pytest.mark.parametrize("none", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_gradients_add_up_until_they_are_dropped(none, sparse):
    bag = bag_of(sparse=sparse)
    before, (first, second, third) = bag.weight.detach().numpy().copy(), map(factors, range(3))
    optimizer = torch.optim.SGD(bag.parameters(), lr=RATE)

    def program():
        (bag(KEYS, OFFSETS) * first).sum().backward()
        optimizer.zero_grad(set_to_none=none)
        # Two calls in the same backward pass, and a separate pass.
        (bag(KEYS, OFFSETS) * second + bag(KEYS.clone(), OFFSETS) * third).sum().backward()
        (bag(KEYS, OFFSETS) * second).sum().backward()
        optimizer.step()

    attached_on_nic(program)
    assert np.array_equal(bag.weight.detach().numpy(), updated(
        before, second.numpy(), third.numpy(), second.numpy()))


@pytest.mark.parametrize("sparse", [False, True])
def test_tables_that_are_looked_up_with_the_same_indices(sparse):
    bags = bag_of(sparse=sparse), torch.nn.EmbeddingBag(10, 16, mode="sum", sparse=sparse)
    before = [bag.weight.detach().numpy().copy() for bag in bags]
    optimizer = torch.optim.SGD([bag.weight for bag in bags], lr=RATE)
    gradients = factors(1), factors(2)

    def program():
        sum((bag(KEYS, OFFSETS) * each).sum() for bag, each in zip(bags, gradients)).backward()
        optimizer.step()

    attached_on_nic(program)
    for bag, rows, each in zip(bags, before, gradients):
        assert np.array_equal(bag.weight.detach().numpy(), updated(rows, each.numpy()))


def test_weights_of_keys_and_a_rate_of_nothing():
    bag, weights = bag_of(), torch.rand(4, 3)
    keys, gradient = torch.arange(9).repeat(2)[:12].view(4, 3), torch.randn(4, 16)
    before = bag.weight.detach().clone()
    optimizer = torch.optim.SGD(bag.parameters(), lr=0.0)

    def program():
        for rate in (0.0, RATE):
            optimizer.param_groups[0]["lr"] = rate
            optimizer.zero_grad()
            (bag(keys, per_sample_weights=weights) * gradient).sum().backward()
            optimizer.step()
            if not rate:
                assert torch.equal(bag.weight, before)

    attached_on_nic(program)
    each = (gradient[:, None] * weights[:, :, None]).view(12, 16)
    expected = before.index_add(0, keys.view(-1), each, alpha=-RATE)
    torch.testing.assert_close(bag.weight.detach(), expected)
    assert not torch.equal(bag.weight, before)


def test_bags_without_keys_change_nothing():
    bag, none = bag_of(), torch.empty(0, dtype=torch.int64)
    before, optimizer = bag.weight.detach().clone(), torch.optim.SGD(bag.parameters(), lr=RATE)

    def program():
        bag(none, torch.zeros(3, dtype=torch.int64)).sum().backward()
        optimizer.step()

    attached_on_nic(program)
    assert torch.equal(bag.weight, before)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_model_learns_the_same(sparse):
    batches, losses = mini_batches(5), []
    session = attached_on_nic(lambda: losses.extend(trained(Dlrm(sparse=sparse), batches)))
    assert losses == pytest.approx(trained(Dlrm(sparse=sparse), batches), rel=1e-6)
    found = session.written.to_json()
    assert found["steps"] == 5 * len(ROWS)
    assert found["rows"] == sum(len(batch[1][table].unique())
                                for batch in batches for table in range(len(ROWS)))


@pytest.mark.parametrize(("optimizer", "options", "said"), [
    (torch.optim.Adagrad, {}, "the optimizer of a table must be SGD, TorchRec's RowWiseAdagrad or "
                              "RWSAdagrad with optimizer_on nic, not Adagrad"),
    (torch.optim.Adam, {}, "the optimizer of a table must be SGD, TorchRec's RowWiseAdagrad or "
                           "RWSAdagrad with optimizer_on nic, not Adam"),
    (torch.optim.SGD, {"momentum": 0.9},
     "momentum of the optimizer of a table must be 0 with optimizer_on nic, not 0.9"),
    (torch.optim.SGD, {"weight_decay": 0.01},
     "weight_decay of the optimizer of a table must be 0 with optimizer_on nic, not 0.01"),
    (torch.optim.SGD, {"maximize": True},
     "maximize of the optimizer of a table must be False with optimizer_on nic, not True"),
])
def test_optimizers_that_the_nic_has_not(optimizer, options, said):
    bag = bag_of()
    before, optimizer = bag.weight.detach().clone(), optimizer(bag.parameters(), lr=RATE, **options)

    def program():
        bag(KEYS, OFFSETS).sum().backward()
        optimizer.step()

    line = program.__code__.co_firstlineno + 2
    with pytest.raises(ValueError, match=f"^{__file__}:{line}: {said}$"):
        attached_on_nic(program)
    assert torch.equal(bag.weight, before)


@pytest.mark.parametrize(("change", "said"), [
    (lambda bag: bag.weight.grad.mul_(0.5), "gradients of the table of .* must reach its "),
    (lambda bag: bag.weight.grad[5].fill_(1), "gradients of the table of .* must reach its "),
])
def test_gradients_that_the_nics_have_not_seen(change, said):
    bag = bag_of()
    optimizer = torch.optim.SGD(bag.parameters(), lr=RATE)

    def program():
        (bag(KEYS, OFFSETS) * factors(1)).sum().backward()
        with torch.no_grad():
            change(bag)
        optimizer.step()

    with pytest.raises(ValueError, match=said):
        attached_on_nic(program)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.9, -0.9, 1.1, -1.1])
def test_gradients_may_be_a_rounding_away(share, sparse):
    """Differences up to 1e-5 of the sum of magnitudes of a row's gradients, value by value."""
    bag = bag_of(sparse=sparse)
    optimizer = torch.optim.SGD(bag.parameters(), lr=RATE)
    gradients = torch.tensor([1.0, -0.5, 4.0])[:, None].expand(3, 16)
    change = torch.zeros(10, 16)
    change[1, 7] = share * 1e-5 * 1.5

    def program():
        (bag(torch.tensor([1, 1, 2]), torch.arange(3)) * gradients).sum().backward()
        grad = bag.weight.grad
        assert grad is not None
        bag.weight.grad = grad + change.to_sparse(1) if sparse else grad + change
        optimizer.step()

    if abs(share) <= 1:
        assert attached_on_nic(program).written.rows == 2
    else:
        with pytest.raises(ValueError, match=r"gradients of the table of .* must reach its "):
            attached_on_nic(program)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("row", [1, 3, 9])
def test_a_gradient_of_another_row_is_refused(row, sparse):
    bag = bag_of(sparse=sparse)
    optimizer = torch.optim.SGD(bag.parameters(), lr=RATE)

    def program():
        bag(torch.tensor([2, 4]), torch.arange(2)).sum().backward()
        more = torch.zeros(10, 16)
        more[row] = 1e-9
        assert bag.weight.grad is not None
        bag.weight.grad = bag.weight.grad + (more.to_sparse(1) if sparse else more)
        optimizer.step()

    with pytest.raises(ValueError, match=r"gradients of the table of .* must reach its "):
        attached_on_nic(program)


def test_a_closure_and_frequencies_are_refused():
    bag, by_frequency = bag_of(), bag_of(scale_grad_by_freq=True)
    optimizer = torch.optim.SGD(bag.parameters(), lr=RATE)

    def closes():
        bag(KEYS, OFFSETS).sum().backward()
        optimizer.step(lambda: 0.0)

    with pytest.raises(ValueError, match="closure of an optimizer's step must be None"):
        attached_on_nic(closes)
    with pytest.raises(ValueError, match="scale_grad_by_freq must be false"):
        attached_on_nic(lambda: by_frequency(KEYS, OFFSETS).sum().backward())


def test_a_program_is_left_as_it_was():
    bag = bag_of()
    optimizer = torch.optim.SGD(bag.parameters(), lr=RATE, momentum=0.9)
    with api.attach(nodes=2, optimizer_on="nic") as program:
        bag(KEYS, OFFSETS)
    assert program.result["gradients"]["nic"]["rows"] == 0
    before = bag.weight.detach().clone()
    bag(KEYS, OFFSETS).sum().backward()
    optimizer.step()
    assert not torch.equal(bag.weight, before)
