"""NICs in RTL that look up and write the rows of a PyTorch program, cycle by cycle."""

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from host.dlrm.optimizer import Optimizer
from host.model import Model
from host.placement.shard import ShardPlan
from host.samples import KEY_ROW_BITS, Samples, share_sizes
from host.timing.clock import CYCLE_NS
from host.wire.gradients import longest_bag
from host.wire.rows import GivenRows
from rtl.config import NicConfig
from rtl.formats import Status
from sim.job.options import RunOptions
from sim.job.settings import Runtime
from sim.job.workload import Workload
from sim.node.gradients import TrainingHost, gradient_payload
from sim.run.simulation import WrittenRows
from sim.torch.lookups.bags import Bags
from sim.torch.values.nics import LookupNics, NicsError
from sim.torch.values.program_rows import ProgramRows
from sim.torch.values.rows import Update, of_bags, of_keys
from sim.training.cluster import check_single_copies, training_config, training_registers

__all__ = ["TrainingNics"]


class _Gradients(NamedTuple):
    """Gradients that a host sends its NIC.

    tables, rows: table and row of each key, bag by bag.
    lengths: keys of each bag.
    values: gradient of each bag, float32 ``[n, dimension]``.
    """

    tables: np.ndarray
    rows: np.ndarray
    lengths: np.ndarray
    values: np.ndarray


def _nic_to_build(config: NicConfig, model: Model, runtime: Runtime,
                  workload: Workload) -> NicConfig:
    for name, owner, needed in (("remote_cache", runtime, False),
                                ("gradient_partials", runtime, "exact"),
                                ("gradient_sums", config, "exact")):
        if getattr(owner, name) != needed:
            raise ValueError(f"{name} must be {str(needed).lower()} with optimizer_on nic, not "
                             f"{str(getattr(owner, name)).lower()}")
    return training_config(config, model, runtime, workload)


class TrainingNics(LookupNics):
    """A cluster of NICs that answers mini-batches and writes the rows of the program.

    A step of the NICs is a mini-batch of lookups, the gradients of an update, or lookups followed
    by gradients. Without gradients, the step ends when the next mini-batch begins. The NICs update
    their caches with the rows that they write.

    Parameters and members are those of :class:`sim.torch.values.nics.LookupNics`.

    updates: member; time of each update in microseconds, from the first gradient at a host to the
    last written row.

    Raises ``ValueError`` if the model does not fit the NIC, or if the NICs cannot train.
    """

    def __init__(self, options: RunOptions, model: Model, rows: GivenRows):
        self._store = store = ProgramRows(model, rows)

        def written(config: NicConfig, runtime: Runtime, plan: ShardPlan) -> WrittenRows:
            check_single_copies(plan)
            return WrittenRows([store] * plan.nodes, training_registers(
                config, runtime, Optimizer(), plan.nodes))

        super().__init__(options, model, rows, _nic_to_build, written)
        self._hosts: list[TrainingHost] = [node.training for node in self.simulation.cluster.nodes]
        self._open = False
        self.updates: list[float] = []
        self._none = _Gradients(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64),
                                np.empty((0, self.model.dimension), np.float32))

    def look_up(self, samples: Samples) -> np.ndarray:
        """Return the NICs' answers to a mini-batch; see the parent class."""
        self._end_lookups()
        self._begin()
        return self.answers(samples)

    def update(self, update: Update) -> tuple[np.ndarray, np.ndarray]:
        """Write the rows of an update; return them, float32 ``[n, d]``, and their states ``[n]``.

        Raises :class:`NicsError` if a NIC rejects a gradient or writes other rows,
        :class:`sim.cluster.watchdog.StuckError` if a NIC does not answer.
        """
        rule = update.rule
        simulation = self.simulation
        registers = training_registers(simulation.config, simulation.runtime, Optimizer(
            rule.name, rule.rate or 1.0, rule.epsilon), simulation.plan.nodes)
        if not rule.rate:
            registers["learning_rate"] = 0
        simulation.write(self.ready, **{name: registers[name] for name in (
            "optimizer", "learning_rate", "epsilon")})
        self._store.states = {part.table: state for part in update.parts if part.state is not None
                              and not isinstance(state := part.state(), float)}
        if not self._open:
            self._begin()
        began = self.ready
        self._end(self._shares(update))
        self.updates.append((max(map(_finished, self._hosts)) - began) * CYCLE_NS / 1000)
        keys = np.concatenate([update.rows(number) | part.table << KEY_ROW_BITS
                               for number, part in enumerate(update.parts)])
        written = np.concatenate([host.keys for host in self._hosts])
        if not np.array_equal(np.sort(written), np.sort(keys)):
            raise NicsError(f"the NICs wrote {len(written):,} rows in step {self.steps - 1}, but "
                            f"{len(keys):,} rows have gradients")
        vectors, states = self._store.read(keys)
        return vectors[:, :update.sums.shape[1]], states

    def close(self) -> Counter[str]:
        """End the cluster; see the parent class."""
        self._end_lookups()
        return super().close()

    def _begin(self) -> None:
        """Begin a step."""
        for host in self._hosts:
            host.open(self.steps)
        self._open = True

    def _end_lookups(self) -> None:
        """End a step without gradients, if it is open."""
        if self._open:
            self._end([self._none] * len(self._hosts))

    def _end(self, shares: Sequence[_Gradients]) -> None:
        """Send the hosts their gradients, and end the step."""
        for host, share in zip(self._hosts, shares):
            host.bags(*share, self.ready)
        self.simulation.advance(lambda: any(host.finished is None for host in self._hosts))
        refused = [error for host in self._hosts for error in host.refused]
        if refused:
            raise NicsError(f"a NIC rejected gradients of step {refused[0].step}: "
                            f"{Status(refused[0].status).name}")
        self._open = False
        self.ready = max(map(_finished, self._hosts)) + self.simulation.hand_out
        self.end_step()

    def _shares(self, update: Update) -> list[_Gradients]:
        """Return the gradients of each host's samples."""
        nodes = len(self._hosts)
        parts: list[list[_Gradients]] = [[self._none] for _ in range(nodes)]
        for part in update.parts:
            for bags, gradients in part.gradients:
                rows, lengths, values = self._whole(bags, gradients)
                keys = np.concatenate(([0], np.cumsum(lengths)))
                for share, (first, last) in zip(parts, pairwise(accumulate(
                        share_sizes(len(lengths), nodes), initial=0))):
                    own = rows[keys[first]:keys[last]]
                    share.append(_Gradients(np.full(len(own), part.table), own,
                                            lengths[first:last], values[first:last]))
        return [_Gradients(*map(np.concatenate, zip(*share))) for share in parts]

    def _whole(self, bags: Bags, gradients: np.ndarray
               ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return bags that fit in a packet: rows, lengths, and gradients."""
        most = longest_bag(gradient_payload(self.simulation.config), self.model.dimension)
        fits = int(bags.lengths.max(initial=0)) <= most
        # A NIC with mean pooling divides the gradient of a bag.
        divides = self.model.pooling == "mean"
        if bags.weights is None and fits and bags.pooling == ("mean" if divides else bags.pooling):
            lengths, values = bags.lengths, gradients if divides else of_bags(bags, gradients)
        else:
            lengths, values = np.ones(len(bags.rows), np.int64), of_keys(bags, gradients)
        padded = np.zeros((len(values), self.model.dimension), np.float32)
        padded[:, :values.shape[1]] = values
        return bags.rows, lengths, padded


def _finished(host: TrainingHost) -> float:
    return host.finished or 0.0
