"""Hit rate of the local cache against its size, computed from the accesses without RTL.

In a mini-batch, a node's local cache sees each key of the node once, at its first lookup; the
dedupe table answers duplicates. Keys are processed in the order of the samples, which is the order
of a cluster with a single node. Several nodes interleave the keys of a mini-batch. The RTL may then
differ by the few keys that are evicted and needed again within a mini-batch.

The computation ignores time. It has no conflict misses (all ways of a set pending), which the RTL
serves without keeping the row, and no entries that a full dedupe table retires early. The RTL
counts both. If both counts are 0, the RTL's order gives exactly these hits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from rich.table import Table

from host.placement.sets import NodeCaches
from host.placement.shard import key_hash
from host.samples import first_lookups, rechunk
from rtl.config import POLICY_CODES, NicConfig, preset
from sim.files.outputs import LiveJson
from sim.files.stop import never
from sim.job.inputs import SampleSource
from sim.job.settings import apply_settings
from sim.job.workload import Workload
from sim.run.hardware import fbgemm_counts

__all__ = ["SCHEMA", "hitrate", "hitrate_stopped", "hitrate_table"]

SCHEMA = "embernic/hitrate/1"

_MOST_SETS = 1 << 24
"""The set of a key comes from 24 bits of its hash."""

_MOST_NODES = 1 << 12

_DEFAULT_SIZES = (0.25, 0.5, 1, 2, 4)
"""Default sizes, relative to the local cache of the NIC."""


class _Caches:
    """The local caches of all nodes, for one policy and size, and their hits."""

    def __init__(self, policy: str, size: int, ways: int, nodes: int):
        self.policy, self.size = policy, size
        self.ways = (ways or size) if size else 0
        self._caches = NodeCaches(size // self.ways if size else 0, self.ways, nodes, policy)
        self.hits = 0
        self._before = 0

    def access(self, owners: np.ndarray, hashes: np.ndarray, keys: np.ndarray) -> None:
        """Look up each key at its owner."""
        self.hits += int(self._caches.access(owners, hashes, keys).sum())

    def restart(self) -> None:
        """Reset the counts and keep the contents."""
        self.hits, self._before = 0, self._caches.evictions

    def row(self, lookups: int, unique: int) -> dict:
        """Return the counts as a row; ``unique`` of the ``lookups`` entered the caches."""
        # Without a cache, repeats of a key in a mini-batch are no hits of a cache.
        found = lookups - unique + self.hits if self.size else 0
        return {"policy": self.policy, "size": self.size, "sets": self._caches.sets,
                "ways": self.ways, "hits": self.hits, "misses": unique - self.hits,
                "evictions": self._caches.evictions - self._before,
                "hit_rate": found / lookups if lookups else None,
                "hit_rate_unique": self.hits / unique if unique else None,
                **fbgemm_counts(lookups, unique, unique - self.hits)}


def hitrate(sizes: Sequence[int] | None = None, *, data: str | tuple[str, ...] | None = None,
            format: str | None = None, model: str | None = None,
            policies: Sequence[str] = ("lru",), ways: int | None = None, nodes: int | None = None,
            placement: str = Workload.placement, mini_batch: int = 128, samples: int | None = None,
            warmup: int = 0, seed: int = 1, config: str | None = None, cluster: str | None = None,
            progress: Callable[[int], None] = lambda done: None,
            stop: Callable[[], str | None] = never, live: LiveJson | None = None) -> dict:
    """Return the hit rates of local caches for each policy and size, starting cold.

    Memory is bounded by the sizes and the mini-batch, not by the input.

    Parameters
    ----------
    sizes: rows of a node's cache, each a multiple of ``ways``; 0 turns the cache off. By default a
        quarter to four times the NIC's.
    data, format, model, samples, seed: the input as in :class:`sim.job.workload.Workload`; without
        ``data``, generated.
    policies: names from :data:`rtl.config.POLICY_CODES`.
    ways: of a set, by default the NIC's; 0 makes every cache fully associative. Keys map to sets as
        in the RTL.
    nodes, placement, mini_batch: of the cluster; ``mini_batch`` counts all nodes' samples.
    warmup: mini-batches that warm the caches and are not counted.
    config, cluster: the NIC, and the nodes, as in :meth:`sim.job.workload.Workload.of`.
    progress: called with the samples done.
    stop: returns the name of a signal to end after the current mini-batch. The counts until then
        are returned, with ``complete`` false and the signal as ``interrupted``.
    live: JSON file that is updated meanwhile.

    Returns
    -------
    ``schema``, ``complete``, ``interrupted``, the arguments, ``samples``, ``lookups``, ``unique``
    (lookups that enter a cache, counted once per key, owner and mini-batch), all without the
    warm-up, and ``rows``, each with ``policy``, ``size``, ``sets``, ``ways``, ``hits``,
    ``misses``, ``evictions`` and two hit rates: ``hit_rate`` of all lookups, counting duplicates
    within a mini-batch as hits (0 without a cache), and ``hit_rate_unique`` of the lookups that
    enter a cache; also the counts by FBGEMM's names, see :func:`sim.run.hardware.fbgemm_counts`.

    Raises
    ------
    ValueError
        An option that is out of range, or an input that cannot be read
        (:class:`host.errors.InputError`).
    """
    workload = Workload.of(data=data, format=format, model=model, nodes=nodes, warmup=warmup,
                            placement=placement, mini_batch=mini_batch, samples=samples, seed=seed,
                            config=config, cluster=cluster)
    nodes = workload.nodes
    if nodes > _MOST_NODES:
        raise ValueError(f"nodes must be at most {_MOST_NODES}, not {nodes!r}")
    nic, _ = apply_settings(preset(workload.config), list(workload.settings))
    ways = nic.local_cache_ways if ways is None else ways
    sizes = _sizes_of(nic, ways) if sizes is None else sizes
    caches = [_Caches(policy, size, ways, nodes)
              for policy, size in _checked(policies, sizes, ways)]
    source = SampleSource.of(workload)
    plan = source.plan()
    done = left_out = lookups = unique = 0

    def result(complete: bool = False, interrupted: str | None = None) -> dict:
        return {"schema": SCHEMA, "complete": complete, "interrupted": interrupted, "data": data,
                "format": source.kind, "model": source.model.name, "nodes": nodes,
                "placement": placement, "mini_batch": mini_batch, "ways": ways, "seed": seed,
                "config": workload.config, "cluster": cluster, "warmup": warmup,
                "samples": done - left_out, "lookups": lookups, "unique": unique,
                "rows": [cache.row(lookups, unique) for cache in caches]}

    batch_number = -1
    for batch_number, batch in enumerate(rechunk(source.chunks(), mini_batch)):
        if batch_number == warmup:
            left_out, lookups, unique = done, 0, 0
            for cache in caches:
                cache.restart()
        first = first_lookups(batch)
        tables, rows, keys = batch.tables[first], batch.rows[first], batch.keys[first]
        owners, hashes = plan.owner_of(tables, rows), key_hash(tables, rows)
        for cache in caches:
            cache.access(owners, hashes, keys)
        done += len(batch)
        lookups += len(batch.rows)
        unique += len(keys)
        progress(done)
        if (signal := stop()) is not None:
            if batch_number < warmup:
                left_out, lookups, unique = done, 0, 0
                for cache in caches:
                    cache.restart()
            return result(interrupted=signal)
        if batch_number >= warmup and live is not None and live.due():
            live.write(result())
    if batch_number < warmup and warmup:
        raise ValueError(f"warmup must be less than the mini-batches of the input, "
                         f"{batch_number + 1}, not {warmup!r}")
    return result(complete=True)


def _sizes_of(nic: NicConfig, ways: int) -> list[int]:
    """Return the default sizes for a NIC, each a whole number of sets."""
    unit = ways or 1
    sizes = {max(1, int(nic.local_cache_rows * share) // unit) * unit for share in _DEFAULT_SIZES}
    return sorted(sizes)


def _checked(policies: Sequence[str], sizes: Sequence[int], ways: int) -> Iterator[tuple[str, int]]:
    """Yield each policy with each size, after checking all of them."""
    if ways < 0:
        raise ValueError(f"ways must be at least 0 (fully associative), not {ways!r}")
    for name, values in (("policy", policies), ("sizes", sizes)):
        if not values or len(set(values)) < len(values):
            raise ValueError(f"{name} must name at least one value, and each only once, "
                             f"not {','.join(map(str, values))!r}")
    for policy in policies:
        if policy not in POLICY_CODES:
            raise ValueError(f"policy must be one of {', '.join(POLICY_CODES)}, not {policy!r}")
    for size in sizes:
        if size < 0:
            raise ValueError(f"sizes must be at least 0 (off), not {size!r}")
        if ways and size % ways:
            raise ValueError(f"sizes must be multiples of ways ({ways}), not {size!r}")
        if ways and size // ways > _MOST_SETS:
            raise ValueError(f"sizes must be at most {_MOST_SETS * ways}, not {size!r}")
    for policy in policies:
        for size in sizes:
            yield policy, size


def hitrate_stopped(result: dict) -> str | None:
    """Return a line on the samples of interrupted hit rates; None if complete."""
    if result["interrupted"] is None:
        return None
    return (f"stopped by {result['interrupted']}: the hit rates cover {result['samples']:,} "
            f"samples. A new call starts over with empty caches; use --samples for a shorter pass")


def hitrate_table(result: dict) -> Table:
    """Return the table of the command."""
    after = (f" after {result['warmup']:,} mini-batches of warm-up" if result["warmup"] else "")
    shown = Table(title=f"Local caches of {result['nodes']} nodes without remote caches, "
                        f"{result['samples']:,} samples{after}, {result['lookups']:,} lookups, "
                        f"{result['unique']:,} of unique keys", title_justify="left")
    for name in ("policy", "rows of a node", "sets", "ways", "hit rate per owner lookup",
                 "hit rate per unique key", "evictions"):
        shown.add_column(name, justify="left" if name == "policy" else "right")
    for row in result["rows"]:
        rates = ["-" if row[name] is None else f"{row[name]:.4f}"
                 for name in ("hit_rate", "hit_rate_unique")]
        shown.add_row(row["policy"], f"{row['size']:,}", f"{row['sets']:,}", f"{row['ways']:,}",
                      *rates, f"{row['evictions']:,}")
    return shown
