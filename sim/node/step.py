"""The answers to each mini-batch, and their comparison with the reference.

The answer to a sample is the result that the NIC gives to its host: the pooled vectors, or the
beats of the interaction result if the NIC computes the interaction.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from operator import lt

import numpy as np

from host.batching import MiniBatch
from host.dlrm.dlrm import pooled_reference
from host.dlrm.interaction import ResultLayout, interaction
from host.model import Model
from host.placement.shard import ShardPlan
from host.samples import Samples, most_slots, share_sizes
from host.wire.indices import check_share
from host.wire.packets import bag_slots, query_records
from sim.node.owner_pooling import OwnerPooling, share_slots
from sim.node.repeats import Repeats
from sim.node.step_queries import StepQueries

__all__ = ["PooledOf", "Step", "StepResult", "lacking"]

PooledOf = Callable[[Samples, Model, int], np.ndarray]
"""A function that returns pooled vectors as :func:`host.dlrm.dlrm.pooled_reference` does."""


@dataclass(kw_only=True)
class Step(StepQueries):
    """One mini-batch in flight: its queries, and the answers received.

    Nodes may work on their shares concurrently: no node writes data that another node reads.

    Further members
    ---------------
    number: the step, counted from 0.
    first: number of its first sample on the NICs, which count through all steps.
    answers: float32 ``[samples, parts, values]``, filled as they arrive; the parts are bags or
        beats.
    filled: parts received for each sample, with own bags once they are pooled: int64.
    status: error status of each sample, 0 for success.
    left: samples of each node's share that its NIC has to answer: int64.
    batch: the mini-batch as formed from the input; None for samples in input order.
    foreign_keys: sum over the shares of the distinct keys that other nodes own.
    starts, ends: host cycles of the first query and the last result of each share, once known.
    """

    number: int
    first: int
    answers: np.ndarray
    filled: np.ndarray
    status: np.ndarray
    left: np.ndarray
    batch: MiniBatch | None = None
    foreign_keys: int = 0
    starts: dict[int, float] = field(default_factory=dict)
    ends: dict[int, float] = field(default_factory=dict)

    @classmethod
    def of(cls, number: int, first: int, samples: Samples, nodes: int, answer: tuple[int, int],
           dense: np.ndarray | None = None, batch: MiniBatch | None = None,
           unique: bool = False, plan: ShardPlan | None = None,
           repeats: str = "send") -> "Step":
        """Deal ``samples`` in contiguous shares whose sizes differ by at most 1.

        ``answer``: parts and values of a sample's answer. ``plan``: plan of the tables, if it may
        have owner-pooled or weighted tables. ``repeats``: repeated bags to find, one of
        `host.batching.repeats.REPEATS`. ``ValueError`` if the step is ``unique`` and a share has
        more slots than there are indices.
        """
        n, sizes = len(samples), np.array(share_sizes(len(samples), nodes), np.int64)
        shares = [0, *np.cumsum(sizes).tolist()]
        again = None if repeats == "send" else Repeats.of(samples, nodes, repeats)
        sent = again and again.new
        if unique:
            check_share(most_slots(bag_slots(samples.bag_lengths, sent).sum(axis=1), nodes)
                        if plan is None else share_slots(samples, plan, sent))
        if plan is not None and plan.gpus_pool:
            pools, records, bounds = OwnerPooling.of(
                plan, samples, first, shares, interaction=dense is not None, sent=sent)
        else:
            slots = bag_slots(samples.bag_lengths, sent).sum(axis=1)
            pools, records, bounds = None, query_records(samples, first, sent), np.concatenate(
                ([0], np.cumsum(slots + (slots > 0))))
        # A NIC answers the samples with records. The GPU pools all bags of a share without records.
        asked = np.diff(np.concatenate(([0], np.cumsum(np.diff(bounds) > 0)))[shares])
        return cls(
            samples=samples, shares=shares, records=records, bounds=bounds, dense=dense,
            unique=unique, pools=pools, repeats=again,
            weighted=plan.weighted if plan is not None and plan.weighted.any() else None,
            number=number, first=first, answers=np.zeros((n, *answer), np.float32),
            filled=np.zeros(n, np.int64), status=np.zeros(n, np.int64),
            left=np.where(asked > 0, asked, sizes), batch=batch)

    @property
    def numbers(self) -> np.ndarray:
        """Number of each sample in the input: int64 ``[n]``."""
        if self.batch is None:
            return np.arange(self.first, self.first + len(self.samples))
        return self.batch.numbers

    @property
    def fresh(self) -> bool:
        """Whether the previous steps contain exactly the samples before this step's in the
        input."""
        return self.batch is None or self.batch.fresh

    @property
    def done(self) -> bool:
        """Whether every host has received the last answer to its share."""
        return len(self.ends) == sum(map(lt, self.shares, self.shares[1:]))

    @property
    def started(self) -> float:
        """Host cycle of the first query; -1 before it."""
        return min(self.starts.values(), default=-1.0)

    @property
    def finished(self) -> float:
        """Host cycle of the last result that completed a share; -1 before the first."""
        return max(self.ends.values(), default=-1.0)

    def unanswered(self, node: int) -> int:
        """Return the samples of the share of ``node`` without their answer or an error. Repeated
        bags are missing until the share ends."""
        return (int(self.left[node]) if self.repeats is None or node in self.ends else
                len(lacking([self], node)))

    def place_all(self, node: int, at: np.ndarray, parts: np.ndarray) -> None:
        """Store the complete answers of the NIC to the step's samples ``at``, ``[at, bags,
        values]`` with the bags of :meth:`bag_lengths`."""
        tables = self.sent_tables(node)
        if tables is None:
            self.answers[at] = parts
        else:
            self.answers[at[:, None], tables] = parts
        self.filled[at] = sum(self._expected(node, at))
        self.left[node] -= np.count_nonzero(np.diff(self.bounds)[at])

    def place_own(self, node: int, vectors: np.ndarray) -> None:
        """Store the pooled vectors of :meth:`own_bags`; without queries, the share is answered."""
        assert self.pools is not None
        own, share = self.pools.own[node], slice(*self.shares[node:node + 2])
        answers = self.answers[share]
        if len(vectors):
            answers.reshape(-1, answers.shape[2])[self.own_places(node)] = vectors
        self.pools.parts[node] = own.sum()
        self.filled[share] += self.pools.parts[node]
        if not self.sends(node):
            self.left[node] = 0

    def _expected(self, node: int,
                  at: int | slice | np.ndarray) -> tuple[int | np.ndarray, int]:
        """Return the parts of the answers from the NIC to the step's samples ``at``, and the parts
        that ``filled`` counts in addition."""
        total, more, tables = self.answers.shape[1], 0, self.sent_tables(node)
        if tables is not None and self.pools is not None:
            total, more = len(tables), int(self.pools.parts[node])
        if self.repeats is None:
            return total, more
        new = self.repeats.new[at]
        return new[..., slice(None) if tables is None else tables].sum(axis=-1), more

    def _places(self, node: int, at: int) -> np.ndarray | None:
        """Return the place of each part of the NIC's answer to the step's sample ``at``; None for
        all places in order."""
        tables = self.sent_tables(node)
        if self.repeats is None:
            return tables
        new = np.flatnonzero(self.repeats.new[at])
        return new if tables is None else np.intersect1d(new, tables, assume_unique=True)

    def place(self, node: int, at: int, first: int, parts: np.ndarray) -> bool:
        """Store the parts from ``first`` on of the NIC's answer to the step's sample ``at``.

        Return whether the answer is complete. ``ValueError`` if the sample is not in the share of
        ``node`` or the parts do not continue the answer.
        """
        self._check(node, at)
        (total, more), places = self._expected(node, at), self._places(node, at)
        before = self.filled[at] - more
        after = first + len(parts)
        if first != before or after > total:
            what = "bags" if self.dense is None else "beats"
            raise ValueError(f"sample {self.numbers[at]} got {what} {first} to {after - 1} "
                             f"after {before} {what}")
        if places is None:
            self.answers[at, first:after] = parts
        else:
            self.answers[at, places[first:after]] = parts
        self.filled[at] = after + more
        if after == total:
            self.left[node] -= 1
        return bool(after == total)

    def refuse(self, node: int, at: int, status: int) -> None:
        """Record an error answer to the step's sample ``at``."""
        self._check(node, at)
        total, more = self._expected(node, at)
        if self.status[at] or self.filled[at] == total + more:
            raise ValueError(f"sample {self.numbers[at]} was answered twice, the second time "
                             f"with error {status}")
        self.status[at] = status
        self._flag_all(node, np.array([at]), status)
        self.left[node] -= 1

    def flag(self, node: int, at: int, part: int, status: int) -> None:
        """Record the error ``status`` of a bag: of part ``part`` of the NIC's answer to the step's
        sample ``at``. It ends every sample that uses the bag."""
        if self.repeats is not None:
            places = self._places(node, at)
            self.repeats.errors[at, part if places is None else places[part]] = status

    def _flag_all(self, node: int, at: np.ndarray, status: int) -> None:
        """Record an error of all bags that the NIC got in the step's samples ``at``."""
        if self.repeats is not None:
            tables = self.sent_tables(node)
            self.repeats.errors[at[:, None], slice(None) if tables is None else tables] = status

    def expand(self, node: int) -> None:
        """Complete the answered share of ``node`` with its repeated bags."""
        if self.repeats is not None:
            first, last = self.shares[node:node + 2]
            self.repeats.expand(self.answers, self.status, first, last)
            self.filled[first:last][self.status[first:last] == 0] = self.answers.shape[1]

    def give_up(self, node: int, status: int) -> None:
        """End the share of ``node`` although answers are missing: the samples without an answer get
        an error ``status``."""
        first, last = self.shares[node:node + 2]
        share = slice(first, last)
        lacking = (self.status[share] == 0) & (self.filled[share] < sum(
            self._expected(node, share)))
        self.status[share][lacking] = status
        self._flag_all(node, first + np.flatnonzero(lacking), status)
        self.left[node] = 0

    def _check(self, node: int, at: int) -> None:
        if not self.shares[node] <= at < self.shares[node + 1]:
            raise ValueError(f"sample {self.numbers[at]} was answered at node {node}, which does "
                             f"not hold it")


def lacking(steps: Iterable[Step], node: int) -> list[int]:
    """Return the numbers of the samples of ``node`` in ``steps`` that lack answers, ascending."""
    found: list[int] = []
    for step in steps:
        share = slice(*step.shares[node:node + 2])
        open_ = (step.status[share] == 0) & (step.filled[share] < step.answers.shape[1])
        found += step.numbers[share][open_].tolist()
    return sorted(found)


@dataclass(frozen=True)
class StepResult:
    """Verdict on a finished step.

    Members: ``equal``, samples whose answers equal the numpy model's bit for bit; ``different``,
        other samples with complete answers; ``refused``, samples answered with an error.
    """

    equal: int
    different: int
    refused: int

    @classmethod
    def judge(cls, step: Step, model: Model, seed: int,
              pooled: PooledOf = pooled_reference) -> "StepResult":
        """Compare the answers with the numpy model of the same samples.

        ``pooled``: function that returns the bits of :func:`host.dlrm.dlrm.pooled_reference`.
        """
        expected = pooled(step.samples, model, seed)
        if step.dense is not None:
            expected = ResultLayout.of(model).to_beats(interaction(model, step.dense, expected))
        same = (expected.view(np.uint32) == step.answers.view(np.uint32)).all(axis=(1, 2))
        answered = (step.status == 0) & (step.filled == step.answers.shape[1])
        return cls(int((same & answered).sum()), int((~same & answered).sum()),
                   int((step.status != 0).sum()))
