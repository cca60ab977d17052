"""``compare``: any model, cluster and data; the same figures as a point; the deciding factor."""

import json
from importlib.resources import files

import pytest

from host.errors import InputError
from sim import api
from sim.compare.reason import reason_of
from sim.evaluation import compared
from sim.evaluation.compared import Counts
from sim.evaluation.fields import model_of
from sim.evaluation.measure import measure
from sim.evaluation.placing import placed
from sim.evaluation.point import Point
from sim.evaluation.store import Store
from tests.sim.inputs import SMALL

BAGS = f"""
name = "bags"
{SMALL}[[tables]]
count = 3
rows = 50_000
bag = [1, 30]
[[tables]]
rows = 1_000_000
"""


@pytest.fixture
def bags(tmp_path):
    path = tmp_path / "bags.toml"
    path.write_text(BAGS)
    return path


@pytest.fixture(scope="module")
def kaggle():
    return api.compare(cluster="h100", nodes=2, mini_batch=32, measured=2, placement="even")


def test_all_systems_are_measured_and_ordered(kaggle):
    rows = kaggle["systems"]
    assert {row["system"] for row in rows} == {"bl-tuned", "fs", "en"}
    assert [row["interval_us"] for row in rows] == sorted(row["interval_us"] for row in rows)
    assert all(row["why"] is None and row["options"] and row["gpu_memory_bytes"] > 1e8
               and 0 < row["bottleneck_us"] <= row["interval_us"] * (1 + 1e-9)
               and row["utilisation"] == row["bottleneck_us"] / row["interval_us"] for row in rows)
    assert kaggle["reason"].startswith(rows[0]["system"])
    assert {row["options"][-1] for row in rows} == {"placement even"}
    assert (kaggle["model"], kaggle["cluster"], kaggle["nodes"], kaggle["mini_batch"]) == (
        "kaggle", "h100", 2, 32)
    json.dumps(kaggle)


def test_figures_are_those_of_the_point(kaggle):
    point = Point.named("bl-tuned", nodes=2, mini_batch=32, warmup=2, measured=2, gpu="gpu_h100",
                        software="tuned_h100", link="pcie_h100", rdma=True, in_flight=None,
                        per_graph=None)
    found = measure(point)
    row = next(row for row in kaggle["systems"] if row["system"] == "bl-tuned")
    for name in ("interval_us", "service_us", "samples_per_second"):
        assert row[name] == found[name]


def test_a_model_of_bags_from_a_file(bags, tmp_path):
    result = api.compare(model=bags, cluster="h100", nodes=2, mini_batch=64, measured=2,
                         json=tmp_path / "out.json")
    assert all(row["why"] is None for row in result["systems"])
    assert result["keys"] == pytest.approx(47.5, rel=0.1) and result["bags"] == 4
    assert result["foreign_rows"] > 3 * result["foreign_bags"]
    assert json.loads((tmp_path / "out.json").read_text())["reason"] == result["reason"]
    by = {row["system"]: row for row in result["systems"]}
    assert by["bl-tuned"]["network_bytes_per_sample"] < by["fs"]["network_bytes_per_sample"]


def test_an_option_is_fixed_for_the_systems_that_have_it(kaggle):
    """Each single change is an option of all systems that have the part."""
    given = ["threads=1", "one_collective=false", "communicators=1", "exchange=nccl"]
    result = api.compare(cluster="h100", nodes=2, mini_batch=32, measured=2, placement="even",
                         fixed=given)
    by, free = ({row["system"]: row for row in each["systems"]} for each in (result, kaggle))
    for system, row in by.items():
        assert row["interval_us"] >= 0.99 * free[system]["interval_us"]
        assert "1 thread" in row["options"][2] and "gpu" not in row["options"][2].split(", ")
    assert by["bl-tuned"]["interval_us"] > 1.5 * free["bl-tuned"]["interval_us"]
    assert by["fs"]["interval_us"] == free["fs"]["interval_us"]
    assert "2 communicators" in free["bl-tuned"]["options"][2]
    assert (result["fixed"], result["wire"], kaggle["fixed"]) == (given, "float32", [])


def test_a_format_that_systems_lack_is_marked():
    given = {"cluster": "h100", "nodes": 2, "mini_batch": 4096, "measured": 2,
             "placement": "even", "fixed": [
        "copied_rows=0", "threads=1", "exchange=nccl", "bags_once=false", "fused=true",
        "overlap=true", "dedupe=false", "grouped=false", "one_collective=false"]}
    rows = {}
    for wire in ("float32", "float16", "int8"):
        result = api.compare(system=["bl-tuned"], wire=wire, **given)
        rows[wire] = result["systems"][0]
        assert result["notes"] == []
    assert rows["float16"]["network_bytes_per_sample"] < (
        0.8 * rows["float32"]["network_bytes_per_sample"])
    assert rows["float16"]["interval_us"] < rows["float32"]["interval_us"]
    assert rows["int8"]["network_bytes_per_sample"] < (
        0.8 * rows["float16"]["network_bytes_per_sample"])
    assert "float16 between nodes" in rows["float16"]["options"][2]
    marked = api.compare(wire="float16", cluster="h100", nodes=2, mini_batch=16, measured=2,
                         system=["bl-tuned", "fs"])
    assert marked["notes"] == ["float16 between nodes is available to bl-tuned only: other "
                               "systems send float32"]


def test_copies_do_not_lose_the_bags_of_other_tables(bags):
    result = api.compare(model=bags, cluster="h100", nodes=2, mini_batch=64, measured=2,
                         system=["en"])
    assert result["systems"][0]["why"] is None


@pytest.mark.parametrize("cluster, nodes", [
    ("two_hosts", None), pytest.param("zionex", 2, marks=pytest.mark.thorough)])
def test_nodes_of_several_gpus(cluster, nodes):
    result = api.compare(cluster=cluster, nodes=nodes, mini_batch=64, measured=2, placement="even")
    assert (result["nodes"], result["gpus"]) == (2, 16)
    by = {row["system"]: row for row in result["systems"]}
    assert {name: row["why"] for name, row in by.items()} == dict.fromkeys(("bl-tuned", "fs", "en"))
    # 34 million rows of 64 bytes over 16 GPUs: the largest table decides.
    assert all(6.4e8 < row["gpu_memory_bytes"] < 1e9 for row in by.values())
    assert all(row["network_bytes_per_sample"] > 100 for row in by.values())


def test_a_single_node_of_several_gpus():
    result = api.compare(cluster="two_hosts", nodes=1, mini_batch=64, measured=2,
                         system=["bl-tuned", "fs"], placement="even")
    assert all(row["network_bytes_per_sample"] == 0 and row["interval_us"] > 0
               for row in result["systems"]) and result["gpus"] == 8


def test_a_file_of_few_samples_keeps_the_mini_batch(tmp_path):
    path = tmp_path / "trace.txt"
    path.write_text("".join(f"{n % 8}:{n} {(n + 1) % 8}:{n}\n" for n in range(100)))
    result = api.compare(model="trace", cluster="h100", nodes=2, mini_batch=32, data=path,
                         format="trace", system=["bl-tuned"])
    assert result["mini_batch"] == 32 and result["systems"][0]["interval_us"] > 0
    assert result["notes"] == ["the files hold 100 samples: 3 instead of 32 mini-batches, half of "
                               "them measured"]


@pytest.mark.parametrize("options, message", [
    ({"system": ["hotline"]}, "system must be one of"),
    ({"system": []}, "system must name at least one"),
    ({"nodes": 1}, "nodes must be at least 2"),
    ({"model": "criteo"}, "model must be one of"),
    ({"cluster": "nope"}, "cluster must be one of"),
    ({"measured": 1}, "measured must be at least 2"),
    ({"wire": "int4"}, "wire must be one of float32, float16, int8, not 'int4'"),
    ({"fixed": ["thread=1"]}, "fixed must name one of threads, .*, not 'thread=1'"),
    ({"fixed": ["threads=x"]}, "threads must be an integer"),
    ({"cluster": "paper", "fixed": ["exchange=gpu"], "system": ["bl-tuned"]},
     "exchange must be nccl or mpi, not 'gpu': the cluster has no rdma")])
def test_mistakes(options, message):
    with pytest.raises(ValueError, match=message):
        api.compare(**options)


CLUSTER = """
nodes = 2
network = "ethernet_100g_switch"
pcie = "pcie_gen3x16"
gpu = "gpu_h100"
software = "tuned_h100"
gpu_memory = "80 GB"
host_memory = "1 GB"
card_memory = "1 GB"
"""


@pytest.mark.parametrize("old, new, message", [
    ('"pcie_gen3x16"', '"pcie_h100"', "pcie must be pcie_gen3x16, not 'pcie_h100'"),
    ('"1 GB"\n', '"1 GB"\n[nic]\nlocal_cache_size = "16 KiB"\n', "nic must have the sizes"),
    ('"gpu_h100"', '"own.toml"', "gpu must be a profile that ships, not 'gpu_h100' of a file")])
def test_parts_of_a_cluster_that_would_be_ignored_are_rejected(tmp_path, old, new, message):
    shipped = (files("host") / "profiles" / "gpu_h100.toml").read_text()
    (tmp_path / "own.toml").write_text(shipped.replace("streams = 4", "streams = 5"))
    path = tmp_path / "cluster.toml"
    head, _, tail = CLUSTER.rpartition(old)
    path.write_text(head + new + tail)
    with pytest.raises(InputError, match=message):
        api.compare(cluster=path, mini_batch=16, measured=2, system=["bl-paper"])


def test_a_model_that_exceeds_the_memory_has_a_reason(tmp_path):
    path = tmp_path / "cluster.toml"
    path.write_text(CLUSTER.replace("80 GB", "1 GB"))
    result = api.compare(cluster=path, mini_batch=16, measured=2, system=["bl-paper"])
    assert "at most the 1,000,000,000 of GPU memory" in result["systems"][0]["why"]
    assert result["reason"] == "No system can be built."


def test_a_changed_model_file_is_another_point(bags, tmp_path):
    store, point = Store(tmp_path), Point.named("bl-paper", dataset=str(bags))
    before = store.key(point)
    bags.write_text(BAGS.replace("50_000", "60_000"))
    assert store.key(point) != before
    assert Point.named("bl-paper", dataset=str(bags)) == point
    assert model_of(str(bags)).rows[0] == 60_000


def _row(system: str, interval: float, network: float, bottleneck: str) -> dict:
    return {"system": system, "interval_us": interval, "bottleneck": bottleneck, "why": None,
            "network_bytes_per_sample": network}


@pytest.mark.parametrize("rows, rows_per_bag, words", [
    ([_row("bl-tuned", 10, 100, "link"), _row("en", 90, 900, "nic")], 9.0, "keys per bag decide"),
    ([_row("en", 10, 100, "nic"), _row("bl-tuned", 20, 300, "link")], 0.4, "bytes decide"),
    ([_row("en", 10, 100, "nic"), _row("bl-tuned", 20, 100, "cpu")], 0.9,
     "the size of a mini-batch decides"),
    ([_row("bl-tuned", 10, 100, "link"), _row("en", 13, 150, "cpu")], 0.9,
     "the size of a mini-batch decides"),
    ([_row("bl-tuned", 4, 0, "cpu"), _row("en", 29, 900, "nic")], 0.9, "has a copy of all tables"),
    ([_row("en", 10, 100, "nic"), _row("bl-tuned", 10.05, 100, "cpu")], 0.9, "within 1 %"),
    ([_row("bl-tuned", 9, 100, "link"), _row("en", 12, 150, "nic") | {
        "tables": [{"pool": "owner"}]}], 6.0, "bytes decide, because en sends 1.50 times as many")])
def test_the_sentence_names_the_deciding_factor(rows, rows_per_bag, words):
    assert words in reason_of(rows, Counts(1000, 100, 100, 100 * rows_per_bag))


def test_nics_pad_tables_of_different_dimensions_and_baselines_do_not(tmp_path):
    def bytes_of(first: int, second: int) -> dict:
        path = tmp_path / "mixed.toml"
        path.write_text(BAGS.replace("count = 3", f"count = 3\ndimension = {first}").replace(
            "rows = 1_000_000", f"rows = 10_000_000\ndimension = {second}\npooling = 'mean'"))
        found = api.compare(model=path, cluster="h100", nodes=2, mini_batch=64, measured=2,
                            system=["bl-paper", "lc+rc"])
        return {row["system"]: row for row in found["systems"]}

    wide, mixed, narrow = bytes_of(64, 64), bytes_of(16, 64), bytes_of(16, 16)
    for name, pads in (("bl-paper", False), ("lc+rc", True)):
        moved, held = ([each[name][what] for each in (wide, mixed, narrow)]
                       for what in ("network_bytes_per_sample", "gpu_memory_bytes"))
        # Tables of many keys pool at their owner, so the network moves no padded vectors.
        assert moved[0] > moved[1] > moved[2]
        assert held[0] > held[1] > held[2]
        said = "NICs pad vectors of 16 to 64 values with zeros to 64"
        assert any(each.startswith(said) for each in mixed[name]["options"]) == pads
        assert not any("NICs pad" in each for each in wide[name]["options"])
    # The fullest node has a table of each dimension, and the inputs of the top MLP.
    assert wide["bl-paper"]["gpu_memory_bytes"] - mixed["bl-paper"]["gpu_memory_bytes"] == (
        4 * (50_000 + 16 * 3) * (64 - 16))


def test_an_unexpected_error_is_no_stated_limit(monkeypatch):
    """A comparison still shows the other systems; a measurement of a row fails."""
    def broken(point, *others):
        if point.system.system == "bl-paper":
            raise ValueError("it burns")
        return placed(point, *others)

    monkeypatch.setattr(compared, "placed", broken)
    result = api.compare(nodes=2, mini_batch=16, measured=2, system=["bl-paper", "bl-tuned"],
                         placement="even")
    rows = {row["system"]: row for row in result["systems"]}
    assert rows["bl-paper"]["why"] == "it burns" and rows["bl-tuned"]["interval_us"] > 0
    with pytest.raises(ValueError, match="it burns"):
        compared.row_of("bl-paper", Point.named("bl-paper", nodes=2, mini_batch=16, measured=2),
                        1 << 40)
