"""Watchdog: ends a run in which nothing moves any more."""

from collections.abc import Sequence

from sim.node.protocol import ClusterNode

__all__ = ["StuckError", "Watchdog"]


class StuckError(Exception):
    """Nothing moves any more although work is left. ``since``: the cycle of the last movement."""

    def __init__(self, message: str, since: int):
        super().__init__(message)
        self.since = since


class Watchdog:
    """Looks after each quantum whether anything moved.

    Parameters: ``patience``, cycles without movement before it bites; ``cycle``, the first.

    A host that does something, or a frame that is sent, is looked at first, since that costs
    nothing; only when there was none for ``patience`` cycles are the NICs asked for the last beat
    that crossed any of their streams.
    """

    def __init__(self, patience: int, cycle: int):
        self._patience = patience
        self._actions = -1
        self._since = cycle

    def look(self, cycle: int, actions: int, nodes: Sequence[ClusterNode]) -> None:
        """Raise `StuckError` when nothing moved for too long before ``cycle``.

        ``actions``: what hosts and network have done so far.
        """
        if actions != self._actions:
            self._actions, self._since = actions, cycle
        elif cycle - self._since >= self._patience:
            beats = [node.engine.last_beat for node in nodes]
            self._since = max([self._since, *(beat for beat in beats if beat is not None)])
            if cycle - self._since >= self._patience:
                raise StuckError(f"no beat moved for {self._patience:,} cycles after cycle "
                                 f"{self._since:,}", self._since)
