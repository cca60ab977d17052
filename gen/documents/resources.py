"""Generator of the resource page as Markdown."""

from typing import Any

from gen.documents.markdown import table

__all__ = ["resources_markdown"]

_KINDS = ("lut", "ff", "bram36", "uram", "dsp")


def resources_markdown(report: dict[str, Any], note: str) -> str:
    """Return ``resources.md`` from a report of :func:`gen.netlist.report.report_resources`.

    Raises ``ValueError`` if ``report`` has another form.
    """
    try:
        name, blocks, total = report["name"], report["blocks"], report["total"]
        available, left = report["available"], report["not_estimated"]
        text = (f"# Resources of `{name}`\n\n{note}\n\n"
                "## Against one super logic region of a U280\n\n")
        text += table(("", "used", "available", "share"), (
            (kind.upper(), _number(total[kind]), _number(available[kind]),
             f"{100 * total[kind] / available[kind]:.1f} %") for kind in _KINDS
            if kind in available), (1, 2, 3))
        text += (f"\nDeepest path: **{total['depth']} LUTs** between registers, memories and DSPs "
                 f"(a carry chain counts 1), from {_end(total['path']['from'])} to "
                 f"{_end(total['path']['to'])}.\n\n"
                 f"Not estimated: {', '.join(left['what'])}. Run `{left['script']}`, beside the "
                 f"Verilog, in {left['tool']}.\n\n## By block\n\n"
                 "Resources of one instance. `depth` is the longest path in LUTs, including paths "
                 "from and to ports.\n\n")
        text += table(("block", "count", *(kind.upper() for kind in _KINDS), "depth"), (
            (f"`{block['name'].removeprefix(name + '__')}`", block["instances"],
             *(_number(block[kind]) for kind in _KINDS), block["depth"]) for block in blocks),
            range(1, 8))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("report must be a file of python -m gen --report: "
                         f"{type(report).__name__} without {error}") from None
    return text


def _number(value: float) -> str:
    return f"{value:,.1f}" if value % 1 else f"{int(value):,}"


def _end(end: dict[str, str]) -> str:
    return f"`{end['signal']}`" + (f" ({end['source']})" if end["source"] else "")
