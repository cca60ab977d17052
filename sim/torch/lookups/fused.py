"""Bags of FBGEMM's operators, which look up many tables at once. Shards of TorchRec call them."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch

from sim.torch.lookups.bags import (
    DIMENSIONS,
    OUTSIDE,
    UNEVEN,
    Bags,
    in_table,
    one_key,
    why_not_table,
)
from sim.torch.lookups.memory import array_of

__all__ = ["Looked", "bags_of_fused", "features_of", "is_lookup", "is_update", "is_variable",
           "named", "optimizer_of", "states_of"]

_CAUGHT = frozenset(f"fbgemm::{name}" for name in (
    "split_embedding_codegen_forward_unweighted_pt2_wrapper",
    "split_embedding_codegen_forward_weighted_pt2_wrapper",
    "split_embedding_codegen_forward_unweighted_vbe_pt2_wrapper",
    "split_embedding_codegen_forward_weighted_vbe_pt2_wrapper",
    "split_embedding_codegen_forward_cpu", "dense_embedding_codegen_lookup_function"))
"""Lookups that NICs support, depending on their arguments."""

_LOOKUP = re.compile(r"fbgemm::(.*embedding.*_(forward|lookup)_.*|batched_unary_embeddings|"
                     r"embedding_bag_.*)")
_GRADIENT = re.compile(r"fbgemm::split_embedding_backward_codegen_(?!dense)(\w+?)_"
                       r"((?:un)?weighted_(?:vbe_)?pt2_wrapper|cpu)")
_WEIGHTS = ("host_weights", "dev_weights", "weights")
"""Alternative arguments with the rows of all tables; only one of them has values in a call."""

_STATES = ("momentum1_host", "momentum1_dev")
"""Alternative arguments with the states of the rows of all tables."""

_POOLINGS = ("sum", "mean")
"""Supported poolings, indexed by FBGEMM's mode numbers."""


class Looked(NamedTuple):
    """Lookup of a feature, with variable batch per feature (VBE) for one of several processes.

    bags: the bags, or in words why NICs do not support them.
    columns: columns of the bags' vectors in the output of the call; places in an output of one
        dimension.
    """

    bags: Bags | str
    columns: slice

    def vectors(self, output: torch.Tensor) -> torch.Tensor:
        """Return the bags' vectors in the output of the call, ``[n, d]``."""
        assert isinstance(self.bags, Bags)
        found = output.detach()[..., self.columns]
        return found if found.dim() == 2 else found.view(len(self.bags), self.bags.dimension)


def is_lookup(name: str) -> bool:
    """Return True if an operator of FBGEMM looks up rows."""
    return bool(_LOOKUP.fullmatch(name)) and "backward" not in name


def is_variable(name: str) -> bool:
    """Return True if the features of a lookup have different numbers of bags (VBE)."""
    return "_vbe_" in name


def is_update(name: str) -> bool:
    """Return True if an operator of FBGEMM takes gradients of bags and writes rows."""
    return bool(_GRADIENT.fullmatch(name))


def optimizer_of(name: str) -> str:
    """Return the name of the optimizer in the name of an update operator, see `is_update`."""
    found = _GRADIENT.fullmatch(name)
    assert found
    return found[1]


@lru_cache(maxsize=256)
def _unsaid(func: Any) -> dict[str, Any]:
    """Return the arguments of an operator in order, each with its default."""
    return {argument.name: argument.default_value for argument in func._schema.arguments}


def named(func: Any, args: Sequence, kwargs: dict) -> dict[str, Any]:
    """Return the arguments of a call by their names in the operator's schema."""
    unsaid = _unsaid(func)
    return unsaid | dict(zip(unsaid, args)) | kwargs


def bags_of_fused(name: str, given: dict[str, Any], widest: int = DIMENSIONS
                  ) -> list[Looked] | str:
    """Return the bags of a call, feature by feature, or in words why NICs do not support the call.

    name: name of an operator for which `is_lookup` holds.
    given: arguments by name. FBGEMM has already computed the call, and so has rejected wrong
        arguments.
    widest: the most values of a vector.
    """
    if name not in _CAUGHT:
        return _why_not(name)
    weights = _weights(given)
    if weights is None:
        return "its tables have no rows"
    if not all(type(each) in (torch.Tensor, torch.nn.Parameter) and each.device.type == "cpu"
               for each in (weights, given["indices"], given["offsets"])):
        return "its tensors must be plain tensors in the host's memory"
    if given.get("B_offsets") is not None and not is_variable(name):
        return "its features have different numbers of samples"
    if given["pooling_mode"] >= len(_POOLINGS):
        return "the NIC pools as sum or mean"
    if given["output_dtype"] != 0:
        return "its vectors are not float32"
    if weights.dtype != torch.float32:  # rows may contain more than values
        return why_not_table(weights)
    return features_of(given, widest)


def _why_not(name: str) -> str:
    if "int_nbit" in name:
        return "its rows are quantised, and the NIC's are float32"
    if "nobag" in name:
        return "it returns a vector for each key, and NICs pool bags"
    return "no NIC serves this operator"


def _weights(given: dict[str, Any]) -> torch.Tensor | None:
    return next((given[each] for each in _WEIGHTS
                 if given.get(each) is not None and given[each].numel()), None)


def features_of(given: dict[str, Any], widest: int = DIMENSIONS) -> list[Looked]:
    """Return the bags of each feature.

    given: arguments of a caught lookup, or of an update of its rows, by name.
    widest: the most values of a vector.
    """
    weights, indices, offsets = _weights(given), given["indices"], given["offsets"]
    assert weights is not None
    weights = weights.detach()
    begins = given["weights_offsets"].tolist()
    columns = given["D_offsets"].tolist()
    counts = _row_counts(given["hash_size_cumsum"].tolist())
    # Copy: a script may fill the same tensor with its next mini-batch.
    keys, bounds = array_of(indices).astype(np.int64), array_of(offsets).astype(np.int64)
    lengths = np.diff(bounds)
    even = bounds[0] == 0 and bounds[-1] <= len(keys) and not (lengths < 0).any()
    key_weights = given["indice_weights"]
    key_weights = None if key_weights is None else array_of(key_weights)
    pooling, ones = _POOLINGS[given["pooling_mode"]], bool((lengths == 1).all())
    features = []
    for number, bags, mine in _places(given, columns, len(lengths)):
        begin, count = begins[number], counts[number]
        dimension = columns[number + 1] - columns[number]
        table = weights[begin:begin + count * dimension].view(count, dimension)
        first, last = bounds[bags.start], bounds[bags.stop]
        why = why_not_table(table, widest) or ("" if even else UNEVEN) or (
            "" if in_table(keys[first:last], count) else OUTSIDE)
        # `Bags.single` recognises this array.
        own = one_key(bags.stop - bags.start)[1] if ones else lengths[bags]
        features.append(Looked(why or Bags(
            table, keys[first:last], own, pooling,
            None if key_weights is None else key_weights[first:last].astype(np.float32)), mine))
    return features


def _places(given: dict[str, Any], columns: list[int],
            bags: int) -> Iterator[tuple[int, slice, slice]]:
    """Yield the number of each feature, its ``bags`` among all bags, and the place of their vectors
    in the output. With VBE, the bags of a feature for each process are apart."""
    features = len(columns) - 1
    begins = given.get("B_offsets")
    if begins is None:
        samples = bags // features
        for number, (first, end) in enumerate(pairwise(columns)):
            yield number, slice(number * samples, (number + 1) * samples), slice(first, end)
        return
    places = given["vbe_output_offsets_feature_rank"].tolist()
    for number, (begin, own) in enumerate(zip(
            begins.tolist(), given["vbe_B_offsets_rank_per_feature"].tolist())):
        for process, (first, end) in enumerate(pairwise(own)):
            at = process * features + number
            yield number, slice(begin + first, begin + end), slice(places[at], places[at + 1])


def states_of(given: dict[str, Any], feature: int, rows: int) -> np.ndarray:
    """Return the states of the ``rows`` rows of a feature's table, in FBGEMM's memory.

    given: arguments of an update by an optimizer with a state for each row.
    """
    states = next(given[each] for each in _STATES
                  if given.get(each) is not None and given[each].numel())
    begin = int(given["momentum1_offsets"][feature])
    return array_of(states.detach().view(-1))[begin:begin + rows]


def _row_counts(cumulated: list[int]) -> list[int]:
    """Return the rows of each feature's table.

    cumulated: for each feature, the rows of all tables before its table; then the total.
    """
    above = sorted(set(cumulated))
    following = dict(pairwise(above))
    return [following[before] - before for before in cumulated[:-1]]
