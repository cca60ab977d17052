"""Watchdog: ends a run that hangs."""

from collections.abc import Sequence
from math import ceil

from sim.node.protocol import ClusterNode

__all__ = ["StuckError", "Watchdog"]

_NAMED = 4
"""Samples of a node that a message names."""


class StuckError(Exception):
    """The cluster hangs although work is left. ``since``: the cycle of the last movement, or the
    host's cycle of the last result."""

    def __init__(self, message: str, since: int):
        super().__init__(message)
        self.since = since


class Watchdog:
    """Checks after each quantum whether anything moved, and whether a result made progress.

    Parameters
    ----------
    patience: cycles without movement after which a run counts as stuck.
    without: cycles without a result after which a run counts as stuck.
    cycle: the first cycle.

    Movement: actions of hosts and frames sent are checked first, because counting them costs
        little. Only if their sum has not grown for ``patience`` cycles are the NICs asked for the
        last beat on any of their streams.

    Results: frames of a stranger or a faulty peer move beats, and may keep hosts busy, without end.
        The hosts are therefore also asked for the last progress of a result, which no frame can
        feign (:class:`sim.node.protocol.ClusterNode`). They are asked in cycle ``limit`` only. No
        quantum may pass ``limit``: the verdict does not depend on the ends of quanta.
    """

    def __init__(self, patience: int, without: int, cycle: int):
        self._patience, self._without = patience, without
        self._actions = -1
        self._since = cycle
        self.limit = cycle + without

    def results(self, cycle: int, nodes: Sequence[ClusterNode]) -> None:
        """In cycle ``limit``, raise `StuckError` if no result made progress for ``without`` cycles,
        else set the next ``limit``."""
        last = max(ceil(max(node.progress for node in nodes)), self.limit - self._without)
        self.limit = last + self._without
        if cycle >= self.limit:
            raise StuckError(f"no result made progress for {self._without:,} cycles after cycle "
                             f"{last:,}{_outstanding(nodes)}", last)

    def check(self, cycle: int, actions: int, nodes: Sequence[ClusterNode]) -> None:
        """Raise `StuckError` if nothing has moved for ``patience`` cycles before ``cycle``.

        ``actions``: number of actions of hosts and network.
        """
        if actions != self._actions:
            self._actions, self._since = actions, cycle
        elif cycle - self._since >= self._patience:
            beats = [node.engine.last_beat for node in nodes]
            self._since = max([self._since, *(beat for beat in beats if beat is not None)])
            if max(node.progress for node in nodes) > cycle:
                self._since = cycle  # work that is handed out begins later
            if cycle - self._since >= self._patience:
                raise StuckError(f"no beat moved for {self._patience:,} cycles after cycle "
                                 f"{self._since:,}", self._since)


def _outstanding(nodes: Sequence[ClusterNode]) -> str:
    """Return which samples lack answers, by node; empty if all are answered."""
    told = []
    for node in nodes:
        numbers = node.lacking
        if numbers:
            more = len(numbers) - _NAMED
            told.append(f"{', '.join(map(str, numbers[:_NAMED]))}"
                        f"{f' and {more:,} more' if more > 0 else ''} of node {node.number}")
    return f"; not answered: samples {'; '.join(told)}" if told else ""
