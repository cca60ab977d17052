"""The messages between a process of a program and its hub, by their names."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from sim.torch.lookups.query import Query
from sim.torch.processes.codec import plain, typed
from sim.torch.processes.seen import Counts, Seen
from sim.torch.processes.wire import Channel, MessageError
from sim.torch.values.asked import AskedUpdate

__all__ = ["TO_HUB", "TO_PROCESS", "read", "write"]

TO_HUB: Mapping[str, Any] = {
    "rank": tuple[int, int],
    "look up": tuple[int, list[Query], bool, int],
    "update": tuple[int, AskedUpdate, bool, int],
    "come": tuple[int],
    "waits": tuple[()],
    "counted": tuple[Counts],
    "so far": tuple[Seen],
    "seen": tuple[Seen],
    "failed": tuple[int, str, str],
}
"""Types of the values of each message to a hub, see :class:`sim.torch.processes.link.Link`."""

TO_PROCESS: Mapping[str, Any] = {
    "answer": tuple[list[np.ndarray]],
    "so far": tuple[()],
    "failed": tuple[()],
    "over": tuple[()],
}
"""Types of the values of each message to a process."""


def write(channel: Channel, what: str, *said: Any) -> None:
    """Send a message. Raises as :meth:`sim.torch.processes.wire.Channel.send` does."""
    arrays: list[np.ndarray] = []
    values = plain(said, arrays)
    channel.send([what, values], arrays)


def read(channel: Channel, kinds: Mapping[str, Any]) -> tuple[str, tuple[Any, ...]]:
    """Return the name and the values of the next message of these ``kinds``.

    Raises as :meth:`sim.torch.processes.wire.Channel.receive` does.
    """
    said, arrays = channel.receive()
    if not isinstance(said, list) or len(said) != 2 or not isinstance(said[0], str) or (
            said[0] not in kinds):
        raise MessageError(f"a message must be one of {', '.join(kinds)}, not {str(said)[:80]!r}")
    return said[0], typed(kinds[said[0]], said[1], arrays)
