"""Registry of figures and tables. To add one, add a module to this folder and a line to `NAMES`.

Exhibits that depend on claims are modules of the package ``maps``, which is above claims.
"""

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sim.experiments.figures.exhibit import Exhibit

__all__ = ["HEAVY", "NAMES", "RESULTS", "chosen", "demo_names", "exhibit", "in_words"]

NAMES: tuple[str, ...] = (
    "fig06",
    "fig08",
    "fig14",
    "fig15",
    "fig16",
    "fig17",
    "fig18",
    "fig19",
    "fig20",
    "fig21",
    "fig22",
    "fig23",
    "fig24",
    "fig25",
    "fig26",
    "fig27",
    "alternate",
    "tornado",
    "levels",
    "beyond",
    "en",
    "checks",
    "paper_like",
    "montecarlo",
    "phase_map",
)
"""Modules with an `EXHIBIT`, in the order of measuring and showing."""

HEAVY = ("tornado", "montecarlo", "phase_map", "en")
"""Names that take half an hour or more each on two processors; ``all`` omits them."""

RESULTS = "results"
"""Name of the page of results, see :mod:`sim.experiments.results`; it is made alone."""

_MAPS = ("paper_like", "phase_map")
"""Names in the package ``maps``."""


def exhibit(name: str) -> "Exhibit":
    """Return the figure or table of a name of `NAMES`."""
    # Imported on demand: Matplotlib is slow to import, and the help needs only the names.
    folder = "maps" if name in _MAPS else "figures"
    return import_module(f"sim.experiments.{folder}.{name}").EXHIBIT


def chosen(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names without duplicates, in the order of `NAMES`; ``all`` or no name means all
    except `HEAVY`.

    Raises ``ValueError`` for an unknown name.
    """
    wanted = list(names) or ["all"]
    for name in wanted:
        if name not in (*NAMES, "all"):
            raise ValueError(f"figure must be one of {', '.join(NAMES)} or all, not {name!r}")
    return tuple(name for name in NAMES
                 if name in wanted or ("all" in wanted and name not in HEAVY))


def demo_names() -> tuple[str, ...]:
    """Return the names that ``--demo`` includes."""
    return tuple(name for name in NAMES if exhibit(name).demo)


def in_words() -> str:
    """Return the names as a list; ``fig14 to fig27`` abbreviates three or more consecutive names.
    """
    runs: list[list[str]] = []
    for name in NAMES:
        if runs and _follows(runs[-1][-1], name):
            runs[-1].append(name)
        else:
            runs.append([name])
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(run) for run in runs)


def _follows(before: str, name: str) -> bool:
    """Return whether two names differ only in their numbers, by one."""
    (stem, first), (other, second) = _split(before), _split(name)
    return stem == other and bool(first and second) and int(second) == int(first) + 1


def _split(name: str) -> tuple[str, str]:
    """Return a name without its final number, and that number, empty if there is none."""
    stem = name.rstrip("0123456789")
    return stem, name.removeprefix(stem)
