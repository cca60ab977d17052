"""Generator of the timing page as Markdown."""

from collections.abc import Iterable, Sequence
from typing import Any

from gen.documents.markdown import table
from gen.timing.nets import CASE_NAMES

__all__ = ["timing_markdown"]

_CASES = CASE_NAMES[::-1]


def timing_markdown(report: dict[str, Any], note: str,
                    training: dict[str, Any] | None = None) -> str:
    """Return ``timing.md`` from a report of :func:`gen.timing.report.report_timing`.

    ``training`` is that of the same configuration with training: its blocks get a table too.
    """
    parts = [
        f"# Timing of `{report['name']}`, estimated\n\n{note}\n", _assumptions(report),
        _conclusions(report), _interval(report),
        "![MHz of each block in three cases of nets, and slack of all ends](timing.svg)\n",
        _blocks("By block", report), _paths(report), _classes(report), _loops(report),
        _loads(report)]
    if training is not None:
        parts += [_interval(training, "With training"),
                  _blocks("By block, with training", training),
                  _loads(training, "Loads, with training")]
    return "\n".join(parts)


def _assumptions(report: dict[str, Any]) -> str:
    assumed = report["assumptions"]
    text = ("Static timing analysis of the mapped netlist. Nothing is placed, so each figure "
            "stands three times, for nets of three kinds that were fixed beforehand; what is "
            "believed of one case alone is believed of an assumption.\n\n")
    text += table(("nets", "delay in ps, n loads"), (
        (net["case"], f"{net['base_ps']}" + (
            f" + {net['ps_per_root_of_fan_out']} √n" if net["ps_per_root_of_fan_out"] else ""))
        for net in reversed(assumed["nets"])))
    return (f"{text}\nDelays of cells: {assumed['delays'].removeprefix('cells: ')}.\n"
            f"Mapping: {assumed['mapping']}.\nNot modelled: {'; '.join(assumed['left_out'])}.\n")


def _conclusions(report: dict[str, Any]) -> str:
    """What a sceptic may take from the figures at 250 MHz."""
    blocks, cases = report["blocks"], _by_case(report)
    late = {case: [block for block in blocks if block[case]["mhz"] < 250] for case in _CASES}
    never, open_ = late["optimistic"], len(late["pessimistic"]) - len(late["optimistic"])
    named = ", ".join(f"`{_name(block, report)}`" for block in never)
    if never:
        named = f" ({named}): hardly any placement helps these, other logic or a better mapping may"
    return (
        "## What may be concluded at 250 MHz\n\n"
        f"Of {len(blocks)} blocks, {len(blocks) - len(late['pessimistic'])} have slack with "
        "pessimistic nets: if one of them fails once placed, its nets are slower than assumed, or "
        f"something is not modelled. {len(never)} have none even with optimistic nets"
        f"{named}. "
        f"For the other {open_} the estimate decides nothing: {len(late['middle'])} blocks miss "
        "250 MHz in the middle case, but where in its interval a block will lie is for placement "
        "to say. A block's worst path may run through other blocks too, and is counted for each; "
        "so mending one may mend several. A low rank in this table is a reason to look at a path, "
        "not proof of a slow one; a high rank is no proof of a fast one. What may not be "
        "concluded: that the design runs at 250 MHz, or at any frequency; that the case that fits "
        "one block fits another; anything of hold times, of congestion, of the die's edges or of "
        f"the shell. Late with pessimistic nets are {cases['pessimistic']['failing']['250']:,} of "
        f"{cases['pessimistic']['ends']:,} ends, with middle nets "
        f"{cases['middle']['failing']['250']:,}, with optimistic nets "
        f"{cases['optimistic']['failing']['250']:,}. `python -m tests.gen.timing.public` compares "
        "the same analysis with what Vivado said of public designs.\n")


def _interval(report: dict[str, Any], title: str = "Paths between registers") -> str:
    cases = _by_case(report)
    rows = []
    for case in _CASES:
        one = cases[case]
        ports = max((entry["ps"] for entry in one["port_classes"]), default=None)
        rows.append((case, f"{one['mhz']:.0f}", f"{one['ps']:,.0f}",
                     *(f"{one['slack_ps'][at]:,.0f}" for at in ("250", "300")),
                     *(f"{one['failing'][at]:,}" for at in ("250", "300")),
                     "none" if ports is None else f"{ports:,.0f}"))
    return (f"## {title}\n\nRegisters, memories and DSPs. Paths of ports stand apart: behind a "
            "port is a register of the neighbour, which is assumed. Ends that a path from another "
            f"clock reaches are left out: {report['ends_of_other_clocks']:,}.\n\n" + table(
                ("nets", "MHz", "worst path, ps", "slack at 250 MHz", "slack at 300 MHz",
                 "ends late at 250", "ends late at 300", "worst path of a port, ps"),
                rows, range(1, 8)))


def _blocks(title: str, report: dict[str, Any]) -> str:
    return (f"## {title}\n\nMHz at which the worst path through a block has no slack; it may begin "
            "and end elsewhere; `inside` has those of the worst path that stays in the block, what "
            "comes from elsewhere left out. The ends are those of the middle case; `LUTs` are the "
            "most on a path that ends in the block.\n\n" + table(
                ("block", "count", *_CASES, "inside", "LUTs", "from", "to"),
                ((f"`{_name(block, report)}`", block["instances"],
                  *(f"{block[case]['mhz']:.0f}" for case in _CASES), _inside(block), block["luts"],
                  *(_end(block["middle"][end]) for end in ("from", "to")))
                 for block in report["blocks"]), range(1, 7)))


def _inside(block: dict[str, Any]) -> str:
    found = [block[case]["inside"] for case in _CASES]
    return " / ".join(f"{one['mhz']:.0f}" for one in found) if all(found) else "none"


def _paths(report: dict[str, Any]) -> str:
    text = (f"## The {len(report['paths'])} worst paths, middle case\n\nOne for each register and "
            "kind of pin. A hop is a cell with its delay and that of the net behind it.\n")
    for place, path in enumerate(report["paths"], 1):
        text += (f"\n<details><summary>{place}. {path['ps']:,.0f} ps, {path['luts']} LUTs: "
                 f"<code>{path['from']}</code> ({path['from_kind']}) to <code>{path['to']}</code> "
                 f"({path['to_kind']}, {path['pin']})</summary>\n\n")
        text += table(("cell", "pins", "cell, ps", "net, ps", "loads", "signal", "declared"), (
            (hop["type"], f"{hop['entry']} → {hop['exit']}".strip(" →"), f"{hop['cell_ps']:,.0f}",
             f"{hop['net_ps']:,.0f}", f"{hop['fan_out']:,}", f"`{hop['signal']}`", hop["source"])
            for hop in path["hops"]), (2, 3, 4))
        text += "\n</details>\n"
    return text


def _classes(report: dict[str, Any]) -> str:
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for case, one in _by_case(report).items():
        for entry in (*one["classes"], *one["port_classes"]):
            key = entry["from_kind"], entry["to_kind"], entry["pin"]
            found.setdefault(key, {})[case] = entry
    rows = sorted(found.items(), key=lambda row: -max(one["ps"] for one in row[1].values()))
    return ("## By class of ends\n\nWhat launches, what captures, and what the pin is for; `inner` "
            "is inside a cell. Slack in ps at 250 MHz. An end is counted where its latest path "
            "belongs, in the middle case.\n\n" + table(
                ("from", "to", "pin", "ends", *_CASES),
                ((*key, f"{cases['middle']['ends']:,}" if "middle" in cases else "0",
                  *(f"{cases[case]['slack_ps']['250']:,.0f}" if case in cases else ""
                    for case in _CASES)) for key, cases in rows), range(3, 7)))


def _loops(report: dict[str, Any]) -> str:
    cases = {case: {loop["to"]: loop for loop in one["loops"]}
             for case, one in _by_case(report).items()}
    return ("## One-cycle loops\n\nRegisters whose next value depends on their own through logic: "
            "no register can be put into such a path. MHz; those without a figure are not among "
            "the slowest of that case.\n\n" + table(
                ("register", "declared", "LUTs", *_CASES),
                ((f"`{name}`", loop["source"], loop["luts"],
                  *(f"{cases[case][name]['mhz']:.0f}" if name in cases[case] else ""
                    for case in _CASES)) for name, loop in cases["middle"].items()),
                range(2, 6)))


def _loads(report: dict[str, Any], title: str = "Loads") -> str:
    sets, nets = report["control_sets"], report["nets"]
    text = f"## {title}\n\nThe nets with most loads, by what the loads are, without clocks:\n\n"
    text += _nets(nets["most_loads"])
    resets = ", ".join(f"`{net['net']}` {net['kinds']['reset']:,}" for net in nets["resets"][:3])
    text += f"\nLargest resets: {resets or 'none'}.\n\nThe nets that enable most:\n\n"
    text += _nets(nets["enables"])
    costly = report["costly_nets"]
    text += (f"\n{len(costly['nets']):,} nets have more than {costly['bound']} loads and are on a "
             "path that misses 250 MHz with pessimistic nets: with so many loads, fan-out costs "
             "a net as much as its distance.\n\n"
             f"{sets['count']:,} control sets (clock, enable and reset of flip-flops); "
             "the largest:\n\n")
    return text + table(("enable", "reset", "flip-flops"), (
        (_code(one["enable"]), _code(one["reset"]), f"{one['flip_flops']:,}")
        for one in sets["largest"]), (2,))


def _nets(nets: Iterable[dict[str, Any]]) -> str:
    nets = list(nets)
    kinds: Sequence[str] = [kind for kind in (nets[0]["kinds"] if nets else ())
                            if any(net["kinds"][kind] for net in nets)]
    return table(("net", "loads", *(kind.replace("_", " ") for kind in kinds)), (
        (f"`{net['net']}`", f"{net['loads']:,}", *(f"{net['kinds'][kind]:,}" for kind in kinds))
        for net in nets), range(1, 2 + len(kinds)))


def _by_case(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {case["case"]: case for case in report["cases"]}


def _name(block: dict[str, Any], report: dict[str, Any]) -> str:
    return block["name"].removeprefix(f"{report['name']}__")


def _end(end: dict[str, str]) -> str:
    return f"`{end['signal']}`" + (f" ({end['source']})" if end["source"] else "")


def _code(name: str) -> str:
    return f"`{name}`" if name else "none"
