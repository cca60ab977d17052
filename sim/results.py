"""What comes back for each mini-batch, and whether it is what it must be."""

from dataclasses import dataclass, field

import numpy as np

from host.dlrm import pooled_reference
from host.model import Model
from host.samples import Samples

__all__ = ["Step", "StepResult"]


@dataclass
class Step:
    """One mini-batch under way: its samples, and the pooled vectors that came back so far.

    Members
    -------
    number: the step, counted from 0.
    first: number of its first sample in the input.
    samples: its samples.
    shares: first sample of each node's share, and the number of samples at the end.
    pooled: float32 ``[samples, tables, dimension]``, filled as results arrive.
    filled: bags that came back for each sample.
    status: error status of each sample, 0 for none.
    started, finished: host cycles of the first query and the last result; -1 while not there.
    """

    number: int
    first: int
    samples: Samples
    shares: np.ndarray
    pooled: np.ndarray
    filled: np.ndarray
    status: np.ndarray
    started: int = -1
    finished: int = -1
    left: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))

    @classmethod
    def of(cls, number: int, first: int, samples: Samples, nodes: int, dimension: int) -> "Step":
        """Deal ``samples`` in contiguous shares whose sizes differ by at most one."""
        n, tables = len(samples), samples.table_count
        sizes = np.full(nodes, n // nodes, np.int64)
        sizes[:n % nodes] += 1
        return cls(number, first, samples, np.concatenate(([0], np.cumsum(sizes))),
                   np.zeros((n, tables, dimension), np.float32), np.zeros(n, np.int64),
                   np.zeros(n, np.int64), left=sizes)

    @property
    def done(self) -> bool:
        """Whether every sample was answered."""
        return not self.left.any()

    def place(self, node: int, sample: int, first_bag: int, vectors: np.ndarray) -> None:
        """Take pooled vectors of bags ``first_bag`` on of ``sample`` (number in the input).

        ``ValueError`` when they do not belong to the share of ``node`` or its bags.
        """
        at = self._index(node, sample)
        if first_bag != self.filled[at] or first_bag + len(vectors) > self.pooled.shape[1]:
            raise ValueError(f"sample {sample} got bags {first_bag} to "
                             f"{first_bag + len(vectors) - 1} after {self.filled[at]} bags")
        self.pooled[at, first_bag:first_bag + len(vectors)] = vectors
        self.filled[at] += len(vectors)
        if self.filled[at] == self.pooled.shape[1]:
            self.left[node] -= 1

    def refuse(self, node: int, sample: int, status: int) -> None:
        """Take an error answer for ``sample``."""
        at = self._index(node, sample)
        if self.status[at] or self.filled[at] == self.pooled.shape[1]:
            raise ValueError(f"sample {sample} was answered twice, with error {status} now")
        self.status[at] = status
        self.left[node] -= 1

    def _index(self, node: int, sample: int) -> int:
        at = sample - self.first
        if not self.shares[node] <= at < self.shares[node + 1]:
            raise ValueError(f"sample {sample} was answered at node {node}, which does not hold it")
        return at


@dataclass(frozen=True)
class StepResult:
    """Verdict on a finished step.

    Members: ``equal``, samples whose pooled vectors equal the numpy model's bit for bit;
    ``different``, the others that were answered with vectors; ``refused``, answered with an error.
    """

    equal: int
    different: int
    refused: int

    @classmethod
    def judge(cls, step: Step, model: Model, seed: int) -> "StepResult":
        """Compare what came back with the numpy model of the same samples."""
        expected = pooled_reference(step.samples, model, seed)
        same = (expected.view(np.uint32) == step.pooled.view(np.uint32)).all(axis=(1, 2))
        answered = (step.status == 0) & (step.filled == step.pooled.shape[1])
        return cls(int((same & answered).sum()), int((~same & answered).sum()),
                   int((step.status != 0).sum()))
