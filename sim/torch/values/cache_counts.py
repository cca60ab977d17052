"""Hits and accesses of the NICs' local caches in each mini-batch of a program."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

from sim.nic.registers import RegisterFile
from sim.torch.lookups.record import COUNTED

__all__ = ["CacheCounts"]

_REGISTERS = tuple(f"local_cache.{name}" for name in COUNTED)


class CacheCounts:
    """Counts of the local caches of a cluster.

    The NICs' counters are read between two mini-batches, when the NICs are idle. Reading them does
    not affect the NICs.

    registers: registers of each node.
    """

    def __init__(self, registers: Sequence[RegisterFile]):
        self._registers = registers
        self._steps: list[tuple[int, ...]] = []

    def begin(self, steps: tuple[int, ...]) -> None:
        """Assign following counts to mini-batches; ``steps`` contains the number for each node."""
        if self._steps and self._steps[-1] == steps:
            return
        if self._steps:
            for registers in self._registers:
                registers.note(*_REGISTERS)
        self._steps.append(steps)

    def end(self, counters: Sequence[Mapping[str, int]]) -> Counter[tuple[int, int, str]]:
        """Return the counts by node, mini-batch, and name.

        counters: final counters of each node.
        """
        found = Counter[tuple[int, int, str]]()
        for node, (registers, last) in enumerate(zip(self._registers, counters)):
            for name, register in zip(COUNTED, _REGISTERS):
                values = (0, *registers.noted.get(register, ()), last[register])
                for steps, (before, after) in zip(self._steps, pairwise(values)):
                    found[node, steps[node], name] += after - before
        return found
