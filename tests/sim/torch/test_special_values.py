"""Rows with NaN of any bits, infinities, subnormals and huge values.

NICs in RTL look up and write them like the numerics, and PyTorch's NaN count as equal.
"""

import warnings

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed (extra `torch`)")
import torch

from sim.torch.lookups.comparison import Comparison, apart, same
from sim.torch.values.rules import Rule
from sim.torch.values.written import Written
from tests.sim.torch.optimizers import RWSAdagrad
from tests.sim.torch.programs import attached_to

SPECIAL = (0x00000000, 0x80000000, 0x00000001, 0x807FFFFF, 0x00800000, 0x7F7FFFFF, 0xFF7FFFFF,
           0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC12345, 0x7F800001, 0x3F800000)
ROWS, DIMENSION = 40, 16


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        yield


def special(*shape: int, seed: int = 0) -> torch.Tensor:
    bits = np.random.default_rng(seed).choice(np.array(SPECIAL, np.uint32), shape)
    return torch.from_numpy(bits.view(np.float32))


def keys_of(samples: int, longest: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return indices and offsets of bags of 0 to ``longest`` keys; bag 1 has a single key."""
    rng = np.random.default_rng(longest)
    lengths = rng.integers(0, longest + 1, samples)
    lengths[1] = 1
    offsets = np.cumsum(lengths) - lengths
    return torch.from_numpy(rng.integers(0, ROWS, lengths.sum())), torch.from_numpy(offsets)


def bits(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().numpy().view(np.uint32)


@pytest.mark.parametrize("pooling", ["sum", "mean"])
@pytest.mark.parametrize("settings", [(), ("deliver=unique",)])
def test_lookups_in_rtl(pooling, settings):
    bag, keys = torch.nn.EmbeddingBag(ROWS, DIMENSION, mode=pooling, _weight=special(
        ROWS, DIMENSION)), keys_of(30, 4)
    with torch.no_grad():
        alone, found = bag(*keys), []
        session, missed = attached_to(lambda: found.append(bag(*keys) * 1), fidelity="rtl",
                                      set=settings)
    assert session.verdicts == {"equal": 30, "different": 0} and not missed
    ours, nan = found[0], torch.isnan(found[0])
    assert nan.any() and torch.equal(nan, torch.isnan(alone))
    assert torch.equal(torch.isposinf(ours), torch.isposinf(alone))
    several = torch.diff(keys[1], append=torch.tensor([len(keys[0])])) != 1
    made = nan if pooling == "mean" else nan & several[:, None]
    # `* 1` keeps the bits of the NICs' NaN; PyTorch's NaN have different bits.
    assert (bits(ours)[made.numpy()] == 0x7FC00000).all()


def test_mixed_poolings_and_weights_in_rtl():
    tables = [torch.nn.EmbeddingBag(ROWS, DIMENSION, mode=mode, _weight=special(
        ROWS, DIMENSION, seed=number)) for number, mode in enumerate(("sum", "mean", "sum"))]
    indices, offsets = keys_of(20, 3)
    weights = special(len(indices), seed=9)

    def program():
        with torch.no_grad():
            for number, table in enumerate(tables):
                table(indices, offsets, *([weights] if number == 2 else [])).sum().item()

    session, missed = attached_to(program, fidelity="rtl")
    assert session.verdicts == {"equal": 3 * 20, "different": 0} and not missed


@pytest.mark.parametrize("flush", [False, True])
def test_subnormals_stay_where_pytorch_flushes_its_own(flush):
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 1 << 22, (ROWS, DIMENSION)).astype(np.uint32).view(np.float32)
    bag, keys = torch.nn.EmbeddingBag(ROWS, DIMENSION, mode="sum", _weight=torch.from_numpy(
        rows)), keys_of(20, 3)

    def program():
        torch.set_flush_denormal(flush)
        try:
            with torch.no_grad():
                bag(*keys).sum().item()
            assert (float(torch.tensor(1e-40) * 1) == 0) == flush  # the program's setting
        finally:
            torch.set_flush_denormal(False)

    session, _ = attached_to(program, fidelity="rtl")
    assert session.verdicts == {"equal": 20, "different": 0}


@pytest.mark.parametrize("fidelity", ["model", "rtl"])
def test_the_numerics_of_a_program_are_its_own(fidelity):
    bag, keys = torch.nn.EmbeddingBag(ROWS, DIMENSION, mode="mean", sparse=True, _weight=special(
        ROWS, DIMENSION)), keys_of(20, 3)
    optimizer = torch.optim.SGD(bag.parameters(), lr=0.1)

    def program():
        with np.errstate(all="raise"):
            torch.set_default_dtype(torch.float64)
            try:
                for _ in range(2):
                    optimizer.zero_grad()
                    bag(*keys).sum().backward()
                    optimizer.step()
                assert set(np.geterr().values()) == {"raise"}
            finally:
                torch.set_default_dtype(torch.float32)

    session, _ = attached_to(program, fidelity=fidelity, optimizer_on="nic")
    assert session.verdicts["different"] == 0
    assert session.written.different == 0 and session.written.steps == 2


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, RWSAdagrad])
def test_updates_in_rtl(optimizer):
    indices, offsets = keys_of(20, 3)
    gradients = special(20, DIMENSION, seed=5)
    written = []
    for fidelity in ("model", "rtl"):
        bag = torch.nn.EmbeddingBag(ROWS, DIMENSION, mode="sum", sparse=True, _weight=special(
            ROWS, DIMENSION))

        def program():
            with_rate = optimizer(bag.parameters(), lr=0.1)
            for _ in range(2):
                with_rate.zero_grad()
                bag(indices, offsets).backward(gradients)
                with_rate.step()

        session, _ = attached_to(program, fidelity=fidelity, optimizer_on="nic")
        assert session.written.different == 0 and session.written.rows > 20
        assert session.verdicts["different"] == 0
        written.append(bits(bag.weight).copy())
    assert np.array_equal(*written)
    nan = np.isnan(written[0].view(np.float32))
    assert nan.any() and (written[0][nan] == 0x7FC00000).any()


def test_a_rate_of_zero_is_computed_too():
    """Like in the NIC, -0 - 0 * -1 is +0, and an infinite gradient makes NaN."""
    found, _ = Rule("rowwise-adagrad", 0.0).apply(
        np.full((1, 3), -0.0, np.float32), np.zeros(1, np.float32),
        np.array([[-1, 1, 0]], np.float32))
    assert np.signbit(found).tolist() == [[False, True, True]]
    found, _ = Rule("rowwise-adagrad", 0.0).apply(
        np.ones((1, 1), np.float32), np.zeros(1, np.float32), np.full((1, 1), np.inf, np.float32))
    assert found.view(np.uint32).tolist() == [[0x7FC00000]]


def test_a_nan_equals_a_nan():
    ours, theirs = (np.array([[each, 1.0]], np.uint32).astype(np.uint32).view(np.float32)
                    for each in (0x7FC00000, 0xFFC00001))
    assert same(ours, theirs).tolist() == [[True, True]]
    assert not same(ours, np.ones((1, 2), np.float32)).any()
    written = Written()
    written.add("sgd", ours, theirs)
    written.add_states(ours[:, 0], theirs[:, 0])
    assert (written.equal, written.equal_states, written.ulp) == (1, 1, 0)
    assert apart(np.array([[np.inf, 1, 2]], np.float32),
                 np.array([[np.nan, 1, 4]], np.float32)) == 0.5
    assert Comparison().to_json()["one_key"]["bags"] == 0
