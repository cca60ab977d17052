"""Tables of the fault suite."""

from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table

__all__ = ["ceiling", "fault_tables", "go_back_n", "goodputs"]


def ceiling(loss: float) -> float:
    """Return the largest goodput of a link that retransmits only lost packets, as a share of its
    goodput without loss."""
    return 1 - loss


def go_back_n(loss: float, under_way: float) -> float:
    """Return the same for go-back-N, which retransmits all packets from the lost packet on.

    The share is ``(1 - p) / (1 + p (W - 1))`` with ``under_way`` = W packets in flight.
    """
    return (1 - loss) / (1 + loss * max(0.0, under_way - 1))


def fault_tables(result: dict) -> list[Table]:
    """Return the tables of a result of :func:`sim.faults.suite.faults`, 80 characters wide.

    A column shows failed checks, if there are any.
    """
    links = [(f"{row['group'].replace(' bytes', ' B')}, {row['name']}", *(
        f"{row[name]:,}" for name in ("injected", "sent", "repeated", "links")),
        f"{row['goodput']:.3f}", row["wrong"]) for row in result["links"]]
    clusters = [(row["mode"], str(row["nodes"]), row["kind"], f"{row['rate']:g}", *(
        f"{row[name]:,}" for name in ("injected", "repeated", "cycles", "calm_cycles")),
        row["wrong"]) for row in result["clusters"]]
    return [_table(title, columns, rows) for title, columns, rows in (
        ("Packets between link ends", (
            "faults, and their rate", "injected", "sent", "again", "LINK", "goodput"), links),
        ("Whole clusters, compared with runs without faults", (
            "mode", "nodes", "faults", "rate", "injected", "again", "cycles", "without"), clusters)
    ) if rows]


def _table(title: str, columns: Sequence[str], rows: Sequence[tuple[str | None, ...]]) -> Table:
    """Return a table of ``rows``; the last value of a row is a text on failed checks, or None."""
    wrong = any(row[-1] for row in rows)
    table = Table(title=title, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in columns:
        table.add_column(column, justify="left" if column.startswith(("mode", "faults")) else
                         "right")
    if wrong:
        table.add_column("wrong")
    for row in rows:
        table.add_row(*(row if wrong else row[:-1]))
    return table


def goodputs(rows: Iterable[dict]) -> dict[str, list[tuple[float, float]]]:
    """Return the goodput per rate of loss, as a share of the goodput without loss, by packet size
    and round trip."""
    found: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        if row["group"].startswith("goodput"):
            found.setdefault(row["group"], []).append((float(row["name"]), row["goodput"]))
    return {name: [(rate, value / pairs[0][1]) for rate, value in pairs]
            for name, pairs in found.items() if pairs[0][0] == 0 and pairs[0][1]}
