"""Conversion of the options of ``compare`` into a request."""

from dataclasses import replace

from host.data.datasets import input_files
from host.data.indexing import indexed_format
from host.model import Model, load_model
from host.systems.devices import SMARTNIC_LINK
from host.timing.cluster import Cluster, load_cluster
from host.timing.pcie import PcieProfile
from host.toml.profile import load_profile, profile_names
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
    cluster = load_cluster(options.cluster, _check_cluster)
    nodes = options.nodes or cluster.nodes
    data = () if options.data is None else tuple(map(str, input_files(options.data)))
    form = indexed_format(options.data, options.format, options.index)
    model = SampleSource.of(Workload.of(model=options.model, data=data or None, format=form)).model
    named = options.model if options.model in DATASETS else replace(
        load_model(options.model), rows=model.rows, bags=model.bags, dense=model.dense)
    request = Request(named, cluster, nodes, options.mini_batch, data, form, options.placement,
                      options.training, tuple(map(str.lower, options.system)), options.measured,
                      options.seed)
    request.points(model)
    return request, model


def _check_cluster(cluster: Cluster) -> None:
    """Raise ``ValueError`` for parts of a cluster that the timing models do not take.

    They load profiles by name, and choose the NIC for the model.
    """
    for field in ("network", "gpu", "gpu_link"):
        profile = getattr(cluster, field)
        if profile is not None and (profile.name not in profile_names() or profile != load_profile(
                profile.name, type(profile))):
            raise ValueError(f"{field} must be a profile that ships, not {profile.name!r} of a "
                             "file")
    if cluster.pcie != load_profile(SMARTNIC_LINK, PcieProfile):
        raise ValueError(f"pcie must be {SMARTNIC_LINK}, not {cluster.pcie.name!r}")
    if cluster.nic.settings:
        raise ValueError(f"nic must have the sizes of its preset, not {cluster.nic.settings!r}")
