"""Runs whose bags pool at their owners: the bits of requester pooling, bad bags, and a run that is
stuck."""

from collections import Counter
from pathlib import Path

import pytest

from host.timing.clock import CYCLE_NS
from rtl.formats import QueryBag, RecordKind, SampleRecord, Status
from sim.job.options import RunOptions
from sim.job.workload import Workload
from sim.node import bags
from sim.offline.plan import plan
from sim.run.report import failures
from sim.run.run import Run, run
from tests.rtl.network.frames import QUERIES, Frame, record_payload
from tests.sim.injecting import push, run_with
from tests.sim.run.results import faultless, totals

pytestmark = pytest.mark.thorough
"""The tests compile a NIC with owner pooling, which takes a minute."""

MODEL = """
dimension = 16
dense = 1
bottom = [16]
top = [1]
""" + "".join(f"[[tables]]\nname = 't{number}'\nrows = {rows}\nbag = {bag}\n"
              for number, (rows, bag) in enumerate([
                  (1000, [0, 1]), (5000, [0, 2]), (70, 1), (400, [12, 30])]))
"""A model in which many bags are empty, and the bags of a table are long."""


def _options(nodes: int = 2, **changes) -> RunOptions:
    given = {"config": "tiny", "model": "multi_hot", "samples": 48, "mini_batch": 16, "threads": 1}
    return RunOptions.of(**given | changes, nodes=nodes)


@pytest.fixture(scope="module")
def requester() -> dict:
    return faultless(run(_options()))


@pytest.fixture
def model(tmp_path) -> Path:
    path = tmp_path / "model.toml"
    path.write_text(MODEL)
    return path


def _pooled(result: dict) -> Counter:
    """Return the counters of a run whose bags of other owners all arrived, once."""
    faultless(result)
    sums = totals(result)
    assert 0 < result["bags"]["foreign"] == sums["bag_sender.bags"] == sums["bag_check.bags"] == (
        sums["owner_places.vectors"]) == sums["bag_landing.vectors"]
    assert not any(sums[name] for name in sums if name.partition(".")[0].startswith(
        ("bag_", "owner_places")) and ".bad_" in name)
    assert sums["bag_receiver.over_credit"] == 0
    return sums


@pytest.mark.parametrize("nodes", [2, 3, 4])
def test_bits_are_those_of_requester_pooling(requester, nodes):
    result = run(_options(nodes, pool="owner"))
    sums = _pooled(result)
    assert result["predictions_sha256"] == requester["predictions_sha256"]
    assert result["bags"]["pool"] == ["owner"] * 8
    # The NICs look up no row by itself.
    assert sums["dispatcher.remote"] == sums["dispatcher.local"] == result["gpu"]["rows"] == 0
    if nodes == 2:
        assert result["network"]["bytes"] < requester["network"]["bytes"]


def test_tables_of_both_kinds(requester, tmp_path):
    path = tmp_path / "pool.toml"
    path.write_text('owner = ["items seen", "region", 4]\n')
    result = run(_options(pool=str(path)))
    sums = _pooled(result)
    assert result["predictions_sha256"] == requester["predictions_sha256"]
    assert [table for table, pool in enumerate(result["bags"]["pool"]) if pool == "owner"] == [
        2, 4, 7]
    assert sums["dispatcher.remote"] > 0 < result["gpu"]["rows"]


@pytest.mark.parametrize("pooling", ["sum", "mean"])
def test_empty_bags(model, pooling):
    wanted, result = (run(_options(model=str(model), pool=pool, settings=(f"pooling={pooling}",)))
                      for pool in ("requester", "owner"))
    assert result["predictions_sha256"] == faultless(wanted)["predictions_sha256"]
    assert _pooled(result)["query_checker.empty_bags"] > 8


@pytest.fixture
def mixed(tmp_path) -> Path:
    path = tmp_path / "mixed.toml"
    path.write_text(MODEL.replace("rows = 5000", "pooling = 'mean'\nrows = 5000").replace(
        "rows = 400", "pooling = 'mean'\nrows = 400"))
    return path


@pytest.mark.parametrize("given", [
    {"nodes": 1}, {"pool": "owner"}, {"pool": [1, 2], "nodes": 3},
    {"pool": [0, 3], "deliver": "unique", "settings": ("completions=true",)},
    {"pool": [0, 3], "settings": ("interaction=true",)},
    {"nodes": 3, "settings": ("interaction=true",)}],
    ids=["requester", "owner", "both", "unique", "interaction", "interaction of requesters"])
def test_nics_make_the_means_of_some_tables(mixed, tmp_path, given):
    """Answers with means are those of numpy: the host does not divide. With unique delivery, the
    host pools all bags."""
    wanted = faultless(run(_options(model=str(mixed))))
    options = {"pool": "requester", "settings": ()} | given
    if isinstance(options["pool"], list):
        (tmp_path / "pool.toml").write_text(f"owner = {options['pool']}\n")
        options["pool"] = str(tmp_path / "pool.toml")
    deliver = options.pop("deliver", "pooled")
    options["settings"] = (*options["settings"], "owner_bags=64", f"deliver={deliver}")
    job = Run(_options(model=str(mixed), **options))
    assert job.plan.means.tolist() == [False, deliver == "pooled"] * 2
    result = faultless(job.execute())
    assert result["predictions_sha256"] == wanted["predictions_sha256"]


def test_ids_places_and_credits_run_out(model):
    settings = "owner_bags=16", "owner_bag_beats=32", "bag_segments=32"
    sizes = {"model": str(model), "samples": 128, "mini_batch": 64}
    wanted = faultless(run(_options(4, **sizes)))
    result = run(_options(4, **sizes, pool="owner", settings=settings))
    sums = _pooled(result)
    assert result["predictions_sha256"] == wanted["predictions_sha256"]
    for name in ("bag_sender.stall_ids", "owner_places.stall_places", "bag_packager.stall_credit"):
        assert sums[name] > 0, name


def _bag(keys: int, table: int = 7, part: int = 0) -> int:
    return QueryBag.const({"keys": keys, "table": table, "part": part, "bag": 1,
                           "kind": RecordKind.KEY_END}).as_value().value


def _sample(number: int, *words: int) -> bytes:
    record = SampleRecord.const({"sample": number, "slots": 1, "kind": RecordKind.SAMPLE})
    return record_payload([record.as_value().value, *words])


TWO_ROWS = 5 | 999 << 32
BAD = {
    "row": ((_bag(2), 5 | 1000 << 32), Status.ROW),
    "key of a table that pools at its owner": ((7 << 36 | RecordKind.KEY_END << 48,), Status.KIND),
    "no keys": ((_bag(0),), Status.SAMPLE_SIZE),
    "a part": ((_bag(2, part=1), TWO_ROWS), Status.SAMPLE_SIZE),
    "no table": ((_bag(2, table=60), TWO_ROWS), Status.TABLE),
    "a packet that ends": ((_bag(4), TWO_ROWS), Status.TRUNCATED),
}


@pytest.mark.usefixtures("python_hosts")  # their credits count the injected queries
def test_bad_samples_between_good_ones(requester):
    """A sample with a bad bag is answered by an error, and the samples around it stay correct."""
    frames = [Frame(framing="host", source=0, destination=0, opcode=QUERIES, count=1 + len(words),
                    payload=_sample(900 + number, *words))
              for number, (words, _) in enumerate(BAD.values())]
    job = Run(_options(pool="owner", mini_batch=2, in_flight=2))
    nodes = []
    result = run_with(job, [lambda run, cycle: nodes.extend(run.cluster.nodes)] + [
        lambda run, cycle, frame=frame: push(run.cluster.nodes[0], "host_rx", frame, cycle)
        for frame in frames])
    assert failures(result) == []
    assert result["predictions_sha256"] == requester["predictions_sha256"]
    assert sorted(nodes[0].errors) == [(900 + number, int(status)) for number, (_, status)
                                       in enumerate(BAD.values())]
    sums = totals(result)
    assert sums["query_checker.rejected"] == len(BAD)
    assert sums["bag_sender.bags"] == sums["bag_landing.vectors"] == result["bags"]["foreign"]


@pytest.mark.usefixtures("python_hosts")
def test_a_stuck_run_names_the_stream_of_bags(monkeypatch):
    """The GPU of node 1 drops its first packet of vectors of bags."""
    original, dropped = bags.bag_vectors, []

    def but_one(*given, node, **named):
        packets = original(*given, node=node, **named)
        if node == 1 and not dropped:
            dropped.append(packets[0])
            packets = packets[1:]
        return packets

    monkeypatch.setattr("sim.node.bags.bag_vectors", but_one)
    result = run(_options(pool="owner", patience=20_000))
    (failure,) = failures(result)
    assert dropped and result["stuck"] in failure
    first, *others = result["where_stuck"]["causes"]
    assert (first["part"], first["node"]) == ("gpu", 1)
    assert "vectors of bags of its GPU" in first["means"]
    assert "host_parser.bag_vectors brought none" in first["means"]
    assert any("net_parser.bag_vectors brought none" in cause["means"] and cause["peer"] == 1
               for cause in others)


@pytest.mark.parametrize("places, lost", [((), False), (("owner_bags=1024",), True)])
def test_eight_senders_to_one_owner_with_finite_queues(tmp_path, places, lost):
    """The bags of a table with 100 keys a bag meet at node 0, and the vectors of the others' tables
    at each node. Places beyond the switch's queues lose frames."""
    tables = 'rows = 2_000_000\nbag = 100\n', *(8 * ('rows = 100\nbag = 1\n',))
    (tmp_path / "model.toml").write_text(
        "dimension = 128\ndense = 1\nbottom = [128]\ntop = [1]\ninteraction = 'cat'\n"
        + "".join(f"[[tables]]\n{table}" for table in tables))
    given = {"config": "kaggle", "model": str(tmp_path / "model.toml"), "nodes": 9,
             "gpu": "gpu_h100", "network": "ethernet_100g_switch_queues", "pool": "owner",
             "mini_batch": 1152, "samples": 4608,
             "settings": ("nodes=16", "max_dimension=128", *places)}
    result = run(RunOptions.of(**given, fidelity="fast", threads=1))
    assert (result["network"]["queue_drops"] > 0) == lost == (not result["complete"])
    if not lost:
        assert sum(node["bag_landing.vectors"] for node in result["counters"]) == 8 * 4608
        # Bags of all nodes, and vectors of 8 tables, take at least 85 % of the time on the link of
        # node 0.
        planned = plan(Workload.of(**given, cluster="h100x8"))
        link = next(each for each in planned["resources"] if each["name"] == planned["binds"])
        assert (link["name"], link["node"]) == ("network in", 0)
        assert 0.85 < 4 * link["least_us"] / (result["cycles"] * CYCLE_NS / 1000) < 1
