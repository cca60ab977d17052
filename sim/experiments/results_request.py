"""The rows of the results page that the options of ``reproduce`` select."""

from host.model import load_model
from sim.evaluation.setting import Setting, Source
from sim.experiments.figures.registry import RESULTS
from sim.experiments.options import ReproduceOptions
from sim.experiments.request import command_of
from sim.experiments.results.cases import CLUSTERS, Case, cases_of

__all__ = ["requested"]

_DEMO = ("kaggle", "multi_hot")
"""Models that ``--demo`` includes, each with its first mini-batch on the first cluster."""


def requested(options: ReproduceOptions) -> tuple[list[Case], str]:
    """Return the rows, and the options as text of a command line.

    Raises ``ValueError`` for an option that does not go with the page, and for an unknown model.
    """
    if set(options.figures) != {RESULTS}:
        raise ValueError(f"figure {RESULTS} must be given alone, not with "
                         f"{', '.join(name for name in options.figures if name != RESULTS)}")
    for name, default, remedy in (
            ("gpu", str(Setting.gpu), "clusters name their GPUs"),
            ("setting", "reference", "the page has one setting"),
            ("seeds", 1, "use --seed")):
        if getattr(options, name) != default:
            raise ValueError(f"{name} must be left out with {RESULTS}, not "
                             f"{getattr(options, name)!r}: {remedy}")
    models = tuple(filter(None, (options.model or "").split(",")))
    for name in models:
        load_model(name)
    source = Source()
    if options.data is not None:
        if len(models) != 1:
            raise ValueError(f"model must be one model with data, not {options.model!r}")
        source = Source.of(options.data, options.format)
    elif options.format is not None:
        raise ValueError(f"format must go with data, not {options.format!r} alone")
    cases = cases_of(models or (_DEMO if options.demo else ()),
                     CLUSTERS[:1] if options.demo else CLUSTERS, source.data, source.format,
                     options.fidelity, options.seed)
    if options.demo:
        cases = list({case.workload: case for case in reversed(cases)}.values())[::-1]
    return cases, command_of(options.model, source.data, source.format, options.fidelity,
                             str(Setting.gpu), (options.seed,), True, options.demo)
