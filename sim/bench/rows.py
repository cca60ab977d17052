"""Rows of a bench, each a figure with its target, and the jobs that measure them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from gen.base.option import AnyPath, option

__all__ = ["SECTIONS", "AnyRow", "BenchOptions", "Job", "Progress", "Row"]

SECTIONS: dict[str, str] = {
    "lookups": "tag lookup, dedupe and scatter, in lookups per cycle",
    "vectors": "store to frames, frames to hold buffer, in beats per cycle",
    "packets": "packets out against 100 Gb/s Ethernet",
    "decoding": "decoding of vectors of 32 and 16 bits",
    "pooling": "pooling of bags of 1 to 100 vectors",
    "bags": "bags that pool at their owners, in lookups per cycle",
    "unique": "duplicate keys in a requester's step, in slots per cycle",
    "delivery": "indices to the host, vectors read from GPU memory, in items per cycle",
    "gradients": "gradient reduction, local and global, in beats per cycle, and its LUTs",
    "interaction": "dot interaction, in cycles per sample",
    "latency": "pipeline latency of each block, in cycles",
    "nic": "throughput of whole NICs in a cluster, and the bottleneck",
    "bytes": "bytes on the network over the fewest bytes, of five workloads",
    "speed": "speed of the cluster simulation against a bare loop and Amaranth's simulator",
    "twins": "speedup of a whole run by each compiled twin of Python code",
    "resources": "resources of a NIC on an Alveo U280, by Yosys",
}
"""The choices of ``only``, in the order of measurement."""

Progress = Callable[[str], None]
"""Called periodically with a line on the current measurement."""


@dataclass(frozen=True, kw_only=True)
class BenchOptions:
    """Options of the command ``bench``, and arguments of :func:`sim.api.bench`."""

    only: Sequence[str] = option(
        (), f"Measure only these: {', '.join(SECTIONS)}.", metavar="NAME,...")
    json: AnyPath | None = option(
        None, "Write the rows of each job to this file when it is finished; the same command "
        "continues after an interruption. - is standard output, at the end.")
    progress: Callable[[int, int, str], None] | None = option(
        None, "Called with the jobs done, the number of jobs and a line on the current one.")
    finished: Callable[[dict], None] | None = option(
        None, "Called with each row, including the rows found in the file.")


class AnyRow(Protocol):
    """An object that gives a row of the JSON."""

    def as_dict(self) -> dict:
        """Return the row, with ``name``, ``value``, ``unit``, ``target`` and ``holds`` at least."""
        ...


@dataclass(frozen=True)
class Row:
    """A figure.

    Members
    -------
    name, value, unit: name, value and unit of the figure.
    target: value to reach, in the same unit, or None.
    sense: ``>=`` or ``<=``: the good side of the target.
    note: remark on the measurement.
    bound: largest value that the bottleneck allows, or None.
    """

    name: str
    value: float
    unit: str
    target: float | None = None
    sense: str = ">="
    note: str = ""
    bound: float | None = None

    @property
    def holds(self) -> bool | None:
        """Whether the target is reached; None without a target."""
        if self.target is None:
            return None
        return self.value >= self.target if self.sense == ">=" else self.value <= self.target

    def as_dict(self) -> dict:
        """Return the row for JSON."""
        return {"name": self.name, "value": self.value, "unit": self.unit, "target": self.target,
                "sense": self.sense if self.target is not None else None, "holds": self.holds,
                "note": self.note, "bound": self.bound}


@dataclass(frozen=True)
class Job:
    """A unit of work of a bench.

    Members
    -------
    section: the section for ``--only``.
    name: unique name.
    measure: measures and returns rows, or dictionaries as of :meth:`AnyRow.as_dict`; called with a
        progress callback.
    """

    section: str
    name: str
    measure: Callable[[Progress], Sequence[AnyRow | dict]]
