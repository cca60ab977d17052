"""Runs of the model alone: counts that follow from the samples, sizes beyond hardware, and
unsupported options."""

import json
import subprocess
import sys

import numpy as np
import pytest

from host.batching.repeats import repeated_bags
from host.data.generator import generate
from host.model import MODELS, load_model
from host.placement.shard import ShardPlan
from host.samples import concatenate, rechunk
from host.timing.gpu import GpuProfile
from sim.cli.main import main
from sim.job.options import RunOptions
from sim.run.report import failures
from sim.run.run import Run, run
from tests.rtl.cache.policies.oldest import add_oldest

TIMES = ("wall_seconds", "cpu_seconds", "node_cycles_per_second", "options")


def _run(**options) -> dict:
    result = run(RunOptions.of(fidelity="model", **{"threads": 1, "samples": 512} | options))
    assert failures(result) == [] and result["complete"]
    return result


def _keys(samples: int, mini_batch: int, nodes: int,
          placement: str = "even") -> tuple[np.ndarray, ...]:
    """Return step, owner and requester of each lookup of generated samples, and its key."""
    found = concatenate(generate(MODELS["kaggle"], samples, 1))
    sample = np.repeat(np.arange(samples), np.diff(found.key_offsets))
    requester = sample % mini_batch // (mini_batch // nodes)
    plan = ShardPlan.deal(MODELS["kaggle"], nodes, placement)
    owners = plan.owner_of(found.tables, found.rows, requester)
    return sample // mini_batch, owners, requester, found.keys


def test_events_at_one_time_have_one_order():
    """Quanta and their parts do not change the outcome. The launch calls end at whole cycles, like
    packets: a gather could begin with or without the requests of the cycle."""
    gpu = GpuProfile("called", 1.0, 64.0, 64, 2, call_us=0.4)
    options = RunOptions.of(fidelity="model", gpu=gpu, samples=1024, in_flight=8, nodes=4, seed=262)
    results = []
    for threads, quantum in ((1, None), (2, None), (3, 101), (1, 7)):
        job = Run(options.with_fields(threads=threads))
        job.cluster.quantum = quantum or job.cluster.quantum
        result = job.execute()
        results.append({name: value for name, value in result.items() if name not in TIMES})
        results[-1].pop("node_cycles")
    assert all(result == results[0] for result in results)


def test_counts_that_follow_from_the_samples():
    # Rows are spread, and one mini-batch runs at a time: no entry is retired early.
    result = _run(settings=("requester_merge=false", "remote_cache=false"), placement="row",
                  in_flight=1)
    step, owner, requester, keys = _keys(512, 128, 4, "row")
    foreign = int((owner != requester).sum())
    assert result["dedupe"]["retired_early"] == result["local_cache"]["evictions"] == 0
    assert result["dedupe"]["requests"] == len(keys)
    assert result["dedupe"]["unique"] == len(set(zip(step.tolist(), keys.tolist(), strict=True)))
    assert result["local_cache"]["misses"] == len(np.unique(keys)) == result["gpu"]["rows"]
    counts = result["counters"]
    for node in range(4):
        assert counts[node]["dispatcher.local"] == ((owner == node) & (requester == node)).sum()
        assert counts[node]["lookup_receiver.records"] == (
            (owner == node) & (requester != node)).sum()
        assert counts[node]["hold_buffer.vectors_in"] == (requester == node).sum()
    assert sum(count["vector_packager.vectors"] for count in counts) == foreign
    frames = sum(count["net_assembler.packets"] for count in counts)
    beats = sum(count["net_assembler.beats"] for count in counts)
    assert result["network"]["packets"] == frames
    assert result["network"]["bytes"] == 64 * (frames + beats)


def test_merged_lookups_travel_once():
    result = _run(settings=("remote_cache=true",))
    _, owner, requester, keys = _keys(512, 128, 4)
    foreign = owner != requester
    different = set(zip(requester[foreign].tolist(), keys[foreign].tolist(), strict=True))
    assert result["remote_cache"]["evictions"] == 0
    assert result["remote_cache"]["misses"] == len(different)
    assert result["network"]["saved_lookups"] == foreign.sum() - len(different)


def test_owner_pooled_bags_follow_from_the_samples():
    """Each foreign bag crosses the network once, with its rows, and returns as a vector."""
    result = _run(config="tiny", model="multi_hot", nodes=4, mini_batch=64, pool="owner")
    samples = concatenate(generate(load_model("multi_hot"), 512, 1))
    plan = ShardPlan.deal(load_model("multi_hot"), 4, "even")
    requester = np.arange(512) % 64 // 16
    lengths = samples.bag_lengths.astype(np.int64)
    owner = np.array([table.owner for table in plan.tables])
    foreign = owner != requester[:, None]
    bags, keys = int((foreign & (lengths > 0)).sum()), int(lengths[foreign].sum())
    assert 0 < bags == result["bags"]["foreign"] and result["gpu"]["rows"] == 0
    for name, expected in {
            "dispatcher.bags": bags, "query_checker.bag_keys": keys, "bag_packager.bags": bags,
            "bag_receiver.records": int((1 + (lengths + 1) // 2)[foreign & (lengths > 0)].sum()),
            "bag_check.keys": keys, "bag_lists.keys": keys, "bag_vectors.vectors": bags,
            "bag_landing.vectors": bags, "hold_buffer.vectors_in": bags,
            "hold_buffer.reserved": int(foreign.sum()), "lookup_packager.records": 0}.items():
        assert sum(counts[name] for counts in result["counters"]) == expected, name


def test_repeats_follow_from_the_samples():
    """Each foreign bag crosses the network once for consecutive samples."""
    result = _run(**RANKING, nodes=4, mini_batch=64)
    lengths, again = [], []
    owner = np.array([table.owner for table in ShardPlan.deal(
        load_model("ranking"), 4, "even").tables])
    for step in rechunk(generate(load_model("ranking"), 192, 1), 64):
        foreign = owner != (np.arange(64) // 16)[:, None]
        lengths.append(step.bag_lengths.astype(np.int64) * foreign)
        again.append(repeated_bags(step, 4) & (lengths[-1] > 0))
    keys, repeats = np.concatenate(lengths), np.concatenate(again)
    bags = int((keys > 0).sum())
    assert 0 < repeats.sum() < bags
    for name, expected in {
            "bag_repeats.bags": bags, "bag_repeats.repeats": int(repeats.sum()),
            "bag_repeats.repeated_keys": int(keys[repeats].sum()), "bag_repeats.beyond": 0,
            "repeat_store.repeats": int(repeats.sum()),
            "repeat_store.kept": bags - int(repeats.sum()),
            "bag_vectors.vectors": bags - int(repeats.sum()),
            "query_checker.bags": bags}.items():
        assert sum(counts[name] for counts in result["counters"]) == expected, name


@pytest.mark.parametrize("options", [{}, {"config": "tiny", "model": "multi_hot", "pool": "owner"}],
                         ids=["rows", "bags"])
def test_the_same_whatever_the_threads(options):
    first, second = (_run(threads=threads, **options) for threads in (1, 2))
    assert {**first, **dict.fromkeys(TIMES)} == {**second, **dict.fromkeys(TIMES)}


def test_more_nodes_and_larger_caches_than_hardware():
    many = _run(nodes=128, samples=256, settings=("nodes=128",))
    assert many["lookups"] == 256 * 26 == many["dedupe"]["requests"] + many[
        "remote_cache"]["hits"]
    assert all(count["query_checker.samples"] == 2 for count in many["counters"])
    large = _run(settings=("local_cache_rows=1048576", "local_cache_sets=131072"))
    small = _run(settings=("local_cache_sets=64",))
    assert large["local_cache"]["evictions"] == 0 < small["local_cache"]["evictions"]
    assert large["local_cache"]["misses"] < small["local_cache"]["misses"]


@pytest.mark.parametrize(("option", "message"), [
    ("--waves=w.vcd", "waves must go with fidelity rtl, not with fast, which has no signals"),
    ("--pcap=p.pcap", "pcap must go with fidelity rtl, not with fast, which has no values"),
    ("--predictions=p.csv", "predictions must go with fidelity rtl, not with fast, which has no"),
    ("--set=step_timeout=9", "step_timeout must be 0 with fidelity fast, not 9"),
    ("--set=nodes=300", "nodes must be between 1 and 256, not 300"),
    ("--set=link=true --set=nodes=200",
     "nodes must be at most 186 with link and net_payload_beats 22"),
    ("--nodes=4 --faults=drop=0.1", "faults of frames must go with fidelity rtl, not with fast, "
     "which has no frames"),
    ("--nodes=17", "nodes must be at most 16 for config kaggle, not 17"),
])
def test_what_a_model_cannot_do(option, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["run", "--fidelity", "fast", *option.split()])
    said = capsys.readouterr().err
    assert ended.value.code == 2 and said.startswith(f"sim: {message}") and said.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_it_has_no_other_policy_than_lru(monkeypatch, capsys):
    add_oldest(monkeypatch)
    with pytest.raises(SystemExit) as ended:
        main(["run", "--fidelity", "fast", "--set", "policy=oldest"])
    assert ended.value.code == 2
    assert capsys.readouterr().err.splitlines() == [
        "sim: policy must be lru with fidelity fast, not 'oldest'"]


def test_a_link_that_would_send_again_is_refused():
    """Its timeouts are shorter than a round trip."""
    with pytest.raises(ValueError, match="link_timeout_least must exceed every round trip"):
        _run(config="tiny", samples=32, mini_batch=32, settings=(
            "link=true", "link_timeout_first=100", "link_timeout_least=50"))


def test_unknown_fidelity():
    with pytest.raises(ValueError, match="fidelity must be one of rtl, fast, not 'exact'"):
        RunOptions.of(fidelity="exact")


def test_a_gpu_that_falls_silent_ends_the_run(tmp_path):
    path = tmp_path / "run.json"
    with pytest.raises(SystemExit) as ended:
        main(["run", "--fidelity", "fast", "--samples", "256", "--threads", "1", "--json",
              str(path), "--faults", "silent-gpu=1us:@2"])
    result = json.loads(path.read_text())
    assert ended.value.code == 1 and result["results"]["unanswered"] > 0
    assert result["stuck"].startswith("nothing moves after cycle")
    assert result["stuck"].endswith(": the GPU of node 2 completes no gather")


@pytest.mark.thorough
@pytest.mark.parametrize(("faults", "words"), [
    ("silent-host=1us:@1,silent-host=1us:@3", ("the host of node 1 is silent",
                                               "the host of node 3 is silent")),
    ("silent-network=1us:@0,silent-gpu=1us:@3", ("the network takes nothing from node 0",
                                                 "the GPU of node 3 completes no gather"))])
def test_every_silent_part_is_named(faults, words):
    line, = failures(run(RunOptions.of(fidelity="model", nodes=4, threads=1, samples=64,
                                       mini_batch=16, faults=faults, patience=20_000)))
    for text in words:
        assert line.count(text) == 1
    assert line.count(" of node ") + line.count(" from node ") == len(words)


def test_a_thread_makes_no_more_calls_than_it_has_time_for():
    few, many = (_run(nodes=1, samples=2048, gpu=GpuProfile(
        "called", launch_us=7.0 - call_us, memory_bandwidth_gb_s=64.0, access_bytes=64, streams=4,
        call_us=call_us)) for call_us in (6.0, 0.0))
    assert few["gpu"]["rows"] == many["gpu"]["rows"]
    # The time from list to rows is the same, but four gathers run at once.
    assert many["gpu"]["launches"] * 1500 > many["cycles"]
    assert 10 < few["gpu"]["launches"] <= few["cycles"] / 1500


RANKING = {"config": "tiny", "model": "ranking", "samples": 192, "pool": "owner",
           "repeats": "nic"}
OWNER = {"config": "tiny", "model": "multi_hot", "nodes": 3, "mini_batch": 64, "pool": "owner"}


@pytest.mark.parametrize("options", [
    {"nodes": 3, "settings": ("interaction=true", "requester_merge=false")},
    {"nodes": 1, "in_flight": 1, "settings": ("interaction=true",)},
    {"config": "terabyte", "samples": 192, "settings": ("interaction=true",)},
    {"config": "avazu", "in_flight": 2, "batching": "sort"},
    {"nodes": 4, "settings": ("local_cache=false", "remote_cache=false"), "mini_batch": 37},
    # Gathers wait for the memory, and for a stream.
    {"gpu": GpuProfile("slow", launch_us=1.0, memory_bandwidth_gb_s=0.5, access_bytes=64,
                       streams=2)},
    # Gathers wait for the launch thread: of rows and of dense vectors in turn.
    {"settings": ("interaction=true",), "gpu": GpuProfile(
        "called", launch_us=1.0, memory_bandwidth_gb_s=64.0, access_bytes=64, streams=4,
        call_us=6.0)},
    {"settings": ("deliver=unique", "completions=true"), "in_flight": 8, "mini_batch": 37},
    {"settings": ("interaction=true", "completions=true", "completion_flush=false")},
    {"settings": ("gpu_rings=true", "request_batch=4"), "in_flight": 2},
    {"settings": ("row_reads=true",), "in_flight": 2, "gpu": "gpu_h100"},
    # Gathers of rows, lists of bags and own bags share the launch thread and the memory.
    OWNER | {"pool": "some"}, OWNER | {"nodes": 1, "settings": ("completions=true",)},
    OWNER | {"gpu": "gpu_h100", "in_flight": 8, "mini_batch": 37},
    OWNER | {"settings": ("interaction=true",)},
    OWNER | {"pool": "some", "settings": ("deliver=unique", "completions=true", "pooling=mean")},
    OWNER | {"settings": ("link=true", "gpu_rings=true"), "pool": "some"},
    OWNER | {"pool": "requester", "owner_tables": (0, 2, 3, 7)},
    OWNER | {"pool": "requester", "owner_tables": tuple(range(8)), "nodes": 1},
    RANKING | {"nodes": 3, "mini_batch": 48},
    RANKING | {"nodes": 2, "mini_batch": 48, "settings": ("deliver=unique", "completions=true")},
    OWNER | {"pool": "some", "wire": "float16", "settings": ("deliver=unique", "completions=true")},
    {"config": "terabyte", "samples": 192, "wire": "bfloat16",
     "settings": ("deliver=unique", "gpu_rings=true")}],
    ids=["interaction", "one node", "wide", "avazu", "no caches", "slow GPU", "calls", "unique",
         "completions", "rings", "row reads", "owner", "owner, one node", "owner, calls",
         "owner, interaction", "owner, unique", "owner, rings", "own bags without time",
         "own bags alone", "repeats", "repeats, unique", "owner, 16 bits", "rings, 16 bits"])
def test_compiled_hosts_do_what_those_of_rtl_do(tmp_path, options):
    if options.get("pool") == "some":
        (tmp_path / "pool.toml").write_text("owner = [0, 2, 3, 7]\n")
        options = options | {"pool": tmp_path / "pool.toml"}
    # A fault long after the end of the run selects hosts in Python.
    compiled, plain = (_run(**options, faults=faults) for faults in (None, "silent-gpu=9s:1us"))
    pooled = 0 if compiled["bags"] is None else compiled["bags"]["keys"]
    assert compiled["gpu"]["rows"] + pooled > 0
    assert plain["faults"]["given"] and not plain["faults"]["injected"]
    unequal = dict.fromkeys((*TIMES, "faults"))
    assert {**compiled, **unequal} == {**plain, **unequal}


_WITH_LITTLE_MEMORY = """
import sys
from sim.cli.main import main
from tests.memory import memory_bounded
with memory_bounded(600 << 20):
    main(sys.argv[1:])
"""


def test_a_nic_beyond_the_memory_is_told_of_in_a_line():
    found = subprocess.run(
        [sys.executable, "-c", _WITH_LITTLE_MEMORY, "run", "--fidelity", "fast", "--config",
         "tiny", "--samples", "16", "--mini-batch", "8", "--set", "local_cache_rows=67108864"],
        capture_output=True, text=True, timeout=300)
    assert (found.returncode, found.stdout) == (2, "")
    assert "memory" in found.stderr.splitlines()[-1] and "Traceback" not in found.stderr
