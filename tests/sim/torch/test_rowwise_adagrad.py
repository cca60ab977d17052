"""``optimizer_on nic`` with row-wise Adagrad: rows and states equal the NIC's."""

import numpy as np
import pytest

from tests.optional import absent

pytest.importorskip("torch", reason=absent("torch"))
import torch

from host.dlrm.exact_keys import sums_by_key
from host.dlrm.optimizer import Optimizer
from tests.sim.torch.optimizers import Other, RWSAdagrad
from tests.sim.torch.programs import attached_to

RATE, EPSILON = 0.1, 1e-7
KEYS, OFFSETS = torch.tensor([3, 1, 3, 3, 7, 1, 9]), torch.tensor([0, 2, 2, 3, 5])
LENGTHS = np.array([2, 0, 1, 2, 2])


def torchrecs(*arguments, **options):
    """Return TorchRec's optimizer, which accepts only dense gradients."""
    pytest.importorskip("torchrec", reason=absent("torchrec"))
    from torchrec.optim import RowWiseAdagrad

    return RowWiseAdagrad(*arguments, **options)


def bag_of(dimension: int = 16, **options) -> torch.nn.EmbeddingBag:
    torch.manual_seed(1)
    return torch.nn.EmbeddingBag(10, dimension, mode="sum", **options)


def state_of(optimizer, bag) -> np.ndarray:
    state = optimizer.state[bag.weight]
    return state["momentum" if "momentum" in state else "sum"].view(-1).numpy()


def trained(bag, optimizer, gradients) -> None:
    for each in gradients:
        optimizer.zero_grad()
        (bag(KEYS, OFFSETS) * each).sum().backward()
        optimizer.step()


def on_nic(bag, optimizer, gradients, **options):
    return attached_to(lambda: trained(bag, optimizer, gradients), optimizer_on="nic",
                       **options)[0]


@pytest.mark.parametrize("start", [0, 0.5])
@pytest.mark.parametrize("dimension", [4, 16, 64])
@pytest.mark.parametrize(("kind", "sparse"), [(RWSAdagrad, True), (torchrecs, False)])
def test_rows_and_states_are_those_of_a_nic(kind, sparse, dimension, start):
    gradients = list(torch.randn(3, 5, dimension, generator=torch.Generator().manual_seed(2)))
    options = {"lr": RATE, "eps": EPSILON, "initial_accumulator_value": start}
    bag, alone = bag_of(dimension, sparse=sparse), bag_of(dimension, sparse=sparse)
    rows = bag.weight.detach().numpy().copy()
    states = np.full(10, start, np.float32)
    optimizer, other = (kind(each.parameters(), **options) for each in (bag, alone))
    session = on_nic(bag, optimizer, gradients)
    trained(alone, other, gradients)
    for each in gradients:
        own, sums = sums_by_key(KEYS.numpy(), np.repeat(each.numpy(), LENGTHS, axis=0))
        rows[own], states[own] = Optimizer("rowwise-adagrad", RATE, EPSILON).apply(
            rows[own], states[own], sums)
    assert np.array_equal(bag.weight.detach().numpy(), rows)
    assert np.array_equal(state_of(optimizer, bag), states)
    torch.testing.assert_close(bag.weight, alone.weight)
    torch.testing.assert_close(state_of(optimizer, bag), state_of(other, alone))
    found = session.written.to_json()
    assert found["optimizer"] == "rowwise-adagrad"
    assert found["steps"] == 3 and found["rows"] == found["states"] == 3 * 4
    assert found["most_difference"] < 1e-6 and found["most_state_ulp"] <= 4


def test_a_rate_of_nothing_changes_states_alone():
    bag = bag_of(sparse=True)
    optimizer, before = RWSAdagrad(bag.parameters(), lr=0.0), bag.weight.detach().clone()
    on_nic(bag, optimizer, [torch.ones(5, 16)])
    assert torch.equal(bag.weight, before)
    # The gradient of row 3 is 3; rows 1, 7 and 9 have 2, 1 and 1.
    assert state_of(optimizer, bag).tolist() == [0, 4, 0, 9, 0, 0, 0, 1, 0, 1]


def test_sgd_and_row_wise_adagrad_in_one_program():
    bags = bag_of(sparse=True), bag_of(sparse=True)
    optimizers = torch.optim.SGD(bags[0].parameters(), lr=RATE), RWSAdagrad(bags[1].parameters())

    def program():
        sum(bag(KEYS, OFFSETS).sum() for bag in bags).backward()
        for optimizer in optimizers:
            optimizer.step()

    session, _ = attached_to(program, optimizer_on="nic")
    assert session.written.to_json()["optimizer"] == "rowwise-adagrad, sgd"
    assert session.written.rows == 2 * session.written.states == 8


def test_an_optimizer_that_steps_in_the_backward_pass():
    pytest.importorskip("torchrec", reason=absent("torchrec"))
    from torchrec.optim import RowWiseAdagrad
    from torchrec.optim.apply_optimizer_in_backward import apply_optimizer_in_backward

    bag, alone = bag_of(), bag_of()

    def program(bag):
        apply_optimizer_in_backward(RowWiseAdagrad, bag.parameters(), {"lr": RATE})
        for _ in range(2):
            bag(KEYS, OFFSETS).square().sum().backward()

    session, _ = attached_to(lambda: program(bag), optimizer_on="nic")
    program(alone)
    torch.testing.assert_close(bag.weight, alone.weight)
    assert session.written.rows == session.written.states == 2 * 4


@pytest.mark.parametrize(("kind", "options", "said"), [
    (RWSAdagrad, {"weight_decay": 0.1}, "weight_decay of the optimizer of a table must be 0 with "
                                        "optimizer_on nic, not 0.1"),
    (RWSAdagrad, {"lr_decay": 0.1}, "lr_decay of the optimizer of a table must be 0 with "
                                    "optimizer_on nic, not 0.1"),
    (torchrecs, {"maximize": True}, "maximize of the optimizer of a table must be False with "
                                    "optimizer_on nic, not True"),
    (RWSAdagrad, {"eps": 0}, "epsilon must be finite and above 0 as a float32, not 0.0"),
    (RWSAdagrad, {}, "gradients of a table must be sparse with RWSAdagrad with optimizer_on nic: "
                     "dense gradients have a state for each value, not for each row"),
    (Other, {"eps": 1.0}, "rows of the optimizer of a table must be those of rowwise-adagrad with "
                          "optimizer_on nic, but differ by up to .* of their largest value"),
])
def test_what_the_nics_row_wise_adagrad_is_not(kind, options, said):
    bag = bag_of(sparse=kind is not torchrecs and bool(options))
    optimizer = kind(bag.parameters(), **{"lr": RATE} | options)
    with pytest.raises(ValueError, match=f"^{__file__}:[0-9]+: {said}$"):
        on_nic(bag, optimizer, [torch.ones(5, 16)])


def test_a_dimension_that_the_nic_pads():
    bag = bag_of(12, sparse=True)
    with pytest.raises(ValueError, match="vectors of a table must have the 16 values of the NICs' "
                                         "vectors with rowwise-adagrad and optimizer_on nic, not "
                                         "12: its state is a mean over all"):
        on_nic(bag, RWSAdagrad(bag.parameters()), [torch.ones(5, 12)])
