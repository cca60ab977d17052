"""Operators of PyTorch and its libraries, and what each means for embedding bags."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import torch

from sim.torch.catching.process_group import OF_ALL
from sim.torch.lookups import fused

__all__ = ["LINEAR", "LOOKUPS", "Operator", "operator_of", "tensors_among"]

_BAGS = frozenset(("aten::_embedding_bag", "aten::_embedding_bag_forward_only",
                   "aten::embedding_bag"))
_BACKWARD = frozenset(("aten::_embedding_bag_backward", "aten::_embedding_bag_dense_backward",
                       "aten::_embedding_bag_sparse_backward"))
LINEAR = {"aten::addmm": (1, 2), "aten::linear": (0, 1)}
"""Linear layers: which arguments are their inputs and their weights."""
LOOKUPS = ("bags", "fused", "other")
"""Kinds of operators that look up."""


class Operator(NamedTuple):
    """An operator.

    Members
    -------
    name: in its schema. written: numbers of the arguments that it writes to.
    kind: ``bags`` and ``fused`` for lookups that may be caught, of one table and of many; ``other``
    for those that are not; ``gradients`` of bags; ``update`` where it also writes the rows by
    them; ``exchange`` of another process group than ours; empty for all else.
    """

    name: str
    kind: str
    written: tuple[int, ...]


@lru_cache(maxsize=4096)
def operator_of(func: Any) -> Operator:
    """Return what an operator of ``torch.ops`` is."""
    name = func._schema.name
    return Operator(name, _kind(name), tuple(
        number for number, argument in enumerate(func._schema.arguments)
        if argument.alias_info is not None and argument.alias_info.is_write))


def _kind(name: str) -> str:
    library, _, own = name.partition("::")
    if name in _BAGS:
        return "bags"
    if name in _BACKWARD:
        return "gradients"
    if library == "c10d" and own.rstrip("_") in OF_ALL:
        return "exchange"
    if library == "fbgemm":
        return ("fused" if fused.is_lookup(name) else
                "update" if fused.is_update(name) else "")
    # A lookup of PyTorch's, or what sounds like one of a library that is not known here.
    lookup = name == "aten::embedding" or (
        library != "aten" and "embedding" in own and "backward" not in own)
    return "other" if lookup else ""


def tensors_among(arguments: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors among arguments, and in lists among them."""
    for each in arguments:
        if isinstance(each, torch.Tensor):
            yield each
        elif isinstance(each, list | tuple):
            yield from tensors_among(each)
