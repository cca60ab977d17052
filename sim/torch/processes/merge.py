"""Merge of the observations of a program's processes into those of a cluster's nodes."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import accumulate, zip_longest
from typing import NamedTuple

import numpy as np

from sim.torch.catching.capture import Capture
from sim.torch.catching.process_group import collectives
from sim.torch.catching.session import Session
from sim.torch.lookups.bags import Bags
from sim.torch.lookups.comparison import Comparison
from sim.torch.lookups.dense import Chains
from sim.torch.lookups.record import Kept, Record
from sim.torch.values.written import Written

__all__ = ["Counts", "Seen", "caches_of", "differences", "together", "with_nics"]


class Counts(NamedTuple):
    """Counts that a process sends after a mini-batch.

    tables, steps: new tables and mini-batches as plain values.
    exchanges: total, see :class:`sim.torch.lookups.record.Record`.
    """

    tables: list[dict]
    steps: list[dict]
    exchanges: int


@dataclass
class Seen:
    """Observations of a process, or of several merged processes.

    Members
    -------
    rank, size: rank of the process and number of processes; None and 1 for a single process.
    tables: tables as plain values.
    record, chains, comparison, verdicts, latencies, row_times, counts, resets, updates, written,
        weighted, gradients, uncached, pooled: see :class:`sim.torch.catching.session.Session`.
    missed: number of lookups that were not caught, by source line and reason.
    collectives: collectives of this process, as plain values.
    exit_status: exit status of its script.
    silent: True if the process was lost; only its rank, tables and counts of mini-batches are
        known.
    """

    rank: int | None
    size: int
    tables: list[dict]
    record: Record
    chains: Chains
    comparison: Comparison
    verdicts: dict[str, int]
    latencies: list[float]
    row_times: list[float]
    counts: Counter[str]
    resets: Counter[str]
    updates: Counter[str]
    written: Written
    weighted: int
    gradients: int
    uncached: int
    pooled: int
    missed: Counter[tuple[str, str]]
    collectives: list[dict]
    exit_status: int = 0
    silent: bool = False

    @classmethod
    def of(cls, session: Session, capture: Capture, exit_status: int = 0,
           rank: int | None = None, size: int = 1) -> "Seen":
        """Return the observations of an ended session."""
        session.record.cached(caches_of(session))
        same = ("chains", "comparison", "verdicts", "latencies", "counts", "resets", "updates",
                "row_times", "written", "weighted", "gradients", "uncached", "pooled")
        return cls(rank=rank, size=size, tables=[table.to_json() for table in session.tables.all],
                   record=session.record.without_rows(), missed=capture.missed,
                   collectives=collectives(), exit_status=exit_status,
                   **{name: getattr(session, name) for name in same})

    @classmethod
    def counted(cls, rank: int | None, size: int) -> "Seen":
        """Return empty observations of a process, for `add`."""
        return cls(rank, size, [], Record(), Chains(), Comparison(), {"equal": 0, "different": 0},
                   [], [], Counter(), Counter(), Counter(), Written(), 0, 0, 0, 0, Counter(), [],
                   silent=True)

    def add(self, counts: Counts) -> None:
        """Add tables and finished mini-batches of a process that may be lost later."""
        self.tables += counts.tables
        self.record.steps += counts.steps
        self.record.exchanges = counts.exchanges

    def by_itself(self) -> "Seen":
        """Return these observations as a program with a single process."""
        return replace(self, rank=None, size=1)


def caches_of(session: Session, node: int | None = None) -> Counter[tuple[int, str]]:
    """Return the counts of a session's local caches, by mini-batch and name.

    node: node of the cache; None for the sum over all nodes.
    """
    found = Counter[tuple[int, str]]()
    for (number, step, name), count in session.caches.items():
        if node in (None, number):
            found[step, name] += count
    return found


def together(parts: Sequence[Seen]) -> Seen:
    """Merge the observations of processes.

    Mini-batches of the same number are merged. If all-to-all exchanges transported the vectors of
    most mini-batches, each process has its own tables and looks up the bags of all samples in them.
    Tables and columns are then concatenated, and the node of a table is the rank of its process.
    Otherwise the processes have copies of the same tables and different samples, and the samples
    are concatenated.

    Lookups of processes outside the group, or with a rank that already exists, count as not caught.
    """
    parts, others = _group(parts)
    found = parts[0].by_itself() if len(parts) == 1 else _merged(parts)
    for other in others:
        place = other.tables[0]["place"], "lookups of a process outside the process group"
        found.missed[place] += sum(step["lookups"] for step in other.record.steps)
    return found


def _group(parts: Sequence[Seen]) -> tuple[list[Seen], list[Seen]]:
    """Return the processes to merge, by rank, and other processes with tables."""
    ranks: dict[int, Seen] = {}
    for part in parts:
        if part.rank is not None:
            ranks.setdefault(part.rank, part)
    group = [ranks[rank] for rank in sorted(ranks)] or [
        max(parts, key=lambda part: len(part.record.steps))]
    return group, [part for part in parts if part.tables and not any(
        part is each for each in group)]


def _merged(parts: Sequence[Seen]) -> Seen:
    """Return the merged observations of a group."""
    sharded = _sharded(parts)
    tables = max((part.tables for part in parts), key=len)
    if sharded:
        tables = [table | {"node": part.rank} for part in parts for table in part.tables]
    chains = Chains()
    for part in parts:
        part.chains.end()
    chains.seen = _summed([part.chains.seen for part in parts])
    return replace(
        parts[0], rank=None, tables=tables, record=_record(parts, sharded), chains=chains,
        comparison=reduce(Comparison.with_, (part.comparison for part in parts)),
        written=reduce(Written.with_, (part.written for part in parts)),
        verdicts=dict(_summed([Counter(part.verdicts) for part in parts])),
        **{name: [each for part in parts for each in getattr(part, name)]
           for name in ("latencies", "row_times")},
        **{name: _summed([getattr(part, name) for part in parts])
           for name in ("counts", "resets", "updates", "missed")},
        **{name: sum(getattr(part, name) for part in parts)
           for name in ("weighted", "gradients", "uncached", "pooled")},
        collectives=_collectives(parts),
        exit_status=next((part.exit_status for part in parts if part.exit_status), 0))


def differences(parts: Sequence[Seen]) -> list[str]:
    """Describe in words the differences between processes that affect the report."""
    parts, _ = _group(parts)
    if len(parts) == 1:
        return []
    notes, counts = [], sorted({len(part.record.steps) for part in parts} - {0})
    if not _sharded(parts):
        notes.append(f"the {len(parts)} processes have copies of the same tables and different "
                     f"samples: the option placement distributes the NICs' tables")
    notes += [f"process {part.rank} ended without a report: its mini-batches are counted, but "
              f"not timed" for part in parts if part.silent]
    if len(counts) > 1:
        notes.append(f"the processes had {counts[0]:,} to {counts[-1]:,} mini-batches: incomplete "
                     f"mini-batches are counted, but not timed")
    return notes


def _sharded(parts: Sequence[Seen]) -> bool:
    """Return True if most mini-batches' vectors were exchanged, or if the tables differ."""
    steps = sum(len(part.record.steps) for part in parts)
    shapes = {tuple((table["rows"], table["dimension"]) for table in part.tables) for part in parts}
    return len(shapes) > 1 or 2 * sum(part.record.exchanges for part in parts) > steps


def _record(parts: Sequence[Seen], sharded: bool) -> Record:
    """Merge the mini-batches of the same number."""
    found = Record()
    for steps in zip_longest(*(part.record.steps for part in parts)):
        found.steps.append(_step([step for step in steps if step is not None], sharded))
    ends = accumulate((len(part.tables) * sharded for part in parts), initial=0)
    looking, bases = [], []
    for part, base in zip(parts, ends):
        if part.record.steps and not part.silent:
            looking.append(part.record)
            bases.append(base)
    kept = [{each.step: (trained, each) for trained, recent in record.recent.items()
             for each in recent} for record in looking]
    for number in sorted(set.intersection(*map(set, kept))) if kept else ():
        each = [own[number] for own in kept]
        one = (_beside if sharded else _behind)([of for _, of in each], bases)
        if one is not None:
            found.recent[any(trained for trained, _ in each)].append(one)
    return found


def _step(steps: Sequence[dict], sharded: bool) -> dict:
    """Merge the counts of a mini-batch from all processes."""
    trained = any(step["workload"] == "training" for step in steps)
    one = {"workload": "training" if trained else "inference"}
    for name in list(steps[0])[1:]:
        counted = [step[name] for step in steps if step[name] is not None]
        one[name] = sum(counted) if counted else None
    if sharded:
        one["samples"] = max(step["samples"] for step in steps)
    return one


def _beside(kept: Sequence[Kept], bases: Sequence[int]) -> Kept | None:
    """Concatenate the tables of all processes; None if the numbers of samples differ."""
    if len({len(each.columns[0]) for each in kept}) > 1:
        return None
    return Kept(tuple(bags for each in kept for bags in each.columns),
                tuple(base + table for base, each in zip(bases, kept) for table in each.tables),
                kept[0].step)


def _behind(kept: Sequence[Kept], _: Sequence[int]) -> Kept | None:
    """Concatenate the samples of all processes; None if the tables differ."""
    if len({each.shape[1:] for each in kept}) > 1:
        return None
    columns = tuple(Bags(bags[0].weight, np.concatenate([each.rows for each in bags]),
                         np.concatenate([each.lengths for each in bags]), bags[0].pooling)
                    for bags in zip(*(each.columns for each in kept)))
    return Kept(columns, kept[0].tables, kept[0].step)


def _collectives(parts: Sequence[Seen]) -> list[dict]:
    """Return the collectives of all processes by name."""
    sums: dict[str, dict] = {}
    for each in (each for part in parts for each in part.collectives):
        own = sums.setdefault(each["name"], each | {"count": 0, "bytes": 0})
        own["count"] += each["count"]
        own["bytes"] += each["bytes"]
    return list(sums.values())


def _summed(counters: Sequence[Counter]) -> Counter:
    found = Counter()
    for each in counters:
        found.update(each)
    return found


def with_nics(parts: list[Seen], nics: Session) -> None:
    """Add the NICs' results to the observations: totals to the first part, cache counts to each
    part."""
    parts[0] = replace(parts[0], verdicts=nics.verdicts, latencies=nics.latencies,
                       row_times=nics.row_times, counts=nics.counts,
                       resets=nics.resets, uncached=nics.uncached, pooled=nics.pooled)
    for part in parts:
        if part.rank is not None:
            part.record.cached(caches_of(nics, part.rank))
