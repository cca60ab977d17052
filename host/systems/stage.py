"""Stages, which take time on resources after others, and steps, which are graphs of stages."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

__all__ = ["PHASES", "Part", "Stage", "Step"]

PHASES = ("input_all_to_all", "embedding_lookup", "embedding_all_to_all", "irregular", "mlp",
          "backward_all_to_all", "all_reduce", "overhead")
"""Purposes of a stage; time in which a step waits for a resource has the further phase ``wait``."""


class Part(NamedTuple):
    """A share of a resource, above 0 and at most 1: several stages may use it at once."""

    resource: Hashable
    share: float


@dataclass(slots=True)
class Stage:
    """One piece of work; nothing changes it once it is made. (Not frozen, which takes longer: steps
    have hundreds, and a search makes hundreds of steps.)

    Members
    -------
    name: for reports.
    phase: one of :data:`PHASES`.
    us: its duration in microseconds; 0 for a point where paths meet.
    resources: what it holds from start to end, such as ``"cpu"``; none for pure delays, such as the
        latency of a link.
    shares: how much of each, 1 for all of it.
    after: numbers of the stages of the same step that end before it starts; each below its own.

    Raises ``ValueError`` for an unknown phase, a negative time or a repeated resource.
    """

    name: str
    phase: str
    us: float
    resources: tuple[Hashable, ...] = ()
    after: tuple[int, ...] = ()
    shares: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.phase not in PHASES:
            raise ValueError(f"phase must be one of {', '.join(PHASES)}, not {self.phase!r}")
        if not 0 <= self.us < inf:
            raise ValueError(f"us of {self.name} must be at least 0, not {self.us!r}")
        if len(set(self.resources)) < len(self.resources):
            raise ValueError(f"resources of {self.name} must differ, not {self.resources!r}")
        if not self.shares:
            self.shares = (1.0,) * len(self.resources)
        elif len(self.shares) != len(self.resources) or not (
                min(self.shares) > 0 and max(self.shares) <= 1):
            raise ValueError(f"shares of {self.name} must be above 0 and at most 1, one for each "
                             f"of {self.resources!r}, not {self.shares!r}")

    @property
    def uses(self) -> list[tuple[Hashable, float]]:
        """Each resource with its share."""
        return list(zip(self.resources, self.shares))


@dataclass
class Step:
    """The stages of one mini-batch, or of one of its micro-batches, in topological order.

    Build it with :meth:`add`, which returns a stage's number for the ``after`` of later ones.

    Members: ``stages``; ``calls``, numbers of those in which the host's thread calls or waits once
    for however many mini-batches, in its order, each with the microseconds that a further one adds
    (:func:`host.systems.shared_graph.in_one_graph`).
    """

    stages: list[Stage] = field(default_factory=list)
    calls: dict[int, float] = field(default_factory=dict)

    def add(self, name: str, phase: str, us: float, *resources: Hashable,
            after: tuple[int, ...] | list[int] = ()) -> int:
        """Append a stage and return its number. Raises ``ValueError`` for a later ``after``.

        ``resources``: each whole, or a :class:`Part` of it; a part of nothing is left out.
        """
        number = len(self.stages)
        before = tuple(sorted(set(after))) if len(after) > 1 else tuple(after)
        if before and not 0 <= before[0] <= before[-1] < number:
            wrong = before[0] if before[0] < 0 else before[-1]
            raise ValueError(f"after of {name} must be between 0 and {number - 1}, not {wrong!r}")
        names, shares = [], []
        for use in resources:
            resource, share = use if isinstance(use, Part) else (use, 1.0)
            if share:
                names.append(resource)
                shares.append(share)
        self.stages.append(Stage(name, phase, us, tuple(names), before, tuple(shares)))
        return number
