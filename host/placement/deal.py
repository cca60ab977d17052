"""Rules that assign tables to the nodes of a cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["PLACEMENTS", "Rule", "check_placement", "described", "given_owners"]

PLACEMENTS = {
    "even": "whole tables, the same number at each node",
    "rows": "whole tables, bytes of rows balanced",
    "lookups": "whole tables, lookups balanced",
    "row": "rows hashed over all nodes",
}
"""Placements of tables, with descriptions.

``even`` is the paper's "evenly distributed" (section 5.3) and the split of facebookresearch/dlrm.
"""


def given_owners(placement: str) -> tuple[int, ...] | None:
    """Return the node of each table if the placement lists nodes, as ``0,0,1`` does; otherwise
    None.
    """
    nodes = placement.split(",")
    # Longer texts cannot be node numbers, and Python limits the digits of an integer.
    digits = all(node.isascii() and node.isdecimal() and len(node) <= 30 for node in nodes)
    return tuple(map(int, nodes)) if digits else None


def described(placement: str) -> str:
    """Return a description of a placement."""
    return PLACEMENTS.get(placement, "whole tables, each at a listed node")


def check_placement(name: str) -> str:
    """Return ``name``; raise ``ValueError`` unless it is one of `PLACEMENTS` or lists nodes."""
    if name not in PLACEMENTS and given_owners(name) is None:
        raise ValueError(f"placement must be one of {', '.join(PLACEMENTS)}, not {name!r}")
    return name


@dataclass(frozen=True)
class Rule:
    """Assignment of whole tables to nodes.

    Members
    -------
    placement: one of `PLACEMENTS` (``row`` assigns no whole tables), or the node of each table,
        such as ``0,0,1``.
    lookups: measured lookups of each table of the model, in any unit; required by ``lookups``, and
        dropped for other placements.
    gpus: consecutive nodes of a plan that are GPUs of one host; ties spread over the hosts.

    Raises
    ------
    ValueError
        The placement is unknown, or ``lookups`` are missing or negative.
    """

    placement: str = "even"
    lookups: tuple[int, ...] | None = None
    gpus: int = 1

    def __post_init__(self) -> None:
        if check_placement(self.placement) != "lookups":
            object.__setattr__(self, "lookups", None)
        elif self.lookups is None:
            raise ValueError("lookups of each table must be given for placement lookups, not None")
        elif min(self.lookups, default=0) < 0:
            raise ValueError(f"lookups must be at least 0, not {min(self.lookups)!r}")

    def owners(self, rows: Mapping[int, int], nodes: int) -> dict[int, int]:
        """Return the node of each table.

        ``even`` and ``rows`` take the largest table first, ``lookups`` the most used table. A table
        goes to the node with the fewest rows, or lookups, so far. With ``even``, each of k nodes
        gets n // k of n tables, and n mod k nodes get one more; full nodes are skipped. Ties: more
        rows first, then the lower table; fewer rows first, then the lower number in a host, then
        the lower node. Listed nodes are used unchanged.

        rows: rows of the tables to assign, by number, weighted by the size of a row.

        Raises ``ValueError`` for a table without a listed node or without lookups.
        """
        given = given_owners(self.placement)
        if given is not None:
            if max(rows, default=0) >= len(given):
                raise ValueError(f"placement must have a node for table {max(rows)}, not "
                                 f"{len(given)} nodes")
            return {table: given[table] for table in rows}
        looked_up = [0] * (max(rows, default=0) + 1) if self.lookups is None else self.lookups
        if max(rows, default=0) >= len(looked_up):
            raise ValueError(f"lookups must have a number for table {max(rows)}, not "
                             f"{len(looked_up)} numbers")
        least, extra = divmod(len(rows), nodes)
        # Lookups, rows and tables of each node so far.
        held = [(0, 0, 0)] * nodes
        found = {}
        for table in sorted(rows, key=lambda t: (-looked_up[t], -rows[t], t)):
            open_ = range(nodes)
            if self.placement == "even":
                more = sum(tables > least for _, _, tables in held) < extra
                open_ = [node for node in open_ if held[node][2] < least + more]
            owner = min(open_, key=lambda node: (*held[node][:2], node % self.gpus, node))
            found[table] = owner
            held[owner] = _sum(held[owner], (looked_up[table], rows[table], 1))
        return found


def _sum(one: Sequence[int], other: Sequence[int]) -> tuple[int, int, int]:
    lookups, rows, tables = (a + b for a, b in zip(one, other))
    return lookups, rows, tables
