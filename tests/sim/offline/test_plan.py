"""``sim plan``: against counts of RTL runs, against counts by hand, and with invalid options."""

import json
import re
from dataclasses import fields
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gen.base.settings import config_types
from host.model import MODELS, Model
from host.placement.deal import Rule
from host.placement.shard import ShardPlan
from host.timing.cluster import load_cluster
from host.timing.network import NetworkProfile
from rtl.config import PRESETS
from sim.cli.main import main
from sim.job.memory import node_bytes
from sim.job.options import RunOptions
from sim.job.settings import Runtime
from sim.job.workload import Workload
from sim.offline.hitrate import hitrate
from sim.offline.plan import failures, plan, spread_evenly
from sim.offline.plan_memory import balance, nodes_needed
from sim.offline.plan_packing import Packing, packets
from sim.run.run import Run

BAGS = """name = "bags"
dimension = {dimension}
dense = 2
bottom = [{dimension}]
top = [1]
[[tables]]
rows = 50
[[tables]]
rows = 3_000
bag = [0, 3]
[[tables]]
rows = 1_048_576
bag = 2
[[tables]]
rows = 7
bag = [0, 1]
"""


def _model(tmp_path, dimension: int = 16) -> str:
    path = tmp_path / "bags.toml"
    path.write_text(BAGS.format(dimension=dimension))
    return str(path)


ALL_SENT = ("remote_cache=false", "requester_merge=false")
"""With these settings, the plan counts every lookup of another node's row as sent."""


def _sums(planned: dict, kind: str) -> dict[str, float]:
    """Return the bytes summed over nodes and mini-batches."""
    return {name: round(sum(planned["traffic"][f"{kind}_{name}"]) * planned["mini_batches"], 6)
            for name in ("to_nic", "from_nic", "out", "out_frames")}


@pytest.mark.few(2)
@pytest.mark.parametrize(("nodes", "dimension", "placement", "own_bags"), [
    pytest.param(4, 64, "row", "nic", marks=pytest.mark.slow), (1, 48, "even", "nic"),
    (2, 4, "row", "nic"), (1, 8, "even", "nic"), (2, 4, "even", "gpu"),
    *(pytest.param(2, 16, *case, marks=pytest.mark.slow) for case in (
        ("row", "nic"), ("rows", "nic"), ("rows", "gpu")))])
def test_equal_to_a_run_whose_packets_are_full(tmp_path, nodes, dimension, placement, own_bags):
    """Bytes are exact with long timeouts, one mini-batch at a time, and no cache.

    The plan requires a dedupe table that keeps each key of a mini-batch. With two nodes and
    placement ``even``, two sets of node 0 receive 5 keys for their 4 ways.
    """
    options = RunOptions.of(
        cluster="direct_pair", network="ethernet_100g_switch", model=_model(tmp_path, dimension),
        nodes=nodes, placement=placement, own_bags=own_bags, mini_batch=4 * nodes, in_flight=1,
        threads=1, samples=90,
        settings=(*ALL_SENT, "local_cache=false", "local_cache_rows=64", "request_batch=16",
                  "lookup_timeout=500", "request_timeout=4000", "vector_timeout=30000"))
    result = Run(options).execute()
    assert result["bit_identical"] and result["dedupe"]["retired_early"] == 0
    assert sum(node["host_reporter.credits"] for node in result["counters"]) == 0
    planned = plan(options.workload)
    found = _sums(planned, "full")
    assert found == _sums(planned, "expected")
    assert found == {"to_nic": result["pcie"]["to_nic_bytes"],
                     "from_nic": result["pcie"]["from_nic_bytes"],
                     "out": result["network"]["bytes"],
                     "out_frames": result["network"]["packets"]}
    assert (found["out"] > 10_000) == (nodes > 1)
    for name, counter in (
            ("lookups", "dedupe.requests"), ("unique", "dedupe.unique"),
            ("misses", "request_packager.records"), ("full_lists", "request_packager.packets"),
            ("remote", "lookup_packager.records"), ("answered", "vector_packager.vectors"),
            ("slots", "hold_buffer.reserved"), ("bags", "result_packager.vectors")):
        counted = [node[counter] for node in result["counters"]]
        assert np.rint(np.multiply(planned["traffic"][name], planned["mini_batches"])).tolist() == (
            counted), name


@pytest.mark.thorough
@pytest.mark.parametrize("placement", ["row", "even", "rows"])
def test_close_to_a_run_with_time_outs(placement):
    options = RunOptions.of(cluster="paper", samples=1024, placement=placement, threads=1,
                            settings=ALL_SENT)
    result = Run(options).execute()
    planned = plan(options.workload)
    full, expected = _sums(planned, "full"), _sums(planned, "expected")
    for name, counted in (("to_nic", result["pcie"]["to_nic_bytes"]),
                          ("from_nic", result["pcie"]["from_nic_bytes"]),
                          ("out", result["network"]["bytes"])):
        assert 0.5 * counted < full[name] <= counted
        # If one node owns most tables, lookups wait for its answers and packets leave emptier.
        assert expected[name] == pytest.approx(counted, rel=0.08 if placement == "row" else 0.15)
    assert expected["out_frames"] == pytest.approx(
        result["network"]["packets"], rel=0.15 if placement == "row" else 0.4)
    # Entries that the dedupe table retires early are looked up again, and hit.
    assert result["gpu"]["rows"] == pytest.approx(
        sum(planned["traffic"]["misses"]) * planned["mini_batches"], rel=0.001)
    reached = result["samples"] / result["simulated_seconds"]
    # Filling and draining the pipelines of so short a run costs about a third.
    assert 0.4 * planned["samples_per_second"] < reached < planned["samples_per_second"]


def test_packets_by_hand():
    times = np.array([0, 1, 2, 50, 51, 99, 100])
    assert packets(times, 3).tolist() == [3, 3, 1]
    assert packets(times, 3, 50).tolist() == [3, 3, 1]
    assert packets(times, 9, 50).tolist() == [3, 3, 1]
    assert packets(times, 9, 51).tolist() == [4, 3]
    assert packets(times, 2, 1000).tolist() == [2, 2, 2, 1]
    assert packets(np.array([0, 0, 1]), 9, 0).tolist() == [1, 1, 1]
    assert packets(times[:0], 2).tolist() == packets(times[:0], 2, 5).tolist() == []


@pytest.mark.parametrize("interaction", ["false", "true"])
@pytest.mark.parametrize("value", ["0", "1", "65535"])
@pytest.mark.parametrize("name", ["request", "lookup", "vector", "result"])
def test_any_time_out_ends(name, value, interaction):
    planned = plan(Workload.of(cluster="paper", samples=32, mini_batch=16, settings=(
        f"{name}_timeout={value}", f"interaction={interaction}")))
    assert planned["samples_per_second_expected"] <= planned["samples_per_second"]


@pytest.mark.thorough
@pytest.mark.few(2)
def test_lists_of_the_shortest_time_outs():
    """A NIC checks a list no earlier than a cycle after its first lookup: timeouts 0 and 1 are
    equal. One miss of nine follows another closely: waiting lookups are decided consecutively."""
    lists, runs = [], []
    for timeout in (0, 1):
        options = RunOptions.of(cluster="paper", config="tiny", model="avazu", nodes=2, samples=128,
                                threads=1, settings=(*ALL_SENT, f"request_timeout={timeout}"))
        result, planned = Run(options).execute(), plan(options.workload)
        runs.append([(node["request_packager.packets"], node["request_packager.records"])
                     for node in result["counters"]])
        lists.append((planned["traffic"]["expected_lists"], planned["traffic"]["misses"]))
    assert runs[0] == runs[1] and all(sent > 0.88 * records for sent, records in runs[0])
    assert lists[0] == lists[1] == (lists[0][1], lists[0][1])


@pytest.mark.thorough
def test_every_setting_at_its_extremes_ends():
    """The result is a plan, or a line that names the value out of range."""
    refused = []
    for name, kind in (config_types() | {
            field.name: field.type for field in fields(Runtime)}).items():
        if kind is str:
            continue
        for value in ("true", "false") if kind is bool else ("0", "1", "65535", "65536", "131072"):
            workload = Workload.of(cluster="paper", samples=4, mini_batch=4,
                                   settings=(f"{name}={value}",))
            try:
                plan(workload, hit_rate=0.5)
            except ValueError as error:
                assert re.search(rf"\b{name}\b.* must be |must be .*\b{name}\b", str(error)), error
                refused.append(name)
    assert "request_timeout" in refused and "nodes" in refused


@pytest.mark.parametrize("interaction", ["false", "true"])
def test_vectors_that_no_packet_holds(tmp_path, interaction):
    """The check of the dimension rejects them."""
    planned = plan(Workload.of(
        cluster="paper", samples=8, mini_batch=4, model=_model(tmp_path, 256), settings=(
            "net_payload_beats=2", "host_payload_beats=2", "request_batch=1", "dot_units=1",
            f"interaction={interaction}")))
    assert failures(planned) == ["dimension must be at most 16 (NIC), not 256"]


def test_packing_by_hand():
    """Kaggle's NIC: 22 payload beats of 64 bytes on the network, 64 to the host."""
    packing = Packing(PRESETS["kaggle"], Runtime(), 4, 16)
    assert (packing.lookups, packing.vectors, packing.requests) == (176, 21, 128)
    # 61 vectors take 2 tag beats: 63 beats; 62 with 2 tag beats fill the 64.
    assert (packing.answers, packing.results, packing.queries) == (62, 63, 512)
    # 4 vectors of 4 values to a beat; 224 of them take 7 tag beats and 56 others.
    short = Packing(PRESETS["kaggle"], Runtime(), 4, 4)
    assert (short.vectors, short.answers, short.results) == (32, 224, 252)
    assert short.vector_bytes(np.array([1, 4, 5, 32])) == 64 * (3 + 3 + 4 + 10)
    assert short.answer_bytes(np.array([226])) == 64 * ((1 + 7 + 56) + (1 + 1 + 1))
    assert packing.record_bytes(np.array([1, 8, 9])) == 64 * (2 + 2 + 3)
    assert packing.vector_bytes(np.array([1, 21])) == 64 * (3 + 23)
    # 70 rows: a packet of 62 and one of 8.
    assert packing.answer_bytes(np.array([70, 2])) == 64 * ((1 + 2 + 62) + (1 + 1 + 8) + (2 + 2))


_RATES = st.one_of(st.floats(0, 1), st.fractions(0, 1).map(float), st.just(1 / 13))


@given(_RATES, st.lists(st.lists(st.integers(0, 2), max_size=60), min_size=1, max_size=4),
       st.integers(0, 1 << 40))
@example(3.6e-302, [[]], 0)
@settings(deadline=None)
def test_chosen_lookups_are_those_of_exact_arithmetic(rate, chunks, first):
    """Lookup n of an owner is chosen if the integer part of n times the share increases."""
    share = 1 - Fraction(str(rate))
    before, counts = np.full(3, first), [first] * 3
    for chunk in chunks:
        found = spread_evenly(np.array(chunk, np.int64), share, before)
        for owner, chosen in zip(chunk, found.tolist(), strict=True):
            assert chosen == ((counts[owner] + 1) * share // 1 > counts[owner] * share // 1)
            counts[owner] += 1
        assert before.tolist() == counts


def test_a_hit_rate_of_many_digits(capsys):
    """One in 13, as Python writes it, times a number of lookups exceeds an int64."""
    with pytest.raises(SystemExit) as end:
        main(["plan", "--hit-rate", "0.07692307692307693", "--samples", "640", "--json", "-"])
    assert end.value.code == 0
    result = json.loads(capsys.readouterr().out)
    unique, misses = (sum(result["traffic"][name]) * 5 for name in ("unique", "misses"))
    assert abs(misses - unique * 12 / 13) < result["nodes"]
    assert result["hit_rate"]["unique"] == pytest.approx(1 / 13, abs=result["nodes"] / unique)


def test_given_hit_rate():
    workload = Workload.of(cluster="paper", samples=512, placement="row")
    for rate in (0, 0.25, 0.7, 1):
        planned = plan(workload, hit_rate=rate)
        unique, misses = (sum(planned["traffic"][name]) * 4 for name in ("unique", "misses"))
        assert misses == pytest.approx(unique * (1 - rate), abs=4)
        assert planned["hit_rate"]["unique"] == pytest.approx(rate, abs=0.001)
    off = plan(Workload.of(cluster="paper", samples=512, placement="row",
                             settings=("local_cache=false",)))
    assert off["hit_rate"]["unique"] == 0
    assert off["traffic"] == plan(workload, hit_rate=0)["traffic"]
    # Repeats inside a mini-batch also enter the cache without merging.
    plain = plan(Workload.of(cluster="paper", samples=512, settings=("dedupe=false",)))
    assert sum(plain["traffic"]["unique"]) * 4 == 512 * 26


def test_computed_hit_rate():
    """The result equals ``sim hitrate``."""
    cluster = {"cluster": "paper", "nodes": 2, "placement": "row", "samples": 1024, "warmup": 3}
    settings = ("local_cache_sets=200",)
    planned = plan(Workload.of(settings=settings, **cluster))
    row = hitrate([1600], **cluster)["rows"][0]
    assert planned["hit_rate"]["unique"] == pytest.approx(row["hit_rate_unique"])
    assert planned["hit_rate"]["every"] == pytest.approx(row["hit_rate"])
    assert (planned["samples"], planned["mini_batches"]) == (640, 5)
    local = planned["memory"]["caches"][0]
    assert (local["rows"], local["bytes"]) == (1600, 1600 * 64)


def test_empty_bags(tmp_path):
    """Samples without keys cause no lookups: every second mini-batch has only packets of the
    hosts."""
    path = tmp_path / "sparse.toml"
    text = "dimension = 16\ndense = 1\nbottom = [16]\ntop = [1]\n[[tables]]\nrows = 10\n"
    path.write_text(f"{text}bag = 0\n")
    planned = plan(Workload.of(cluster="paper", samples=64, mini_batch=2, model=str(path)))
    assert planned["hit_rate"] == {"given": None, "unique": None, "every": None}
    times = {row["name"]: row["least_us"] for row in planned["resources"]}
    assert times["NIC lookups"] == times["network out"] == times["GPU gather"] == 0
    assert times["NIC pooling"] == pytest.approx(0.004)
    assert times["mini-batches in flight"] == pytest.approx((4 * 0.42 + 1.3795) / 4)
    path.write_text(f"{text}bag = [0, 1]\n")
    workload = Workload.of(cluster="paper", samples=512, mini_batch=1, model=str(path))
    times = {row["name"]: row["least_us"] for row in plan(workload, hit_rate=1)["resources"]}
    # Half of the mini-batches have a key, three quarters of which are at another node.
    assert times["mini-batches in flight"] == pytest.approx(
        (4 * 0.42 + 1.3795 * (1 + 2 * 0.375)) / 4, rel=0.1)


def test_times_by_hand():
    """One node, one table, no cache: the times of a mini-batch of 8 samples."""
    workload = Workload.of(cluster="paper", nodes=1, samples=32, mini_batch=8, in_flight=2,
                           model="kaggle")
    planned = plan(workload, hit_rate=0)
    times = {row["name"]: row["least_us"] for row in planned["resources"]}
    assert "network out" not in times
    lookups = 8 * 26
    assert times["NIC lookups"] == times["NIC pooling"] == pytest.approx(lookups * 0.004)
    misses = planned["traffic"]["misses"][0]
    assert times["GPU gather"] == pytest.approx(misses * 64 / (0.9 * 672e3))
    assert times["misses in flight"] == pytest.approx(misses * (0.84 + 4 + 5) / 1024)
    # Host, NIC, GPU (a launch and a kernel), NIC, host, and hand-out over PCIe in both directions;
    # two at once.
    assert times["mini-batches in flight"] == pytest.approx((6 * 0.42 + 4 + 5) / 2)
    # 8 samples of 26 vectors: a header and a tag each; one list of 128 rows at most.
    lists = packets(np.arange(round(misses)), 128)
    down = 8 * (2 + 26) + sum(1 + -(-n // 8) for n in lists.tolist())
    assert planned["mini_batches"] == 4
    assert times["PCIe from NIC"] == pytest.approx(64 * down / 12.59e3, rel=0.02)
    slowest = max(times.values())
    assert planned["samples_per_second"] == pytest.approx(8 / slowest * 1e6)
    assert times[planned["binds"]] == slowest


def test_bytes_by_hand():
    model = Model((1000, 10), 16, 1, (16,), (1,))
    weights = 4 * ((1 + 1) * 16 + (16 + 3 + 1) * 1)
    nodes = node_bytes(model, ShardPlan.deal(model, 2), "rowwise-adagrad")
    assert [node["rows"] for node in nodes] == [1000, 10]
    assert [node["bytes"] for node in nodes] == [68_000 + weights, 680 + weights]
    assert [n["bytes"] for n in node_bytes(model, ShardPlan.deal(model, 2, "row"), "sgd")] == [
        64 * 505 + weights] * 2
    assert balance([1.0, 3.0, 2.0]) == 1.5 and balance([0.0, 0.0]) == 1.0


MIXED = Model((1000, 10, 400), 16, 1, (16,), (1,), interaction="cat", dimensions=(16, 128, 64))


def test_bytes_of_tables_of_different_dimensions():
    weights = 4 * ((1 + 1) * 16 + (16 + 16 + 128 + 64 + 1) * 1)
    # Bytes are balanced, not rows: 102,400 B, 64,000 B and 5,120 B.
    plan = ShardPlan.deal(MIXED, 2, "rows")
    assert [table.owner for table in plan.tables] == [1, 1, 0]
    assert [node["bytes"] for node in node_bytes(MIXED, plan, "rowwise-adagrad")] == [
        102_400 + 4 * 400 + weights, 69_120 + 4 * 1010 + weights]
    assert [node["bytes"] for node in node_bytes(MIXED, plan, "none", (128,) * 3)] == [
        512 * 400 + weights, 512 * 1010 + weights]
    copied = plan.with_copies(10)
    assert [node["row_bytes"] for node in node_bytes(MIXED, copied, "none")] == [
        102_400 + 5_120, 64_000 + 5_120]
    for room, nodes in ((171_520, 1), (171_519, 2), (102_400, 2)):
        assert nodes_needed(MIXED, Rule("rows"), "none", weights + room) == {
            "nodes": nodes, "why": None}
    assert "table 2 alone takes 102,400 of 102,399 B" in nodes_needed(
        MIXED, Rule("rows"), "none", weights + 102_399)["why"]


def test_tables_of_different_dimensions(tmp_path):
    path = tmp_path / "mixed.toml"
    path.write_text("""name = "mixed"
dimension = 16
dense = 1
bottom = [16]
top = [1]
interaction = "cat"
[[tables]]
rows = 1000
[[tables]]
rows = 400
dimension = 64
pooling = "mean"
""")
    given = {"cluster": "paper", "model": str(path), "nodes": 2, "samples": 64, "mini_batch": 32}
    found = plan(Workload.of(**given))
    assert [node["row_bytes"] for node in found["memory"]["nodes"]] == [102_400, 64_000]
    assert found["notes"] == [
        "NICs pad vectors of 16 to 64 values with zeros to 64 (on the network, bags pooled at "
        "owners: to a multiple of 16)"]
    reads = plan(Workload.of(**given, settings=("row_reads=true",)))
    assert [node["row_bytes"] for node in reads["memory"]["nodes"]] == [102_400, 256_000]
    assert {check["what"]: check["need"] for check in found["checks"]}["dimension"] == 64
    with pytest.raises(ValueError, match=r"^interaction must be false for tables of different"):
        plan(Workload.of(**given, settings=("interaction=true",)))


def test_nodes_that_are_given_are_a_placement_beside_the_others():
    given = ",".join("0" * 25 + "1")
    result = plan(Workload.of(cluster="paper", nodes=2, samples=512, placement=given))
    assert [row["placement"] for row in result["placements"]] == [
        "even", "rows", "lookups", "row", given]
    assert result["placements"][-1]["nodes_needed"] == {"nodes": 2, "why": None}
    assert result["memory"]["nodes"][1]["rows"] == MODELS["kaggle"].rows[25]


def test_nodes_needed():
    model = Model((1000, 1000, 500), 16, 1, (16,), (1,))
    weights = 4 * model.mlp_parameters

    def needed(placement, rows, optimizer="none"):
        return nodes_needed(model, Rule(placement), optimizer, 64 * rows + weights)

    assert needed("row", 2500)["nodes"] == needed("rows", 2500)["nodes"] == 1
    assert needed("row", 1250)["nodes"] == 2 and needed("rows", 1499)["nodes"] == 3
    assert needed("rows", 1500)["nodes"] == needed("even", 1500)["nodes"] == 2
    assert needed("row", 1250, "rowwise-adagrad")["nodes"] == 3
    assert needed("row", 10)["nodes"] == 250
    split = needed("even", 999)
    assert split["nodes"] == 4
    assert split["why"].startswith("table 0 alone takes 64,000 of 63,936 B: rows are hashed")
    assert needed("0,2,2", 1500) == {"nodes": 3, "why": None}
    assert needed("0,1,1", 1499) == {"nodes": None, "why": "node 1 has 96,000 of 95,936 B"}
    assert needed("row", 9)["why"] == "more than 255 nodes"
    assert "MLPs alone" in needed("row", 0)["why"]


def test_what_does_not_fit(tmp_path, capsys):
    path = tmp_path / "small.toml"
    path.write_text('name = "small"\nnodes = 2\nnetwork = "ethernet_100g_direct"\n'
                    'pcie = "pcie_gen3x16"\ngpu = "gpu_rtx8000"\ngpu_memory = "1 GB"\n'
                    'host_memory = "1 GB"\ncard_memory = "0 B"\n')
    target, picture = tmp_path / "plan.json", tmp_path / "plan.png"
    arguments = ["plan", "--cluster", str(path), "--samples", "64", "--json", str(target)]
    with pytest.raises(SystemExit) as end:
        main([*arguments, "--picture", str(picture)])
    shown = capsys.readouterr()
    assert end.value.code == 1
    result = json.loads(target.read_text())
    over = next(row for row in result["checks"] if not row["holds"] and row["required"])
    assert shown.err == f"sim: {failures(result)[0]}\n"
    assert over["what"] == "bytes of a GPU" and over["have"] == 10**9 < over["need"]
    assert {row["placement"]: row["nodes_needed"]["nodes"] for row in result["placements"]} == {
        "even": 3, "rows": 3, "lookups": 3, "row": 3}
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert result["memory"]["nodes"][0]["share"] > 1
    assert result["memory"]["nodes"][0]["held"]["card_memory"] == 0
    with pytest.raises(SystemExit) as end:
        main([*arguments, "--nodes", "3", "--network", "ethernet_100g_switch"])
    assert end.value.code == 0 and capsys.readouterr().err == ""


def test_json_on_standard_output(capsys):
    with pytest.raises(SystemExit) as end:
        main(["plan", "--samples", "64", "--json", "-"])
    assert end.value.code == 0
    shown = capsys.readouterr()
    result = json.loads(shown.out)
    assert result["schema"] == "embernic/plan/1" and "bottleneck: " in shown.err
    assert result == json.loads(json.dumps(plan(Workload.of(cluster="paper", samples=64))))


@pytest.mark.parametrize(("arguments", "said"), [
    (("--cluster", "none"), "cluster must be one of a100, direct_pair, h100, h100x8, paper,"),
    (("--model", "none"), "model must be one of"),
    (("--hit-rate", "1.5"), "hit_rate must be between 0 and 1, not 1.5"),
    (("--hit-rate", "-0.1"), "hit_rate must be between 0 and 1, not -0.1"),
    (("--hit-rate", "nan"), "hit_rate must be between 0 and 1, not nan"),
    (("--optimizer", "adam"), "optimizer must be one of none, sgd, rowwise-adagrad, not 'adam'"),
    (("--placement", "column"), "placement must be one of even, rows, lookups, row, not 'column'"),
    (("--placement", "9223372036854775807"), "placement must have 26 nodes, one for each table"),
    (("--nodes", "0"), "nodes must be at least 1, not 0"),
    (("--warmup", "8"), "warmup must be less than the mini-batches of the input, 8, not 8"),
    (("--network", "ethernet_100g_direct"), "nodes must be between 1 and 3 of ethernet_100g_dir"),
    (("--gpu", "none.toml"), "none.toml: No such file or directory"),
    (("--set", "colour=1"), "no such field: colour"),
    (("--data", "no/such/file"), "no/such/file"),
    (("--picture", "a.txt"), "picture must end in .png, .svg or .pdf"),
    (("--json", "."), "json must be a file, not the folder '.'"),
])
def test_mistakes_are_one_line(capsys, arguments, said):
    with pytest.raises(SystemExit) as end:
        main(["plan", *arguments])
    shown = capsys.readouterr()
    assert end.value.code == 2 and shown.out == ""
    assert shown.err.count("\n") == 1 and shown.err.startswith("sim: ")
    assert said in shown.err


def test_more_nodes_than_the_nic_knows():
    result = plan(Workload.of(cluster="direct_pair", network="ethernet_100g_switch", nodes=9,
                              samples=18, mini_batch=18, model="avazu"))
    assert failures(result) == ["nodes must be at most 8 (NIC), not 9"]
    assert MODELS["avazu"].tables == result["model"]["tables"]


def test_options_go_before_the_cluster(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('nodes = 2\npcie = "pcie_gen3x16"\ngpu = "gpu_a100"\ngpu_memory = "1 GB"\n'
                    'host_memory = "1 GB"\ncard_memory = "8 GB"\n'
                    '[network]\nname = "slow"\none_way = "5 us"\nbandwidth = "10 Gb/s"\n'
                    'overhead = "24 B"\nswitched = true\n[nic]\nconfig = "tiny"\n'
                    'local_cache_size = "32 KiB"\n[nic.set]\nrequest_batch = 32\ndedupe = false\n')
    workload = Workload.of(cluster=str(path), placement="row")
    assert (workload.nodes, workload.config, workload.placement) == (2, "tiny", "row")
    assert workload.network == NetworkProfile("slow", 5.0, 10.0, 24, True)
    assert workload.settings == ("local_cache_rows=128", "request_batch=32", "dedupe=false")
    workload = Workload.of(cluster=str(path), nodes=4, gpu="gpu_v100",
                            settings=("request_batch=8", "lookup_timeout=9"))
    assert (workload.nodes, workload.gpu) == (4, "gpu_v100")
    assert workload.settings == ("local_cache_rows=128", "dedupe=false", "request_batch=8",
                                "lookup_timeout=9")
    workload = Workload.of(cluster=str(path), config="kaggle")
    assert (workload.config, workload.settings, workload.nodes) == ("kaggle", (), 2)
    assert Workload.of(nodes=None, seed=3) == Workload(seed=3)
    assert load_cluster(path).gpu.name == "gpu_a100"


@pytest.mark.parametrize(("old", "new", "said"), [
    ("dedupe = false", "dedup = false", ": nic.set: no such field: dedup (fields: "),
    ("dedupe = false", "request_batch = 0", ": nic.set: request_batch must be between 1 and"),
    ('"1 GB"', "1", ": gpu_memory must be a string with a number and a unit"),
])
def test_mistakes_in_a_cluster_name_their_key(tmp_path, capsys, old, new, said):
    path = tmp_path / "mine.toml"
    path.write_text('nodes = 2\npcie = "pcie_gen3x16"\ngpu = "gpu_a100"\ngpu_memory = "1 GB"\n'
                    'host_memory = "1 GB"\ncard_memory = "8 GB"\n'
                    'network = "ethernet_100g_switch"\n[nic]\nconfig = "tiny"\n'
                    '[nic.set]\ndedupe_keys = 64\ndedupe = false\n'.replace(old, new, 1))
    for command in ("plan", "run", "hitrate"):
        with pytest.raises(SystemExit) as end:
            main([command, "--cluster", str(path)])
        shown = capsys.readouterr()
        assert end.value.code == 2 and shown.err.count("\n") == 1
        assert f"{path}{said}" in shown.err
