"""Python API: the commands of ``python -m sim`` as functions that return plain dictionaries.

=====================  =============================================================
function               command
=====================  =============================================================
:func:`run`            ``sim run``: samples through a cluster, every result checked
:func:`train`          ``sim train``: a DLRM trained on a cluster
:func:`bench`          ``sim bench``: the rates, latencies and resources of the design
:func:`hitrate`        ``sim hitrate``: hit rate of the local cache against its size
:func:`batching`       ``sim batching``: what each way to form mini-batches saves
:func:`plan`           ``sim plan``: what a cluster needs for a model, and what binds it
:func:`describe`       ``sim datasets describe``: what is in a data set
:func:`reproduce`      ``sim reproduce``: the paper's figures and claims
:func:`serve`          ``sim serve``: latency under load, and what is served within a p99
:func:`torch`          ``sim torch``: a PyTorch script with its embedding bags on NICs
:func:`attach`         the same for a part of a program, as a context
:func:`frame`          rows of any of these results as a pandas ``DataFrame``
=====================  =============================================================

Keyword arguments have the names of the command-line options. None stands for the default of any
of them. What may be repeated or listed (``set``, ``policy``, ``only``, ``figures``, ``qps``,
``slo``, ``system``, ``sizes``) is a sequence, not a string. A function returns the dictionary that
its command writes with ``--json``. It prints nothing on standard output. Paths may be any
``os.PathLike``; ``data`` may be several paths.

A mistake in an argument or in an input file raises ``ValueError`` with the line that the command
prints (:class:`host.errors.InputError` for a file); unknown arguments and values of a wrong type
raise ``TypeError``. A file that cannot be written raises ``OSError``, and a NIC that cannot be
compiled :class:`sim.engines.BuildError`. A function whose extra is not installed raises
:class:`embernic_extras.ExtraError`, an ``ImportError`` that names the extra.

Each function checks all its output files before it opens any.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from inspect import signature
from os import PathLike, fspath
from os.path import abspath, join
from tempfile import TemporaryDirectory
from typing import Any, ParamSpec, get_type_hints

from host.data.datasets import one_or_several
from host.data.indexing import indexed_format
from sim.files.outputs import LiveJson, check_apart, check_folder, write_json
from sim.files.stop import never, note_kept_results
from sim.frame import frame
from sim.job.kinds import AnyPath, AnyPaths, Named, Settings, checked_kinds
from sim.job.option import takes
from sim.job.options import RunArguments, RunOptions
from sim.job.outputs import Outputs
from sim.job.workload import Workload
from sim.training.options import TrainArguments, TrainOptions

# Each function imports its implementation when called: RTL blocks and Matplotlib load slowly, and
# the command line shows its help without them.

__all__ = [
    "attach", "batching", "bench", "describe", "faults", "frame", "hitrate", "plan", "reproduce",
    "run", "serve", "torch", "train",
]

Data = AnyPaths | None
Stop = Callable[[], str | None]
_P = ParamSpec("_P")


def _typed(function: Callable[_P, dict]) -> Callable[_P, dict]:
    """Return ``function`` with arguments that are of their types, see
    :func:`sim.job.kinds.checked_kinds`."""
    shape, hints = signature(function), get_type_hints(function, include_extras=True)

    @wraps(function)
    def typed(*given: _P.args, **named: _P.kwargs) -> dict:
        arguments = shape.bind(*given, **named).arguments
        return function(**checked_kinds(arguments, hints))  # type: ignore

    return typed


@takes(RunArguments, RunOptions.of)
def run(options: RunOptions, **watch: Any) -> dict:
    """Run samples through a cluster and check every result bit for bit.

    >>> result = run(config="tiny", fidelity="model", nodes=2, samples=64, mini_batch=16)
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
    """Train a DLRM on a cluster and compare every row that is written, bit for bit.

    >>> result = train(config="tiny", fidelity="model", nodes=2, samples=32, mini_batch=16,
    ...                model="avazu")
    >>> result["steps"], len(result["loss"])
    (2, 2)

    Returns
    -------
    dict
        ``schema``, ``complete``, ``interrupted``; the options: ``config``, ``model``,
        ``options``, ``optimizer``, ``local_reduction``, ``gradient_partials``, ``fidelity``,
        ``engine``, ``nodes``, ``epochs``, ``checkpoint``; the work: ``first_step``, ``steps``,
        ``samples``, ``lookups``, ``batching``; what was learned: ``loss`` of each step,
        ``intervals``, ``rows_written``, ``weights_sha256``, ``predictions_sha256``;
        ``wall_seconds``; and of the NICs (None without NICs) the fields of a run and
        ``samples_per_second``, ``rows_compared``, ``update_misses``, ``spilled``,
        ``spilling_passes``, ``backward``, ``all_reduce``. Wrong rows do not raise: see
        :func:`sim.training.report.failures`.

    Raises ``ValueError``, ``TypeError``, ``OSError`` and ``BuildError``.
    """
    from sim.training.job import train_to_files

    return train_to_files(options, **watch)


@_typed
def bench(*, only: Sequence[str] = (), json: AnyPath | None = None,
          progress: Callable[[int, int, str], None] = lambda done, total, line: None,
          finished: Callable[[dict], None] = lambda row: None) -> dict:
    """Measure what the design promises: rates, latencies, resources, each with its target.

    Some sections take long to compile and run; ``only`` selects sections.

    >>> bench(only=["latency"])["rows"][0]["unit"]  # doctest: +SKIP
    'cycles'
    >>> bench(only=["luck"])
    Traceback (most recent call last):
    ValueError: only must be of lookups, ..., twins, resources, not 'luck'

    Parameters
    ----------
    only
        Sections to measure, of :data:`sim.bench.rows.SECTIONS`; none means all.
    json
        File to which each row is written as soon as it is finished; the same call continues after
        the rows in it.
    progress
        Called with the jobs done, the number of jobs and a line on the current one.
    finished
        Called with each row, including those found in the file.

    Returns
    -------
    dict
        ``schema``, ``complete``, ``request``, ``not_built``, ``rows``; a row is described at
        :func:`sim.bench.bench.bench`.

    Raises ``ValueError``, ``OSError`` and ``BuildError``.
    """
    from sim.bench.bench import bench as measured

    outputs = _outputs({}, json=json)
    return measured(only, outputs.json, progress, finished)


@_typed
def hitrate(*, sizes: Sequence[int] | None = None, data: Data = None, format: str | None = None,
            index: str = "hash",
            model: Named | None = None, policy: Sequence[str] = ("lru",), ways: int | None = None,
            config: str | None = None, cluster: AnyPath | None = None, nodes: int | None = None,
            placement: str = Workload.placement, mini_batch: int = Workload.mini_batch,
            samples: int | None = None, warmup: int = Workload.warmup, seed: int = Workload.seed,
            json: AnyPath | None = None, picture: AnyPath | None = None,
            progress: Callable[[int], None] = lambda done: None, stop: Stop = never) -> dict:
    """Return the hit rate of the local cache against its size, without running RTL.

    >>> result = hitrate(sizes=[0, 64], samples=128)
    >>> [row["size"] for row in result["rows"]], result["rows"][0]["hits"]
    ([0, 64], 0)

    Parameters
    ----------
    sizes
        Rows of a node's cache, 0 to turn it off; by default a quarter to four times those of the
        NIC.
    policy, ways
        Names of replacement policies; ways of a set, 0 for fully associative, by default those of
        the NIC.
    data, format, index, model, samples, seed, config, cluster, nodes, placement, mini_batch, warmup
        As for :func:`run`; the warm-up warms the caches and is not counted.
    json, picture
        Files to write: the results as JSON, and a picture of them.
    progress
        Called with the samples done.
    stop
        As for :func:`run`; the counts so far are returned.

    Returns
    -------
    dict
        ``schema``, ``complete``, ``interrupted``, the arguments, ``samples``, ``lookups``,
        ``unique`` and ``rows``, see :func:`sim.offline.hitrate.hitrate`.

    Raises ``ValueError``, ``TypeError`` and ``OSError``.
    """
    from sim.offline.hitrate import hitrate as counted

    outputs = _outputs({"data": data, "model": model, "cluster": cluster}, json=json,
                       picture=picture)
    live = LiveJson(outputs.json)
    with note_kept_results(live, outputs.json):
        result = counted(
            sizes, data=_data(data), format=indexed_format(_data(data), format, index),
            model=_path(model), policies=policy, ways=ways,
            nodes=nodes, placement=placement, mini_batch=mini_batch, samples=samples,
            warmup=warmup, seed=seed, config=config, cluster=_path(cluster), progress=progress,
            stop=stop, live=live)
        write_json(result, outputs.json)
    if outputs.picture and result["complete"]:
        from sim.offline.picture_hitrate import draw_hitrate

        draw_hitrate(result, outputs.picture)
    return result


@_typed
def batching(*, data: Data = None, format: str | None = None, index: str = "hash",
             model: Named | None = None, samples: int | None = None,
             mini_batch: int | None = None, window: int | None = None,
             hyperedges: Sequence[int] = (), seed: int = Workload.seed, json: AnyPath | None = None,
             progress: Callable[[str], None] = lambda doing: None) -> dict:
    """Return the unique keys that each batching algorithm saves, and its cost.

    >>> result = batching(model="avazu", samples=64, mini_batch=16, window=32)
    >>> result["winners"][0]["dataset"], result["rows"][0]["algorithm"]
    ('avazu', 'file')

    Parameters
    ----------
    data, format, index, model, samples, seed
        As for :func:`run`; without data and model, samples like those of Kaggle, Terabyte and
        Avazu.
    mini_batch, window
        Samples of a mini-batch (128, for Terabyte also 2,048) and of a window (16 mini-batches).
    hyperedges
        Additional hyperedge thresholds for the graph algorithm.
    json
        File to write the results to.
    progress
        Called with a line on what is next.

    Returns
    -------
    dict
        ``schema``, ``seed``, ``rows`` and ``winners``, see :func:`sim.offline.batching.batching`.

    Raises ``ValueError``, ``TypeError`` and ``OSError``.
    """
    from sim.offline.batching import batching as compared

    outputs = _outputs({"data": data, "model": model}, json=json)
    result = compared(data=_data(data), format=indexed_format(_data(data), format, index),
                      model=_path(model), samples=samples,
                      mini_batch=mini_batch, window=window, hyperedges=hyperedges, seed=seed,
                      progress=progress)
    write_json(result, outputs.json)
    return result


@_typed
def plan(*, model: Named | None = None, cluster: AnyPath = "paper", config: str | None = None,
         set: Settings = (), nodes: int | None = None, placement: str = Workload.placement,
         optimizer: str = "none", hit_rate: float | None = None, data: Data = None,
         format: str | None = None, index: str = "hash", samples: int | None = None,
         mini_batch: int = Workload.mini_batch, in_flight: int = Workload.in_flight,
         warmup: int = Workload.warmup, network: Named | None = None, gpu: Named | None = None,
         pcie: Named | None = None, seed: int = Workload.seed, json: AnyPath | None = None,
         picture: AnyPath | None = None,
         progress: Callable[[int], None] = lambda done: None) -> dict:
    """Return what a cluster needs for a model, what fits and which resource binds, without RTL.

    >>> result = plan(samples=64, mini_batch=16)
    >>> result["nodes"], result["binds"] in [row["name"] for row in result["resources"]]
    (4, True)

    Parameters
    ----------
    cluster
        Cluster, which gives the memory sizes. Other arguments override it.
    optimizer
        Optimizer whose state the memory must hold: ``none``, ``sgd`` or ``rowwise-adagrad``.
    hit_rate
        Hit rate of the unique keys that enter a local cache; by default that of caches of the NIC's
        size on the samples.
    model, config, set, nodes, placement, data, format, index, samples, mini_batch, in_flight,
    warmup,    network, gpu, pcie, seed
        As for :func:`run`; the warm-up warms the caches and is not counted.
    json, picture
        Files to write: the results as JSON, and a picture of them.
    progress
        Called with the samples done.

    Returns
    -------
    dict
        ``memory``, ``placements``, ``checks``, ``traffic``, ``resources``, ``binds``,
        ``samples_per_second`` and the arguments, see :func:`sim.offline.plan.plan`. A cluster
        that cannot hold the model does not raise: see :func:`sim.offline.plan.failures`.

    Raises ``ValueError``, ``TypeError`` and ``OSError``.
    """
    from sim.offline.plan import plan as planned

    outputs = _outputs({"data": data, "model": model, "cluster": cluster, "network": network,
                        "gpu": gpu, "pcie": pcie}, json=json, picture=picture)
    workload = Workload.of(**_plain({
        "cluster": cluster, "config": config, "set": set, "model": model, "nodes": nodes,
        "samples": samples, "mini_batch": mini_batch, "in_flight": in_flight, "warmup": warmup,
        "data": data, "format": format, "index": index, "placement": placement,
        "network": network, "gpu": gpu,
        "pcie": pcie, "seed": seed}))
    result = planned(workload, optimizer=optimizer, hit_rate=hit_rate, progress=progress)
    write_json(result, outputs.json)
    if outputs.picture:
        from sim.offline.picture_plan import draw_plan

        draw_plan(result, outputs.picture)
    return result


@_typed
def describe(files: AnyPath | Sequence[AnyPath], *, format: str | None = None,
             samples: int | None = None, most_keys: int | None = None, json: AnyPath | None = None,
             progress: Callable[[int], None] = lambda done: None) -> dict:
    """Describe a data set: samples, cardinalities, bag sizes, skew and ranges.

    >>> from pathlib import Path
    >>> _ = Path("keys.txt").write_text("0:1 1:2\\n0:1 1:3\\n")
    >>> result = describe("keys.txt")
    >>> result["format"], result["samples"], result["keys"]["unique"]
    ('trace', 2, 3)

    Parameters
    ----------
    files
        Files of samples or folders of such files, taken together in order.
    format
        Their format; by default guessed from the first file.
    samples
        Samples to read; None means all.
    most_keys
        Most keys held in memory; beyond it, their number and skew are estimates.
    json
        File to write the results to.
    progress
        Called with the samples read.

    Returns
    -------
    dict
        ``schema``, ``files``, ``format``, ``samples``, ``click_rate``, ``dense``, ``keys``,
        ``tables`` and ``mini_batches``, see :func:`sim.offline.datasets.describe`.

    Raises ``ValueError`` and ``OSError``.
    """
    from sim.offline.datasets import describe as described

    outputs = _outputs({"files": files}, json=json)
    result = described(_several(files), format=format, samples=samples, most_keys=most_keys,
                       progress=progress)
    write_json(result, outputs.json)
    return result


@_typed
def reproduce(figures: Sequence[str] = (), *, output: AnyPath, model: str | None = None,
              data: Data = None, format: str | None = None, index: str = "hash",
              fidelity: str = "model",
              gpu: Named = str(Workload.gpu), backend: str = "loky", jobs: int | None = None,
              seed: int = Workload.seed, seeds: int | Sequence[int] = 1, rtl_points: bool = True,
              demo: bool = False, setting: str = "reference",
              progress: Callable[[int, int, float], None] | None = None) -> dict:
    """Make the paper's figures and judge its claims.

    >>> result = reproduce(["fig06"], output="claims", demo=True)
    >>> result["figures"], result["points"], result["failed"]
    (['fig06'], 0, [])

    Parameters
    ----------
    figures
        Names of :data:`sim.experiments.figures.registry.NAMES`; none means all but those that take
        half an hour or more each.
    output
        Folder of the figures, ``claims.json`` and ``index.html``. It keeps finished points, so the
        same call continues after an interruption.
    model, data, format, index
        Data set (kaggle, terabyte or avazu) whose samples come from the files ``data`` in
        ``format``.
    fidelity
        Fidelity of the NICs: ``model``, or ``rtl``, which takes hours.
    gpu, seed
        Profile of the GPUs; seed of everything random.
    seeds
        Seeds of the headlines and the figures that they are from: their number, from ``seed`` on,
        or a list. Everything else is measured with the first. With several, means come with their
        95 % intervals.
    backend, jobs
        Where the points are measured (``loky`` or ``dask``), and how many at once; by
        default the number of processors.
    rtl_points
        Whether two points of each figure are also run in RTL.
    demo
        One data set and few points.
    setting
        ``reference``, or ``paper-like``: where most of the paper's claims hold.
    progress
        Called with the points done, the number of points, and the fraction of the work done.

    Returns
    -------
    dict
        What ``claims.json`` holds: ``schema``, ``version``, ``numpy``, ``blas``, ``profiles``,
        ``setting``, ``sources``, ``figures``, ``points``, ``failed``, ``headlines``, ``claims``.

    Raises ``ValueError``, ``TypeError`` and ``OSError``.
    """
    from sim.evaluation.backends import check_backend
    from sim.experiments import reproduce as evaluation
    from sim.experiments.figures.registry import chosen, demo_names
    from sim.experiments.request import command_of, seeds_of, setting_of

    folder, profile = fspath(output), fspath(gpu)
    names = chosen(figures or (demo_names() if demo else ()))
    check_backend(backend, jobs)
    written = [f"{name}.{kind}" for name in names for kind in ("png", "csv")]
    check_apart({f"{name} of output": join(folder, name)
                 for name in (*written, "claims.json", "index.html")},
                {"data": _data(data), "gpu": profile})
    several, kind = seeds_of(seed, seeds), indexed_format(_data(data), format, index)
    chosen_setting = replace(
        setting_of(model, _data(data), kind, fidelity, profile, several, demo, setting),
        markers=rtl_points and not demo)
    # A bad setting raises here once, not in every point.
    evaluation.points_of(names, chosen_setting)
    check_folder(folder, "output")
    return evaluation.reproduce(
        names, chosen_setting, folder, backend, jobs, progress,
        command=command_of(model, _several(data), kind, fidelity, profile, several,
                           rtl_points, demo, setting))


@_typed
def serve(*, qps: Sequence[float] | None = None,
          slo: Sequence[str] = ("50us", "100us", "1ms", "5ms"), system: Sequence[str] | None = None,
          model: str | None = None, data: Data = None, format: str | None = None,
          index: str = "hash", nodes: int = 4,
          software: str = "eager", gpu: str = str(Workload.gpu), fidelity: str = "model",
          sizes: Sequence[int] = (1, 8, 32, 128, 512, 2048), in_flight: int = 16,
          arrivals: str = "poisson", burst_rate: float = 4.0, burst_share: float = 0.1,
          burst_length: str = "1ms", requests: int = 20_000, seed: int = Workload.seed,
          jobs: int | None = None, points: AnyPath | None = None, json: AnyPath | None = None,
          picture: AnyPath | None = None,
          progress: Callable[[int, int, float], None] | None = None) -> dict:
    """Return the latency of requests under load, and what each system serves within a p99.

    >>> result = serve(qps=[10_000], slo=["1ms"], system=["cpu-mpi"], sizes=[8], requests=1000,
    ...                jobs=1)
    >>> [(row["system"], row["qps"], row["saturated"]) for row in result["loads"]]
    [('cpu-mpi', 10000.0, False)]

    Parameters
    ----------
    qps
        Requests a second, of all nodes, at which each system is measured; None means from 1,000
        to what the fastest of them serves.
    slo
        Bounds on the p99, each a time with its unit.
    system
        Systems, as the evaluation names them; None means ``cpu-mpi`` (with more than one node),
        ``bl-paper``, ``bl-tuned`` and ``fs``.
    model, data, format, index
        The data set (kaggle, terabyte or avazu), and files of its samples.
    nodes, software, gpu, fidelity, in_flight
        What is compared, see :class:`sim.evaluation.point.Point`.
    sizes
        Mini-batches that a system chooses from.
    arrivals, burst_rate, burst_share, burst_length
        How requests come, see :class:`sim.serving.arrivals.Arrivals`.
    requests
        Requests that count in a run, at least.
    seed
        Of everything random.
    jobs
        How much is done at once; by default the number of processors.
    points
        Folder that keeps what is finished, so that the same call continues after an interruption.
    json, picture
        Files to write: the results as JSON, and a picture of them.
    progress
        Called with the parts done, the number of parts, and the fraction of the work done.

    Returns
    -------
    dict
        ``schema``, ``version``, ``numpy``, ``blas``, ``profiles``, ``options``, ``source``,
        ``notes``, ``mini_batches``, ``loads``, ``slos``, ``failed``, see
        :func:`sim.serving.serve.serve`.

    Raises ``ValueError``, ``TypeError`` and ``OSError``.
    """
    from sim.evaluation.backends import check_backend
    from sim.experiments.request import setting_of
    from sim.serving import serve as serving
    from sim.serving.request import request_of

    outputs = _outputs({"data": data}, json=json, picture=picture)
    check_backend("loky", jobs)
    asked = request_of(
        setting_of(model, _data(data), indexed_format(_data(data), format, index)), model, qps,
        slo, system, nodes=nodes, software=software, gpu=gpu, fidelity=fidelity,
        sizes=tuple(sizes), in_flight=in_flight, arrivals=arrivals, burst_rate=burst_rate,
        burst_share=burst_share, burst_length=burst_length, requests=requests, seed=seed)
    if points is not None:
        check_folder(fspath(points), "points")
    with TemporaryDirectory() as folder:
        result = serving.serve(*asked, folder=fspath(points or folder), jobs=jobs,
                               progress=progress)
    write_json(result, outputs.json)
    if outputs.picture:
        from sim.serving.picture import draw_serve

        draw_serve(result, outputs.picture)
    return result


@_typed
def faults(*, output: AnyPath, short: bool = False, jobs: int | None = None,
           progress: Callable[[int, int, float], None] | None = None) -> dict:
    """Run the fault suite of the reliable link: bare links and whole clusters over networks that
    lose, double, reorder, corrupt and delay frames.

    >>> faults(output="out/faults", short=True)["failed"]  # doctest: +SKIP
    []

    Parameters
    ----------
    output
        Folder of ``faults.json`` and ``faults.png``. It keeps finished cells, so the same call
        continues after an interruption.
    short
        Only cells that take seconds.
    jobs
        How many cells are measured at once; by default the number of processors.
    progress
        Called with the cells done, the number of cells, and the fraction of the work done.

    Returns
    -------
    dict
        ``schema``, ``version``, ``links``, ``clusters`` and ``failed``, see
        :func:`sim.faults.suite.faults`. What is wrong does not raise: see
        :func:`sim.faults.suite.suffers`.

    Raises ``ValueError``, ``TypeError``, ``OSError`` and ``BuildError``.
    """
    from sim.evaluation.backends import check_backend
    from sim.faults.picture import draw_faults
    from sim.faults.suite import faults as measured

    folder = fspath(output)
    check_backend("loky", jobs)
    check_folder(folder, "output")
    result = measured(folder, short, jobs, progress)
    write_json(result, join(folder, "faults.json"))
    draw_faults(result, join(folder, "faults.png"))
    return result


def torch(script: AnyPath, arguments: Sequence[str] = (), *, json: AnyPath | None = None,
          report: AnyPath | None = None, warn: Callable[[str], None] | None = None,
          left: Callable[[dict], bool] | None = None, **options: Any) -> dict:
    """Run a PyTorch script as it is, with its embedding bags on NICs; the extra ``torch``.

    >>> from pathlib import Path
    >>> _ = Path("bag.py").write_text(
    ...     "import torch\\n"
    ...     "bag = torch.nn.EmbeddingBag(100, 16, mode='sum')\\n"
    ...     "for step in range(4):\\n"
    ...     "    bag(torch.arange(8) + step, torch.arange(0, 8, 2)).sum()\\n")
    >>> result = torch("bag.py", nodes=2)
    >>> result["mini_batches"]["inference"]["lookups"], len(result["systems"]["inference"]["rows"])
    (32, 4)

    Parameters
    ----------
    script, arguments
        The script, and what it finds in ``sys.argv``. What it prints, it prints.
    json
        File to write the results to.
    report
        Folder to write a page to, and the counts of each mini-batch.
    warn
        Called with a line for each lookup that is not caught; by default written to standard error.
    left
        Called with the report, after its files are written, where the script ends this process by
        ``os._exit``, ``os.abort`` or exec. Returns whether the exit status stays the script's.
    options
        Members of :class:`sim.torch.options.TorchOptions`: ``system``, ``nodes``, ``placement``,
        ``fidelity``, ``optimizer_on``, ``config``, ``set``, ``software``, ``gpu``, ``engine``,
        ``threads``, ``seed``.

    Returns
    -------
    dict
        ``schema``, ``script``, ``options``, ``tables``, ``processes``, ``steps``,
        ``mini_batches``, ``values``, ``nics``, ``gradients``, ``not_caught``, ``systems``,
        ``notes``, ``exit_status``, see :func:`sim.torch.report.result.result_of`. Of a program of
        several processes the first has the report, and writes its files; in the others there is
        only ``exit_status``.

    Raises ``ValueError``, ``TypeError`` and ``OSError``; :class:`sim.torch.ends.ProgramError`
    for what the script raises, and :class:`sim.torch.ends.ProgramStopped` for a signal;
    :class:`sim.torch.values.nics.NicsError` where NICs do not answer. However a script ends that
    was begun, the report of what it did before is written, and is ``result`` of the exception. In
    a program of several processes each raises
    :class:`sim.torch.processes.peers.ProcessError` where one of them fails, and what went wrong is
    written to standard error; the first writes the report of what all did before, unless that was a
    mistake of the user's.
    """
    from sim.torch.ends import unhurried
    from sim.torch.options import TorchOptions
    from sim.torch.program import check_script, run_script
    from sim.torch.report.page import write_report

    outputs = _outputs({"script": fspath(script)}, json=json)
    asked = TorchOptions(**_plain(options, ()))
    if isinstance(arguments, str):
        raise TypeError(f"arguments must be a sequence of texts, not the text {arguments!r}")
    check_script(fspath(script))
    if report is not None:
        check_folder(fspath(report), "report")
    # The script may change the working directory.
    file, folder = (path and abspath(path) for path in (outputs.json, report))

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
            result = run_script(asked, fspath(script), arguments, warn, hush, on_leaving)
        except BaseException as end:
            written(getattr(end, "result", None))
            raise
        written(result)
    return result


def attach(*, warn: Callable[[str], None] | None = None, **options: Any) -> Any:
    """Return a context in which the embedding bags of this program are on NICs.

    ``with attach(system="EN") as program:`` catches what is done inside; ``program.result`` is
    afterwards what :func:`torch` returns, also where an exception left the context; None in
    processes of a program other than the first. The options are those of :func:`torch`.

    Raises ``ValueError`` and ``TypeError`` here, ``RuntimeError`` on entering where another such
    context is open, and on leaving as :func:`torch` does.
    """
    from sim.torch.options import TorchOptions
    from sim.torch.program import attached

    return attached(TorchOptions(**_plain(options, ())), warn)


def _outputs(inputs: Mapping[str, Data], **files: AnyPath | None) -> Outputs:
    """Return the files that a function writes, checked against those that it reads."""
    outputs = Outputs(**{name: _path(path) for name, path in files.items()})
    outputs.check_files({name: _data(given) for name, given in inputs.items()})
    return outputs


def _plain(options: dict[str, Any], data: tuple[str, ...] = ("data",)) -> dict[str, Any]:
    """Return options under the names of their dataclass fields, with paths as text.

    ``data``: those that may be several paths.
    """
    plain = {name: _path(value) for name, value in options.items() if name not in ("set", *data)}
    if options.get("set"):
        if isinstance(options["set"], str):
            raise TypeError(f"set must be a sequence of field=value, not the text "
                            f"{options['set']!r}")
        plain["settings"] = tuple(options["set"])
    plain |= {name: _data(options.get(name)) for name in data}
    return plain


def _data(paths: Data) -> str | tuple[str, ...] | None:
    return one_or_several(_several(paths))


def _several(paths: Data) -> list[str]:
    """Return the paths as text."""
    if paths is None:
        return []
    return [fspath(path) for path in ([paths] if isinstance(paths, str | PathLike) else paths)]


def _path(value: Any) -> Any:
    """Return a path as text, and anything else as it is."""
    return fspath(value) if isinstance(value, PathLike) else value
