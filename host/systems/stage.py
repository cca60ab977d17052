"""Stages (timed work on resources) and steps (graphs of stages)."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

__all__ = ["PHASES", "Part", "Stage", "Step", "ascending"]

PHASES = ("input_all_to_all", "embedding_lookup", "embedding_all_to_all", "irregular", "mlp",
          "backward_all_to_all", "all_reduce", "overhead")
"""Phases of a stage; :mod:`host.systems.breakdown` adds the phase ``wait``."""

_PHASES = frozenset(PHASES)


class Part(NamedTuple):
    """A share of a resource, above 0 and at most 1; several stages may hold parts at once."""

    resource: Hashable
    share: float


@dataclass(slots=True)
class Stage:
    """A piece of work; immutable by convention.

    The class is not frozen, because frozen instances are slower to create and a search creates
    many.

    Members
    -------
    name: label in reports.
    phase: one of :data:`PHASES`.
    us: duration in microseconds; 0 for a point where paths meet.
    resources: resources held from start to end, such as ``"cpu"``; empty for pure delays, such as
        the latency of a link.
    shares: share of each resource; the default is 1 each.
    after: numbers of the stages that end before this stage starts, each below its own number.

    Raises ``ValueError`` for an unknown phase, a negative time or a repeated resource.
    """

    name: str
    phase: str
    us: float
    resources: tuple[Hashable, ...] = ()
    after: tuple[int, ...] = ()
    shares: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.phase not in _PHASES:
            raise ValueError(f"phase must be one of {', '.join(PHASES)}, not {self.phase!r}")
        if not 0 <= self.us < inf:
            raise ValueError(f"us of {self.name} must be at least 0, not {self.us!r}")
        resources, shares = self.resources, self.shares
        if len(resources) > 1 and len(set(resources)) < len(resources):
            raise ValueError(f"resources of {self.name} must differ, not {self.resources!r}")
        if not shares:
            if resources:
                self.shares = (1.0,) * len(resources)
        elif len(shares) != len(resources) or not (min(shares) > 0 and max(shares) <= 1):
            raise ValueError(f"shares of {self.name} must be above 0 and at most 1, one for each "
                             f"of {self.resources!r}, not {self.shares!r}")

    @property
    def uses(self) -> list[tuple[Hashable, float]]:
        """Pairs of resource and share."""
        return list(zip(self.resources, self.shares))


def ascending(numbers: Sequence[int]) -> tuple[int, ...]:
    """Return ``numbers`` in ascending order, each once."""
    if len(numbers) == 2:
        first, second = numbers
        if first < second:
            return first, second
        return (first,) if first == second else (second, first)
    return tuple(sorted(set(numbers))) if len(numbers) > 2 else tuple(numbers)


@dataclass
class Step:
    """Stages of one mini-batch, or of one of its micro-batches, in topological order.

    Build it with :meth:`add`, which returns the number of a stage for ``after`` of later stages.

    Members
    -------
    stages: the stages.
    calls: numbers of the host's calls and waits that several mini-batches can share, in order, each
        with the microseconds that a further mini-batch adds
        (:func:`host.systems.shared_graph.in_one_graph`).
    """

    stages: list[Stage] = field(default_factory=list)
    calls: dict[int, float] = field(default_factory=dict)

    def add(self, name: str, phase: str, us: float, *resources: Hashable,
            after: tuple[int, ...] | list[int] = ()) -> int:
        """Append a stage and return its number.

        resources: names of whole resources, or :class:`Part` objects; parts with share 0 are
        omitted.

        Raises ``ValueError`` if ``after`` names a later stage.
        """
        number = len(self.stages)
        before = ascending(after)
        if before and not 0 <= before[0] <= before[-1] < number:
            wrong = before[0] if before[0] < 0 else before[-1]
            raise ValueError(f"after of {name} must be between 0 and {number - 1}, not {wrong!r}")
        if not resources:
            self.stages.append(Stage(name, phase, us, (), before))
            return number
        names, shares = [], []
        for use in resources:
            resource, share = use if isinstance(use, Part) else (use, 1.0)
            if share:
                names.append(resource)
                shares.append(share)
        self.stages.append(Stage(name, phase, us, tuple(names), before, tuple(shares)))
        return number

    def again(self, stage: Stage, after: tuple[int, ...]) -> int:
        """Append a stage like ``stage`` behind the stages ``after``, and return its number.

        ``after``: ascending and distinct numbers of this step's stages.
        """
        new = object.__new__(Stage)  # the checks were made for ``stage``
        new.name, new.phase, new.us, new.resources, new.after, new.shares = (
            stage.name, stage.phase, stage.us, stage.resources, after, stage.shares)
        self.stages.append(new)
        return len(self.stages) - 1
