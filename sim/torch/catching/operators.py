"""Operators of PyTorch and its libraries, classified for embedding bags."""

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
"""Argument numbers of the inputs and the weights of linear layers."""
LOOKUPS = ("bags", "fused", "other")
"""Kinds of operators that look up rows."""


class Operator(NamedTuple):
    """An operator.

    Members
    -------
    name: name in the schema.
    written: numbers of the arguments that it writes to.
    kind: class of the operator. ``bags`` and ``fused``: lookups of a single table and of many
        tables. ``other``: lookups that are never caught. ``gradients``: gradients of bags.
        ``update``: gradients of bags that also write rows. ``exchange``: all-to-all exchange of
        another process group. Empty: all other operators.
    """

    name: str
    kind: str
    written: tuple[int, ...]


@lru_cache(maxsize=4096)
def operator_of(func: Any) -> Operator:
    """Return the class of an operator of ``torch.ops``."""
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
    # PyTorch's lookup, or an operator of an unknown library whose name suggests a lookup.
    lookup = name == "aten::embedding" or (
        library != "aten" and "embedding" in own and "backward" not in own)
    return "other" if lookup else ""


def tensors_among(arguments: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors among arguments and in their lists."""
    for each in arguments:
        if isinstance(each, torch.Tensor):
            yield each
        elif isinstance(each, list | tuple):
            yield from tensors_among(each)
