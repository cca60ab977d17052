"""Conversion of the options of ``compare`` into a request."""

from dataclasses import replace

from host.data.indexing import indexed_format
from host.model import Model, load_model
from host.timing.cluster import load_cluster
from sim.compare.compare import Request
from sim.compare.options import CompareOptions
from sim.evaluation.fields import DATASETS
from sim.job.inputs import SampleSource
from sim.job.workload import Workload

__all__ = ["request_of"]


def request_of(options: CompareOptions) -> tuple[Request, Model]:
    """Return the request and the model of its samples.

    Raises ``ValueError`` that names field, value and bound, and ``InputError`` for a malformed
    file.
    """
    cluster = load_cluster(options.cluster)
    nodes = options.nodes or cluster.nodes
    data = () if options.data is None else tuple(map(str, (
        [options.data] if isinstance(options.data, (str, bytes)) or hasattr(
            options.data, "__fspath__") else options.data)))
    form = indexed_format(options.data, options.format, options.index)
    model = SampleSource.of(Workload.of(model=options.model, data=data or None, format=form)).model
    named = options.model if options.model in DATASETS else replace(
        load_model(options.model), rows=model.rows, bags=model.bags, dense=model.dense)
    request = Request(named, cluster, nodes, options.mini_batch, data, form, options.placement,
                      options.training, tuple(options.system), options.measured, options.seed)
    request.points(model)
    return request, model
