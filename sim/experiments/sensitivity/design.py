"""Design of the NIC runs: a few points that fill the space of the constants that reach NICs."""

from collections.abc import Sequence

from sim.evaluation.point import Point
from sim.experiments.sensitivity.compose import nic_constants, served_ways
from sim.experiments.sensitivity.draws import WIDEST, latin_hypercube

__all__ = ["design", "reaching", "scaled_by"]


def scaled_by(point: Point, names: Sequence[str], factors: Sequence[float]) -> Point:
    """Return ``point`` with constants multiplied by factors."""
    return point.changed(scaled=(*point.cluster.scaled, *(
        (name, float(factor)) for name, factor in zip(names, factors))))


def reaching(point: Point, names: Sequence[str]) -> list[str]:
    """Return the constants of ``names`` that a point's NICs see, for any way to read rows."""
    seen = [(way, nic_constants(way)) for way in served_ways(point)]
    return [name for name in names if any(
        nic_constants(scaled_by(way, [name], [factor])) != as_is
        for way, as_is in seen for factor in (1 / WIDEST, WIDEST))]


def design(bases: Sequence[Point], names: Sequence[Sequence[str]], sets: int,
           seed: int) -> list[Point]:
    """Return ``sets`` points whose NICs are run, shared by all draws.

    The first are the points of ``bases`` with different NICs. A Latin hypercube over the constants
    that reach NICs follows, assigned to ``bases`` in turn.

    Parameters
    ----------
    bases: one point with NICs for each software profile. names: uncertain constants of each.

    Raises ``ValueError`` for fewer sets than twice the bases.
    """
    if sets < 2 * len(bases):
        raise ValueError(f"nic_sets must be at least {2 * len(bases)} for each workload, "
                         f"not {sets!r}")
    found: list[Point] = []
    for base in bases:
        if all(nic_constants(base) != nic_constants(other) for other in found):
            found.append(base)
    reach = [reaching(base, of) for base, of in zip(bases, names)]
    # A constant of both software profiles is one axis.
    axes = list(dict.fromkeys(_role(name) for of in reach for name in of))
    left = sets - len(found)
    for number, place in enumerate(latin_hypercube(left, len(axes), seed)):
        which = number % len(bases)
        factors = dict(zip(axes, (WIDEST ** (2 * place - 1)).tolist()))
        found.append(scaled_by(bases[which], reach[which],
                               [factors[_role(name)] for name in reach[which]]))
    return found


def _role(name: str) -> str:
    """Return a constant's name without its software profile."""
    profile, _, constant = name.partition(".")
    return f"software.{constant}" if profile.startswith("software_") else name
