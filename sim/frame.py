"""Conversion of command results to pandas tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from embernic_extras import require

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["frame"]

_ROWS = {
    "embernic/bench/1": "rows", "embernic/hitrate/1": "rows", "embernic/batching/1": "rows",
    "embernic/plan/1": "resources", "embernic/datasets/1": "tables", "embernic-claims-2": "claims",
    "embernic/serve/1": "loads", "embernic/torch/1": "steps"}
"""The field of a result that holds its rows, by schema."""


def frame(result: dict) -> DataFrame:
    """Return the rows of a result of :mod:`sim.api` as a ``DataFrame``.

    The rows of a run are its mini-batches (``latency_us``, NaN in the warm-up, ``unique_keys``,
    ``similarity``, ``downgrade``); those of a training are its steps (with ``loss``, and without
    latency if there are no NICs). ``bench``, ``hitrate`` and ``batching`` have rows of their own;
    the rows of ``plan`` are the resources, of ``describe`` the tables, of ``reproduce`` the claims,
    of ``serve`` systems at loads, of ``torch`` the mini-batches.
    Dictionaries within a row become columns such as ``bags.mean``.

    Parameters: ``result``, as returned by the function or read from its JSON.

    Raises
    ------
    embernic_extras.ExtraError
        pandas is not installed, or its import fails.
    ValueError
        The result does not come from one of these functions.
    """
    pandas: Any = require("pandas", "sim.api.frame")
    schema = result.get("schema")
    if schema in _ROWS:
        return pandas.json_normalize(result[_ROWS[schema]])
    if schema == "embernic/run/1":
        columns = _batches(result)
        return pandas.DataFrame(columns).rename_axis("mini_batch")
    if schema == "embernic/train/1":
        columns = {"loss": result["loss"]} | _batches(result)
        first = result["first_step"]
        index = pandas.RangeIndex(first, first + result["steps"], name="step")
        return pandas.DataFrame(columns, index=index)
    raise ValueError(f"schema must be one of {', '.join(_ROWS)}, embernic/run/1, "
                     f"embernic/train/1, not {schema!r}")


def _batches(result: dict) -> dict[str, list]:
    """Return the columns of each mini-batch; latencies exist only for those after the warm-up."""
    each = result["batching"]["each"]
    count, latencies = len(each["unique_keys"]), result["latencies_us"]
    known = {} if latencies is None else {
        "latency_us": [float("nan")] * (count - len(latencies)) + latencies}
    return known | each
