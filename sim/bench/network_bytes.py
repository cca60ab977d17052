"""Bytes on the network of whole NICs, over the fewest bytes of the same samples.

The fewest bytes are those of :class:`host.placement.least.LeastBytes`: of each table, the smaller
of its pooled bags and of its rows that an LRU cache misses. Tables pool where fewer bytes are
needed, and caches are empty at first. The NICs are modelled, with the traffic of the RTL.
"""

from dataclasses import dataclass

import numpy as np

from host.placement.deal import PLACEMENTS
from host.placement.least import LeastBytes
from host.placement.pooling import ForeignBags, choose_pools, pool_obstacles
from host.placement.shard import ShardPlan
from host.samples import rechunk
from host.timing.clock import cycles_of_us
from host.timing.network import NetworkProfile
from host.toml.profile import load_profile
from rtl.formats import BEAT_BYTES
from sim.bench.rows import Job, Progress, Row
from sim.job.inputs import SampleSource
from sim.job.options import RunOptions
from sim.job.pools import found_repeats, remote_cache_of, wire_of
from sim.run.run import Run

__all__ = ["CASES", "Case", "bytes_jobs", "bytes_rows"]

MOST = 1.05
"""Largest bytes of a run without the headers of full packets, over the fewest bytes."""

NODES, BATCHES = 8, 2


@dataclass(frozen=True)
class Case:
    """A workload. Members: ``model``; ``mini_batch``; ``settings``, sizes and registers;
    ``repeats`` and ``placement``, as in :class:`sim.job.workload.Workload`; ``about``, for its
    name; ``config``, of the NIC;
    ``wire``, format of vectors, delivered once each if it is not float32."""

    model: str
    mini_batch: int
    settings: tuple[str, ...] = ()
    repeats: str = "send"
    about: str = ""
    config: str = "terabyte"
    placement: str = "even"
    wire: str = "float32"

    @property
    def name(self) -> str:
        """Name of the rows."""
        parts = f"{self.mini_batch:,}", self.about, self.wire * (self.wire != "float32")
        return ", ".join((self.model, *filter(None, parts)))

    def options(self) -> RunOptions:
        """Return the options of a run."""
        return RunOptions.of(
            cluster="h100x8", config=self.config, nodes=NODES, model=self.model,
            mini_batch=self.mini_batch, samples=BATCHES * self.mini_batch, pool="auto",
            placement=self.placement, repeats=self.repeats, wire=self.wire,
            settings=(*self.settings, *["deliver=unique"] * (self.wire != "float32")),
            fidelity="fast", threads=1)


def _waits(trips: int) -> tuple[str, ...]:
    """Return the timeouts of packets that wait for a number of round trips of the network; EN's
    option ``patient`` waits for one."""
    cycles = round(trips * cycles_of_us(2 * load_profile(
        "ethernet_100g_switch", NetworkProfile).one_way_us))
    return f"lookup_timeout={cycles}", f"vector_timeout={cycles}"


CASES = (
    Case("kaggle", 2048, _waits(2), config="kaggle"),
    Case("kaggle", 2048, _waits(2), about="rows hashed", config="kaggle", placement="row"),
    Case("dcnv2", 2048, (*_waits(1), "max_dimension=128", "hold_vectors=1024")),
    Case("dcnv2", 2048, (*_waits(1), "max_dimension=128", "hold_vectors=1024"),
         about="lookups balanced", placement="lookups"),
    Case("production", 256, (*_waits(1), "tables=856", "hold_vectors=32768")),
    Case("two_towers", 2048, (*_waits(1), "max_dimension=256", "hold_vectors=4096")),
    Case("ranking", 1024, (*_waits(1), "hold_vectors=4096"), "indices", "repeated bags once"),
    Case("ranking", 1024, (*_waits(1), "hold_vectors=4096"), "nic", "repeated bags found by NICs"),
    # Most rows of repeated bags are cached, so that packets with the others fill slowly.
    Case("ranking", 1024, (*_waits(12), "bag_timeout=256", "hold_vectors=4096")),
    Case("kaggle", 2048, _waits(2), config="kaggle", wire="float16"),
    *(Case("dcnv2", 2048, (*_waits(trips), "max_dimension=128", "hold_vectors=1024"), wire=wire)
      for wire, trips in (("float16", 1), ("int8", 2))),
    Case("production", 256, (*_waits(1), "tables=856", "hold_vectors=32768"), wire="float16"),
    Case("two_towers", 2048, (*_waits(1), "max_dimension=256", "hold_vectors=4096"),
         wire="float16"),
    Case("ranking", 1024, (*_waits(1), "hold_vectors=4096"), "indices", "repeated bags once",
         wire="float16"),
)


def bytes_jobs() -> list[Job]:
    """Return a job for each workload."""
    def job(case: Case) -> Job:
        return Job("bytes", f"network bytes, {case.name}",
                   lambda progress: bytes_rows(case, progress))

    return [job(case) for case in CASES]


def bytes_rows(case: Case, progress: Progress = lambda line: None) -> list[Row]:
    """Run a workload; return its bytes over the fewest bytes, in total, in the busiest direction,
    and in that direction beside the best placement.

    ``RuntimeError`` if the run does not end.
    """
    options = case.options()
    cluster = Run(options)
    result = cluster.execute(lambda done, cycle: progress(f"{done:,} samples"))
    if not result["complete"]:
        raise RuntimeError(f"{case.name}: no end: {result['stuck']}")
    packets = [[counters[f"{block}.packets"] + counters[f"{block}.beats"]
                for counters in result["counters"]] for block in ("net_assembler", "net_receiver")]
    moved = BEAT_BYTES * np.array(packets, np.int64)
    least = _least(cluster, options, cluster.plan)
    way, node, busiest = least.busiest(moved)
    source, found = SampleSource.of(options.workload), {}
    for placement in PLACEMENTS:
        plan = source.plan(placement)
        found[placement] = _least(cluster, options, plan, choose=True)
    best = min(found, key=lambda each: found[each].payload.max())
    ideal = int(found[best].payload.max())
    direction, placed = f"{('out', 'in')[way]} of node {node}", options.workload.placement
    beside = float((moved[way, node] - least.headers[way, node]) / ideal)
    return [
        Row(f"{case.name}: bytes", least.excess(moved), "x the fewest", MOST, "<=",
            note=f"{moved[0].sum():,} B, {least.headers[0].sum():,} B of headers; fewest "
                 f"{least.payload[0].sum():,} B; {result['latency_us']['p50']:,.1f} us a "
                 f"mini-batch, {result['cycles']:,} cycles"),
        Row(f"{case.name}: busiest direction", busiest, "x the fewest", MOST, "<=",
            note=f"{moved[way, node]:,} B {direction}, placement {placed}"),
        Row(f"{case.name}: that, best placement", beside, "x the fewest",
            note=f"{ideal:,} B with placement {best}"),
    ]


def _least(cluster: Run, options: RunOptions, plan: ShardPlan, choose: bool = False) -> LeastBytes:
    """Return the fewest bytes under ``plan``; ``choose``: with pool places for it."""
    workload, config = options.workload, cluster.config
    source = SampleSource.of(workload).with_model(cluster.model)
    runtime = cluster.simulation.runtime
    foreign = ForeignBags(plan, rechunk(source.chunks(), workload.mini_batch),
                          found_repeats(workload, config, runtime))
    wire = wire_of(config, cluster.simulation.lanes.width, plan.beats)
    cache = remote_cache_of(config, runtime)
    pools = [table.pool for table in plan.tables]
    if choose:
        pools = choose_pools(foreign, wire, pool_obstacles(
            plan, config, foreign.longest.tolist()), *cache)
    return LeastBytes.of(foreign, wire, pools, *cache)
