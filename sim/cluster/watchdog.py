"""Watchdog: ends a run that hangs."""

from collections.abc import Sequence

from sim.node.protocol import ClusterNode

__all__ = ["StuckError", "Watchdog"]


class StuckError(Exception):
    """The cluster hangs although work is left. ``since``: the cycle of the last movement."""

    def __init__(self, message: str, since: int):
        super().__init__(message)
        self.since = since


class Watchdog:
    """Checks after each quantum whether anything moved.

    Parameters: ``patience``, cycles without movement after which a run counts as stuck; ``cycle``,
    the first one.

    Actions of hosts and frames sent are checked first, because counting them costs nothing. Only
    when their sum has not grown for ``patience`` cycles are the NICs asked for the last beat on any
    of their streams.
    """

    def __init__(self, patience: int, cycle: int):
        self._patience = patience
        self._actions = -1
        self._since = cycle

    def check(self, cycle: int, actions: int, nodes: Sequence[ClusterNode]) -> None:
        """Raise `StuckError` when nothing has moved for ``patience`` cycles before ``cycle``.

        ``actions``: number of actions of hosts and network so far.
        """
        if actions != self._actions:
            self._actions, self._since = actions, cycle
        elif cycle - self._since >= self._patience:
            beats = [node.engine.last_beat for node in nodes]
            self._since = max([self._since, *(beat for beat in beats if beat is not None)])
            if cycle - self._since >= self._patience:
                raise StuckError(f"no beat moved for {self._patience:,} cycles after cycle "
                                 f"{self._since:,}", self._since)
