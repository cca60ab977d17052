"""Tables of the fault suite."""

from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table

__all__ = ["ceiling", "fault_tables", "go_back_n", "goodputs"]


def ceiling(loss: float) -> float:
    """Return the most that a link which sends again only what was lost may deliver, as a share of
    what it delivers without loss."""
    return 1 - loss


def go_back_n(loss: float, under_way: float) -> float:
    """Return the same of a link that sends all again from a lost packet on, with so many packets
    under way: ``(1 - p) / (1 + p (W - 1))``."""
    return (1 - loss) / (1 + loss * max(0.0, under_way - 1))


def fault_tables(result: dict) -> list[Table]:
    """Return the tables of a result of :func:`sim.faults.suite.faults`, 80 characters wide.

    What is wrong has a column where anything is.
    """
    links = [(f"{row['group'].replace(' bytes', ' B')}, {row['name']}", *(
        f"{row[name]:,}" for name in ("injected", "sent", "repeated", "links")),
        f"{row['goodput']:.3f}", row["wrong"]) for row in result["links"]]
    clusters = [(row["mode"], str(row["nodes"]), row["kind"], f"{row['rate']:g}", *(
        f"{row[name]:,}" for name in ("injected", "repeated", "cycles", "calm_cycles")),
        row["wrong"]) for row in result["clusters"]]
    return [_table(title, columns, rows) for title, columns, rows in (
        ("Packets over the ends of links", (
            "faults, and their rate", "injected", "sent", "again", "LINK", "goodput"), links),
        ("Whole clusters, beside runs without faults", (
            "mode", "nodes", "faults", "rate", "injected", "again", "cycles", "without"), clusters)
    ) if rows]


def _table(title: str, columns: Sequence[str], rows: Sequence[tuple[str | None, ...]]) -> Table:
    """Return a table of ``rows``, whose last value is in words what is wrong, None if nothing is.
    """
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
    """Return by size of packet and round trip the goodput at each rate of loss, as a share of that
    without loss."""
    found: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        if row["group"].startswith("goodput"):
            found.setdefault(row["group"], []).append((float(row["name"]), row["goodput"]))
    return {name: [(rate, value / pairs[0][1]) for rate, value in pairs]
            for name, pairs in found.items() if pairs[0][0] == 0 and pairs[0][1]}
