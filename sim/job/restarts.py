"""Restarts of NICs in a running cluster, from the text of faults."""

from dataclasses import dataclass

from rtl.config import NicConfig
from sim.job.faults import node_of, time_of

__all__ = ["FORM", "NicRestart", "check_restarts", "parse_restart"]

FORM = "restart=START:LENGTH@NODE, such as restart=10us:30us@2"


@dataclass(frozen=True)
class NicRestart:
    """A NIC that goes down for some time and returns as after power-up, with its host.

    Members
    -------
    start: microseconds after the first samples were handed out. From then on no samples are handed
        out, and the NIC goes down when all samples in flight are answered.
    length: microseconds until it is up again.
    node: number of the node.
    """

    start: float
    length: float
    node: int


def parse_restart(entry: str, nodes: int) -> NicRestart:
    """Return the restart that ``entry`` names. ``ValueError`` or ``TypeError`` for invalid text."""
    name, _, value = entry.partition("=")
    window, at, node = value.partition("@")
    start, colon, length = window.partition(":")
    if not (at and colon and length.strip()):
        raise ValueError(f"faults must be {FORM}, not {entry!r}")
    if nodes < 2:
        raise ValueError(f"{name} must go with at least 2 nodes, not {nodes!r}")
    return NicRestart(time_of(name, "start", start), time_of(name, "length", length),
                      node_of(name, node, nodes))


def check_restarts(restarts: tuple[NicRestart, ...], config: NicConfig) -> None:
    """Raise ``ValueError`` where NICs of ``config`` cannot take a restarted peer back."""
    if restarts and not config.link:
        raise ValueError("faults restart must go with link=true; add --set link=true")
