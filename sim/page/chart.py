"""Charts: panels of series, independent of the library that draws them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

__all__ = ["COLOURS", "DIVERGING", "Axis", "Chart", "Panel", "Series", "Shade", "colour_of"]

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000", "#7F7F7F")
"""Okabe and Ito's palette, which colour-blind readers can distinguish."""

DIVERGING = ("#B34700", "#F1A15F", "#F2F2F2", "#67A9CF", "#0B5394")
"""Colours of a shade from worse, through equal, to better."""

_KINDS = ("bar", "line", "point", "cell")

_OF_SYSTEM = dict(zip(("bl-tuned", "ga", "en", "fs", "rc", "sc", "lc"), COLOURS)) | {
    "nic": "#F0E442"}


def colour_of(system: str) -> str:
    """Return the colour of a system in every chart; unknown systems share the last colour."""
    return _OF_SYSTEM.get(system.lower(), COLOURS[-1])


@dataclass(frozen=True)
class Axis:
    """An axis.

    Members
    -------
    label: text beside the axis, with the unit. log: whether the axis is logarithmic.
    ticks: positions of the ticks, or empty for automatic ticks. names: texts of the ticks.
    bounds: first and last value, or None for automatic bounds.
    """

    label: str = ""
    log: bool = False
    ticks: Sequence[float] = ()
    names: Sequence[str] = ()
    bounds: tuple[float, float] | None = None

    @property
    def shown(self) -> list[str]:
        """Texts of the ticks: the names, or the positions."""
        return list(self.names) or [f"{tick:g}" for tick in self.ticks]


@dataclass(frozen=True)
class Shade:
    """A colour bar beside a panel.

    Members
    -------
    axis: label, ticks and names; ``bounds`` are required, and the axis is linear. colours: colours
    at equal distances, lowest first. bar: whether the bar is drawn.
    """

    axis: Axis
    colours: Sequence[str] = DIVERGING
    bar: bool = True

    def __post_init__(self) -> None:
        if self.axis.bounds is None or self.axis.log:
            raise ValueError("axis must be linear and have bounds")


@dataclass(frozen=True, kw_only=True)
class Series:
    """Values with one legend entry.

    Members
    -------
    name: text of the legend. kind: ``bar``, ``line`` (with markers), ``point`` (markers alone) or
        ``cell`` (a field for each pair of texts, coloured by ``shades``).
    x, y: positions, of equal length; a missing value is None. Texts make the axis categorical.
    low, high: ends of the intervals of the values (y, or x if the panel is horizontal), or empty.
    colour: a colour, or a colour for each value. shades: numbers that choose the colours of points
        and cells instead, see :attr:`Panel.shade`; empty for ``colour``.
    marker: ``circle``, ``diamond``, ``ring`` (hollow diamond), ``tick`` (short line across a bar),
        or empty for a line without markers. dotted: whether the line is dotted.
    base: ends of bars that do not begin at 0, or empty.
    labels: texts at the values, or empty. notes: further text of each value on hover, or empty.
    legend: whether the legend contains the series.
    """

    name: str
    kind: str = "line"
    x: Sequence[float | str | None]
    y: Sequence[float | str | None]
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()
    colour: str | Sequence[str] = COLOURS[0]
    shades: Sequence[float] = ()
    marker: str = "circle"
    dotted: bool = False
    base: Sequence[float] = ()
    labels: Sequence[str] = ()
    notes: Sequence[str] = ()
    legend: bool = True

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise ValueError(f"kind must be one of {', '.join(_KINDS)}, not {self.kind!r}")
        for name in ("y", "low", "high", "shades", "base", "labels", "notes"):
            if (given := len(getattr(self, name))) not in (len(self.x), *([0] * (name != "y"))):
                raise ValueError(f"{name} must have {len(self.x)} values, as x, not {given}")


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One pair of axes.

    Members
    -------
    title: text above the panel. series: drawn in this order. x, y: the axes.
    horizontal: whether bars run along the x axis, with the first category on top.
    stacked: whether bars of one category are stacked. level: value with a dotted line, or None: of
        the x axis if ``horizontal``, else of the y axis.
    shade: colours of the series with ``shades``, or None.
    note: a line of text below the panel. height: in place of the chart's, or None.
    """

    title: str = ""
    series: Sequence[Series] = ()
    x: Axis = field(default_factory=Axis)
    y: Axis = field(default_factory=Axis)
    horizontal: bool = False
    stacked: bool = False
    level: float | None = None
    shade: Shade | None = None
    note: str = ""
    height: float | None = None

    @property
    def room(self) -> float | None:
        """End of the axis of values that leaves room for labels beside bars; None if the axis needs
        no room, or has its own bounds."""
        values = self.x if self.horizontal else self.y
        labelled = any(each.kind == "bar" and each.labels for each in self.series)
        if not labelled or self.stacked or values.log or values.bounds is not None:
            return None
        most = max((value for each in self.series
                    for ends in (each.x if self.horizontal else each.y, each.high)
                    for value in ends if isinstance(value, int | float)), default=0.0)
        return (1.25 if self.horizontal else 1.15) * most or 1.0


@dataclass(frozen=True, kw_only=True)
class Chart:
    """Panels below a title.

    Members
    -------
    name: stem of the PNG and of the CSV file; an identifier on the page.
    title: heading. setting: values that all panels share. columns: panels side by side in the PNG;
    a page places as many side by side as fit. height: height of a panel, inches at 100 pixels.
    """

    name: str
    title: str
    panels: Sequence[Panel]
    setting: str = ""
    columns: int = 1
    height: float = 3.0
