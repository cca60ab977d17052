"""Conversion of the options of ``compare`` into a request."""

from dataclasses import fields, replace
from shlex import join

from host.data.datasets import input_files
from host.data.indexing import format_of
from host.model import Model, load_model
from host.timing.cluster import load_cluster
from sim.compare.options import CompareOptions
from sim.evaluation.cluster import check_shipped
from sim.evaluation.compared import Request
from sim.evaluation.fields import DATASETS
from sim.job.columns import FORMS
from sim.job.inputs import SampleSource
from sim.job.workload import Workload

__all__ = ["command_of", "request_of"]

_NOT_SHOWN = ("json", "output", "progress")


def request_of(options: CompareOptions) -> tuple[Request, Model]:
    """Return the request and the model of its samples.

    Raises ``ValueError`` that names field, value and bound, and ``InputError`` for a malformed
    file.
    """
    cluster = load_cluster(options.cluster, check_shipped)
    nodes = options.nodes or cluster.nodes
    if nodes * cluster.gpus < 2:
        raise ValueError(f"nodes must be at least 2 where a node has 1 GPU, not {nodes!r}")
    data = () if options.data is None else tuple(map(str, input_files(options.data)))
    form = format_of(options)
    for name in FORMS if options.training else ():
        if (given := getattr(options, name)) is not None:
            raise ValueError(f"{name} must be left out in training, not {given!r}: NICs do not "
                             f"train slices")
    model = SampleSource.of(Workload.of(model=options.model, data=data or None, format=form,
                                        columns=options.columns, blocks=options.blocks,
                                        wire=options.wire)).model
    named = model if model.slices else options.model if options.model in DATASETS else replace(
        load_model(options.model), rows=model.rows, bags=model.bags, dense=model.dense)
    request = Request(named, cluster, nodes, options.mini_batch, data, form, options.placement,
                      options.training, tuple(map(str.lower, options.system)), options.measured,
                      options.seed, options.wire, options.mtu, tuple(options.fixed))
    request.points(model)
    return request, model


def command_of(options: CompareOptions) -> str:
    """Return the command that makes the comparison again, empty for a model that is no file."""
    if isinstance(options.model, Model):
        return ""
    words = ["python", "-m", "sim", "compare"]
    for each in fields(options):
        value = getattr(options, each.name)
        if each.name in _NOT_SHOWN or value == each.default or value is None:
            continue
        flag = f"--{each.name.replace('_', '-')}"
        if each.name == "system":
            value = ",".join(value)
        many = value if isinstance(value, list | tuple) else [value]
        words += [flag] if value is True else [part for one in many for part in (flag, str(one))]
    return f"{join(words)} --output DIR"
