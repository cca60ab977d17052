"""Commands that count without NICs: hit rates, keys saved, requirements, contents of a data set."""

from typing import Any

from host.data.indexing import format_of
from sim.files.outputs import LiveJson, write_json
from sim.files.stop import note_kept_results
from sim.job.arguments import members, takes
from sim.job.outputs import Outputs
from sim.job.workload import Workload
from sim.offline.options import BatchingOptions, DescribeOptions, HitrateOptions, PlanOptions

__all__ = ["batching", "describe", "hitrate", "plan"]


@takes(HitrateOptions)
def hitrate(options: HitrateOptions, **watch: Any) -> dict:
    """Return the hit rate of the local cache against its size, without running RTL.

    >>> result = hitrate(sizes=[0, 64], samples=128)
    >>> [row["size"] for row in result["rows"]], result["rows"][0]["hits"]
    ([0, 64], 0)

    Returns
    -------
    dict
        ``schema``, ``complete``, ``interrupted``, the arguments, ``samples``, ``lookups``,
        ``unique`` and ``rows``, see :func:`sim.offline.hitrate.hitrate`.

    Raises ``ValueError``, ``TypeError`` and ``OSError``.
    """
    from sim.offline.hitrate import hitrate as counted

    outputs = Outputs.of(options, "data", "model", "cluster")
    live = LiveJson(outputs.json)
    with note_kept_results(live, outputs.json):
        result = counted(
            options.sizes, policies=options.policy, ways=options.ways, live=live, **watch,
            **members(options, "data", "model", "nodes", "placement", "mini_batch", "samples",
                      "warmup", "seed", "config", "cluster"), format=format_of(options))
        write_json(result, outputs.json)
    if outputs.picture and result["complete"]:
        from sim.offline.picture_hitrate import draw_hitrate

        draw_hitrate(result, outputs.picture)
    return result


@takes(BatchingOptions)
def batching(options: BatchingOptions, **watch: Any) -> dict:
    """Return the unique keys that each batching algorithm saves, and its cost.

    >>> result = batching(model="avazu", samples=64, mini_batch=16, window=32)
    >>> result["winners"][0]["dataset"], result["rows"][0]["algorithm"]
    ('avazu', 'file')

    Returns
    -------
    dict
        ``schema``, ``seed``, ``rows`` and ``winners``, see :func:`sim.offline.batching.batching`.

    Raises ``ValueError``, ``TypeError`` and ``OSError``.
    """
    from sim.offline.batching import batching as compared

    outputs = Outputs.of(options, "data", "model")
    result = compared(format=format_of(options), **watch, **members(
        options, "data", "model", "samples", "mini_batch", "window", "hyperedges", "seed"))
    write_json(result, outputs.json)
    return result


@takes(PlanOptions)
def plan(options: PlanOptions, **watch: Any) -> dict:
    """Return requirements, fit and bottleneck of a model on a cluster, without RTL.

    >>> result = plan(samples=64, mini_batch=16)
    >>> result["nodes"], result["binds"] in [row["name"] for row in result["resources"]]
    (4, True)

    Returns
    -------
    dict
        ``memory``, ``placements``, ``checks``, ``tables``, ``traffic``, ``resources``, ``binds``,
        ``samples_per_second`` and the arguments, see :func:`sim.offline.plan.plan`. A cluster
        that cannot hold the model does not raise: see :func:`sim.offline.plan.failures`.

    Raises ``ValueError``, ``TypeError`` and ``OSError``.
    """
    from sim.offline.plan import plan as planned

    outputs = Outputs.of(options, "data", "model", "cluster", "network", "gpu", "pcie",
                         "pool")
    workload = Workload.of(settings=options.set, **members(
        options, "cluster", "config", "model", "nodes", "samples", "mini_batch", "in_flight",
        "warmup", "data", "format", "index", "placement", "pool", "own_bags", "wire", "columns",
        "blocks", "network", "gpu", "pcie", "seed"))
    result = planned(workload, optimizer=options.optimizer, hit_rate=options.hit_rate, **watch)
    write_json(result, outputs.json)
    if outputs.picture:
        from sim.offline.picture_plan import draw_plan

        draw_plan(result, outputs.picture)
    return result


@takes(DescribeOptions)
def describe(options: DescribeOptions, **watch: Any) -> dict:
    """Describe a data set: samples, cardinalities, bag sizes, skew and ranges.

    >>> from pathlib import Path
    >>> _ = Path("keys.txt").write_text("0:1 1:2\\n0:1 1:3\\n")
    >>> result = describe("keys.txt")
    >>> result["format"], result["samples"], result["keys"]["unique"]
    ('trace', 2, 3)

    Returns
    -------
    dict
        ``schema``, ``files``, ``format``, ``samples``, ``click_rate``, ``dense``, ``keys``,
        ``tables`` and ``mini_batches``, see :func:`sim.offline.datasets.describe`.

    Raises ``ValueError`` and ``OSError``.
    """
    from sim.offline.datasets import describe as described

    outputs = Outputs.of(options, "files")
    result = described(options.files, **watch,
                       **members(options, "format", "samples", "most_keys"))
    write_json(result, outputs.json)
    return result
