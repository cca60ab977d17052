"""NICs in a process that answers all processes of a program."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from threading import Condition
from typing import Any

import numpy as np
import torch

from sim.torch.catching.session import Session
from sim.torch.lookups.query import Query
from sim.torch.options import TorchOptions
from sim.torch.values.asked import AskedPart, AskedUpdate
from sim.torch.values.rows import Part, Update
from sim.torch.values.rules import Rule

__all__ = ["Served", "Turns"]

Asked = tuple[Sequence[Query] | AskedUpdate, bool, int]
"""Request of a process: queries or an update; True if the process has written to its tables since
the last request; the number of its mini-batch."""


class Served:
    """A cluster of NICs; each NIC holds the tables of a process.

    It copies the requested rows at the time of each request.

    session: member; session that contains the NICs' results.
    """

    def __init__(self, options: TorchOptions):
        self._steps = [0] * options.count
        self.session = Session(options, self._steps)
        self._weights: dict[tuple[int, int], torch.Tensor] = {}
        self._states: dict[tuple[int, int], np.ndarray] = {}
        self._none = torch.empty(0, dtype=torch.int64)

    def answer(self, asked: Mapping[int, Asked]) -> dict[int, list[np.ndarray]]:
        """Return the NICs' answers by rank: pooled vectors of queries, or rows and states of an
        update.

        Queries with the same number of samples form a mini-batch. Updates with the same rule and
        dimension form an update.
        """
        queries, updates = {}, {}
        for rank, (each, changed, step) in sorted(asked.items()):
            self.session.tables.changed |= changed
            self._steps[rank] = step
            (updates if isinstance(each, AskedUpdate) else queries)[rank] = each
        return (self._look_up(queries) if queries else {}) | self._update(updates)

    def _update(self, asked: Mapping[int, AskedUpdate]) -> dict[int, list[np.ndarray]]:
        session, found = self.session, {}
        alike: defaultdict[tuple[Rule, int], list[int]] = defaultdict(list)
        for rank, update in asked.items():
            alike[update.rule, update.parts[0].shape[1]].append(rank)
        session.updating()
        for (rule, _), ranks in alike.items():
            parts = [self._part(rank, part) for rank in ranks for part in asked[rank].parts]
            update, first = Update(rule, parts, session.tables.dimension), 0
            rows, states = session.updated(update)
            for rank in ranks:
                last = first + len(asked[rank].parts)
                own = slice(update.spans[first].start, update.spans[last - 1].stop)
                found[rank], first = [rows[own], states[own]], last
        return found

    def _part(self, rank: int, asked: AskedPart) -> Part:
        known = rank, asked.table
        weight = self._weights[known]
        if known not in self._states:
            self._states[known] = np.zeros(asked.shape[0], np.float32)
        table = self.session.tables.find(weight)
        assert table is not None
        return asked.part(table, weight, self._states[known])

    def _look_up(self, asked: Mapping[int, Sequence[Query]]) -> dict[int, list[np.ndarray]]:
        session, calls, found = self.session, [], {}
        for rank, queries in asked.items():
            outputs = [torch.zeros(len(query.lengths), query.shape[1], dtype=torch.float32)
                       for query in queries]
            calls += zip([query.bags(self._weight(rank, query)) for query in queries], outputs)
            found[rank] = [output.numpy() for output in outputs]
        for call in calls:
            session.take([call], self._none, self._none)
        session.read()
        return found

    def _weight(self, rank: int, query: Query) -> torch.Tensor:
        known = rank, query.table
        if known not in self._weights:
            # The system allocates memory only for written rows.
            self._weights[known] = torch.from_numpy(np.zeros(query.shape, np.float32))
            self.session.owners.append(rank)
        return self._weights[known]


class Turns:
    """Grouping of the processes' requests into turns.

    Between two collectives of all processes, the first requests of all processes form a turn, then
    the second requests, and so on. A turn is complete when each process has sent its request,
    entered a later collective, ended, or announced that it may wait for some processes. A turn
    therefore never waits for a process that waits for the turn.
    """

    def __init__(self):
        self._changed = Condition()
        self._after: dict[int, int] = {}
        self._asked: dict[int, tuple[int, Asked]] = {}
        self._left: set[int] = set()
        self._waiting: set[int] = set()
        self._over = False

    def ask(self, rank: int, collectives: int, *asked: Any) -> None:
        """Add a request of a process after its number of ``collectives``."""
        with self._changed:
            self._asked[rank] = collectives, asked
            self._waiting.discard(rank)
            self._changed.notify_all()

    def come(self, rank: int, collectives: int) -> None:
        """Note that a process enters a collective; ``collectives`` includes it."""
        with self._changed:
            self._after[rank] = collectives
            self._waiting.discard(rank)
            self._changed.notify_all()

    def wait(self, rank: int) -> None:
        """Note that a process may wait for some of the other processes."""
        with self._changed:
            self._waiting.add(rank)
            self._changed.notify_all()

    def leave(self, rank: int) -> None:
        """Note that a process has ended."""
        with self._changed:
            self._left.add(rank)
            self._changed.notify_all()

    def end(self) -> None:
        """End the program: no further turn is complete."""
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def next(self, size: int) -> dict[int, Asked] | None:
        """Wait for the next turn of ``size`` processes; return its requests by rank.

        Returns None when all processes have ended.
        """
        with self._changed:
            self._changed.wait_for(lambda: (
                self._over or len(self._left & set(range(size))) == size or self._complete(size)))
            if self._over:
                return None
            turn = {rank: asked for rank, (collectives, asked) in self._asked.items()
                    if collectives == self._first}
            for rank in turn:
                del self._asked[rank]
            return turn or None

    @property
    def _first(self) -> int:
        return min((collectives for collectives, _ in self._asked.values()), default=-1)

    def _complete(self, size: int) -> bool:
        return bool(self._asked) and all(
            rank in self._asked or rank in self._left or rank in self._waiting
            or self._after.get(rank, 0) > self._first for rank in range(size))
