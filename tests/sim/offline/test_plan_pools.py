"""``sim plan`` with owner-pooled tables: against runs of the modelled NIC, and by hand."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from host.data.generator import generate
from host.model import load_model
from host.placement.pooling import ForeignBags, PoolBytes
from host.placement.shard import ShardPlan
from host.samples import rechunk
from rtl.config import preset
from rtl.formats import BEAT_BYTES, TAG_BITS
from sim.cli.main import main
from sim.job.options import RunOptions
from sim.job.pools import wire_of
from sim.job.workload import Workload
from sim.offline.plan import plan
from sim.offline.plan_packing import bag_packets
from sim.offline.plan_table import _updates
from sim.run.run import run

FULL = ("lookup_timeout=30000", "bag_timeout=30000", "vector_timeout=30000", "request_timeout=500")
"""Timeouts with which nearly all packets on the network are full."""
DCNV2 = {"model": "dcnv2", "settings": (*FULL, "max_dimension=128", "hold_vectors=1024")}
RANKING = {"model": "ranking", "settings": (*FULL, "hold_vectors=4096")}
HALF = DCNV2 | {"wire": "float16", "settings": (
    *FULL, "max_dimension=64", "hold_vectors=1024", "deliver=unique")}
"""Vectors of 128 values in 64 lanes."""


def _both(**given) -> tuple[dict, dict]:
    return (plan(Workload.of(**given)),
            run(RunOptions.of(**given, fidelity="fast", threads=1)))


def _sum(result: dict, counter: str) -> int:
    return sum(node[counter] for node in result["counters"])


@pytest.fixture
def weighted(tmp_path) -> str:
    """``multi_hot`` with weights in the tables of two and more keys."""
    text = Path("host/models/multi_hot.toml").read_text()
    path = tmp_path / "weighted.toml"
    path.write_text(text.replace("bag =", "weighted = true\nbag ="))
    assert load_model(path).weighted_tables == (2, 3, 4)
    return str(path)


@pytest.mark.parametrize("settings", [(), ("deliver=pooled", "interaction=true")])
@pytest.mark.parametrize("model", ["multi_hot", "weighted"])
def test_counts_equal_those_of_a_run(settings, model, request):
    model = model if model == "multi_hot" else request.getfixturevalue(model)
    planned, result = _both(
        cluster="direct_pair", network="ethernet_100g_switch", model=model, samples=96,
        mini_batch=48, in_flight=1, pool="owner",
        settings=(*FULL, "remote_cache=false", "requester_merge=false", *settings))
    assert result["complete"]
    for name, counter in (("bags_out", "bag_packager.bags"), ("bags_in", "bag_lists.bags"),
                          ("slots", "hold_buffer.reserved")):
        counted = [node[counter] for node in result["counters"]]
        assert np.rint(np.multiply(planned["traffic"][name], 2)).tolist() == counted, name
    bags = result["bags"]
    gathered = {name: sum(planned["traffic"][f"gathered_{name}"]) * 2 for name in ("bags", "keys")}
    assert gathered == {"bags": bags["foreign"] + bags["own"], "keys": bags["keys"]}
    lengths = next(generate(load_model(model), 96, 1)).bag_lengths
    assert sum(planned["traffic"]["gathered_weights"]) * 2 == lengths[
        :, list(load_model(model).weighted_tables)].sum()
    assert sum(planned["traffic"]["full_out"]) * 2 == pytest.approx(
        result["network"]["bytes"], rel=0.03)
    moved = {way: sum(planned["traffic"][f"full_{way}"]) * 2 for way in ("to_nic", "from_nic")}
    for way, counted in moved.items():
        # The lists of the plan are full, except the last of a mini-batch.
        assert 0.85 * result["pcie"][f"{way}_bytes"] < counted <= result["pcie"][f"{way}_bytes"]
    assert sum(planned["traffic"]["bag_segments_in"]) * 2 == pytest.approx(
        _sum(result, "bag_lists.segments"), rel=0.1)


def test_vectors_of_bags_have_the_size_of_their_table(tmp_path):
    """Tables of 16, 64 and 40 values: 1, 4 and 3 beats."""
    path = tmp_path / "widths.toml"
    path.write_text("\n".join([
        'name = "widths"', "dimension = 16", "dense = 3", "bottom = [8, 16]", "top = [8, 1]",
        'interaction = "cat"', *(f"[[tables]]\nrows = {rows}\nbag = [1, 4]\ndimension = {values}"
                                 for rows, values in ((900, 16), (800, 64), (700, 40)))]))
    planned, result = _both(
        cluster="direct_pair", network="ethernet_100g_switch", model=str(path), samples=192,
        mini_batch=96, in_flight=1, pool="owner", settings=(*FULL, "owner_bags=64"))
    assert result["complete"]
    traffic, counted = planned["traffic"], _sum(result, "bag_vectors.beats")
    assert sum(traffic["bag_beats_in"]) * 2 == counted
    for name, moved in (("full_out", result["network"]["bytes"]),
                        ("full_to_nic", result["pcie"]["to_nic_bytes"])):
        assert 0.85 * moved < sum(traffic[name]) * 2 <= moved, name


@pytest.mark.parametrize("size", [256, pytest.param(2048, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("given", [DCNV2, RANKING], ids=["dcnv2", "ranking"])
@pytest.mark.parametrize("pool", ["auto", "requester"])
def test_a_run_moves_the_planned_bytes(given, pool, size):
    planned, result = _both(cluster="h100x8", nodes=4, samples=size, mini_batch=size // 2,
                            pool=pool, **given)
    assert result["complete"]
    tables, moved = planned["tables"], result["network"]
    assert planned["network_bytes"] == pytest.approx(moved["bytes"], rel=0.05)
    places = [row["pool"] for row in tables]
    assert ("owner" in places) == (pool == "auto") and "requester" in places
    # Without conflicts, the remote caches are those of a textbook.
    at_requester = sum(row["missed_rows"] for row in tables if row["pool"] == "requester")
    assert _sum(result, "lookup_packager.records") == pytest.approx(at_requester, rel=1e-3)
    vectors = _sum(result, "vector_packager.vectors")
    packets = _sum(result, "vector_packager.packets")
    if pool == "auto":
        bags = sum(row["foreign_bags"] for row in tables if row["pool"] == "owner")
        assert _sum(result, "bag_vectors.vectors") == bags == result["bags"]["foreign"]
        assert result["bags"]["pool"] == places
        vectors, packets = vectors + bags, packets + _sum(result, "bag_vectors.packets")
    # Headers, and the unused tags in the first beat of the payload of vectors.
    headers = BEAT_BYTES * (moved["packets"] + packets) - TAG_BITS // 8 * vectors
    least = sum(min(row["requester_bytes"], row["owner_bytes"]) for row in tables)
    assert (moved["bytes"] - headers < 1.05 * least) == (pool == "auto")


def test_a_run_moves_the_planned_bytes_in_16_bits():
    test_a_run_moves_the_planned_bytes(HALF, "auto", 256)


@pytest.mark.parametrize("given", [DCNV2, HALF], ids=["float32", "float16"])
def test_a_run_moves_the_planned_bytes_of_slices(given):
    """The slices of a table have its bags and keys each, and a part of its vectors' beats."""
    given = given | {"cluster": "h100x8", "nodes": 4, "samples": 256, "mini_batch": 128,
                     "pool": "owner"}
    whole = plan(Workload.of(**given))
    planned, result = _both(**given, columns="20:32")
    assert result["complete"] and planned["columns"] == "20:32"
    assert planned["network_bytes"] == pytest.approx(result["network"]["bytes"], rel=0.05)
    slices = [row for row in planned["tables"] if row["table"] == 20]
    assert [row["columns"] for row in slices] == [(0, 31), (32, 63), (64, 95), (96, 127)]
    assert all(row["columns"] is None for row in planned["tables"] if row["table"] != 20)
    per_bag = whole["tables"][20]["foreign_keys"] / whole["tables"][20]["foreign_bags"]
    vector = 128 * 4 // (2 if given.get("wire") else 1)
    for row in slices:
        assert row["foreign_keys"] == per_bag * row["foreign_bags"]
        words = row["owner_bytes"] - row["foreign_bags"] * (vector / 4 + TAG_BITS // 8)
        assert row["foreign_bags"] * 4 * per_bag < words <= row["foreign_bags"] * (
            4 * per_bag + 16)


def test_slices_are_not_planned_for_training():
    with pytest.raises(ValueError, match=r"columns must be None with an optimizer, not '20:32'"):
        plan(Workload.of(cluster="h100x8", columns="20:32"), optimizer="sgd")


def test_vectors_of_16_bits_take_half_the_bytes():
    settings = "max_dimension=128", "hold_vectors=1024", "deliver=unique"
    whole, half = (plan(Workload.of(
        cluster="h100x8", nodes=4, samples=64, mini_batch=64, model="dcnv2", wire=wire,
        settings=settings)) for wire in ("float32", "bfloat16"))
    assert half["wire"] == "bfloat16" and half["network_bytes"] < 0.7 * whole["network_bytes"]
    for one, other in zip(whole["tables"], half["tables"]):
        rows, bags = one["missed_rows"], one["foreign_bags"]
        assert one["requester_bytes"] - other["requester_bytes"] == 256 * rows
        assert one["owner_bytes"] - other["owner_bytes"] == 256 * bags
    for planned, most in ((whole, 128), (half, 256)):
        [found] = [each for each in planned["checks"] if each["what"] == "dimension"]
        assert (found["need"], found["have"]) == (128, most)
    with pytest.raises(ValueError, match=r"wire must be float32 with an optimizer, not .float16."):
        plan(Workload.of(cluster="h100x8", wire="float16"), optimizer="sgd")
    assert plan(Workload.of(cluster="h100x8", wire="int8"))


@pytest.mark.parametrize("pool", ["requester", "owner"])
def test_nics_that_convert_send_float32_to_the_host(pool):
    given = {"cluster": "direct_pair", "network": "ethernet_100g_switch", "model": "multi_hot",
             "samples": 96, "mini_batch": 48, "in_flight": 1, "pool": pool,
             "settings": (*FULL, "remote_cache=false", "requester_merge=false")}
    whole, (half, moved) = plan(Workload.of(**given)), _both(**given, wire="float16")
    for name in ("out", "to_nic", "from_nic"):
        one, other = (sum(planned["traffic"][f"full_{name}"]) * 2 for planned in (whole, half))
        counted = (moved["network"]["bytes"] if name == "out" else moved["pcie"][f"{name}_bytes"])
        assert 0.8 * counted < other <= 1.03 * counted
        assert (other < 0.95 * one) == (name != "from_nic"), name


def test_bags_fill_packets():
    times, words = np.array([0, 1, 2, 50, 60]), np.array([3, 4, 2, 9, 5])
    def sizes(*args) -> list[list[int]]:
        return [part.tolist() for part in bag_packets(times, words, *args)]

    assert sizes(9) == [[9, 9, 5], [3, 1, 1]]
    assert sizes(10) == [[9, 9, 5], [3, 1, 1]]
    assert sizes(14) == [[9, 14], [3, 2]]
    assert sizes(100) == [[23], [5]] and sizes(100, None, 2) == [[7, 11, 5], [2, 2, 1]]
    assert sizes(100, 2) == [[7, 2, 9, 5], [2, 1, 1, 1]] and sizes(100, 60) == [[18, 5], [4, 1]]
    assert sizes(4, 0) == [[3, 4, 2, 9, 5], [1] * 5]  # the fourth bag exceeds a packet
    assert [part.tolist() for part in bag_packets(times[:0], words[:0], 9)] == [[], []]


def test_tables_have_their_bytes_at_both_places():
    given = {"cluster": "direct_pair", "model": "multi_hot", "samples": 96, "mini_batch": 32}
    planned = plan(Workload.of(**given, pool="owner"))
    model = load_model("multi_hot")
    foreign = ForeignBags(ShardPlan.deal(model, 2), rechunk(generate(model, 96, 1), 32))
    config = preset(planned["config"])
    missed = foreign.missed_rows(np.ones(8, bool), config.remote_cache_sets,
                                 config.remote_cache_ways)
    costs = PoolBytes.of(wire_of(config, model.width), foreign.bags, foreign.words, missed)
    for name, values in (
            ("foreign_bags", foreign.bags), ("foreign_keys", foreign.keys),
            ("distinct_foreign_rows", foreign.rows), ("missed_rows", missed),
            *((name, getattr(costs, name)) for name in (
                "requester_bytes", "requester_headers", "owner_bytes", "owner_headers"))):
        assert [row[name] for row in planned["tables"]] == values.tolist(), name
    assert planned["network_bytes"] == int(costs.at_owner.sum())
    for row, keys, missing, bags in zip(planned["tables"], foreign.keys, missed, foreign.bags):
        saved = 1 - missing / keys
        assert row["remote_cache_saves"] == pytest.approx(saved)
        assert row["cached_bags"] == pytest.approx(saved ** (keys / bags))
    busiest = planned["busiest"]
    assert busiest["full_bytes"] == max(
        *planned["traffic"]["full_out"], *planned["traffic"]["full_in"]) == planned["traffic"][
            f"full_{busiest['direction']}"][busiest["node"]]
    # The first mini-batch fills the caches and is not counted.
    warm = plan(Workload.of(**given, pool="owner", warmup=1))["tables"]
    assert sum(row["foreign_keys"] for row in warm) < int(foreign.keys.sum())
    assert sum(row["missed_rows"] for row in warm) < sum(
        ForeignBags(ShardPlan.deal(model, 2), list(rechunk(generate(model, 96, 1), 32))[1:])
        .missed_rows(np.ones(8, bool), config.remote_cache_sets, config.remote_cache_ways))


def test_tables_that_cannot_pool_at_the_owner_have_no_bytes_there():
    hashed = plan(Workload.of(cluster="paper", samples=32, mini_batch=16, placement="row"))
    assert {row["owner_bytes"] for row in hashed["tables"]} == {None}
    assert {row["obstacle"] for row in hashed["tables"]} == {"its rows are hashed over 4 nodes"}
    single = plan(Workload.of(cluster="paper", samples=32, mini_batch=16, nodes=1))
    assert single["busiest"] is None and single["network_bytes"] == 0
    assert single["tables"][0]["remote_cache_saves"] is single["tables"][0]["cached_bags"] is None


def test_the_command_prints_the_tables_with_most_bytes(tmp_path, capsys):
    path = tmp_path / "plan.json"
    with pytest.raises(SystemExit, match="0"):
        main(["plan", "--cluster", "direct_pair", "--model", "multi_hot", "--samples", "64",
              "--mini-batch", "32", "--pool", "auto", "--json", str(path)])
    result, shown = json.loads(path.read_text()), capsys.readouterr().out
    assert len(result["tables"]) == 8 and result["pool"] == "auto"
    rows = re.findall(r"^│(\d+) *│(owner|requester) *│", shown, re.MULTILINE)
    places = {str(row["table"]): row["pool"] for row in result["tables"]}
    assert dict(rows) == places and len(set(places.values())) == 2
    assert "│all 8" in shown and f"busiest: {result['busiest']['direction']} of node" in shown
    assert result["notes"][0].startswith("pool auto: ") and "pool auto: " in shown
    names = {resource["name"] for resource in result["resources"]}
    assert {"NIC bags", "NIC vectors of bags", "bags in flight"} < names


def test_the_command_names_the_columns_of_slices(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["plan", "--cluster", "h100x8", "--nodes", "2", "--model", "dcnv2", "--samples", "16",
              "--mini-batch", "16", "--pool", "owner", "--columns", "20:64",
              "--set", "max_dimension=128", "--set", "hold_vectors=1024"])
    shown = capsys.readouterr().out
    assert re.search(r"^│20:0-63 *│owner *│", shown, re.MULTILINE) and "│20:64-127" in shown


@pytest.mark.parametrize(("given", "columns"), [
    ({}, ""), ({"columns": "1:16", "model": "wide"}, ", columns 0 to 15")])
def test_bags_that_exceed_a_packet_are_rejected(tmp_path, given, columns):
    path, model = tmp_path / "keys.txt", tmp_path / "wide.toml"
    model.write_text("dimension = 32\ndense = 1\nbottom = [32]\ntop = [1]\nrows = [400, 400]")
    path.write_text("0:1 " + " ".join(f"1:{row}" for row in range(400)) + "\n0:1 1:2\n")
    given = {name: str(model) if name == "model" else value for name, value in given.items()}
    with pytest.raises(ValueError, match=f"table 1{columns} pools at the owner: its bags must have "
                                         f"at most 254 keys with query_beats 32, not 400"):
        plan(Workload.of(cluster="direct_pair", data=str(path), format="trace", pool="owner",
                         **given))


def test_a_training_has_the_time_of_each_place_of_updates():
    given = {"cluster": "h100", "nodes": 4, "model": "multi_hot", "samples": 128, "mini_batch": 64}
    found = plan(Workload.of(**given, pool="auto"), optimizer="sgd")
    updates, tables = found["updates"], found["tables"]
    assert updates["tables"] == sum(row["pool"] == "owner" for row in tables) > 0
    assert updates["place"] == min(("gpu", "nic"), key=lambda place: updates[f"{place}_us"])
    assert all(row["requester_gradients"] > 0 and row["owner_gradients"] > 0 for row in tables)
    for row in tables:
        costs = [sum(row[f"{place}_{part}"] for part in ("bytes", "headers", "gradients"))
                 for place in ("requester", "owner")]
        assert (row["pool"] == "owner") == (costs[1] < costs[0])
    plain = plan(Workload.of(**given, pool="auto"))
    assert plain["updates"] is None and not any(
        row[f"{place}_gradients"] for row in plain["tables"] for place in ("requester", "owner"))
    assert plan(Workload.of(**given), optimizer="sgd")["updates"] is None
    assert f"use --update {updates['place']}" in "".join(_updates(found))


def test_nics_take_longer_for_bags_of_many_keys():
    """A kernel reads the gradient of a bag for each key; the reducer adds a beat per cycle."""
    planned = plan(Workload.of(cluster="h100", nodes=4, model="dcnv2", samples=64, mini_batch=64,
                               pool="owner"), optimizer="sgd")["updates"]
    assert planned["place"] == "gpu" and planned["nic_us"] > 2 * planned["gpu_us"]
