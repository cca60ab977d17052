"""Runs of simulated NICs over the mini-batches of a trace; points with equal NICs share a run."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain, pairwise
from pathlib import Path

import numpy as np

from host.batching import MiniBatch
from host.once import once
from host.timing.clock import CYCLE_NS
from rtl.formats import Opcode
from sim.evaluation.fields import Workload
from sim.evaluation.store import Store
from sim.evaluation.trace import Trace
from sim.files.identity import sources_of
from sim.job.options import RunOptions
from sim.node.step import Step
from sim.run.run import Run
from sim.run.simulation import Simulation

__all__ = ["NicRun", "Record", "RunOf", "all_runs", "run_nics", "store_of_runs"]

_KINDS = {"lookups": (Opcode.LOOKUPS, Opcode.BAGS),
          "vectors": (Opcode.VECTORS, Opcode.BAG_VECTORS)}
"""Opcodes of each kind of packets between NICs."""
_LAST = {"lookups": "asked", "vectors": "served"}
"""Member of a record that contains the time of the last packet of a kind."""

_PER_NODE = ("launches", "gathered", "delivered")
"""Members of a run that are counted for each node, in the mini-batches that count."""
_OF_BAGS = ("pooled_launches", "pooled_rows", "pooled_bags")
"""Members of a run that are counted for each node, in the whole run. No cache changes them, and the
ends of a shorter count, with bags in flight, would."""

_CACHE = ("hits", "accesses", "misses")
_COUNTED = tuple(f"{block}.{name}" for block, names in (
    ("local_cache", _CACHE), ("remote_cache", _CACHE), ("dedupe", ("requests",)),
    ("delivery", ("slots", "unique", "retired_early")))
    for name in names)
"""Registers that are read after the warm-up and at the end."""
_BY_MINI_BATCH = ("local_cache.hits", "local_cache.accesses")
"""Registers that are read at the end of each mini-batch."""


@dataclass
class Record:
    """Times of one mini-batch, in cycles.

    Members
    -------
    started, finished: cycle in which the first query leaves a host, and in which the last answer is
        in host memory.
    asked, served: cycle in which the last packet of lookups or bags, and of vectors, leaves a NIC;
        None without packets.
    hits, accesses: counts of the local caches of all nodes; None if several mini-batches are in
        flight.
    """

    started: float = 0.0
    finished: float = 0.0
    asked: float | None = None
    served: float | None = None
    hits: int | None = None
    accesses: int | None = None

    @property
    def us(self) -> float:
        """Microseconds from start to end."""
        return (self.finished - self.started) * CYCLE_NS / 1000

    def phases(self, one_way: float) -> dict[str, float]:
        """Return the microseconds of each phase, in order; their sum is :attr:`us`.

        ``one_way``: cycles of the network. The input all-to-all ends when the last lookup arrives
        at its owner. The embedding lookup ends when the last vectors leave. The embedding
        all-to-all ends when they arrive. The remaining time to the host's memory is overhead.
        Without packets between NICs, all time is embedding lookup.
        """
        asked = self.started if self.asked is None else self.asked + one_way
        served = self.finished if self.served is None else self.served
        arrived = served if self.served is None else served + one_way
        marks = np.maximum.accumulate(np.minimum(
            [self.started, asked, served, arrived, self.finished], self.finished))
        names = ("input_all_to_all", "embedding_lookup", "embedding_all_to_all", "overhead")
        return dict(zip(names, (np.diff(marks) * CYCLE_NS / 1000).tolist()))


@dataclass(frozen=True)
class NicRun:
    """Result of a run.

    Members
    -------
    records: record of each mini-batch, in order. one_way: cycles of the network.
    launches: gathers on each node's GPU, ``[nodes]``. gathered: rows that they read, ``[nodes]``.
    pooled_launches: kernels on each GPU that pool bags of other nodes in the whole run,
        ``[nodes]``. pooled_rows, pooled_bags: rows that these kernels read, and bags, ``[nodes]``.
    delivered: bytes from each NIC to its host and GPU, ``[nodes]``.
    traffic: bytes and packets by kind.
    mini_batches: number of mini-batches in the counts above: those that ended after the
        warm-up at full depth, or all if these are fewer than two.
    counts: sum over nodes of each ``block.counter`` after the warm-up; over the whole run if
        several mini-batches are in flight.
    rows: rows of each cache, as built.
    """

    records: list[Record]
    one_way: float
    launches: list[int]
    gathered: list[int]
    pooled_launches: list[int]
    pooled_rows: list[int]
    pooled_bags: list[int]
    delivered: list[int]
    traffic: dict[str, dict[str, int]]
    mini_batches: int
    counts: dict[str, int]
    rows: dict[str, int]

    @classmethod
    def of(cls, values: dict) -> "NicRun":
        """Return the run from the values of :meth:`to_json`."""
        return cls(**values | {"records": [Record(**record) for record in values["records"]]})

    def to_json(self) -> dict:
        """Return the members as plain values."""
        return asdict(self)

    def interval_us(self, first: int) -> float:
        """Return the microseconds from one end of the counted mini-batches to the next.

        They are measured between the mean ends of the first and the second half, because ends may
        be bursty. ``first``: number of the first counted mini-batch.
        """
        ends = np.sort([record.finished for record in self.records])[first:
                                                                     first + self.mini_batches]
        half = len(ends) // 2
        return float(ends[-half:].mean() - ends[:half].mean()) / (
            len(ends) - half) * CYCLE_NS / 1000


class _Watch:
    """Records the start and end of each mini-batch of a run.

    The counts of GPUs and network are read after the ``warmup``. With one mini-batch in flight, the
    NICs' counters are read at the same time: no lookup is in flight then. The local caches'
    counters are read after each mini-batch. Reads precede the next query and do not disturb a NIC.
    With several in flight, the GPU and network counts are read again when the last mini-batch
    starts. If fewer than two mini-batches end in between, the whole run counts.

    Parameters: ``simulation`` of the run; number of ``mini_batches``; ``in_flight``, depth;
    ``warmup``, mini-batches that are not counted.
    """

    def __init__(self, simulation: Simulation, mini_batches: int, in_flight: int, warmup: int):
        self._nodes, self._registers = simulation.cluster.nodes, simulation.registers
        self._alone = in_flight == 1
        self._warmup = warmup if self._alone else 0
        self.span = warmup, mini_batches - (0 if self._alone else in_flight)
        """Numbers of finished mini-batches at which counting begins and ends."""
        if self.span[1] - self.span[0] < 2:
            self.span = 0, mini_batches
        self.records = [Record() for _ in range(mini_batches)]
        self._exchange = simulation.cluster.exchange
        self._exchange.count_opcodes(tuple(chain(*_KINDS.values())))
        self._over, self._noted = 0, {0: self.done()}

    def take(self, step: Step) -> None:
        """Record a finished mini-batch."""
        record = self.records[step.number]
        record.started, record.finished = step.started, step.finished
        if self._alone:
            names = _COUNTED if step.number == self._warmup - 1 else _BY_MINI_BATCH
            for registers in self._registers:
                registers.note(*names)
        self._over += 1
        if self._over in self.span:
            self._noted[self._over] = self.done()

    @property
    def counted(self) -> Counter[tuple[str, ...]]:
        """Difference of :meth:`done` between the end and the start of :attr:`span`."""
        first, last = (self._noted[over] for over in self.span)
        return Counter({what: count - first[what] for what, count in last.items()})

    def done(self) -> Counter[tuple[str, ...]]:
        """Return the counts of GPUs and network so far.

        Keys: each of `_PER_NODE` and `_OF_BAGS` with a node, ``("bytes", kind)`` and
        ``("packets", kind)``.
        """
        done = Counter[tuple[str, ...]]()
        for number, node in enumerate(self._nodes):
            done["launches", str(number)] = node.gpu.launches
            done["gathered", str(number)] = node.gpu.rows
            done["delivered", str(number)] = node.host_bytes["from_nic"]
            if node.bags is not None:
                done["pooled_launches", str(number)] = node.bags.launches
                done["pooled_rows", str(number)] = node.bags.keys
                done["pooled_bags", str(number)] = node.bags.foreign
        exchange = self._exchange
        for kind, opcodes in _KINDS.items():
            for opcode in opcodes:
                packets, size, _ = exchange.opcode_counts(opcode, 0)
                done["packets", kind] += packets
                done["bytes", kind] += size
        done["packets", "total"], done["bytes", "total"] = exchange.frames, exchange.frame_bytes
        return done

    def counts(self, counters: Sequence[Mapping[str, int]]) -> dict[str, int]:
        """Return the counts of registers after the warm-up, and write the local caches' counts into
        the records; ``counters``: register values at the end."""
        if self._alone:
            for name in _BY_MINI_BATCH:
                ends = [0, *map(sum, zip(*(each.noted[name] for each in self._registers)))]
                for record, (before, after) in zip(self.records, pairwise(ends)):
                    setattr(record, name.partition(".")[2], after - before)
        return {name: sum(each[name] - self._warm(registers.noted, name) for each, registers
                          in zip(counters, self._registers)) for name in _COUNTED}

    def _warm(self, noted: Mapping[str, list[int]], name: str) -> int:
        """Return the count of a register during the warm-up."""
        if not self._warmup:
            return 0
        return noted[name][self._warmup - 1 if name in _BY_MINI_BATCH else 0]

    def note_last_packets(self) -> None:
        """Write the times of the last packets into the records."""
        count = len(self.records)
        for kind, opcodes in _KINDS.items():
            ends = [self._exchange.opcode_counts(opcode, count)[2] for opcode in opcodes]
            for record, *cycles in zip(self.records, *ends):
                setattr(record, _LAST[kind], max(cycles) or None)


def run_nics(options: RunOptions, batches: Sequence[MiniBatch], warmup: int = 0) -> NicRun:
    """Run NICs, RTL or modelled, over given mini-batches instead of those of the options.

    ``warmup``: mini-batches that are not counted. ``RuntimeError`` if the run fails.
    """
    run = Run(options, batches=batches, counted=False)
    watch = _Watch(run.simulation, len(batches), options.workload.in_flight, warmup)
    result = run.execute(take=watch.take)
    if not result["complete"] or result["bit_identical"] is False:
        raise RuntimeError(f"the run of the NICs failed: {result['stuck'] or result['results']}")
    watch.note_last_packets()
    done, whole = watch.counted, watch.done()
    per_node = {what: [of[what, str(node)] for node in range(options.workload.nodes)]
                for of, names in ((done, _PER_NODE), (whole, _OF_BAGS)) for what in names}
    traffic = {kind: {unit: done[unit, kind] for unit in ("bytes", "packets")}
               for kind in (*_KINDS, "total")}
    counts = watch.counts(result["counters"])
    rows = {cache: getattr(run.config, f"{cache}_rows") for cache in (
        "local_cache", "remote_cache")}
    return NicRun(watch.records, float(run.simulation.network.lookahead), **per_node,
                  traffic=traffic, mini_batches=watch.span[1] - watch.span[0], counts=counts,
                  rows=rows)


def store_of_runs(folder: str | Path) -> Store:
    """Return the store of runs in a folder."""
    return Store(folder, sources_of(run_nics))


@dataclass(frozen=True)
class RunOf:
    """Key of a run on disk. Members: ``options``; ``workload``, which defines the trace."""

    options: RunOptions
    workload: Workload


def all_runs(wanted: Sequence[RunOptions], trace: Trace, runs: Store | None) -> list[NicRun]:
    """Return a run over a trace for each of the options; equal options share a run.

    ``runs``: store that all processes share. A run that another process is executing is waited for
    after all others. Without ``runs``, this process caches the last few runs.
    """
    found: dict[RunOptions, NicRun] = {}
    if runs is None:
        found = {options: _run(trace, options) for options in wanted}
    for wait in (False, True) if runs is not None else ():
        for options in wanted:
            if options in found:
                continue
            kept = runs.once(RunOf(options, trace.of),
                             partial(_plain_run, options, trace), wait)
            if kept is not None:
                found[options] = NicRun.of(kept)
    return [found[options] for options in wanted]


@once
def _run(trace: Trace, options: RunOptions) -> NicRun:
    return run_nics(options, trace.batches, trace.warmup)


def _plain_run(options: RunOptions, trace: Trace) -> dict:
    return run_nics(options, trace.batches, trace.warmup).to_json()
