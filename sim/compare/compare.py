"""Measurement of every system on one model, cluster and data."""

from collections.abc import Callable
from importlib.metadata import version

from host.model import Model, blocks_text, columns_text
from sim.compare.reason import reason_of
from sim.evaluation.compared import METRICS, Counts, Request, hashes_of, row_of
from sim.evaluation.placing import counted

__all__ = ["SCHEMA", "compare"]

SCHEMA = "embernic/compare/1"


def compare(request: Request, model: Model, progress: Callable[[str], None] | None = None) -> dict:
    """Measure each system with its best options.

    Parameters
    ----------
    request: systems and setting. model: model of the samples.
    progress: called with the name of each system before it is measured.

    Returns
    -------
    ``schema``, ``version``, ``profiles`` (name to hash), ``model``, ``cluster``, ``gpu`` and
    ``software`` (profiles), ``fidelity`` of the NICs, ``nodes``, ``gpus`` (of all nodes),
    ``mini_batch`` (samples), ``workload``, ``source`` of the samples, ``wire``, ``mtu``,
    ``columns`` and ``blocks`` (tables with slices, or None), ``fixed``, ``keys`` and ``bags`` per
    sample (those of a table for each slice), ``foreign_bags`` and ``foreign_rows`` (distinct) of a
    mini-batch (of placement ``even`` unless another is given), ``reason`` (one sentence),
    ``notes``, and ``systems``: rows of :func:`sim.evaluation.compared.row_of`, fastest first.
    """
    points = request.points(model)
    site = counted(points[0].changed(batching="file", window=None))
    counts, size = Counts.of(site.work.plain), site.trace.mini_batch
    rows, notes = [], [*request.notes(points), *site.trace.notes]
    for name, point in zip(request.systems, points):
        if progress:
            progress(name)
        try:
            rows.append(row_of(name, point, request.cluster.gpu_memory_bytes))
        except ValueError as error:  # the other systems still have a row
            rows.append({"system": name, **dict.fromkeys(METRICS), "why": str(error)})
    rows.sort(key=lambda row: row["interval_us"] or float("inf"))
    cluster = request.cluster
    return {
        "schema": SCHEMA, "version": version("embernic"),
        "profiles": hashes_of(cluster),
        "model": model.name, "cluster": cluster.name, "gpu": cluster.gpu.name,
        "software": cluster.software, "fidelity": points[0].system.fidelity,
        "nodes": request.nodes, "gpus": request.nodes * cluster.gpus,
        "mini_batch": size, "workload": "training" if request.training else "inference",
        "source": site.trace.source, "wire": request.wire, "mtu": request.mtu,
        "columns": columns_text(model), "blocks": blocks_text(model),
        "fixed": list(request.fixed),
        **counts.to_json(size), "reason": reason_of(rows, counts),
        "notes": notes, "systems": rows}

