"""Commands that compare systems: the pages of results, one workload, and requests under load."""

from dataclasses import replace
from os.path import join
from tempfile import TemporaryDirectory
from typing import Any

from host.data.indexing import format_of
from sim.compare.options import CompareOptions
from sim.experiments.options import ReproduceOptions
from sim.files.outputs import check_apart, check_folder, write_json
from sim.job.arguments import members, takes
from sim.job.outputs import Outputs
from sim.serving.options import ServeOptions

__all__ = ["compare", "reproduce", "serve"]


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
    asked = format_of(options), options.fidelity, options.gpu, seeds
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
    from sim.serving.case import searches_of_case, serve_case

    cases, command = requested(options)
    check_backend(options.backend, options.jobs)
    check_apart({f"{name} of output": join(options.output, name) for name in FILES},
                {"data": options.data})
    check_folder(options.output, "output")
    return results(cases, options.output, options.backend, options.jobs, command=command,
                   serve=None if options.demo else serve_case, searches=searches_of_case, **watch)


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

    outputs, folder = Outputs.of(options, "data", "model", "cluster"), options.output
    request = request_of(options)
    if folder is not None:
        from sim.compare.page import FILES, write_page

        check_apart(outputs.files | {f"{name} of output": join(folder, name) for name in FILES},
                    members(options, "data", "model", "cluster"))
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
        ``notes``, ``systems``, ``mini_batches``, ``loads``, ``slos``, ``failed``, see
        :func:`sim.serving.serve.serve`.

    Raises ``ValueError``, ``TypeError`` and ``OSError``.
    """
    from sim.evaluation.sweep import check_backend
    from sim.experiments.request import setting_of
    from sim.serving import serve as serving
    from sim.serving.request import request_of

    outputs = Outputs.of(options, "data", "cluster")
    check_backend("loky", options.jobs)
    asked = request_of(
        setting_of(options.model, options.data, format_of(options)), **members(
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
