"""Rules by which tables are dealt over the nodes of a cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["PLACEMENTS", "Rule", "check_placement", "described", "given_owners"]

PLACEMENTS = {
    "even": "whole tables, as many at each node as at any other",
    "rows": "whole tables, rows balanced",
    "lookups": "whole tables, lookups balanced",
    "row": "rows hashed over all nodes",
}
"""How tables may be placed, with a description of each.

``even`` is the paper's "evenly distributed" (section 5.3) and the split of facebookresearch/dlrm.
"""


def given_owners(placement: str) -> tuple[int, ...] | None:
    """Return the node of each table, where a placement gives them, as ``0,0,1`` does."""
    nodes = placement.split(",")
    # Longer ones are no node of any cluster, and beyond thousands no integer for Python.
    digits = all(node.isascii() and node.isdecimal() and len(node) <= 30 for node in nodes)
    return tuple(map(int, nodes)) if digits else None


def described(placement: str) -> str:
    """Return in words how a placement deals tables."""
    return PLACEMENTS.get(placement, "whole tables, each at the node that is given for it")


def check_placement(name: str) -> str:
    """Return ``name``; ``ValueError`` unless it is one of `PLACEMENTS` or gives nodes."""
    if name not in PLACEMENTS and given_owners(name) is None:
        raise ValueError(f"placement must be one of {', '.join(PLACEMENTS)}, not {name!r}")
    return name


@dataclass(frozen=True)
class Rule:
    """How whole tables are dealt over nodes.

    Members
    -------
    placement: one of `PLACEMENTS`, of which ``row`` deals no whole tables; or the node of each
        table, such as ``0,0,1``.
    lookups: measured lookups of each table of the model, in any unit; needed by ``lookups`` and
        kept for it alone.

    Raises
    ------
    ValueError
        An unknown placement, or ``lookups`` without any, or with a negative number of them.
    """

    placement: str = "even"
    lookups: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if check_placement(self.placement) != "lookups":
            object.__setattr__(self, "lookups", None)
        elif self.lookups is None:
            raise ValueError("lookups of each table must be given for placement lookups, not None")
        elif min(self.lookups, default=0) < 0:
            raise ValueError(f"lookups must be at least 0, not {min(self.lookups)!r}")

    def owners(self, rows: Mapping[int, int], nodes: int) -> dict[int, int]:
        """Return the node of each table; ``rows``: of the tables to deal, by number.

        ``even`` and ``rows`` take the largest table first, ``lookups`` the most looked-up; it goes
        to the node with the fewest rows, or lookups, so far. ``even`` asks only nodes that may
        still take one: each gets n // k of n tables, and n mod k of the k nodes one more. Ties:
        more rows first, then the lower table; fewer rows first, then the lower node. Nodes that are
        given are taken as they are.

        ``ValueError`` for a table that no node or no number of lookups was given for.
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
        # What a node holds so far: lookups, rows, tables.
        held = [(0, 0, 0)] * nodes
        found = {}
        for table in sorted(rows, key=lambda t: (-looked_up[t], -rows[t], t)):
            open_ = range(nodes)
            if self.placement == "even":
                more = sum(tables > least for _, _, tables in held) < extra
                open_ = [node for node in open_ if held[node][2] < least + more]
            owner = min(open_, key=lambda node: (*held[node][:2], node))
            found[table] = owner
            held[owner] = _sum(held[owner], (looked_up[table], rows[table], 1))
        return found


def _sum(one: Sequence[int], other: Sequence[int]) -> tuple[int, int, int]:
    lookups, rows, tables = (a + b for a, b in zip(one, other))
    return lookups, rows, tables
