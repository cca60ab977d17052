"""NICs answer FBGEMM's lookups of many tables; its fused optimizers stay with FBGEMM."""

import numpy as np
import pytest

from tests.optional import absent

pytest.importorskip("torch", reason=absent("torch"))
pytest.importorskip("fbgemm_gpu", reason=absent("fbgemm_gpu"))
import torch
from fbgemm_gpu.split_embedding_configs import EmbOptimType, SparseType
from fbgemm_gpu.split_table_batched_embeddings_ops_common import (
    BoundsCheckMode,
    EmbeddingLocation,
    PoolingMode,
)
from fbgemm_gpu.split_table_batched_embeddings_ops_inference import (
    IntNBitTableBatchedEmbeddingBagsCodegen,
)
from fbgemm_gpu.split_table_batched_embeddings_ops_training import (
    ComputeDevice,
    DenseTableBatchedEmbeddingBagsCodegen,
    SplitTableBatchedEmbeddingBagsCodegen,
    WeightDecayMode,
)

from host.dlrm.exact_keys import sums_by_key
from host.dlrm.optimizer import Optimizer
from tests.sim.torch.programs import attached_to

SHAPES, FEATURES = ((50, 16), (7, 8), (300, 16)), (0, 1, 1, 2)
"""Rows and dimensions of tables, and the table of each feature."""
SAMPLES = 12


def tables(shapes=SHAPES, **options) -> SplitTableBatchedEmbeddingBagsCodegen:
    torch.manual_seed(3)
    made = SplitTableBatchedEmbeddingBagsCodegen(
        [(*shape, EmbeddingLocation.HOST, ComputeDevice.CPU) for shape in shapes],
        **{"feature_table_map": list(FEATURES), "optimizer": EmbOptimType.EXACT_SGD,
           "learning_rate": 0.1} | options)
    made.init_embedding_weights_uniform(-1, 1)
    return made


def keys_of(step: int, keys: int = 1, dtype=torch.int64) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the indices and offsets of a mini-batch with bags of the given lengths."""
    torch.manual_seed(step)
    indices = torch.cat([torch.randint(0, SHAPES[table][0], (SAMPLES * keys,), dtype=dtype)
                         for table in FEATURES])
    return indices, torch.arange(0, len(indices) + 1, keys, dtype=dtype)


def trained(made, steps: int = 4, keys: int = 1, dtype=torch.int64) -> list[float]:
    losses = []
    for step in range(steps):
        loss = (made(*keys_of(step, keys, dtype)) - 1).square().mean()
        losses.append(loss.item())
        loss.backward()
    return losses


@pytest.mark.parametrize("fidelity", ["model", "rtl"])
@pytest.mark.parametrize("pooling", [PoolingMode.SUM, PoolingMode.MEAN])
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_one_key_bags_leave_every_loss_as_it_is(fidelity, pooling, dtype):
    made, losses = tables(pooling_mode=pooling), []
    session, missed = attached_to(lambda: losses.extend(trained(made, dtype=dtype)),
                                  fidelity=fidelity)
    alone = tables(pooling_mode=pooling)
    assert losses == trained(alone, dtype=dtype) and not missed
    assert all(torch.equal(*pair) for pair in zip(made.split_embedding_weights(),
                                                  alone.split_embedding_weights()))
    assert [(step["workload"], step["lookups"]) for step in session.record.steps] == [
        ("training", SAMPLES * len(FEATURES))] * 4
    assert [table.shape for table in session.tables.all] == list(SHAPES)
    assert session.gradients == 4 * SAMPLES * len(FEATURES) and session.updates == {"sgd": 4}
    bags = 4 * SAMPLES * len(FEATURES)
    assert session.comparison.equal == session.comparison.bags == [bags, 0]
    if fidelity == "rtl":
        # The NICs get the rows that FBGEMM has written.
        assert session.verdicts == {"equal": 4 * SAMPLES, "different": 0}
        assert session.uncached == 3


@pytest.mark.parametrize("optimizer", ["EXACT_ADAGRAD", "EXACT_ROWWISE_ADAGRAD"])
def test_other_fused_optimizers_stay_on_the_host(optimizer):
    options, losses = {"optimizer": EmbOptimType[optimizer]}, []
    session, _ = attached_to(lambda: losses.extend(trained(tables(**options))))
    assert losses == trained(tables(**options))
    assert session.updates == {optimizer.removeprefix("EXACT_").lower(): 4}


def looked_up(made, *arguments, **options):
    """Return FBGEMM's vectors, the session's vectors, and the session."""
    out = []
    with torch.no_grad():
        session, missed = attached_to(lambda: out.append(made(*arguments) + 0), **options)
        assert not missed
        return made(*arguments).numpy(), out[0].numpy(), session


@pytest.mark.parametrize("fidelity", ["model", "rtl"])
def test_sums_of_several_keys_are_fbgemms(fidelity):
    theirs, ours, session = looked_up(tables(), *keys_of(1, keys=5), fidelity=fidelity)
    assert np.array_equal(theirs, ours) and session.verdicts["different"] == 0
    assert session.comparison.equal == [0, SAMPLES * len(FEATURES)]


def test_means_are_an_ulp_from_fbgemms():
    # FBGEMM multiplies by a rounded 1 / n; the NIC divides by n.
    _, _, session = looked_up(tables(pooling_mode=PoolingMode.MEAN), *keys_of(1, keys=5))
    assert session.comparison.ulp[1] <= 1


@pytest.mark.parametrize("fidelity", ["model", "rtl"])
def test_weights_of_keys_are_multiplied_on_the_host(fidelity):
    indices, offsets = keys_of(1, keys=3)
    weights = torch.rand(len(indices))
    theirs, ours, session = looked_up(tables(), indices, offsets, weights, fidelity=fidelity)
    assert np.array_equal(ours, theirs)
    assert session.weighted == len(FEATURES) and session.verdicts["different"] == 0


def test_bags_without_keys_and_a_mini_batch_without_samples():
    none = torch.empty(0, dtype=torch.int64)
    theirs, ours, _ = looked_up(tables(), none, torch.zeros(1 + len(FEATURES), dtype=torch.int64))
    assert np.array_equal(theirs, ours) and ours.shape == (1, 48)
    _, ours, session = looked_up(tables(), none, torch.zeros(1, dtype=torch.int64))
    assert ours.shape == (0, 48) and session.record.steps[0]["lookups"] == 0


def test_tables_that_an_optimizer_of_pytorch_trains():
    def program(losses: list[float]) -> None:
        torch.manual_seed(3)
        made = DenseTableBatchedEmbeddingBagsCodegen(
            list(SHAPES), feature_table_map=list(FEATURES), use_cpu=True)
        optimizer = torch.optim.SGD(made.parameters(), lr=0.1)
        for step in range(3):
            optimizer.zero_grad()
            loss = (made(*keys_of(step)) - 1).square().mean()
            losses.append(loss.item())
            loss.backward()
            optimizer.step()

    ours, theirs = [], []
    session, missed = attached_to(lambda: program(ours), fidelity="rtl")
    program(theirs)
    assert ours == theirs and not missed and not session.updates
    assert [step["workload"] for step in session.record.steps] == ["training"] * 3
    assert session.gradients == 3 * SAMPLES * len(FEATURES)
    assert session.verdicts["different"] == 0 and session.uncached == 2


@pytest.mark.parametrize(("program", "said"), [
    (lambda: SplitTableBatchedEmbeddingBagsCodegen(
        [(9, 8, EmbeddingLocation.HOST, ComputeDevice.CPU)], pooling_mode=PoolingMode.NONE)(
            *keys_of(1, 1)),
     "split_embedding_nobag_codegen_forward_unweighted_pt2_wrapper is not caught: it "
     "returns a vector for each key, and NICs pool bags"),
    (lambda: tables(output_dtype=SparseType.FP16)(*keys_of(1)),
     "split_embedding_codegen_forward_unweighted_pt2_wrapper is not caught: its vectors are not "
     "float32"),
    (lambda: quantised()(*keys_of(1, dtype=torch.int32)),
     "int_nbit_split_embedding_codegen_lookup_function is not caught: its rows are quantised, and "
     "the NIC's are float32"),
])
def test_lookups_that_are_not_caught_have_a_place(program, said):
    session, missed = attached_to(program)
    [((place, what), count)] = missed.items()
    assert (what, count) == (f"fbgemm::{said}", 1) and place.startswith(f"{__file__}:")
    assert not session.tables.all


BAGS = [[2, 3], [4, 1], [0, 2], [6, 6]]
"""Bags of each feature for each of two processes."""


def variable(step: int, longest: int = 3) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the indices, offsets and weights of a mini-batch with `BAGS`."""
    torch.manual_seed(step)
    lengths = torch.randint(0, longest + 1, (sum(map(sum, BAGS)),))
    ends = torch.tensor([sum(own) for own in BAGS]).cumsum(0).tolist()
    of = [int(lengths[first:end].sum()) for first, end in zip([0, *ends], ends)]
    indices = torch.cat([torch.randint(0, SHAPES[table][0], (count,))
                         for table, count in zip(FEATURES, of)])
    offsets = torch.cat((torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)))
    return indices, offsets, torch.rand(len(indices))


@pytest.mark.parametrize(("fidelity", "repeats"), [
    ("model", "send"), ("rtl", "send"), ("rtl", "indices")])
@pytest.mark.parametrize("weighted", [False, True])
def test_features_with_different_numbers_of_bags(fidelity, repeats, weighted):
    """TorchRec's variable batch per feature: the bags of a feature are those of several samples."""
    def program(vectors: list[torch.Tensor]) -> None:
        made = tables()
        for step in range(3):
            indices, offsets, weights = variable(step)
            found = made(indices, offsets, *([weights] if weighted else []),
                         batch_size_per_feature_per_rank=BAGS)
            vectors.append(found.detach().clone())
            found.square().sum().backward()

    ours, theirs = [], []
    session, missed = attached_to(lambda: program(ours), fidelity=fidelity, repeats=repeats)
    program(theirs)
    assert not missed and session.updates == {"sgd": 3}
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.shape == (sum(sum(own) * SHAPES[table][1] for own, table in zip(
            BAGS, FEATURES)),)
        assert torch.equal(mine, other)
    assert [step["samples"] for step in session.record.steps] == [6] * 3
    assert session.verdicts["different"] == 0
    if fidelity == "rtl":
        assert session.verdicts["equal"] == 3 * 6


def test_the_nics_do_not_update_features_with_different_numbers_of_bags():
    indices, offsets, _ = variable(0)
    with pytest.raises(ValueError, match=r"optimizer_on must be host where the features of .*vbe"):
        attached_to(lambda: tables()(indices, offsets, batch_size_per_feature_per_rank=BAGS),
                    optimizer_on="nic")


def quantised() -> IntNBitTableBatchedEmbeddingBagsCodegen:
    made = IntNBitTableBatchedEmbeddingBagsCodegen(
        [("", *shape, SparseType.INT8, EmbeddingLocation.HOST) for shape in SHAPES],
        feature_table_map=list(FEATURES), device="cpu")
    made.fill_random_weights()
    return made


def test_an_index_that_fbgemm_rejects():
    made, (indices, offsets) = tables(bounds_check_mode=BoundsCheckMode.NONE), keys_of(1)
    indices[0], said = 50, []

    def program():
        try:
            made(indices, offsets)
        except Exception as error:
            said.append((type(error), str(error)))
        made(*keys_of(1))

    session, missed = attached_to(program)
    program()
    assert said[0] == said[1] and not missed
    assert [step["lookups"] for step in session.record.steps] == [len(indices)]


@pytest.mark.parametrize("fidelity", ["model", "rtl"])
@pytest.mark.parametrize("optimizer_on", ["host", "nic"])
def test_wide_tables_beside_narrow_ones_stay_with_fbgemm(fidelity, optimizer_on):
    shapes, losses, alone = ((50, 16), (7, 260), (300, 16)), [], []
    session, missed = attached_to(lambda: losses.extend(trained(tables(shapes), 2)),
                                  fidelity=fidelity, optimizer_on=optimizer_on)
    alone = trained(tables(shapes), 2)
    assert losses == (pytest.approx(alone, rel=1e-6) if optimizer_on == "nic" else alone)
    assert [table.shape for table in session.tables.all] == [shapes[0], shapes[2]]
    assert session.gradients == 2 * SAMPLES * 2
    [((_, what), count)] = missed.items()
    assert what.endswith("its vectors have 260 values, and the NIC's between 1 and 256")
    assert count == 2 * 2  # two features


def test_half_tables_stay_with_fbgemm():
    options = {"weights_precision": SparseType.FP16}
    losses = []
    session, missed = attached_to(lambda: losses.extend(trained(tables(**options), 2)))
    assert losses == trained(tables(**options), 2) and not session.tables.all
    assert sorted((what.partition(": ")[2], count) for (_, what), count in missed.items()) == [
        ("its forward pass was not caught", 2),
        ("its rows are float16, and the NIC's are float32", 2)]


def test_an_index_that_fbgemm_corrects_is_what_it_makes_of_it():
    indices, offsets = keys_of(1)
    indices[0] = 50
    theirs, ours, session = looked_up(tables(), indices, offsets)
    assert np.array_equal(theirs, ours) and session.record.steps[0]["lookups"] == len(indices)


@pytest.mark.parametrize("pooling", [PoolingMode.SUM, PoolingMode.MEAN])
def test_the_nics_sgd_in_place_of_a_fused_one(pooling):
    made, alone = (tables(pooling_mode=pooling) for _ in range(2))
    before = [each.detach().clone().numpy() for each in made.split_embedding_weights()]
    indices, offsets = keys_of(1, keys=3)
    session, _ = attached_to(lambda: made(indices, offsets).square().sum().backward(),
                             optimizer_on="nic")
    out = alone(indices, offsets)
    [gradient] = torch.autograd.grad(out.square().sum(), out, retain_graph=True)
    out.square().sum().backward()
    columns = np.cumsum([0, *(SHAPES[table][1] for table in FEATURES)])
    for table, (old, new, theirs) in enumerate(zip(
            before, made.split_embedding_weights(), alone.split_embedding_weights())):
        features = [number for number, of in enumerate(FEATURES) if of == table]
        share = np.float32(3 if pooling == PoolingMode.MEAN else 1)
        each = [gradient[:, columns[n]:columns[n + 1]].numpy() / share for n in features]
        rows, sums = sums_by_key(
            np.concatenate([indices.numpy().reshape(len(FEATURES), -1)[n] for n in features]),
            np.concatenate([np.repeat(one, 3, axis=0) for one in each]))
        old[rows], _ = Optimizer("sgd", 0.1).apply(old[rows], np.empty(0, np.float32), sums)
        # Vectors and gradients of means differ from FBGEMM's by an ulp.
        np.testing.assert_allclose(new.numpy(), old, rtol=0, atol=(
            0 if pooling == PoolingMode.SUM else 1e-6))
        torch.testing.assert_close(new, theirs)
    assert session.written.steps == len(SHAPES) and not session.updates
    assert 0 < session.written.rows < len(indices) and session.written.most < 1e-5


@pytest.mark.parametrize("steps", [1, 3])
def test_the_nics_rowwise_adagrad_in_place_of_a_fused_one(steps):
    """Rows and states equal the numerics and are in FBGEMM's memory."""
    shapes, features = ((50, 16), (300, 16)), (0, 1, 1)
    options = {"optimizer": EmbOptimType.EXACT_ROWWISE_ADAGRAD, "eps": 1e-6,
               "shapes": shapes, "feature_table_map": list(features)}
    made, alone = tables(**options), tables(**options)
    rows = [each.detach().clone().numpy() for each in made.split_embedding_weights()]
    states = [np.zeros(count, np.float32) for count, _ in shapes]
    rule = Optimizer("rowwise-adagrad", 0.1, 1e-6)

    def program(of, seen):
        for step in range(steps):
            torch.manual_seed(step)
            keys = torch.cat([torch.randint(0, shapes[table][0], (36,)) for table in features])
            out = of(keys, torch.arange(0, 109, 3))
            gradient = torch.randn(12, 48)
            (out * gradient).sum().backward()
            seen.append((keys.numpy().reshape(3, 36), gradient.numpy()))

    program(alone, seen := [])
    session, _ = attached_to(lambda: program(made, []), optimizer_on="nic")
    for keys, gradient in seen:
        for table in (0, 1):
            mine = [number for number, of in enumerate(features) if of == table]
            each = [np.repeat(gradient[:, 16 * n:16 * (n + 1)], 3, axis=0) for n in mine]
            own, sums = sums_by_key(keys[mine].reshape(-1), np.concatenate(each))
            rows[table][own], states[table][own] = rule.apply(
                rows[table][own], states[table][own], sums)
    for table, (ours, theirs) in enumerate(zip(made.split_embedding_weights(),
                                               alone.split_embedding_weights())):
        assert np.array_equal(ours.numpy(), rows[table])
        torch.testing.assert_close(ours, theirs)
    for table, ([ours], [theirs]) in enumerate(zip(made.split_optimizer_states(),
                                                   alone.split_optimizer_states())):
        assert np.array_equal(ours.numpy(), states[table])
        torch.testing.assert_close(ours, theirs)
    found = session.written
    assert found.optimizers == {"rowwise-adagrad"} and found.states == found.rows
    assert found.most < 1e-6 and found.ulp <= 4


@pytest.mark.parametrize(("program", "said"), [
    (lambda: trained(tables(optimizer=EmbOptimType.EXACT_ADAGRAD)),
     "the fused optimizer of tables must be sgd or rowwise_adagrad with optimizer_on nic, "
     "not adagrad"),
    (lambda: trained(tables(optimizer=EmbOptimType.EXACT_ROWWISE_ADAGRAD)),
     "vectors of a table must have the 16 values of the NICs' vectors with rowwise-adagrad and "
     "optimizer_on nic, not 8: its state is a mean over all"),
    (lambda: trained(tables(optimizer=EmbOptimType.EXACT_ROWWISE_ADAGRAD, weight_decay=0.5,
                            weight_decay_mode=WeightDecayMode.L2)),
     "weight_decay of the fused optimizer of tables must be 0 with optimizer_on nic, not 0.5"),
    (lambda: trained(DenseTableBatchedEmbeddingBagsCodegen(
        list(SHAPES), feature_table_map=list(FEATURES), use_cpu=True)),
     "optimizer_on must be host where fbgemm::dense_embedding_codegen_lookup_function has "
     "gradients, not 'nic'")])
def test_fused_optimizers_that_no_nic_has(program, said):
    with pytest.raises(ValueError, match=f"^{__file__}:[0-9]+: {said}$"):
        attached_to(program, optimizer_on="nic")
