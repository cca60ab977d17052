"""Tables of ``plan`` for the terminal."""

from __future__ import annotations

from rich.console import Group
from rich.table import Table

__all__ = ["UNITS", "plan_tables", "size"]

UNITS = ("B", "kB", "MB", "GB", "TB")


def size(count: float) -> str:
    """Return a number of bytes as text, with one to three digits before the decimal point."""
    unit = 0
    while count >= 1000 and unit < len(UNITS) - 1:
        count, unit = count / 1000, unit + 1
    return f"{count:.3g} {UNITS[unit]}" if count < 1000 else f"{count:,.0f} {UNITS[unit]}"


def plan_tables(result: dict) -> Group:
    """Return the tables of ``result`` of `sim.offline.plan.plan`, and the summary lines."""
    hit = result["hit_rate"]["unique"]
    given = "given" if result["hit_rate"]["given"] is not None else "estimated for this cache size"
    return Group(
        _memory(result), "", _stores(result), "", _placements(result), "", _checks(result), "",
        _resources(result), "", *([_pools(result), ""] if result["busiest"] else []),
        *result["notes"], *_updates(result),
        f"local cache: {'-' if hit is None else f'{hit:.1%}'} of unique keys hit ({given})",
        f"bottleneck: {result['binds']}, at most {result['samples_per_second'] / 1e6:.3g} million "
        f"samples/s (expected: {result['samples_per_second_expected'] / 1e6:.3g})")


def _updates(result: dict) -> list[str]:
    """Return a line on the updates of rows of owner-pooled tables; empty without any."""
    if (found := result["updates"]) is None:
        return []
    return [f"row updates of a mini-batch, {found['tables']:,} tables pool at the owner: "
            f"{found['gpu_us']:,.1f} us with GPUs, {found['nic_us']:,.1f} us with NICs: "
            f"use --update {found['place']}"]


def _table(title: str, *columns: str, left: int = 1) -> Table:
    shown = Table(title=title, title_justify="left")
    for number, name in enumerate(columns):
        shown.add_column(name, justify="left" if number < left else "right")
    return shown


def _memory(result: dict) -> Table:
    model, nodes = result["model"], result["memory"]["nodes"]
    several = result["gpus"] > result["nodes"]
    count = f"{result['gpus']} GPUs of " * several + f"{result['nodes']} nodes"
    shown = _table(f"{model['name']}, {count}, cluster {result['cluster']}, "
                   f"placement {result['placement']}", "GPU" if several else "node", "rows",
                   "bytes", "of GPU memory")
    first = 0
    for last, node in enumerate(nodes):
        if last + 1 < len(nodes) and nodes[last + 1] == node:
            continue  # one line for a run of equal nodes
        share = "-" if node["share"] is None else f"{node['share']:.1%}"
        shown.add_row(str(first) if first == last else f"{first} to {last}",
                      f"{node['rows']:,}", size(node["bytes"]), share)
        first = last + 1
    return shown


def _stores(result: dict) -> Table:
    memory = result["memory"]
    fullest = max(memory["nodes"], key=lambda node: node["rows"])
    shown = _table("Stores nearer than GPU memory", "store", "rows", "bytes",
                   "of a node's rows", "used")
    for store in memory["caches"]:
        shown.add_row(store["name"].replace("_", " "), f"{store['rows']:,}", size(store["bytes"]),
                      f"{fullest['held'][store['name']]:.2%}",
                      "not built" if not store["built"] else "yes" if store["rows"] else "off")
    return shown


def _placements(result: dict) -> Table:
    shown = _table("Load of the busiest node, as a multiple of the mean", "placement",
                   "rows", "lookups", "nodes needed")
    for row in result["placements"]:
        needed = row["nodes_needed"]
        number = None if needed["nodes"] is None else f"{needed['nodes']:,}"
        shown.add_row(row["placement"], f"{row['balance']['rows']:.2f}",
                      f"{row['balance']['lookups']:.2f}",
                      ": ".join(part for part in (number, needed["why"]) if part))
    return shown


def _checks(result: dict) -> Table:
    shown = _table("Requirements", "quantity", "needed", "available", "of", "fits")
    shown.columns[3].justify = "left"
    for row in result["checks"]:
        fits = "yes" if row["holds"] else "NO" if row["required"] else "no, but runs"
        need, have = (size(row[name]) if row["what"].startswith("bytes") else f"{row[name]:,}"
                      for name in ("need", "have"))
        shown.add_row(row["what"], need, have, row["of"], fits)
    return shown


def _resources(result: dict) -> Table:
    shown = _table(f"Time for a mini-batch of {result['mini_batch']:,} at the busiest node (us)",
                   "resource", "rate", "node", "full packets", "expected", left=2)
    for row in result["resources"]:
        style = "bold" if row["name"] == result["binds"] else None
        shown.add_row(row["name"], row["rate"], str(row["node"]), f"{row['least_us']:.2f}",
                      f"{row['expected_us']:.2f}", style=style)
    return shown


_MOST_TABLES = 8
"""Tables of the model with a line of their own."""


def _pools(result: dict) -> Table:
    """Return the network bytes of the tables with the most bytes, and of all tables."""
    tables, busiest = result["tables"], result["busiest"]
    shown = _table(
        f"Network bytes of {result['samples']:,} samples, {size(result['network_bytes'])} with "
        f"headers of full packets; busiest: {busiest['direction']} of node {busiest['node']}, "
        f"{size(busiest['full_bytes'])} a mini-batch without remote caches",
        "table", "pool", "foreign\nbags", "foreign\nkeys", "distinct\nrows", "cache\nsaves",
        "whole\nbags", "bytes at\nrequester", "bytes at\nowner", left=2)
    shown.padding = 0  # nine columns in 80 characters

    def bytes_at(row: dict) -> int:
        return row[f"{row['pool']}_bytes"]

    for row in sorted(tables, key=bytes_at, reverse=True)[:_MOST_TABLES]:
        shown.add_row(
            ":".join((str(row["table"]), *("-".join(map(str, each)) for each in (
                row["columns"], row["rows"]) if each))), row["pool"],
            *(f"{row[name]:,}" for name in (
                "foreign_bags", "foreign_keys", "distinct_foreign_rows")),
            *("-" if row[name] is None else f"{row[name]:.1%}" for name in (
                "remote_cache_saves", "cached_bags")),
            *("-" if row[name] is None else size(row[name]) for name in (
                "requester_bytes", "owner_bytes")))
    keys, missed = (sum(row[name] for row in tables) for name in ("foreign_keys", "missed_rows"))
    owners = sum(row["pool"] == "owner" for row in tables)
    shown.add_row(
        f"all {len(tables):,}", f"{owners:,} owner",
        *(f"{sum(row[name] for row in tables):,}" for name in (
            "foreign_bags", "foreign_keys", "distinct_foreign_rows")),
        f"{1 - missed / keys:.1%}" if keys else "-", "",
        *(size(sum(row[name] or 0 for row in tables)) for name in (
            "requester_bytes", "owner_bytes")))
    return shown
