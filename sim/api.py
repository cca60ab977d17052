"""Python API: the commands of ``python -m sim`` as functions that return plain dictionaries.

=====================  =============================================================
function               command
=====================  =============================================================
:func:`run`            ``sim run``: samples through a cluster, every result checked
:func:`train`          ``sim train``: a DLRM trained on a cluster
:func:`bench`          ``sim bench``: the rates, latencies and resources of the design
:func:`hitrate`        ``sim hitrate``: hit rate of the local cache against its size
:func:`batching`       ``sim batching``: keys saved by each batching algorithm
:func:`plan`           ``sim plan``: requirements of a model, and the bottleneck
:func:`describe`       ``sim datasets describe``: contents of a data set
:func:`compare`        ``sim compare``: all systems on one model, cluster and data
:func:`reproduce`      ``sim reproduce``: the page of results; the paper's figures and claims
:func:`serve`          ``sim serve``: latency under load, and load within a p99
:func:`faults`         ``sim faults``: the fault suite of the reliable link
:func:`torch`          ``sim torch``: a PyTorch script with its embedding bags on NICs
:func:`attach`         a context in which the embedding bags of a program are on NICs
:func:`frame`          rows of any of these results as a pandas ``DataFrame``
=====================  =============================================================

Keyword arguments have the names of the command-line options; None selects the default. Options
that may be repeated or listed (``set``, ``policy``, ``only``, ``figures``, ``qps``, ``slo``,
``system``, ``sizes``) are sequences, not strings. A function returns the dictionary that its
command writes with ``--json``, and does not write to standard output. Paths may be any
``os.PathLike``; ``data`` may be several paths.

``ValueError``: invalid argument, with the message of the command; :class:`host.errors.InputError`
for an invalid input file. ``TypeError``: unknown argument, or a value of the wrong type.
``OSError``: a file cannot be written. :class:`sim.engines.BuildError`: a NIC cannot be compiled.
:class:`embernic_extras.ExtraError`, an ``ImportError``: an extra is not installed.

Each function checks all its output files before it opens any.
"""

from collections.abc import Callable
from dataclasses import replace
from os.path import abspath, join
from tempfile import TemporaryDirectory
from typing import Any

from host.data.indexing import indexed_format
from sim.bench.rows import BenchOptions
from sim.compare.options import CompareOptions
from sim.experiments.options import ReproduceOptions
from sim.faults.options import FaultsOptions
from sim.files.outputs import LiveJson, check_apart, check_folder, write_json
from sim.files.stop import note_kept_results
from sim.frame import frame
from sim.job.arguments import takes
from sim.job.options import RunArguments, RunOptions
from sim.job.outputs import Outputs
from sim.job.program import AttachArguments, TorchArguments
from sim.job.workload import Workload
from sim.offline.options import BatchingOptions, DescribeOptions, HitrateOptions, PlanOptions
from sim.serving.options import ServeOptions
from sim.training.options import TrainArguments, TrainOptions

# Each function imports its implementation when called: RTL blocks and Matplotlib load slowly, and
# the command line shows its help without them.

__all__ = [
    "attach", "batching", "bench", "compare", "describe", "faults", "frame", "hitrate", "plan",
    "reproduce", "run", "serve", "torch", "train",
]

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

    outputs = _outputs(options)
    return measured(options.only, outputs.json, **watch)


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

    outputs = _outputs(options, "data", "model", "cluster")
    live = LiveJson(outputs.json)
    with note_kept_results(live, outputs.json):
        result = counted(
            options.sizes, policies=options.policy, ways=options.ways, live=live, **watch,
            **_members(options, "data", "model", "nodes", "placement", "mini_batch", "samples",
                       "warmup", "seed", "config", "cluster"), format=_format(options))
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

    outputs = _outputs(options, "data", "model")
    result = compared(format=_format(options), **watch, **_members(
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
        ``memory``, ``placements``, ``checks``, ``traffic``, ``resources``, ``binds``,
        ``samples_per_second`` and the arguments, see :func:`sim.offline.plan.plan`. A cluster
        that cannot hold the model does not raise: see :func:`sim.offline.plan.failures`.

    Raises ``ValueError``, ``TypeError`` and ``OSError``.
    """
    from sim.offline.plan import plan as planned

    outputs = _outputs(options, "data", "model", "cluster", "network", "gpu", "pcie")
    workload = Workload.of(settings=options.set, **_members(
        options, "cluster", "config", "model", "nodes", "samples", "mini_batch", "in_flight",
        "warmup", "data", "format", "index", "placement", "network", "gpu", "pcie", "seed"))
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

    outputs = _outputs(options, "files")
    result = described(options.files, **watch,
                       **_members(options, "format", "samples", "most_keys"))
    write_json(result, outputs.json)
    return result


@takes(ReproduceOptions)
def reproduce(options: ReproduceOptions, **watch: Any) -> dict:
    """Make the paper's figures and judge its claims, or make the page of results.

    >>> result = reproduce(["fig06"], output="claims", demo=True)
    >>> result["figures"], result["points"], result["failed"]
    (['fig06'], 0, [])

    Returns
    -------
    dict
        Content of ``claims.json``: ``schema``, ``version``, ``numpy``, ``blas``, ``profiles``,
        ``setting``, ``sources``, ``figures``, ``points``, ``failed``, ``headlines``, ``claims``.
        For ``["results"]``, content of ``results.json``: ``schema``, ``version``, ``profiles``,
        ``answer``, ``kinds``, ``points``, ``failed``, ``rows``, ``serving``.

    Raises ``ValueError``, ``TypeError`` and ``OSError``.
    """
    from sim.evaluation.sweep import check_backend
    from sim.experiments import reproduce as evaluation
    from sim.experiments.figures.registry import RESULTS, chosen, demo_names
    from sim.experiments.request import command_of, seeds_of, setting_of

    if RESULTS in options.figures:
        return _results(options, **watch)
    names = chosen(options.figures or (demo_names() if options.demo else ()))
    check_backend(options.backend, options.jobs)
    written = [f"{name}.{kind}" for name in names for kind in ("png", "csv")]
    check_apart({f"{name} of output": join(options.output, name)
                 for name in (*written, "claims.json", "index.html")},
                {"data": options.data, "gpu": options.gpu})
    seeds = seeds_of(options.seed, options.seeds)
    data = options.data or ()
    asked = _format(options), options.fidelity, options.gpu, seeds
    setting = replace(setting_of(options.model, options.data, *asked, options.demo,
                                 options.setting),
                      markers=options.rtl_points and not options.demo)
    # A bad setting raises here once, not in every point.
    evaluation.points_of(names, setting)
    check_folder(options.output, "output")
    return evaluation.reproduce(
        names, setting, options.output, options.backend, options.jobs, **watch,
        command=command_of(options.model, (data,) if isinstance(data, str) else data, *asked,
                           options.rtl_points, options.demo, options.setting))


def _results(options: ReproduceOptions, **watch: Any) -> dict:
    """Make the page of results."""
    from sim.evaluation.sweep import check_backend
    from sim.experiments.results.results import FILES, results
    from sim.experiments.results_request import requested
    from sim.serving.case import serve_case

    cases, command = requested(options)
    check_backend(options.backend, options.jobs)
    check_apart({f"{name} of output": join(options.output, name) for name in FILES},
                {"data": options.data})
    check_folder(options.output, "output")
    return results(cases, options.output, options.backend, options.jobs, command=command,
                   serve=None if options.demo else serve_case, **watch)


@takes(CompareOptions)
def compare(options: CompareOptions, **watch: Any) -> dict:
    """Compare systems on one model, cluster and data, each with its best options.

    >>> result = compare(cluster="h100", nodes=2, mini_batch=32, system=["bl-paper"], measured=2)
    >>> [(row["system"], row["interval_us"] > 0) for row in result["systems"]]
    [('bl-paper', True)]

    Returns
    -------
    dict
        ``schema``, ``version``, ``profiles``, ``model``, ``cluster``, ``gpu``, ``software``,
        ``fidelity``, ``nodes``, ``mini_batch``, ``workload``, ``source``, ``keys``, ``bags``,
        ``foreign_bags``, ``foreign_rows``, ``reason``, ``notes``, ``systems``, see
        :func:`sim.compare.compare.compare`.

    Raises ``ValueError``, ``TypeError`` and ``OSError``.
    """
    from sim.compare.compare import compare as compared
    from sim.compare.request import command_of, request_of

    outputs, folder = _outputs(options, "data", "model", "cluster"), options.output
    request = request_of(options)
    if folder is not None:
        from sim.compare.page import FILES, write_page

        check_apart(outputs.files | {f"{name} of output": join(folder, name) for name in FILES},
                    _members(options, "data", "model", "cluster"))
        check_folder(folder, "output")
    result = compared(*request, **watch)
    write_json(result, outputs.json)
    if folder is not None:
        write_page(result, folder, command_of(options))
    return result


@takes(ServeOptions)
def serve(options: ServeOptions, **watch: Any) -> dict:
    """Return the latency of requests under load, and the load served within a p99.

    >>> result = serve(qps=[10_000], slo=["1ms"], system=["cpu-mpi"], sizes=[8], requests=1000,
    ...                jobs=1)
    >>> [(row["system"], row["qps"], row["saturated"]) for row in result["loads"]]
    [('cpu-mpi', 10000.0, False)]

    Returns
    -------
    dict
        ``schema``, ``version``, ``numpy``, ``blas``, ``profiles``, ``options``, ``source``,
        ``notes``, ``mini_batches``, ``loads``, ``slos``, ``failed``, see
        :func:`sim.serving.serve.serve`.

    Raises ``ValueError``, ``TypeError`` and ``OSError``.
    """
    from sim.evaluation.sweep import check_backend
    from sim.experiments.request import setting_of
    from sim.serving import serve as serving
    from sim.serving.request import request_of

    outputs = _outputs(options, "data", "cluster")
    check_backend("loky", options.jobs)
    asked = request_of(
        setting_of(options.model, options.data, _format(options)), **_members(
            options, "model", "qps", "slo", "system", "cluster", "nodes", "software", "gpu",
            "fidelity", "sizes", "in_flight", "arrivals", "burst_rate", "burst_share",
            "burst_length", "requests", "candidates", "seed"))
    if options.points is not None:
        check_folder(options.points, "points")
    with TemporaryDirectory() as folder:
        result = serving.serve(*asked, folder=options.points or folder, jobs=options.jobs, **watch)
    write_json(result, outputs.json)
    if outputs.picture:
        from sim.serving.picture import draw_serve

        draw_serve(result, outputs.picture)
    return result


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


@takes(TorchArguments)
def torch(options: TorchArguments, warn: Callable[[str], None] | None = None,
          left: Callable[[dict], bool] | None = None) -> dict:
    """Run an unedited PyTorch script with its embedding bags on NICs; needs extra ``torch``.

    >>> from pathlib import Path
    >>> _ = Path("bag.py").write_text(
    ...     "import torch\\n"
    ...     "bag = torch.nn.EmbeddingBag(100, 16, mode='sum')\\n"
    ...     "for step in range(4):\\n"
    ...     "    bag(torch.arange(8) + step, torch.arange(0, 8, 2)).sum()\\n")
    >>> result = torch("bag.py", nodes=2)
    >>> result["mini_batches"]["inference"]["lookups"], len(result["systems"]["inference"]["rows"])
    (32, 4)

    Returns
    -------
    dict
        ``schema``, ``script``, ``options``, ``tables``, ``processes``, ``steps``,
        ``mini_batches``, ``values``, ``nics``, ``gradients``, ``not_caught``, ``systems``,
        ``notes``, ``exit_status``, see :func:`sim.torch.report.result.result_of`. If the program
        has several processes, the first returns the report and writes its files; the others
        return ``exit_status`` only.

    Raises ``ValueError``, ``TypeError`` and ``OSError``; :class:`sim.torch.ends.ProgramError`
    for an exception of the script, :class:`sim.torch.ends.ProgramStopped` for a signal, and
    :class:`sim.torch.values.nics.NicsError` if NICs do not answer. Once the script has begun, the
    report is written however the script ends; the exception has it as ``result``. If a process
    fails, all processes raise :class:`sim.torch.processes.peers.ProcessError`, and the cause is
    written to standard error. The first process then writes the report, except after an invalid
    argument.
    """
    from sim.torch.ends import unhurried
    from sim.torch.options import TorchOptions
    from sim.torch.program import check_script, run_script
    from sim.torch.report.page import write_report

    outputs = _outputs(options, "script")
    asked = TorchOptions.of(options)
    check_script(options.script)
    if options.report is not None:
        check_folder(options.report, "report")
    # The script may change the working directory.
    file, folder = (path and abspath(path) for path in (outputs.json, options.report))

    def written(result: dict | None) -> None:
        if result is None or "systems" not in result:
            return
        write_json(result, file)
        if folder is not None:
            write_report(result, folder)

    def on_leaving(result: dict) -> bool:
        written(result)
        return left is None or left(result)

    with unhurried() as hush:
        try:
            result = run_script(asked, options.script, options.arguments, warn, hush, on_leaving)
        except BaseException as end:
            written(getattr(end, "result", None))
            raise
        written(result)
    return result


@takes(AttachArguments)
def attach(options: AttachArguments, warn: Callable[[str], None] | None = None) -> Any:
    """Return a context in which the embedding bags of this program are on NICs.

    ``with attach(system="en") as program:`` captures the lookups inside. Afterwards
    ``program.result`` is the result of :func:`torch`, also if an exception left the context; it is
    None in all processes but the first. The options are those of :func:`torch`.

    Raises ``ValueError`` and ``TypeError`` here, ``RuntimeError`` on entering if another context
    is open, and on leaving the exceptions of :func:`torch`.
    """
    from sim.torch.options import TorchOptions
    from sim.torch.program import attached

    return attached(TorchOptions.of(options), warn)


def _outputs(options: Any, *inputs: str) -> Outputs:
    """Return the files that a function writes, checked against the inputs of these names."""
    outputs = Outputs(json=options.json, picture=getattr(options, "picture", None))
    outputs.check_files(_members(options, *inputs))
    return outputs


def _format(options: Any) -> str | None:
    """Return the format of the files ``data``."""
    return indexed_format(options.data, options.format, options.index)


def _members(options: Any, *names: str) -> dict[str, Any]:
    """Return members of options by name."""
    return {name: getattr(options, name) for name in names}
