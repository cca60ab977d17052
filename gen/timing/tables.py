"""Tables and lines about timing that ``python -m gen --timing`` prints."""

from collections.abc import Iterator, Sequence
from typing import Any

from rich import box
from rich.table import Table

from gen.timing.nets import CASE_NAMES

__all__ = ["timing_lines", "timing_tables"]

_CASES = CASE_NAMES[::-1]
_SHORT = 12
"""Maximum rows of the longer tables; the JSON contains all rows."""


def timing_tables(report: dict[str, Any]) -> Iterator[Table]:
    """Yield tables of the cases, the slowest blocks, the worst paths and the most loaded nets.
    ``report``: see :func:`gen.timing.report.report_timing`."""
    name = report["name"]
    cases = {case["case"]: case for case in report["cases"]}
    table = _table(f"{name}: paths between registers, estimated, not placed", ("nets",), (
        "MHz", "ps", "slack at\n250 MHz", "slack at\n300 MHz", "ends late\nat 250",
        "ends late\nat 300", "ends"))
    for case in _CASES:
        one = cases[case]
        table.add_row(case, f"{one['mhz']:.0f}", f"{one['ps']:,.0f}", *(
            f"{one['slack_ps'][at]:,.0f}" for at in ("250", "300")), *(
            f"{one['failing'][at]:,}" for at in ("250", "300")), f"{one['ends']:,}")
    yield table
    table = _table(f"{name}: slowest blocks, MHz by case of nets", ("block",),
                   ("count", *_CASES, "LUTs"))
    for block in report["blocks"][:_SHORT]:
        table.add_row(_short(block["name"], name), f"{block['instances']:,}",
                      *(f"{block[case]['mhz']:.0f}" for case in _CASES), str(block["luts"]))
    yield table
    table = _table(f"{name}: worst paths, middle case", ("from", "to", "pin"),
                   ("ps", "LUTs"), fold=("from", "to"))
    for path in report["paths"][:_SHORT]:
        table.add_row(path["from"], f"{path['to']}\n{path['source']}".strip(), path["pin"],
                      f"{path['ps']:,.0f}", str(path["luts"]))
    yield table
    table = _table(f"{name}: nets with most loads", ("net",),
                   ("loads", "reset", "enable", "other"), fold=("net",))
    for net in report["nets"]["most_loads"]:
        kinds = net["kinds"]
        table.add_row(net["net"], *(f"{count:,}" for count in (
            net["loads"], kinds["reset"], kinds["enable"],
            net["loads"] - kinds["reset"] - kinds["enable"])))
    yield table


def timing_lines(report: dict[str, Any], shell: str = "none") -> Iterator[str]:
    """Yield further lines, and the assumptions of the report."""
    interval, sets = report["interval_mhz"], report["control_sets"]
    what = "" if shell == "none" else f" for the bare NIC, without shell {shell}"
    yield (f"{report['name']}: clock between {interval['pessimistic']:.0f} and "
           f"{interval['optimistic']:.0f} MHz{what}, {interval['middle']:.0f} with middle nets; "
           "not placed")
    cases = {case["case"]: case for case in report["cases"]}
    if any(case["port_classes"] for case in cases.values()):
        yield "worst path of a port: " + "; ".join(
            f"{case}: {worst['ps']:,.0f} ps, {worst['from_kind']} to {worst['to_kind']} "
            f"({worst['pin']})" for case in _CASES
            for worst in [max(cases[case]["port_classes"], key=lambda one: one["ps"])])
    loops = {case: {loop["to"]: loop for loop in cases[case]["loops"]} for case in _CASES}
    for name in list(loops["middle"])[:3]:
        yield f"one-cycle loop {name}: " + ", ".join(
            f"{loops[case][name]['mhz']:.0f} MHz with {case} nets" for case in _CASES
            if name in loops[case])
    yield (f"control sets: {sets['count']:,}; omitted ends of paths between clocks: "
           f"{report['ends_of_other_clocks']:,}")
    yield "not modelled: " + "; ".join(report["assumptions"]["left_out"])


def _table(title: str, texts: Sequence[str], numbers: Sequence[str],
           fold: Sequence[str] = ()) -> Table:
    table = Table(title=title, box=box.SIMPLE, padding=(0, 0, 0, 1), pad_edge=False)
    for column in texts:
        table.add_column(column, no_wrap=column not in fold, overflow="fold")
    for column in numbers:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def _short(name: str, top: str) -> str:
    return name.removeprefix(f"{top}__")
