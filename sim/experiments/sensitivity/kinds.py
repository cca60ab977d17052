"""Kinds of uncertain constants. The range of a kind is the largest error of its checks."""

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache

from sim.experiments.checks.check import Check
from sim.experiments.checks.every import comparisons

__all__ = ["KINDS", "Kind", "in_words", "kind_of", "width_of"]


@dataclass(frozen=True)
class Kind:
    """Constants of models of one kind, and the checks of these models.

    Members
    -------
    name: in words. constants: patterns of ``profile.constant``.
    checks: patterns of a comparison's name and of a check's name in it.
    """

    name: str
    constants: tuple[str, ...]
    checks: tuple[tuple[str, str], ...]

    def found(self) -> list[Check]:
        """Return the checks. Raises ``ValueError`` for a pattern that no check has."""
        return list(_found(self))

    @property
    def width(self) -> float:
        """Largest factor between ours and theirs over the checks. A constant is drawn from its
        value over this factor to its value times this factor."""
        return max(max(check.ours / check.theirs, check.theirs / check.ours)
                   for check in self.found())

    @property
    def short(self) -> float:
        """Largest factor by which a measured value exceeds ours over the checks; at least 1."""
        return max(1.0, *(check.theirs / check.ours for check in self.found()))


@cache
def _found(kind: Kind) -> tuple[Check, ...]:
    found: dict[Check, None] = {}
    for of, name in kind.checks:
        own = [check for each in comparisons() if fnmatchcase(each.name, of)
               for check in each.checks if fnmatchcase(check.name, name)]
        if not own:
            raise ValueError(f"checks must name a comparison and a check, not {(of, name)!r}")
        found |= dict.fromkeys(own)
    return tuple(found)


KINDS = (
    Kind("calls of host software",
         tuple(f"software_*.{name}_us" for name in (
             "operator", "copy", "synchronize", "launch_call", "doorbell")),
         (("TorchRec README", "iterations*"), ("H100 whole steps", "DLRM*operator by operator*"))),
    Kind("launches of graphs", ("software_*.graph_us",),
         (("H100 whole steps", "launch of a graph*"),)),
    Kind("kernels beside others", ("gpu_*.beside_*",),
         (("H100 whole steps", "interval*"),)),
    Kind("latencies of GPU and PCIe",
         (*(f"gpu_*.{name}_us" for name in ("launch", "kernel", "poll", "word", "read")),
          "pcie_*.one_way_us", "pcie_*.write_us"),
         (("H100 kernels", "32 x *"), ("H100 kernels", "*, 32 samples*"))),
    Kind("lookups", tuple(f"gpu_*.{name}" for name in (
        "access_bytes", "gather_fraction", "block_bytes", "resident_multiprocessors")),
         (("V100 kernels", "lookup *"), ("V100 kernels", "update *"), ("H100 kernels", "* x *"))),
    Kind("products", tuple(f"gpu_*.{name}" for name in (
        "float32_tflops", "gemm_fraction", "multiprocessors")),
         (("V100 kernels", "product *"), ("H100 kernels", "Kaggle's * MLP*"))),
    Kind("sequential bytes of kernels", ("gpu_*.memory_bandwidth_gb_s", "gpu_*.stream_fraction"),
         (("V100 step, kernels", "of these elementwise*"),
          ("V100 step, kernels", "of these copies*"))),
    Kind("collectives in a node", ("nccl_*.local_*", "topology_*"),
         (("V100 step, collectives", "*"),)),
    Kind("collectives over a network", ("nccl_*", "mpi_*", "ethernet_*"),
         (("100 Gb/s NIC", "drop of iterations*"), ("8 to 128 H100*", "throughput*"))),
    Kind("mini-batches formed by CPUs", ("cpu_*.graph_key_ns",), (("graph algorithm", "*"),)),
    Kind("bytes of links", ("pcie_*",), (("V100 kernels", "copy *"),)),
)
"""Kinds; a constant belongs to the first whose pattern it has."""


def kind_of(name: str) -> Kind | None:
    """Return the kind of ``profile.constant``, or None if it has no kind."""
    return next((kind for kind in KINDS
                 if any(fnmatchcase(name, pattern) for pattern in kind.constants)), None)


def width_of(name: str) -> float:
    """Return the width of the range of ``profile.constant``; that of the widest kind if no check
    is of its kind."""
    kind = kind_of(name)
    return max(each.width for each in KINDS) if kind is None else kind.width


def in_words(names: Iterable[str]) -> list[dict]:
    """Return the kinds of constants: ``kind``, ``width``, ``checks`` (their number) and
    ``constants``; ``unchecked`` is the kind of constants without a check."""
    found: dict[Kind | None, list[str]] = {}
    for name in dict.fromkeys(names):
        found.setdefault(kind_of(name), []).append(name)
    return [{"kind": kind.name if kind else "unchecked", "width": width_of(own[0]),
             "checks": len(kind.found()) if kind else 0, "constants": own}
            for kind, own in found.items()]
