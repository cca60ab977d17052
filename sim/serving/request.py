"""Request to ``serve``: command options as a setting, systems, loads and bounds."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from host.timing.cluster import load_cluster
from host.toml.units import quantity
from sim.evaluation import setting as evaluation
from sim.evaluation.cluster import check_shipped, cluster_fields
from sim.evaluation.setting import Source
from sim.evaluation.systems import canonical, system_of
from sim.serving.setting import SYSTEMS, Setting, candidates_of, points_of

__all__ = ["request_of"]

_LEAST_QPS, _MOST_QPS = 1e-3, 1e12
"""One request per quarter of an hour; more than any link carries. Latencies beyond are not
representable as float64."""


def request_of(found: evaluation.Setting, model: str | None, qps: Sequence[float] | None,
               slo: Sequence[str], system: Sequence[str] | None, burst_length: str,
               cluster: str | Path | None = None, **fields: Any,
               ) -> tuple[Setting, list[str], list[float] | None, list[float]]:
    """Return the setting, the systems, the loads and the bounds in microseconds.

    ``found``: result of :func:`sim.experiments.request.setting_of`. ``fields``: fields of the
    setting; None takes the value of the ``cluster``, else the default. The other parameters are
    those of :func:`sim.api.serve`.

    Raises ``ValueError`` that names field, value and bound.
    """
    dataset = model or (found.sources[0][0] if found.sources else "kaggle")
    source = found.source(dataset) if found.sources else Source()
    known: dict[str, Any] = {}
    if cluster is not None:
        given = load_cluster(cluster, check_shipped)
        known = cluster_fields(given) | {"gpu_memory_bytes": given.gpu_memory_bytes}
    fields = known | {name: value for name, value in fields.items() if value is not None}
    fields = {"candidates": candidates_of(dataset, source.data)} | fields
    setting = Setting(dataset=dataset, data=source.data, format=source.format,
                      burst_us=_microseconds(burst_length, "burst_length"), **fields)
    systems = _once([*map(str.lower, system)], "system") if system is not None else [
        name for name in SYSTEMS
        if max(1, setting.nodes) >= (kind := system_of(canonical(name)[0])).least_nodes
        and (kind.of_endpoints or setting.gpus == 1)]
    if not systems:
        raise ValueError("system must name at least one system")
    for name in systems:
        points_of(setting, name)
    for load in qps or ():
        if not 0 < load < float("inf"):
            raise ValueError(f"qps must be above 0 and finite, not {load!r}")
        if not _LEAST_QPS <= load <= _MOST_QPS:
            raise ValueError(f"qps must be between {_LEAST_QPS:g} and {_MOST_QPS:g}, not {load!r}")
    return (setting, systems, None if qps is None else [float(load) for load in _once(qps, "qps")],
            _once([_microseconds(text, "slo") for text in slo], "slo"))


def _microseconds(text: str, field: str) -> float:
    """Return a time such as ``100us`` in microseconds."""
    try:
        value = float(quantity(f"{field}_us", text))
    except TypeError as error:
        raise ValueError(str(error)) from None
    if not value > 0:
        raise ValueError(f"{field} must be above 0, not {text!r}")
    return value


def _once(given: Iterable[Any], field: str) -> list:
    """Return the values; ``ValueError`` for a duplicate."""
    found = list(given)
    for place, value in enumerate(found):
        if value in found[:place]:
            raise ValueError(f"{field} must be given once, not {value!r} twice")
    return found
