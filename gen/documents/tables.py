"""Tables that ``python -m gen`` prints."""

from typing import Any

from rich import box
from rich.table import Table

__all__ = ["path_table", "report_table", "summary_table"]

_STYLES = {"ultra": "UltraRAM", "block": "block RAM", "distributed": "LUTRAM", "auto": "any RAM"}


def summary_table(document: dict[str, Any]) -> Table:
    """Return a table of the files and sizes of a NIC."""
    table = Table(title=document["name"], show_header=False)
    for path in document["files"]:
        table.add_row("file", path)
    table.add_row("modules", f"{len(document['modules']):,}")
    table.add_row("registers", f"{len(document['registers']):,}")
    for style, name in _STYLES.items():
        chosen = [m for m in document["memories"] if m["style"] == style]
        if chosen:
            bits = sum(m["bits"] for m in chosen)
            table.add_row(name, f"{len(chosen):,} memories, {bits / 8192:,.1f} KiB")
    return table


def report_table(report: dict[str, Any]) -> Table:
    """Return a table of the resources of each block and of the NIC."""
    # Eight columns must fit a terminal of 80 characters, without lines between them.
    table = Table(title=f"{report['name']}: estimate by Yosys", box=box.SIMPLE,
                  padding=(0, 0, 0, 1), pad_edge=False)
    table.add_column("block", no_wrap=True, min_width=16)
    columns = ("instances", "lut", "ff", "bram36", "uram", "dsp", "depth")
    for column in columns:
        heading = "count" if column == "instances" else column
        table.add_column(heading if column in ("instances", "depth") else heading.upper(),
                         justify="right", no_wrap=True)
    for block in report["blocks"]:
        name = block["name"].removeprefix(f"{report['name']}__")
        table.add_row(name, *(_number(block[column]) for column in columns))
    total = report["total"]
    table.add_section()
    table.add_row("total", "", *(_number(total[column]) for column in columns[1:]))
    table.add_row("of one U280 SLR", "", *(
        f"{100 * total[column] / report['available'][column]:.1f}%"
        if column in report["available"] else "" for column in columns[1:]))
    return table


def path_table(report: dict[str, Any], deepest: int = 8) -> Table:
    """Return a table of the ``deepest`` blocks with the ends of their longest paths."""
    table = Table(title=f"{report['name']}: deepest paths", box=box.SIMPLE, padding=(0, 0, 0, 1),
                  pad_edge=False)
    table.add_column("block", no_wrap=True)
    table.add_column("depth", justify="right", no_wrap=True)
    for end in ("from", "to"):
        table.add_column(end, overflow="fold")
    blocks = sorted(report["blocks"], key=lambda block: -block["depth"])
    for block in blocks[:deepest]:
        table.add_row(block["name"].removeprefix(f"{report['name']}__"), str(block["depth"]),
                      *(_end(block["path"][end]) for end in ("from", "to")))
    table.add_section()
    total = report["total"]
    table.add_row("whole", str(total["depth"]), *(_end(total["path"][e]) for e in ("from", "to")))
    return table


def _end(end: dict[str, str]) -> str:
    return f"{end['signal']}\n{end['source']}".strip()


def _number(value: float) -> str:
    return f"{value:,.1f}" if value % 1 else f"{int(value):,}"
