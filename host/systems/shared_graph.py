"""Several mini-batches in one graph: a step in which the host thread calls once for all of them."""

from collections.abc import Sequence
from math import lcm

from host.systems.stage import Part, Step, ascending

__all__ = ["in_graphs", "in_one_graph", "rounds"]


def in_graphs(steps: Sequence[Step], per_graph: int) -> list[Step]:
    """Return steps of ``per_graph`` mini-batches each.

    ``steps`` repeats until it ends at the end of a graph.
    """
    return [in_one_graph(own) for own in rounds(steps, per_graph)]


def rounds(steps: Sequence[Step], per_graph: int) -> list[list[Step]]:
    """Return the steps of each graph of :func:`in_graphs`."""
    count = lcm(len(steps), per_graph)
    every = [*steps] * (count // len(steps))
    return [every[at:at + per_graph] for at in range(0, count, per_graph)]


def in_one_graph(steps: Sequence[Step]) -> Step:
    """Return a step that does the work of all ``steps`` of a system, with shared host calls.

    Each mini-batch remains a branch with its own copies, kernels, collectives and NIC share. The
    calls in ``calls`` of a step happen once, after all branches have reached them: the thread
    launches a graph with all nodes, rings once for all shares, and waits until all branches are
    done. Other host work, such as MPI, is done for each mini-batch in turn. Branches get a
    contended resource in the order of ``steps``.

    Raises ``ValueError`` for steps with different calls.
    """
    first = steps[0]
    if len(steps) == 1:
        return first
    for step in steps:
        if _names(step) != _names(first):
            raise ValueError(f"steps must have the calls {_names(first)}, not {_names(step)}")
    return _Shared(steps).build()


def _names(step: Step) -> list[str]:
    return [step.stages[number].name for number in sorted(step.calls)]


class _Shared:
    """A step with several branches under construction."""

    def __init__(self, branches: Sequence[Step]):
        self._branches, self._step = branches, Step()
        self._moved: list[list[int]] = [[] for _ in branches]  # numbers in the new step
        self._thread: tuple[int, ...] = ()  # the last stage in which the thread works

    def build(self) -> Step:
        """Return the step."""
        for calls in zip(*(sorted(branch.calls) for branch in self._branches)):
            self._own(calls)
            self._call(calls)
        self._own(tuple(len(branch.stages) for branch in self._branches))
        return self._step

    def _own(self, ends: Sequence[int]) -> None:
        """Add each branch's own stages up to the stage in ``ends``."""
        for branch, moved, end in zip(self._branches, self._moved, ends):
            for stage in branch.stages[len(moved):end]:
                after = [moved[number] for number in stage.after]
                works = "cpu" in stage.resources
                if works:
                    after += self._thread
                moved.append(self._step.again(stage, ascending(after)))
                if works:
                    self._thread = (moved[-1],)

    def _call(self, calls: Sequence[int]) -> None:
        """Add a call shared by all branches."""
        own = [branch.stages[number] for branch, number in zip(self._branches, calls)]
        more = [branch.calls[number] for branch, number in zip(self._branches, calls)]
        after = [moved[number] for stage, moved in zip(own, self._moved) for number in stage.after]
        at = self._step.add(own[0].name, own[0].phase, own[0].us + sum(more[1:]),
                            *map(Part, own[0].resources, own[0].shares), after=after)
        for moved in self._moved:
            moved.append(at)
        if "cpu" in own[0].resources:
            self._thread = (at,)
