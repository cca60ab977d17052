"""Nodes of several GPUs, with a NIC per node or per GPU."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from host.model import MODELS
from host.placement.shard import ShardPlan
from host.timing.cluster import load_cluster
from host.timing.network import NetworkProfile
from host.toml.profile import load_profile
from sim.evaluation.measure import measure
from sim.evaluation.nic_options import Nics as NicsOf
from sim.evaluation.nic_options import options_of, serving
from sim.evaluation.point import Point
from sim.evaluation.site import Site
from sim.evaluation.trace import nic_plan_of, trace_of
from sim.job.inputs import SampleSource

SLOW, BATCH = 0.002, 1024
CLUSTER = load_cluster("two_hosts")
FIELDS = {
    "nodes": CLUSTER.nodes, "gpus": CLUSTER.gpus, "inside": CLUSTER.inside, "mini_batch": BATCH,
    "gpu": CLUSTER.gpu.name, "link": CLUSTER.gpu_link and CLUSTER.gpu_link.name,
    "software": CLUSTER.software, "warmup": 2, "measured": 2,
    "rdma": True, "fixed": ("exchange=gpu", "dedupe=true", "copied_rows=0", "key_bytes=8"),
    "scaled": ((f"{CLUSTER.network.name}.bandwidth_gbit_s", SLOW),)}


@cache
def tuned(nics: int) -> dict:
    """Return the metrics of bl-tuned on ``two_hosts`` with a slow network."""
    return measure(Point.named("bl-tuned", FIELDS | {"nics": nics}))


def busiest_nic() -> float:
    """Return the mean bytes of the busiest NIC and direction, indices of 8 bytes and vectors."""
    model, gpus = MODELS["kaggle"], CLUSTER.nodes * CLUSTER.gpus
    plan = ShardPlan.deal(model, gpus, gpus=CLUSTER.gpus)
    sent = []
    for batch in trace_of(Point.named("bl-tuned", FIELDS).workload).measured:
        samples = batch.samples
        asking = samples.requesters(gpus)
        owner = plan.owner_of(samples.tables, samples.rows, asking)
        asking, owner, _ = np.unique(np.stack([asking, owner, samples.keys]), axis=1)
        foreign = asking // CLUSTER.gpus != owner // CLUSTER.gpus
        out, back = (np.bincount(end[foreign] // CLUSTER.gpus) for end in (asking, owner))
        most = max(out.max(), back.max())
        sent.append(most * (8 + 4 * model.dimension))  # requests one way, vectors the other
    return float(np.mean(sent))


def test_a_shared_nic_carries_the_bytes_of_all_gpus_of_its_host():
    found = tuned(1)
    rate = SLOW * 12.5e3 * 1472 / 1538  # bytes per us: 1,472 of 1,538 bytes of a frame are data
    assert found["interval_us"] == pytest.approx(busiest_nic() / rate, rel=0.02)
    assert max(found["busy_us"], key=found["busy_us"].get) == "link"


def test_a_nic_per_gpu_ends_the_cliff():
    assert 2.5 < tuned(1)["interval_us"] / tuned(8)["interval_us"] < 8
    # Bytes between GPUs of a host do not count.
    one = measure(Point.named("bl-tuned", FIELDS | {"nodes": 1, "nics": 1}))
    assert one["traffic"]["total"]["bytes"] == 0 and one["interval_us"] < tuned(8)["interval_us"]


def test_a_nic_owns_the_rows_of_its_gpus():
    point = Point.named("lc+rc", FIELDS | {"nics": 1, "nodes": 3})
    trace = trace_of(point.workload)
    whole, seen = Site.of(point).work.plain[0].plan, nic_plan_of(point, trace)
    samples = trace.measured[0].samples
    assert (whole.nodes, seen.nodes) == (24, 3)
    assert (whole.owner_of(samples.tables, samples.rows) // 8 == seen.owner_of(
        samples.tables, samples.rows)).all()
    hashed = point.changed(placement="row")
    assert (Site.of(hashed).work.plain[0].plan.owner_of(samples.tables, samples.rows) // 8
            == nic_plan_of(hashed, trace).owner_of(samples.tables, samples.rows)).all()


def test_a_list_for_several_gpus_is_a_gather_on_each():
    point = Point.named("lc", FIELDS | {"nics": 8})
    shared = point.changed(nics=1)
    (one, _), (eight, _) = (serving(each, each.kind.nics(each), Site.of(each).devices)
                            for each in (point, shared))
    assert eight.memory_bandwidth_gb_s == 8 * one.memory_bandwidth_gb_s
    assert eight.call_us == 8 * one.call_us and eight.launch_us == one.launch_us


@pytest.mark.parametrize("fields, message", [
    ({"nics": 3}, "nics must divide the 8 gpus of a node, not 3"),
    ({"inside": None}, "inside must be given where a node has several GPUs"),
    ({"gpus": 1}, "inside must be given where a node has several GPUs, and only there"),
    ({"gpus": 4}, "inside must join the 4 GPUs of a node, not 'topology_dgx_a100' of 8 endpoints"),
    ({"inside": "topology_zionex"}, "inside must join the 8 GPUs of a node")])
def test_mistakes(fields, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        Site.of(Point.named("bl-tuned", FIELDS | {"mini_batch": 64} | fields))


def test_what_nodes_of_several_gpus_cannot_be():
    common = FIELDS | {"nics": 1, "mini_batch": 64}
    found = measure(Point.named("cpu-mpi", common))
    assert found["why"] == "nodes must have 1 GPU for cpu-mpi, not 8"
    found = measure(Point.named("fs", common, workload="training"))
    assert found["why"].startswith("nics must be 8 per node, one for each GPU, where NICs train")


def test_ports_of_the_card_limit_smartnics():
    zionex = load_cluster("zionex")
    point = Point.named("bl-tuned", FIELDS | {
        "nodes": 2, "nics": 8, "network": zionex.network.name, "scaled": ()})
    devices = Site.of(point).devices
    assert devices.network.bandwidth_gbit_s == 100.0
    assert devices.nic_links.endpoints == 16
    full = load_profile(zionex.network.name, NetworkProfile)
    assert devices.network == replace(full, bandwidth_gbit_s=100.0)
    outer = devices.nccl.topology.profile.levels[-1]
    assert (outer.links, outer.bandwidth_gb_s) == (8, pytest.approx(25.0 * 1472 / 1538))


@pytest.mark.parametrize("system", ["fs", "en"])
@pytest.mark.parametrize("nics", [1, 8])
def test_nics_run_with_the_plan_of_the_gpus(nics, system):
    point = Point.named(system, FIELDS | {"nics": nics, "mini_batch": 64})
    trace = trace_of(point.workload)
    nic = NicsOf(frozenset(("lc",)))
    devices = Site.of(point).devices
    run = options_of(point, nic, trace, devices, devices.gpu.gpu, {}, False, 1)
    plan = SampleSource.of(run.workload).plan()
    assert plan.nodes == run.workload.nodes == 2 * nics
    assert plan.tables == nic_plan_of(point, trace).tables
    # The largest tables alternate between the hosts.
    large = np.argsort([-rows for rows in trace.model.rows], kind="stable")[:6]
    assert [plan.tables[table].owner * 2 // plan.nodes for table in large] == [0, 1] * 3
