"""Tables of the fault suite."""

from collections.abc import Iterable

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
    """Return the tables of a result of :func:`sim.faults.suite.faults`."""
    links = Table(title="Packets over the ends of links")
    for column in ("faults", "rate or case", "injected", "sent", "delivered", "twice", "again",
                   "LINK", "goodput", "wrong"):
        links.add_column(column, justify="left" if column in ("faults", "wrong") else "right")
    for row in result["links"]:
        links.add_row(row["group"], row["name"], *(f"{row[name]:,}" for name in (
            "injected", "sent", "delivered", "doubled", "repeated", "links")),
            f"{row['goodput']:.3f}", row["wrong"] or "")
    clusters = Table(title="Whole clusters: values as without faults")
    for column in ("mode", "nodes", "faults", "rate", "injected", "again", "cycles", "without",
                   "wrong"):
        clusters.add_column(column, justify="left" if column in (
            "mode", "faults", "wrong") else "right")
    for row in result["clusters"]:
        clusters.add_row(row["mode"], str(row["nodes"]), row["kind"], f"{row['rate']:g}",
                         *(f"{row[name]:,}" for name in ("injected", "repeated", "cycles")),
                         f"{row['calm_cycles']:,}", row["wrong"] or "")
    return [table for table in (links, clusters) if table.row_count]


def goodputs(rows: Iterable[dict]) -> dict[str, list[tuple[float, float]]]:
    """Return by size of packet and round trip the goodput at each rate of loss, as a share of that
    without loss."""
    found: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        if row["group"].startswith("goodput"):
            found.setdefault(row["group"], []).append((float(row["name"]), row["goodput"]))
    return {name: [(rate, value / pairs[0][1]) for rate, value in pairs]
            for name, pairs in found.items() if pairs[0][0] == 0 and pairs[0][1]}
