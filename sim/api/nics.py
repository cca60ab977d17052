"""Commands that run NICs."""

from os.path import join
from typing import Any

from sim.bench.rows import BenchOptions
from sim.faults.options import FaultsOptions
from sim.files.outputs import check_folder, write_json
from sim.job.arguments import takes
from sim.job.options import RunArguments, RunOptions
from sim.job.outputs import Outputs
from sim.training.options import TrainArguments, TrainOptions

__all__ = ["bench", "faults", "run", "train"]

# Each function imports its implementation when called: RTL blocks and Matplotlib load slowly, and
# the command line shows its help without them.


@takes(RunArguments, RunOptions.of)
def run(options: RunOptions, **watch: Any) -> dict:
    """Run samples through a cluster and check every result bit for bit.

    >>> result = run(config="tiny", fidelity="fast", nodes=2, samples=64, mini_batch=16)
    >>> result["samples"], result["complete"], len(result["latencies_us"])
    (64, True, 4)

    Returns
    -------
    dict
        ``schema``, ``complete``, ``interrupted``, ``next_sample`` (where another run continues),
        ``under_way``; the options: ``config``, ``model``, ``options``, ``nodes``, ``engine``,
        ``fidelity``; the work: ``samples``, ``lookups``, ``batching``; times: ``cycles``,
        ``simulated_seconds``, ``wall_seconds``, ``cpu_seconds``, ``latency_us`` (``p50``, ``p99``,
        ``max``), ``latencies_us`` of the mini-batches, ``phases_us``; the check:
        ``bit_identical``, ``results``, ``predictions_sha256``, ``errors``, ``stuck``,
        ``where_stuck``; counts: ``local_cache``, ``remote_cache``, ``dedupe``, ``interaction``,
        ``network``, ``pcie``, ``gpu``, ``stalls``, ``node_cycles``, ``node_cycles_per_second``,
        ``counters`` of each NIC. Wrong results do not raise: see
        :func:`sim.run.report.failures`.

    Raises ``ValueError``, ``TypeError``, ``OSError`` and ``BuildError``.
    """
    from sim.run.job import run_to_files

    return run_to_files(options, **watch)


@takes(TrainArguments, TrainOptions.of)
def train(options: TrainOptions, **watch: Any) -> dict:
    """Train a DLRM on a cluster and compare every written row bit for bit.

    >>> result = train(config="tiny", reference=True, nodes=2, samples=32, mini_batch=16,
    ...                model="avazu")
    >>> result["steps"], len(result["loss"])
    (2, 2)

    Returns
    -------
    dict
        ``schema``, ``complete``, ``interrupted``; the options: ``config``, ``model``,
        ``options``, ``optimizer``, ``local_reduction``, ``gradient_partials``, ``fidelity``,
        ``engine``, ``nodes``, ``epochs``, ``checkpoint``; the work: ``first_step``, ``steps``,
        ``samples``, ``lookups``, ``batching``; the result: ``loss`` of each step,
        ``intervals``, ``rows_written``, ``weights_sha256``, ``predictions_sha256``;
        ``wall_seconds``; and of the NICs (None without NICs) the fields of a run and
        ``samples_per_second``, ``rows_compared``, ``update_misses``, ``spilled``,
        ``spilling_passes``, ``backward``, ``all_reduce``. Wrong rows do not raise: see
        :func:`sim.training.report.failures`.

    Raises ``ValueError``, ``TypeError``, ``OSError`` and ``BuildError``.
    """
    from sim.training.job import train_to_files

    return train_to_files(options, **watch)


@takes(BenchOptions)
def bench(options: BenchOptions, **watch: Any) -> dict:
    """Measure rates, latencies and resources of the design, each with its target.

    Some sections take long to compile and run; ``only`` selects sections.

    >>> bench(only=["latency"])["rows"][0]["unit"]  # doctest: +SKIP
    'cycles'
    >>> bench(only=["luck"])
    Traceback (most recent call last):
    ValueError: only must be of lookups, ..., twins, resources, not 'luck'

    Returns
    -------
    dict
        ``schema``, ``complete``, ``request``, ``not_built``, ``rows``; a row is described at
        :func:`sim.bench.bench.bench`.

    Raises ``ValueError``, ``OSError`` and ``BuildError``.
    """
    from sim.bench.bench import bench as measured

    outputs = Outputs.of(options)
    return measured(options.only, outputs.json, **watch)


@takes(FaultsOptions)
def faults(options: FaultsOptions, **watch: Any) -> dict:
    """Run the fault suite of the reliable link.

    Bare links and whole clusters run over networks that lose, duplicate, reorder, corrupt and
    delay frames.

    >>> faults(output="out/faults", short=True)["failed"]  # doctest: +SKIP
    []

    Returns
    -------
    dict
        ``schema``, ``version``, ``links``, ``clusters`` and ``failed``, see
        :func:`sim.faults.suite.faults`. Failed cells do not raise: see
        :func:`sim.faults.suite.suffers`.

    Raises ``ValueError``, ``TypeError``, ``OSError`` and ``BuildError``.
    """
    from sim.evaluation.sweep import check_backend
    from sim.faults.picture import draw_faults
    from sim.faults.suite import faults as measured

    folder = options.output
    check_backend("loky", options.jobs)
    check_folder(folder, "output")
    result = measured(folder, options.short, options.jobs, **watch)
    write_json(result, join(folder, "faults.json"))
    draw_faults(result, join(folder, "faults.png"))
    return result
