"""Measure a cell of the suite."""

from typing import Any

from sim.faults.cells import MODES, ClusterCell, LinkCell
from sim.faults.traffic import transfer
from sim.job.options import RunOptions
from sim.run import report
from sim.run.run import run
from sim.training import report as training_report
from sim.training.options import TrainOptions
from sim.training.train import Training

__all__ = ["measure"]

_COUNTS = {"repeated": "link_sender.repeated", "links": "link_sender.links",
           "duplicates": "link_receiver.duplicates"}


def measure(cell: LinkCell | ClusterCell) -> dict:
    """Return the result of a cell as plain values.

    A link cell gives the result of :func:`sim.faults.traffic.transfer`. A cluster cell gives the
    ``hash`` of its predictions or weights, ``failures``, ``cycles``, ``injected`` faults, frames
    lost in ``full`` queues, and packets ``repeated``, ``links`` and ``duplicates``.
    """
    if isinstance(cell, LinkCell):
        return transfer(cell.traffic)
    options: dict[str, Any] = {
        "config": "tiny", "nodes": cell.nodes, "samples": cell.samples,
        "mini_batch": cell.mini_batch, "placement": "row", "threads": 1, "faults": cell.faults,
        "settings": ("link=true", *MODES[cell.mode])}
    if cell.mode == "training":
        result = Training(TrainOptions.of(**options)).execute()
        failures, value = training_report.failures(result), result["weights_sha256"]
    else:
        result = run(RunOptions.of(**options, in_flight=4))
        failures, value = report.failures(result), result["predictions_sha256"]
    injected = result["faults"]["injected"] if result["faults"] else []
    return {
        "hash": value, "failures": failures, "cycles": result["cycles"],
        "injected": sum(row["frames"] for row in injected),
        **{name: sum(node[counter] for node in result["counters"])
           for name, counter in _COUNTS.items()}}
