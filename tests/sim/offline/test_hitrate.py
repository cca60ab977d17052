"""``sim hitrate``: against the RTL's counters, against counts by hand, and with invalid options."""

import json
from collections import OrderedDict

import pytest

from rtl.config import POLICY_CODES
from sim.cli.main import main
from sim.job.options import RunOptions
from sim.offline.hitrate import hitrate, hitrate_table
from sim.run.report import HIT_RATES, table
from sim.run.run import Run
from tests.sim import inputs


def _both(nodes: int, sets: int, mini_batch: int, **given) -> tuple[dict, dict, dict]:
    """Return the run's result, the prediction, and its row; compare the parts that do not depend on
    order."""
    cluster = {"nodes": nodes, "mini_batch": mini_batch, "placement": "row",
               "samples": 256 if mini_batch == 1 else 1024,
               **given}
    result = Run(RunOptions.of(in_flight=1, threads=1, settings=(
        f"local_cache_sets={sets}", "remote_cache=false", "requester_merge=false"),
                            **cluster)).execute()
    # Either would be one lookup more or less in the cache than in the textbook.
    assert result["dedupe"]["retired_early"] == 0
    assert result["local_cache"]["conflict_misses"] == 0
    predicted = hitrate([8 * sets], ways=8, **cluster)
    assert predicted["samples"] == result["samples"]
    assert predicted["lookups"] == result["dedupe"]["requests"] == result["lookups"]
    assert predicted["unique"] == result["local_cache"]["accesses"]
    return result, predicted, predicted["rows"][0]


@pytest.mark.thorough
@pytest.mark.few(3)
@pytest.mark.parametrize(("nodes", "sets", "mini_batch"), [
    (1, 4096, 32), (1, 500, 32), (1, 250, 16), (1, 60, 1),
    # One sample at a time: only one node looks up keys, without interleaving.
    (2, 250, 1), (4, 60, 1),
    # No entry is evicted: the order does not matter.
    (2, 4096, 32)])
def test_equal_to_the_registers(nodes, sets, mini_batch):
    result, _, row = _both(nodes, sets, mini_batch)
    cache = result["local_cache"]
    assert (row["hits"], row["misses"], row["evictions"]) == (
        cache["hits"], cache["misses"], cache["evictions"])
    assert row["hit_rate"] == cache["hit_rate"]
    assert row["hit_rate_unique"] == cache["hit_rate_unique"]
    assert row["hits"] > 1000 and (row["evictions"] > 0) == (nodes * sets < 8192)


@pytest.mark.thorough
def test_equal_to_the_registers_on_bags_of_a_file(tmp_path):
    path = inputs.multi_hot_trace(tmp_path / "bags.txt", 200, longest=20)
    result, _, row = _both(1, 32, 1, data=str(path), format="trace", samples=None)
    cache = result["local_cache"]
    assert (row["hits"], row["evictions"]) == (cache["hits"], cache["evictions"])
    assert row["evictions"] > 100 and row["hits"] > 100


@pytest.mark.thorough
@pytest.mark.parametrize("nodes", [2, 4])
def test_close_to_the_registers_where_nodes_interleave(nodes):
    result, predicted, row = _both(nodes, 500 // (nodes // 2), 32)
    assert abs(row["hits"] - result["local_cache"]["hits"]) <= predicted["unique"] // 1000
    assert row["evictions"] > 100


def _trace(tmp_path, *lines: str) -> str:
    path = tmp_path / "keys.txt"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def test_counted_by_hand(tmp_path):
    """Two mini-batches of two samples; key 1 repeats within the first, and stays cached."""
    path = _trace(tmp_path, "0:1 0:2", "0:1 0:1", "0:3 0:1", "0:2")
    result = hitrate([1, 2, 3], data=path, ways=0, nodes=1, mini_batch=2)
    assert (result["samples"], result["lookups"], result["unique"]) == (4, 7, 5)
    # Cache contents: 1 2 | 3 1 2.
    assert [(row["size"], row["hits"], row["evictions"]) for row in result["rows"]] == [
        (1, 0, 4), (2, 0, 3), (3, 2, 0)]
    assert [row["hit_rate"] for row in result["rows"]] == [2 / 7, 2 / 7, 4 / 7]
    assert [row["hit_rate_unique"] for row in result["rows"]] == [0, 0, 2 / 5]


def test_whole_tables_have_an_owner_each(tmp_path):
    """Two equal tables: each node holds one, and its cache holds one key."""
    path = _trace(tmp_path, "0:1 1:1", "0:1 1:1")
    rows = {nodes: hitrate([1], data=path, ways=0, nodes=nodes, mini_batch=1)["rows"][0]
            for nodes in (1, 2)}
    assert rows[1]["hits"] == 0 and rows[2]["hits"] == 2


def test_fully_associative_rises_with_size():
    """An LRU contains all entries of a smaller LRU; also checked against a plain LRU."""
    sizes = [100, 1000, 3000, 10_000, 100_000]
    result = hitrate(sizes, ways=0, nodes=1, mini_batch=1, samples=600)
    rates = [row["hit_rate"] for row in result["rows"]]
    assert rates == sorted(rates) and rates[0] < rates[2] < rates[-1]
    assert all(row["sets"] == 1 and row["ways"] == row["size"] for row in result["rows"])
    from host.data.generator import generate
    from host.model import MODELS

    held: OrderedDict[int, None] = OrderedDict()
    hits = 0
    for samples in generate(MODELS["kaggle"], 600, 1):
        for key in samples.keys.tolist():
            hits += key in held
            held[key] = None
            held.move_to_end(key)
            if len(held) > 1000:
                held.popitem(last=False)
    assert hits == result["rows"][1]["hits"]


def test_warmup_is_left_out(tmp_path):
    path = _trace(tmp_path, "0:1 0:2", "0:1 0:1", "0:3 0:1", "0:2", "0:3")
    result = hitrate([0, 2, 3], data=path, ways=0, nodes=1, mini_batch=2, warmup=1)
    assert (result["samples"], result["lookups"], result["unique"]) == (3, 4, 4)
    # Cache contents: (1 2) | 3 1 2 | 3.
    assert [(row["hits"], row["evictions"]) for row in result["rows"]] == [(0, 0), (0, 4), (3, 0)]
    assert [row["misses"] for row in result["rows"]] == [4, 4, 1]


@pytest.mark.thorough
def test_warmup_equals_what_the_registers_count_after_it():
    """Compare with the counters of a run less the counters of a run of its first mini-batches."""
    shared = {"nodes": 1, "mini_batch": 16}
    _, _, whole = _both(1, 250, 16)
    early, _, _ = _both(1, 250, 16, samples=320)
    row = hitrate([2000], warmup=20, samples=1024, placement="row", **shared)["rows"][0]
    cache = early["local_cache"]
    for name in ("hits", "misses", "evictions"):
        assert row[name] == whole[name] - cache[name]
    assert row["hit_rate_unique"] > whole["hit_rate_unique"]


def test_a_cache_that_is_off():
    result = hitrate([0, 4096], samples=256, nodes=1)
    off, small = result["rows"]
    assert (off["sets"], off["ways"], off["hits"], off["evictions"]) == (0, 0, 0, 0)
    assert off["misses"] == result["unique"] and off["hit_rate_unique"] == 0
    assert off["hit_rate"] == 0
    # A lookup that the dedupe table serves counts as a hit of a cache.
    merged = result["lookups"] - result["unique"]
    assert small["hit_rate"] == (merged + small["hits"]) / result["lookups"]


def test_run_and_hitrate_name_both_counts_alike():
    """Without remote caches, every lookup reaches its owner, and both commands count it."""
    both = {"nodes": 2, "mini_batch": 16, "samples": 256, "model": "kaggle"}
    ran = Run(RunOptions.of(fidelity="fast", threads=1, settings=(
        "remote_cache=false", "requester_merge=false"), **both)).execute()
    [row] = hitrate([32768], **both)["rows"]
    for name in ("num_requested_indices", "num_unique_indices", "num_unique_misses"):
        assert ran["local_cache"][name] == row[name] > 0
    assert row["num_requested_indices"] == ran["lookups"] > row["num_unique_indices"]
    shown = {next(iter(column.cells)): column.header for column in hitrate_table(
        {"rows": [row], "nodes": 2, "samples": 256, "warmup": 0, "lookups": 1, "unique": 1}
    ).columns}
    labels = [f"local cache: {shown[f'{row[name]:.4f}']}" for name in HIT_RATES]
    assert labels == list(HIT_RATES.values())
    cells = [*table(ran).columns[0].cells]
    assert all(label in cells for label in labels)


def test_sizes_and_ways_of_the_nic():
    result = hitrate(samples=32, config="tiny", model="kaggle")
    assert [row["size"] for row in result["rows"]] == [16, 32, 64, 128, 256]
    assert (result["ways"], result["nodes"]) == (4, 4)
    result = hitrate(samples=32, cluster="direct_pair", ways=0, nodes=1)
    assert [row["size"] for row in result["rows"]] == [16, 32, 64, 128, 256]
    assert (result["ways"], result["nodes"], result["config"]) == (0, 1, "tiny")
    assert hitrate(samples=32, cluster="direct_pair")["nodes"] == 2


def test_command(tmp_path, capsys):
    target, picture = tmp_path / "rates.json", tmp_path / "rates.png"
    path = inputs.criteo(tmp_path / "train.txt", 50)
    with pytest.raises(SystemExit) as end:
        main(["hitrate", "--data", str(path), "--sizes", "64,256", "--ways", "4", "--nodes", "2",
              "--placement", "row", "--mini-batch", "16", "--samples", "40",
              "--json", str(target), "--picture", str(picture)])
    assert end.value.code == 0
    assert "256" in capsys.readouterr().out
    result = json.loads(target.read_text())
    assert result == hitrate([64, 256], data=str(path), ways=4, nodes=2, placement="row",
                             mini_batch=16, samples=40)
    assert result["schema"] == "embernic/hitrate/1" and result["format"] == "criteo"
    assert result["samples"] == 40 and result["lookups"] == 40 * 26
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_json_on_standard_output(capsys):
    with pytest.raises(SystemExit) as end:
        main(["hitrate", "--sizes", "1024", "--samples", "64", "--json", "-"])
    assert end.value.code == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["rows"][0]["size"] == 1024
    assert "1,024" in shown.err


@pytest.mark.parametrize(("arguments", "said"), [
    (("--sizes", "1000,1001"), "sizes must be multiples of ways (8), not 1001"),
    (("--sizes", "-8"), "sizes must be at least 0 (off), not -8"),
    (("--sizes", "many"), "sizes must be integers with commas between, not 'many'"),
    (("--sizes", "8,,16"), "sizes must be integers with commas between, not '8,,16'"),
    (("--sizes", ""), "sizes must be integers with commas between, not ''"),
    (("--sizes", "8,8"), "sizes must name at least one value, and each only once, not '8,8'"),
    (("--sizes", str(8 << 25)), f"sizes must be at most {8 << 24}, not {8 << 25}"),
    (("--warmup", "-1"), "warmup must be at least 0, not -1"),
    (("--warmup", "8"), "warmup must be less than the mini-batches of the input, 8, not 8"),
    (("--config", "huge"), "config must be one of tiny"),
    (("--cluster", "huge"), "cluster must be one of a100"),
    (("--sizes", "8", "--policy", "srrip"),
     f"policy must be one of {', '.join(POLICY_CODES)}, not 'srrip'"),
    (("--sizes", "8", "--policy", "lru,scan_resistant"),
     f"policy must be one of {', '.join(POLICY_CODES)}, not 'scan_resistant'"),
    (("--sizes", "8", "--ways", "-1"), "ways must be at least 0 (fully associative), not -1"),
    (("--sizes", "8", "--nodes", "0"), "nodes must be at least 1, not 0"),
    (("--sizes", "8", "--placement", "column"),
     "placement must be one of even, rows, lookups, row, not 'column'"),
    (("--sizes", "8", "--mini-batch", "0"), "mini_batch must be at least 1, not 0"),
    (("--sizes", "8", "--samples", "0"), "samples must be at least 1, not 0"),
    (("--sizes", "8", "--data", "no/such/file"), "no/such/file"),
    (("--sizes", "8", "--format", "criteo"), "format must go with data"),
    (("--sizes", "8", "--picture", "a.txt"), "picture must end in .png, .svg or .pdf"),
    (("--sizes", "8", "--json", "."), "json must be a file, not the folder '.'"),
])
def test_mistakes_are_one_line(capsys, arguments, said):
    with pytest.raises(SystemExit) as end:
        main(["hitrate", *arguments])
    shown = capsys.readouterr()
    assert end.value.code == 2 and shown.out == ""
    assert shown.err.count("\n") == 1 and shown.err.startswith("sim: ")
    assert said in shown.err


def test_file_without_samples(tmp_path, capsys):
    path = tmp_path / "empty"
    path.write_bytes(b"")
    with pytest.raises(SystemExit) as end:
        main(["hitrate", "--sizes", "8", "--data", str(path), "--format", "trace"])
    assert end.value.code == 2 and str(path) in capsys.readouterr().err
