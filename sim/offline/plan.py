"""Plan: requirements of a model on a cluster, and the bottleneck, without running RTL.

Bytes of rows follow from the placement of the tables. Traffic is counted from the lookups of a
trace or of generated samples, per mini-batch (:mod:`sim.offline.plan_traffic`). Each resource then
has a time per mini-batch, as if all other resources were infinitely fast; the longest time is the
bound. A run is slower, because resources wait for each other.

Pooled vectors go to the host. With the interaction on the NIC, dense vectors go to the NIC and
results to the host. With ``deliver=unique``, the unique vectors of a share and an index per slot go
to the host, and only the first use of a key in a share is looked up. A bag of an owner-pooled table
needs its rows and a vector. Every lookup of another node's row is sent: the times exclude savings
of remote caches and requester-side merge, which only the rows of ``tables`` include. If a single
node owns most tables, lookups wait for its answers, and packets contain up to a third fewer bytes
than expected here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np

from host.dlrm.formats import in_lanes, padding_notes
from host.model import columns_of, rows_of_block
from host.placement.deal import PLACEMENTS
from host.placement.pooling import pool_obstacles
from host.placement.sets import NodeCaches
from host.placement.shard import ShardPlan, key_hash
from host.samples import first_lookups, rechunk
from sim.job.fit import check_units, check_wire, config_to_build, decodes
from sim.job.inputs import SampleSource
from sim.job.memory import STATE_BYTES, node_bytes
from sim.job.pools import check_bags, check_weights, remote_cache_of, wire_of, with_pools
from sim.job.workload import Workload
from sim.offline.plan_checks import checks
from sim.offline.plan_interaction import InteractionCost
from sim.offline.plan_memory import balance, caches, nodes_needed
from sim.offline.plan_packing import Packing
from sim.offline.plan_pools import PoolTally, busiest
from sim.offline.plan_repeats import first_uses
from sim.offline.plan_resources import PlannedSystem, resources_of
from sim.offline.plan_traffic import Traffic
from sim.offline.plan_updates import UpdateTimes, planned_devices

__all__ = ["SCHEMA", "failures", "plan", "spread_evenly"]

SCHEMA = "embernic/plan/1"


def plan(workload: Workload, *, optimizer: str = "none", hit_rate: float | None = None,
         progress: Callable[[int], None] = lambda done: None) -> dict:
    """Return the requirements of the model on the cluster of ``workload``, and the bottleneck.

    Parameters
    ----------
    workload: made by :meth:`sim.job.workload.Workload.of` from a ``cluster``, which gives the
        memory sizes. ``warmup`` mini-batches warm the caches and are not counted.
    optimizer: optimizer with state in memory: ``none``, ``sgd`` or ``rowwise-adagrad``. With an
        optimizer, pool places are those of training: remote caches are off, and gradients count.
    hit_rate: hit rate of the unique keys that enter a local cache; by default computed for caches
        of the NIC's size on the samples.
    progress: called with the samples done.

    Returns
    -------
    ``nodes`` (NICs with the GPUs that each serves), ``gpus`` (of all nodes), ``memory`` (in
    ``nodes``: bytes of each GPU, their ``share`` of its memory, the fraction of its rows that each
    of the ``caches`` could have ``held``), ``placements`` (for each placement of the tables the
    ``balance`` of rows and lookups, largest share over mean share, and ``nodes_needed``, GPUs of
    the model's rows), ``checks`` (needed and available quantity, whether the check ``holds``, and
    whether it is ``required``: other checks only affect speed), ``tables`` (of each table, summed
    over the mini-batches: first and last of the ``columns`` of a slice and of the ``rows`` of a
    block, ``pool`` place, ``obstacle`` to pooling at the owner, ``foreign_bags``, ``foreign_keys``,
    ``distinct_foreign_rows`` per share and mini-batch, ``missed_rows`` of LRU
    remote caches, the fraction of foreign keys that ``remote_cache_saves``, h, the estimate h^L of
    ``cached_bags`` for bags of L keys, ``requester_bytes`` and ``owner_bytes`` of payload if the
    table pools there, the ``headers`` of full packets, and in training the ``gradients`` with
    headers), ``updates`` (in training with owner-pooled tables: their number, microseconds of the
    row updates ``gpu_us`` and ``nic_us``, and the faster ``place``), ``network_bytes`` (sum over
    the tables at their pool places, with headers, without gradients), ``busiest`` (direction of a
    node with the most bytes per mini-batch), ``traffic`` (of each node per mini-batch),
    ``resources`` (microseconds per mini-batch at the busiest node, ``least_us`` with full packets
    and ``expected_us``), ``binds`` (the resource with the largest ``least_us``), and
    ``samples_per_second``, an upper bound for any run.

    Raises
    ------
    ValueError
        An option is out of range, or a file cannot be read.
    """
    if workload.cluster is None:
        raise ValueError("cluster must be given: it has the memory sizes")
    if optimizer not in STATE_BYTES:
        raise ValueError(f"optimizer must be one of {', '.join(STATE_BYTES)}, not {optimizer!r}")
    if hit_rate is not None and not 0 <= hit_rate <= 1:
        raise ValueError(f"hit_rate must be between 0 and 1, not {hit_rate!r}")
    for name, needed in (("own_bags", "nic"), ("wire", "float32"), ("columns", None),
                         ("blocks", None)) if optimizer != "none" else ():
        if getattr(workload, name) != needed:
            raise ValueError(f"{name} must be {needed} with an optimizer, "
                             f"not {getattr(workload, name)!r}")
    system, training = PlannedSystem.of(workload), optimizer != "none"
    if training:
        system = replace(system, runtime=replace(system.runtime, remote_cache=False))
    check_wire(workload.wire, system.runtime)
    source = SampleSource.of(workload)
    model = system.runtime.of_model(source.model)
    lanes = in_lanes(model, workload.wire)
    source = source.with_model(model)
    if system.runtime.interaction:
        check_units(system.config, model)
    plans = {name: source.plan(name)
             for name in dict.fromkeys((*PLACEMENTS, workload.placement))}
    dealt, notes = with_pools(plans[workload.placement], model, workload, system.config,
                              system.runtime, source.measured(), training)
    check_weights(dealt, system.runtime.deliver)
    plans[workload.placement] = dealt
    system = replace(system, config=config_to_build(system.config, model, system.runtime, workload,
                                                    dealt))
    traffic, pools, loads, times = _replay(source, system, plans, hit_rate, training, progress)
    nodes = node_bytes(model, source.gpu_plan(workload.placement), optimizer,
                       system.runtime.stored_dimensions(model))
    per_batch = {name: values / traffic.batches for name, values in traffic.counts.items()}
    resources = resources_of(workload, system, model, traffic, per_batch)
    binds = max(resources, key=lambda resource: resource["least_us"])
    mini_batch = traffic.samples / traffic.batches
    unique, misses = (float(traffic.counts[name].sum()) for name in ("unique", "misses"))
    lookups = float(traffic.counts["lookups"].sum())
    memory = system.cluster.gpu_memory_bytes
    tables = [row | {"table": model.originals[number], "columns": columns_of(model, number),
                     "rows": rows_of_block(model, number)}
              for number, row in enumerate(pools.tables(
                  wire_of(system.config, lanes.width, dealt.beats),
                  pool_obstacles(dealt, system.config, traffic.longest.tolist())))]
    stores = caches(lanes, system.cluster, system.config, system.runtime)
    return {
        "schema": SCHEMA, "cluster": system.cluster.name, "config": system.config.name,
        "model": {"name": model.name, "tables": model.tables, "rows": sum(model.rows),
                  "dimension": model.dimension,
                  "dimensions": list(model.dimensions), "poolings": list(model.poolings)},
        "notes": [*padding_notes(model, workload.wire), *notes],
        "interaction": None if not system.runtime.interaction else {
            "mode": model.interaction, "itself": model.interaction_itself,
            "width": model.interaction_width},
        "nodes": workload.nodes, "gpus": workload.nodes * workload.gpus,
        "placement": workload.placement, "pool": workload.pool,
        "own_bags": workload.own_bags, "wire": workload.wire, "columns": workload.columns,
        "blocks": workload.blocks,
        "optimizer": optimizer,
        "data": workload.data, "format": source.kind, "seed": workload.seed,
        "mini_batch": workload.mini_batch, "in_flight": workload.in_flight,
        "warmup": workload.warmup, "samples": traffic.samples, "mini_batches": traffic.batches,
        "lookups": int(lookups),
        "hit_rate": {"given": hit_rate, "unique": 1 - misses / unique if unique else None,
                     "every": 1 - misses / lookups if lookups else None},
        "memory": {
            "gpu_bytes": memory, "host_bytes": system.cluster.host_memory_bytes,
            "nodes": [node | {
                "share": node["bytes"] / memory if memory else None,
                "held": {store["name"]: min(1.0, store["rows"] / node["rows"])
                         if node["rows"] else 1.0 for store in stores}} for node in nodes],
            "caches": stores},
        "placements": [
            {"placement": name,
             "balance": {"rows": balance([float(rows) for rows in dealt.rows_held()]),
                         "lookups": balance(loads[name].tolist())},
             "nodes_needed": nodes_needed(model, dealt.rule, optimizer, memory)}
            for name, dealt in plans.items()],
        "checks": checks(workload, system.config, system.runtime, system.cluster, model,
                         traffic.most, nodes),
        "tables": tables, "updates": times and times.to_json(),
        "network_bytes": sum(table[f"{table['pool']}_{part}"] for table in tables
                             for part in ("bytes", "headers")),
        "busiest": busiest(per_batch, workload.nodes),
        "traffic": {name: values.tolist() for name, values in sorted(per_batch.items())},
        "resources": resources, "binds": binds["name"],
        "samples_per_second": mini_batch / (binds["least_us"] * 1e-6),
        "samples_per_second_expected": mini_batch / (
            max(resource["expected_us"] for resource in resources) * 1e-6),
    }


def failures(result: dict) -> list[str]:
    """Return a line per reason why the cluster cannot hold or run the model."""
    return [f"{check['what']} must be at most {check['have']:,} ({check['of']}), "
            f"not {check['need']:,}" for check in result["checks"]
            if check["required"] and not check["holds"]]


def _replay(source: SampleSource, system: PlannedSystem, plans: dict[str, ShardPlan],
            hit_rate: float | None, training: bool, progress: Callable[[int], None],
            ) -> tuple[Traffic, PoolTally, dict[str, np.ndarray], UpdateTimes | None]:
    """Return the traffic of all mini-batches after the warm-up, that of each table, the lookups of
    each node for each placement, and in training the times of updates."""
    workload, model = source.workload, source.model
    config, runtime, dealt = system.config, system.runtime, plans[workload.placement]
    packing = Packing(config, runtime, workload.nodes, in_lanes(model, workload.wire).width,
                      InteractionCost.of(config, model) if runtime.interaction else None,
                      model.width if decodes(workload.wire, runtime) else 0)
    traffic = Traffic(dealt, packing, merge=workload.in_flight > 1)
    sets = (runtime.local_cache_sets or config.local_cache_sets) if runtime.local_cache else 0
    stores = NodeCaches(sets, config.local_cache_ways, workload.nodes, config.policy)
    pools = PoolTally(dealt, *remote_cache_of(config, runtime), config if training else None)
    times = UpdateTimes(dealt, model, config, runtime, planned_devices(
        workload.nodes, system.cluster.software, system.gpu, system.pcie, system.network)
    ) if training and dealt.pools_at_owner else None
    looked_up = (dealt.owner_pooled == 0) & ~(dealt.own_by_node & (not runtime.interaction))
    loads = {name: np.zeros(workload.nodes) for name in plans}
    done, entered_before = 0, np.zeros(workload.nodes, np.int64)
    chunks = rechunk(source.chunks(), workload.mini_batch)
    number = -1
    for number, batch in enumerate(chunks):
        check_bags(batch, done + np.arange(len(batch)), dealt, config, model)
        pools.add(batch, number >= workload.warmup)
        requesters = batch.requesters(workload.nodes)
        owners = dealt.owner_of(batch.tables, batch.rows, requesters)
        passes = looked_up[requesters, batch.tables]
        asked = np.flatnonzero(passes)
        entered = first_lookups(batch, asked) if runtime.dedupe else None
        if runtime.deliver == "unique":
            asked = first_uses(batch, workload.nodes, config, asked)
        entered = asked if entered is None else entered
        if hit_rate is None:
            tables, rows = batch.tables[entered], batch.rows[entered]
            missed = ~stores.access(owners[entered], key_hash(tables, rows), batch.keys[entered])
        else:
            missed = spread_evenly(owners[entered], 1 - Fraction(str(hit_rate)), entered_before)
        done += len(batch)
        progress(done)
        if number < workload.warmup:
            continue
        traffic.add(batch, owners, entered, missed, asked)
        if times is not None:
            times.add(batch)
        read = np.concatenate((asked, np.flatnonzero(~passes)))
        for name, other in plans.items():
            loads[name] += np.bincount(
                other.owner_of(batch.tables[read], batch.rows[read], requesters[read]),
                minlength=workload.nodes)
    if not traffic.batches:
        raise ValueError(f"warmup must be less than the mini-batches of the input, {number + 1}, "
                         f"not {workload.warmup!r}")
    return traffic, pools, loads, times


def spread_evenly(owners: np.ndarray, share: Fraction, before: np.ndarray) -> np.ndarray:
    """Return a mask that chooses a ``share`` of the lookups of each owner, evenly spread.

    ``before``, the number of earlier lookups of each owner, is updated. Lookup n of an owner, from
    0, is chosen if the integer part of n times ``share`` increases there; the arithmetic is exact.
    """
    chosen = np.zeros(len(owners), bool)
    for owner in range(len(before)):
        here = np.flatnonzero(owners == owner)
        first = int(before[owner])
        largest = (first + len(here) + 1) * max(share.numerator, share.denominator)
        # A share with many digits needs Python's integers, which are slower.
        kind = np.int64 if largest <= np.iinfo(np.int64).max else object
        number = first + np.arange(len(here) + 1).astype(kind)
        reached = number * share.numerator // share.denominator
        chosen[here] = np.diff(reached) > 0
        before[owner] += len(here)
    return chosen
