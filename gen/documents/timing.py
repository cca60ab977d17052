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

    training: timing report with ``training=true``; adds a table of its blocks.
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
    text = ("Static timing analysis of the mapped netlist. The design is not placed, so each "
            "result is given for three assumptions about the delay of nets.\n\n")
    text += table(("nets", "delay in ps, n loads"), (
        (net["case"], f"{net['base_ps']}" + (
            f" + {net['ps_per_root_of_fan_out']} √n" if net["ps_per_root_of_fan_out"] else ""))
        for net in reversed(assumed["nets"])))
    return (f"{text}\nDelays of cells: {assumed['delays'].removeprefix('cells: ')}.\n"
            f"Mapping: {assumed['mapping']}.\nNot modelled: {'; '.join(assumed['left_out'])}.\n")


def _conclusions(report: dict[str, Any]) -> str:
    """Return the conclusions that the report allows at 250 MHz."""
    blocks, cases = report["blocks"], _by_case(report)
    late = {case: [block for block in blocks if block[case]["mhz"] < 250] for case in _CASES}
    never, open_ = late["optimistic"], len(late["pessimistic"]) - len(late["optimistic"])
    named = ", ".join(f"`{_name(block, report)}`" for block in never)
    if never:
        named = f" ({named}): placement will hardly help, other logic or a better mapping may"
    return (
        "## Conclusions at 250 MHz\n\n"
        f"{len(blocks)} blocks:\n\n"
        f"- {len(blocks) - len(late['pessimistic'])} have slack with pessimistic nets. They fail "
        "only if their nets are slower than assumed.\n"
        f"- {len(never)} miss 250 MHz even with optimistic nets{named}.\n"
        f"- {open_} are undecided: placement decides. {len(late['middle'])} blocks miss 250 MHz in "
        "the middle case.\n\n"
        f"Ends that miss 250 MHz, of {cases['pessimistic']['ends']:,}: "
        + ", ".join(f"{cases[case]['failing']['250']:,} with {case} nets" for case in _CASES)
        + ". A path through several blocks counts for each of them. The estimate does not prove a "
        "frequency of the design. It omits hold times, congestion, die crossings and the shell. "
        "`python -m tests.gen.timing.public` compares the analysis with Vivado's results for "
        "public designs.\n")


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
    return (f"## {title}\n\nPaths between registers, memories and DSPs. The last column is for "
            "paths of ports, which assume a register behind the port. "
            f"{report['ends_of_other_clocks']:,} ends of paths between clocks are omitted.\n\n"
            + table(
                ("nets", "MHz", "worst path, ps", "slack at 250 MHz", "slack at 300 MHz",
                 "ends late at 250", "ends late at 300", "worst path of a port, ps"),
                rows, range(1, 8)))


def _blocks(title: str, report: dict[str, Any]) -> str:
    return (f"## {title}\n\nMHz at which the worst path through a block has slack 0. The path may "
            "begin and end in other blocks; `inside` is for paths that stay in the block. `from` "
            "and `to` are for the middle case. `LUTs` is the largest number on a path that ends in "
            "the block.\n\n" + table(
                ("block", "count", *_CASES, "inside", "LUTs", "from", "to"),
                ((f"`{_name(block, report)}`", block["instances"],
                  *(f"{block[case]['mhz']:.0f}" for case in _CASES), _inside(block), block["luts"],
                  *(_end(block["middle"][end]) for end in ("from", "to")))
                 for block in report["blocks"]), range(1, 7)))


def _inside(block: dict[str, Any]) -> str:
    found = [block[case]["inside"] for case in _CASES]
    return " / ".join(f"{one['mhz']:.0f}" for one in found) if all(found) else "none"


def _paths(report: dict[str, Any]) -> str:
    text = (f"## The {len(report['paths'])} worst paths, middle case\n\nThe worst path to each "
            "register and kind of pin. A row is a cell with its delay and the delay of its output "
            "net.\n")
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
    return ("## By class of ends\n\nSlack in ps at 250 MHz, by launching element, capturing "
            "element and function of the pin. `inner` is a path inside a cell. An end counts in "
            "the class of its latest path in the middle case.\n\n" + table(
                ("from", "to", "pin", "ends", *_CASES),
                ((*key, f"{cases['middle']['ends']:,}" if "middle" in cases else "0",
                  *(f"{cases[case]['slack_ps']['250']:,.0f}" if case in cases else ""
                    for case in _CASES)) for key, cases in rows), range(3, 7)))


def _loops(report: dict[str, Any]) -> str:
    cases = {case: {loop["to"]: loop for loop in one["loops"]}
             for case, one in _by_case(report).items()}
    return ("## One-cycle loops\n\nMHz of registers whose next value depends on their own value. "
            "Such a path cannot be pipelined. A cell is empty if the register is not among the "
            "slowest of that case.\n\n" + table(
                ("register", "declared", "LUTs", *_CASES),
                ((f"`{name}`", loop["source"], loop["luts"],
                  *(f"{cases[case][name]['mhz']:.0f}" if name in cases[case] else ""
                    for case in _CASES)) for name, loop in cases["middle"].items()),
                range(2, 6)))


def _loads(report: dict[str, Any], title: str = "Loads") -> str:
    sets, nets = report["control_sets"], report["nets"]
    text = f"## {title}\n\nNets with most loads, by kind of load, without clocks:\n\n"
    text += _nets(nets["most_loads"])
    resets = ", ".join(f"`{net['net']}` {net['kinds']['reset']:,}" for net in nets["resets"][:3])
    text += f"\nLargest resets: {resets or '-'}.\n\nNets with most loads at enable pins:\n\n"
    text += _nets(nets["enables"])
    costly = report["costly_nets"]
    text += (f"\n{len(costly['nets']):,} nets have more than {costly['bound']} loads and are on a "
             "path that misses 250 MHz with pessimistic nets. At that number of loads, fan-out "
             "costs as much delay as distance.\n\n"
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
