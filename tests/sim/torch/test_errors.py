"""A lookup has the same result as without NICs: PyTorch's vectors or PyTorch's exception."""

import copy
from collections.abc import Callable

import pytest

pytest.importorskip("torch", reason="torch is not installed (extra `torch`)")
import torch
from torch.nn.functional import embedding, embedding_bag

from tests.sim.torch.programs import attached_to, with_threads

# With one thread, PyTorch checks neither that offsets rise nor that a table has columns.
two_threads = with_threads(2)

TABLE = torch.arange(40.0).view(10, 4)
KEYS, OFFSETS = torch.tensor([1, 2, 3, 4, 5]), torch.tensor([0, 2])
NONE = torch.empty(0, dtype=torch.int64)
HALF = (torch.float16, torch.bfloat16, torch.float64)
aten = torch.ops.aten._embedding_bag


def of(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int64)


def bag(keys=KEYS, offsets=OFFSETS, table=TABLE, **options) -> torch.Tensor:
    return embedding_bag(keys, table, offsets, **{"mode": "sum"} | options)


def in_mode(mode, call: Callable[[], torch.Tensor]) -> torch.Tensor:
    with mode:
        return call()


def grown(table: torch.Tensor, **options) -> torch.Tensor:
    """Return the gradient of a table."""
    leaf = table.clone().requires_grad_()
    (bag(table=leaf, **options) * torch.arange(1.0, 9.0).view(2, 4)).sum().backward()
    assert leaf.grad is not None
    return leaf.grad.to_dense()


def module(**options) -> Callable[[], torch.Tensor]:
    made = torch.nn.EmbeddingBag(10, 4, _weight=TABLE.clone(), **{"mode": "sum"} | options)
    return lambda: copy.deepcopy(made)(KEYS, OFFSETS)


TAKEN: dict[str, Callable[[], torch.Tensor]] = {
    "int32": lambda: bag(KEYS.int(), OFFSETS.int()),
    "int32 indices": lambda: bag(KEYS.int()), "int32 offsets": lambda: bag(offsets=OFFSETS.int()),
    "2-D input": lambda: bag(KEYS.view(1, 5), None), "no bags": lambda: bag(NONE, NONE),
    "empty bags": lambda: bag(NONE, of(0, 0, 0)),
    "last offset": lambda: bag(offsets=of(0, 2, 5), include_last_offset=True),
    "padding": lambda: bag(padding_idx=2), "negative padding": lambda: bag(padding_idx=-8),
    "padding out of the table": lambda: aten(TABLE, KEYS, OFFSETS, False, 0, False, None, False,
                                             99)[0],
    "2-D indices of the operator": lambda: aten(TABLE, KEYS[None], of(0))[0],
    "int16 indices": lambda: bag(KEYS.short()),
    "mean": lambda: bag(mode="mean"), "max_norm": lambda: bag(table=TABLE.clone(), max_norm=1.0),
    "strided table": lambda: bag(table=TABLE.repeat(1, 2)[:, ::2]),
    "transposed table": lambda: bag(table=TABLE.t().contiguous().t()),
    "strided indices": lambda: bag(KEYS.repeat(2)[::2]),
    "negative bit": lambda: bag(table=torch.ops.aten._neg_view(TABLE)),
    "max_norm of a view": lambda: bag(table=TABLE.clone().requires_grad_()[:, :].detach(),
                                      max_norm=1.0),
    "view of a leaf": lambda: bag(table=TABLE.clone().requires_grad_()[2:, :]).detach(),
    "parameter": module(), "scale_grad_by_freq": module(scale_grad_by_freq=True),
    "no_grad": lambda: in_mode(torch.no_grad(), module()),
    "inference_mode": lambda: in_mode(torch.inference_mode(), module()),
    "autocast": lambda: in_mode(torch.autocast("cpu", dtype=torch.bfloat16), module()),
    "vmap": lambda: torch.vmap(lambda keys: bag(keys))(torch.stack([KEYS, KEYS + 1])),
    "func.grad": lambda: torch.func.grad(lambda table: bag(table=table).square().sum())(TABLE),
    "vmap of func.grad": lambda: torch.vmap(torch.func.grad(
        lambda table, keys: bag(keys, table=table).square().sum()), (None, 0))(
            TABLE, torch.stack([KEYS, KEYS + 1])),
    "jit.trace": lambda: torch.jit.trace(lambda keys, offsets: bag(keys, offsets),
                                         (KEYS, OFFSETS))(KEYS, OFFSETS),
    "gradient": lambda: grown(TABLE), "sparse gradient": lambda: grown(TABLE, sparse=True),
    "gradient of padding": lambda: grown(TABLE, padding_idx=2),
    "gradient by frequency": lambda: grown(TABLE, scale_grad_by_freq=True),
    "weights": lambda: bag(per_sample_weights=torch.tensor([1.0, 2.0, 4.0, 8.0, 16.0])),
    "strided weights": lambda: bag(per_sample_weights=torch.ones(10)[::2]),
}
"""Calls that run on NICs."""

LEFT: dict[str, tuple[Callable[[], torch.Tensor], str]] = {
    **{str(each): (lambda each=each: bag(table=TABLE.to(each)),
                   f"its rows are {str(each)[6:]}, and the NIC's are float32") for each in HALF},
    "half weights": (lambda: bag(table=TABLE.half(), per_sample_weights=torch.ones(5).half()),
                     "its rows are float16, and the NIC's are float32"),
    "gradient of float64": (lambda: grown(TABLE.double()),
                            "its rows are float64, and the NIC's are float32"),
    "wide": (lambda: bag(table=torch.ones(10, 257)),
             "its vectors have 257 values, and the NIC's between 1 and 256"),
    "no rows": (lambda: bag(NONE, of(0, 0), TABLE[:0]),
                "its table has 0 rows, and the NIC's between 1 and 68719476735"),
    "meta": (lambda: bag(*(each.to("meta") for each in (KEYS, OFFSETS, TABLE))),
             "its tensors must be plain tensors in the host's memory"),
    "meta table": (lambda: bag(table=TABLE.to("meta")),
                   "its tensors must be plain tensors in the host's memory"),
    "max": (lambda: bag(mode="max"), "the NIC pools as sum or mean, not max"),
    "keys in no bag": (lambda: bag(offsets=NONE),
                       "its offsets do not divide all of its indices into bags"),
    "keys after the last bag": (
        lambda: bag(offsets=of(0, 2), include_last_offset=True),
        "its offsets do not divide all of its indices into bags"),
    "embedding": (lambda: embedding(KEYS, TABLE), "no NIC serves this operator"),
}
"""Calls that stay with PyTorch, and the reasons."""

RAISING: dict[str, Callable[[], torch.Tensor]] = {
    **{f"index {each} of {mode}, {len(offsets)} bags": (
        lambda each=each, mode=mode, offsets=offsets: bag(of(1, each), offsets, mode=mode))
       for each in (10, -1, 1 << 40) for mode in ("sum", "mean") for offsets in (of(0), of(0, 1))},
    "index of an empty table": lambda: bag(of(0), of(0), TABLE[:0]),
    "index of embedding": lambda: embedding(of(10), TABLE),
    "index of padding": lambda: bag(of(11), of(0), padding_idx=2),
    "falling offsets": lambda: bag(offsets=of(0, 4, 2)),
    "first offset": lambda: bag(offsets=of(1, 3)), "offset beyond": lambda: bag(offsets=of(0, 9)),
    "no last offset": lambda: bag(offsets=NONE, include_last_offset=True),
    "2-D input and offsets": lambda: bag(KEYS.view(1, 5), OFFSETS),
    "1-D input alone": lambda: bag(offsets=None), "3-D input": lambda: bag(KEYS.view(1, 1, 5)),
    "2-D offsets": lambda: bag(offsets=OFFSETS[None]),
    "float indices": lambda: bag(KEYS.float()),
    "float offsets": lambda: bag(offsets=OFFSETS.float()),
    "1-D table": lambda: bag(table=TABLE[0]), "3-D table": lambda: bag(table=TABLE[None]),
    "integer table": lambda: bag(table=TABLE.byte()),
    "complex table": lambda: bag(table=TABLE.cfloat()),
    "sparse table": lambda: bag(table=TABLE.to_sparse()),
    "zero-width table": lambda: bag(table=TABLE[:, :0]),
    "too many rows": lambda: bag(table=torch.zeros(1, 4).expand(1 << 36, 4)),
    "mode": lambda: bag(mode="min"), "mode of the operator": lambda: aten(
        TABLE, KEYS, OFFSETS, False, 3)[0],
    "shape of weights": lambda: bag(per_sample_weights=torch.ones(3)),
    "shape of the operator's weights": lambda: aten(TABLE, KEYS, OFFSETS, False, 0, False,
                                                    torch.ones(3))[0],
    "dtype of weights": lambda: bag(per_sample_weights=torch.ones(5).double()),
    "weights of means": lambda: bag(mode="mean", per_sample_weights=torch.ones(5)),
    "padding": lambda: bag(padding_idx=11),
    "sparse gradient by frequency": lambda: grown(TABLE, sparse=True, scale_grad_by_freq=True),
    "func.grad": lambda: torch.func.grad(lambda table: bag(of(10), table=table).sum())(TABLE),
    "vmap": lambda: torch.vmap(lambda keys: bag(keys))(torch.stack([KEYS, KEYS + 6])),
    "backward in inference_mode": lambda: in_mode(torch.inference_mode(), lambda: grown(TABLE)),
}
"""Calls that PyTorch rejects."""


def outcome(call: Callable[[], torch.Tensor]) -> tuple:
    """Return the type, shape and values of a call, or its exception."""
    try:
        found = call()
    except Exception as error:
        return type(error), str(error)
    plain = found.detach()
    return found.dtype, tuple(found.shape), None if found.is_meta else plain.tolist()


def outcomes(calls: dict[str, Callable[[], torch.Tensor]], **options) -> tuple:
    """Return outcomes of calls on a session by name, the session, and its missed lookups."""
    found = {}

    def program() -> None:
        for name, call in calls.items():
            found[name] = outcome(call)

    session, missed = attached_to(program, **options)
    assert session.mistake is None
    return found, session, missed


OPTIONS = pytest.mark.parametrize("options", [
    {}, {"fidelity": "rtl"}, {"fidelity": "rtl", "system": "EN"}, {"optimizer_on": "nic"}],
    ids=["model", "FS", "EN", "optimizer"])


@OPTIONS
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_every_call_ends_as_it_does_alone(options):
    calls = {f"{number} {name}": call for number, calls in enumerate(
        (TAKEN, {name: call for name, (call, _) in LEFT.items()}, RAISING))
        for name, call in calls.items()}
    if options.get("optimizer_on") == "nic":  # rejects gradients by frequency
        calls = {name: call for name, call in calls.items() if "by frequency" not in name}
    alone = {name: outcome(call) for name, call in calls.items()}
    # PyTorch computes and rejects the calls as listed.
    assert {name for name, found in alone.items() if isinstance(found[0], type)} == {
        name for name in calls if name.startswith("2 ")}
    found, session, _ = outcomes(calls, **options)
    assert {name: (found[name], alone[name]) for name in calls if found[name] != alone[name]} == {}
    assert session.verdicts["different"] == 0


@pytest.mark.parametrize("name", LEFT)
def test_a_call_that_stays_with_pytorch_is_counted(name):
    call, why = LEFT[name]
    _, session, missed = outcomes({"call": call})
    operator = "aten::embedding" if name == "embedding" else "aten::_embedding_bag"
    lookups = {what: count for (_, what), count in missed.items() if "its forward" not in what}
    assert [what.partition(" ")[0].removesuffix("_forward_only") for what in lookups] == [operator]
    assert [what.partition(": ")[2] for what in lookups] == [why]
    assert list(lookups.values()) == [1] and not session.tables.all and not session.gradients


def test_what_pytorch_rejects_is_no_lookup():
    _, session, missed = outcomes({name: call for name, call in RAISING.items() if name not in (
        "sparse gradient by frequency", "backward in inference_mode", "vmap")})
    assert not session.record.steps and not missed


def test_a_setting_below_the_dimension_of_a_table():
    wide = torch.nn.EmbeddingBag(10, 5, mode="sum")
    _, session, missed = outcomes({"wide": lambda: wide(torch.tensor([1, 2]), torch.tensor([0]))},
                                  fidelity="rtl", set=("max_dimension=4",))
    assert [what.partition(": ")[2] for _, what in missed] == [
        "its vectors have 5 values, and the NIC's between 1 and 4"]
    assert not session.tables.all
