"""Panels as figures of Plotly: dictionaries of Plotly's JSON schema."""

from collections.abc import Sequence
from html import escape
from math import log10
from typing import Any

from sim.page.chart import Axis, Panel, Series, Shade

__all__ = ["figure_of"]

_SYMBOLS = {"circle": "circle", "diamond": "diamond", "ring": "diamond-open",
            "tick": "line-ns-open"}
_GRID, _LINE = "#e4e4e4", "#888888"


def figure_of(panel: Panel) -> dict[str, Any]:
    """Return ``data`` and ``layout`` of a panel."""
    layout: dict[str, Any] = {
        "autosize": True, "margin": {"l": 8, "r": 8, "t": 8, "b": 8}, "hovermode": "closest",
        "barmode": _bar_mode(panel),
        "font": {"family": "system-ui, sans-serif", "size": 12}, "hoverlabel": {"align": "left"},
        "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom",
                   "font": {"size": 11}, "traceorder": "normal"},
        "showlegend": sum(each.legend for each in panel.series) > 1,
        "xaxis": _axis(panel.x, panel.series, "x"), "yaxis": _axis(panel.y, panel.series, "y")}
    if panel.horizontal or any(each.kind == "cell" for each in panel.series):
        layout["yaxis"] |= {"autorange": "reversed"}
    if (room := panel.room) is not None:
        layout["xaxis" if panel.horizontal else "yaxis"]["range"] = [0, room]
    if panel.level is not None:
        along, across = ("x", "y") if panel.horizontal else ("y", "x")
        layout["shapes"] = [{
            "type": "line", f"{along}0": panel.level, f"{along}1": panel.level,
            f"{across}0": 0, f"{across}1": 1, f"{across}ref": f"{across} domain",
            f"{along}ref": along, "line": {"dash": "dot", "width": 1, "color": "#666666"}}]
    return {"data": [_trace(each, panel) for each in panel.series], "layout": layout}


def _bar_mode(panel: Panel) -> str:
    if any(each.base for each in panel.series):
        return "overlay"
    return "stack" if panel.stacked else "group"


def _axis(axis: Axis, series: Sequence[Series], along: str) -> dict[str, Any]:
    """Return an axis; texts among the values along it make it categorical."""
    named = any(isinstance(value, str) for each in series for value in getattr(each, along))
    found: dict[str, Any] = {
        "title": {"text": escape(axis.label), "font": {"size": 12}, "standoff": 8},
        "automargin": True,
        "type": "category" if named else "log" if axis.log else "linear",
        "gridcolor": _GRID, "zerolinecolor": _GRID, "linecolor": _LINE,
        "showgrid": not named, "fixedrange": named}
    found |= _ticks(axis)
    if axis.log and not axis.ticks:
        found |= {"dtick": "D2" if _narrow(series, along) else 1}
    if axis.bounds is not None:
        found["range"] = [log10(end) if axis.log else end for end in axis.bounds]
    return found


def _narrow(series: Sequence[Series], along: str) -> bool:
    """Return whether the values along an axis span less than two decades."""
    values = [value for each in series for value in getattr(each, along)
              if isinstance(value, int | float) and value > 0]
    return bool(values) and max(values) < 100 * min(values)


def _trace(series: Series, panel: Panel) -> dict[str, Any]:
    """Return the trace of a series."""
    if series.kind == "cell":
        return _cells(series, panel)
    bar = series.kind == "bar"
    along = "x" if panel.horizontal else "y"
    axis, place = (panel.x, "y") if panel.horizontal else (panel.y, "x")
    trace: dict[str, Any] = {
        "type": "bar" if bar else "scatter", "name": escape(series.name),
        "x": [_text(value) for value in series.x], "y": [_text(value) for value in series.y],
        "showlegend": series.legend,
        "hovertemplate": f"<b>{escape(series.name)}</b><br>%{{{place}}}<br>"
                         f"%{{{along}:,.4~g}} {escape(axis.label)}%{{customdata}}<extra></extra>",
        "customdata": [_more(series, at) for at in range(len(series.x))]}
    if series.labels:
        beside = "inside" if panel.stacked or series.high else "outside"
        trace |= {"text": [escape(label) for label in series.labels],
                  "textposition": beside if bar else "top center"}
    colour = series.colour if isinstance(series.colour, str) else list(series.colour)
    if bar:
        trace |= {"orientation": "h" if panel.horizontal else "v", "marker": {"color": colour},
                  "cliponaxis": False}
        if series.base:
            trace["base"] = list(series.base)
    else:
        shown = {"lines": series.kind == "line", "markers": series.marker, "text": series.labels}
        trace["mode"] = "+".join(part for part, there in shown.items() if there)
        symbol = _SYMBOLS.get(series.marker, "circle")
        if series.marker == "tick" and not panel.horizontal:
            symbol = "line-ew-open"
        trace["marker"] = {"color": colour, "symbol": symbol,
                           "size": {"tick": 22, "ring": 10}.get(series.marker, 7)}
        if series.marker in ("tick", "ring"):
            trace["marker"]["line"] = {"width": 2, "color": colour}
        if series.kind == "line":
            trace["line"] = {"color": colour, "width": 2,
                             "dash": "dot" if series.dotted else "solid"}
    if series.shades and panel.shade is not None:
        trace["marker"] |= _shaded(series, panel.shade)
    if series.high:
        values = series.x if panel.horizontal else series.y
        trace[f"error_{along}"] = {
            "type": "data", "symmetric": False, "thickness": 1, "width": 3,
            "array": [_less(end, value) for end, value in zip(series.high, values)],
            "arrayminus": [_less(value, end) for end, value in zip(series.low, values)]}
    return trace


def _cells(series: Series, panel: Panel) -> dict[str, Any]:
    """Return the trace of cells; cells without a value are empty."""
    assert panel.shade is not None
    return {"type": "heatmap", "name": escape(series.name),
            "x": [_text(value) for value in series.x], "y": [_text(value) for value in series.y],
            "z": list(series.shades), "text": [escape(label) for label in series.labels] or None,
            "texttemplate": "%{text}" if series.labels else "", "xgap": 2, "ygap": 2,
            "customdata": [_more(series, at) for at in range(len(series.x))],
            "hovertemplate": "%{x}<br>%{y}<br>%{text}%{customdata}<extra></extra>",
            **_scale_of(panel.shade, "z")}


def _text(value: Any) -> Any:
    """Return a category as Plotly shows it; numbers are unchanged."""
    return escape(value).replace("\n", "<br>") if isinstance(value, str) else value


def _shaded(series: Series, shade: Shade) -> dict[str, Any]:
    """Return the colours of points, and their colour bar."""
    return {"color": list(series.shades), **_scale_of(shade, "c"),
            "size": 11, "line": {"width": 1, "color": "#444444"}}


def _scale_of(shade: Shade, letter: str) -> dict[str, Any]:
    """Return the colours of a shade, and its bar. ``letter``: of the colours, c or z."""
    axis, last = shade.axis, len(shade.colours) - 1
    low, high = axis.bounds or (0, 1)
    return {f"{letter}min": low, f"{letter}max": high, "showscale": shade.bar,
            "colorscale": [[at / last, colour] for at, colour in enumerate(shade.colours)],
            "colorbar": {"title": {"text": escape(axis.label), "side": "right"}, "thickness": 12,
                         **_ticks(axis)}}


def _ticks(axis: Axis) -> dict[str, Any]:
    if not axis.ticks:
        return {}
    return {"tickmode": "array", "tickvals": list(axis.ticks),
            "ticktext": [escape(name) for name in axis.shown]}


def _less(end: Any, value: Any) -> float:
    return 0.0 if end is None or value is None else end - value


def _more(series: Series, at: int) -> str:
    """Return the interval and the note of a value, as lines."""
    lines = []
    if series.high and series.high[at] is not None:
        lines.append(f"{series.low[at]:,.4g} to {series.high[at]:,.4g}")
    if series.notes and series.notes[at]:
        lines.append(escape(series.notes[at]))
    return "".join(f"<br>{line}" for line in lines)
