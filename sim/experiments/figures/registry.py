"""The registry of figures and tables: to add one is a file in this folder and a line in `NAMES`.

Those that need what claims make of results are files of the folder ``maps``, which is above claims.
"""

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sim.experiments.figures.exhibit import Exhibit

__all__ = ["HEAVY", "NAMES", "chosen", "demo_names", "exhibit", "in_words"]

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
"""Files with an `EXHIBIT`, in the order in which they are measured and shown."""

HEAVY = ("tornado", "montecarlo", "phase_map", "en")
"""Those of `NAMES` that take half an hour or more each on two processors: made when asked for by
name, not by ``all``."""

_MAPS = ("paper_like", "phase_map")
"""Those of `NAMES` that lie in the folder ``maps``; the others lie in this one."""


def exhibit(name: str) -> "Exhibit":
    """Return the figure or table of a name of `NAMES`."""
    # Loaded on demand: Matplotlib is slow to load, and the help of a command needs names only.
    folder = "maps" if name in _MAPS else "figures"
    return import_module(f"sim.experiments.{folder}.{name}").EXHIBIT


def chosen(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names without repeats, in the order of `NAMES`; ``all`` or no name means all but
    the `HEAVY` ones.

    Raises ``ValueError`` for an unknown name.
    """
    wanted = list(names) or ["all"]
    for name in wanted:
        if name not in (*NAMES, "all"):
            raise ValueError(f"figure must be one of {', '.join(NAMES)} or all, not {name!r}")
    return tuple(name for name in NAMES
                 if name in wanted or ("all" in wanted and name not in HEAVY))


def demo_names() -> tuple[str, ...]:
    """Return the names of what ``--demo`` makes."""
    return tuple(name for name in NAMES if exhibit(name).demo)


def in_words() -> str:
    """Return the names as a list in which ``fig14 to fig27`` stands for three or more in a row."""
    runs: list[list[str]] = []
    for name in NAMES:
        if runs and _follows(runs[-1][-1], name):
            runs[-1].append(name)
        else:
            runs.append([name])
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(run) for run in runs)


def _follows(before: str, name: str) -> bool:
    """Return whether two names differ in their numbers alone, and those by one."""
    (stem, first), (other, second) = _split(before), _split(name)
    return stem == other and bool(first and second) and int(second) == int(first) + 1


def _split(name: str) -> tuple[str, str]:
    """Return a name without the number at its end, and the number, empty for none."""
    stem = name.rstrip("0123456789")
    return stem, name.removeprefix(stem)
