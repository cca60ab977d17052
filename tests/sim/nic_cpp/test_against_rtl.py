"""Hits and bytes of the model equal the RTL's, and its cycles are within 5 %."""

from dataclasses import replace

import pytest

from gen.base.settings import overridden
from sim.evaluation.en_nics import JUMBO
from sim.job.options import RunOptions
from tests.sim.interacting import NIC, model_of, write_model
from tests.sim.linked import LINKED
from tests.sim.nic_cpp.comparing import compared
from tests.sim.run.test_nic_repeats import MODEL

MOST = 0.05
"""Largest mean absolute error of the cycles of a mini-batch."""

EVALUATED = ("requester_merge=false", "local_cache_sets=24", "remote_cache_sets=20")
"""The settings of the evaluation, with caches that are too small for the samples."""

SMALL = ("repeat_words=64", "repeat_vectors=2")
"""Sizes that do not hold the bags of a sample."""

CASES = [
    {"dimension": 16, "bags": "to 9", "interaction": "dot", "nodes": 4,
     "settings": ("interaction=true", "requester_merge=false")},
    {"dimension": 64, "bags": "one-hot", "interaction": "dot", "nodes": 2,
     "settings": ("interaction=true", "local_cache=false")},
    {"dimension": 128, "bags": "to 3", "interaction": "cat", "nodes": 1,
     "settings": ("interaction=true",)},
    {"dimension": 4, "bags": "to 40", "interaction": "cat", "nodes": 4,
     "settings": ("interaction=true", "dedupe=false", "vector_timeout=0")},
    {"dimension": 8, "bags": "to 9", "interaction": "dot", "nodes": 3,
     "settings": ("remote_cache=false", "requester_merge=false", "pooling=mean")},
    {"dimension": 8, "bags": "to 9", "interaction": "dot", "nodes": 4,
     "settings": ("output_queues=true", "remote_cache=false", "requester_merge=false")},
]


@pytest.mark.thorough
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['dimension']}-{case['bags']}")
def test_tiny(tmp_path, case):
    model = model_of(case["dimension"], case["bags"], case["interaction"])
    assert compared(RunOptions.of(
        config="tiny", model=write_model(tmp_path / "model.toml", model), nodes=case["nodes"],
        samples=96, mini_batch=32, threads=1, placement="row",
        settings=(*NIC, *case["settings"]))) <= MOST


@pytest.mark.slow
@pytest.mark.parametrize("case", [
    {"nodes": 3, "settings": ("request_batch=3",)},
    # Lists without a pause, which wait for their slots and for the queue of requested vectors.
    {"nodes": 2, "settings": ("request_batch=1", "request_timeout=4")},
    {"nodes": 4, "settings": ("deliver=unique", "completions=true", "dedupe=false")},
    {"nodes": 1, "settings": ("interaction=true", "completions=true", "local_cache=false")}],
    ids=["lists", "one row a list", "unique", "interaction"])
def test_rings(case):
    """The cycles are exact, including stores of the GPU to registers."""
    assert compared(RunOptions.of(
        config="tiny", nodes=case["nodes"], samples=96, mini_batch=32, threads=1,
        settings=("gpu_rings=true", *case["settings"]))) == 0


@pytest.mark.thorough
@pytest.mark.parametrize("case", [
    {"nodes": 2, "settings": ("link_delay=0",)},
    {"nodes": 4, "settings": ("output_queues=true",)},
    # Most headers carry acknowledgements: few LINK packets leave.
    {"nodes": 3, "settings": ("link_delay=1000", "link_timeout_least=5000")},
    {"nodes": 4, "settings": ("deliver=unique", "completions=true", "dedupe=false")},
    {"nodes": 3, "settings": ("gpu_rings=true", "request_batch=3")},
    pytest.param({"nodes": 4, "settings": ("interaction=true",)}, marks=pytest.mark.slow)],
    ids=["at once", "queues", "late", "unique", "lists", "interaction"])
def test_link(case):
    """The cycles are exact, including LINK packets, and so is every count of the link."""
    assert compared(RunOptions.of(
        config="tiny", nodes=case["nodes"], samples=96, mini_batch=32, threads=1,
        settings=(*LINKED, *case["settings"]))) == 0


@pytest.mark.thorough
@pytest.mark.parametrize("case", [
    {"dimension": 16, "nodes": 3, "settings": ("request_batch=3",)},
    # Reads without a pause, which wait for packets.
    {"dimension": 8, "nodes": 2, "settings": ("request_batch=1", "request_timeout=4")},
    {"dimension": 64, "nodes": 4,
     "settings": ("deliver=unique", "completions=true", "dedupe=false")},
    {"dimension": 4, "nodes": 1, "settings": ("interaction=true", "local_cache=false")}],
    ids=["lists", "one row a packet", "unique", "interaction"])
def test_row_reads(tmp_path, case):
    """The cycles are exact."""
    model = model_of(case["dimension"], "to 9", "dot")
    assert compared(RunOptions.of(
        config="tiny", nodes=case["nodes"], samples=96, mini_batch=32, threads=1, placement="row",
        model=write_model(tmp_path / "model.toml", model),
        gpu="gpu_h100", settings=(*NIC, "row_reads=true", *case["settings"]))) == 0


@pytest.mark.slow
@pytest.mark.parametrize("case", [
    {"nodes": 2, "settings": ("deliver=unique",)},
    {"nodes": 3, "pool": "owner", "settings": ("vector_timeout=690", "lookup_timeout=690")},
    {"nodes": 2, "settings": ("interaction=true", "remote_cache=false")}],
    ids=["unique", "owner", "interaction"])
def test_packets_of_9000_bytes(tmp_path, case):
    """The cycles are exact, and the predictions those of the reference."""
    model = model_of(128, "to 3", "cat")
    assert compared(RunOptions.of(
        config="tiny", model=write_model(tmp_path / "model.toml", model), nodes=case["nodes"],
        samples=192, mini_batch=96, threads=1, placement="rows", pool=case.get("pool", "requester"),
        settings=(*overridden(NIC, JUMBO), "gradient_beats=512", *case["settings"]))) == 0


@pytest.mark.thorough
@pytest.mark.parametrize("case", [
    {"nodes": 2, "mini_batch": 16},
    {"nodes": 2, "mini_batch": 48, "settings": ("bag_timeout=4", "bag_batch=3")},
    pytest.param({"nodes": 3, "mini_batch": 7, "settings": ("owner_bags=16", "vector_timeout=0")},
                 marks=pytest.mark.slow),
    # Windows of a few beats: packets wait for credit, and close before bags that do not fit.
    pytest.param({"nodes": 4, "mini_batch": 64, "placement": "rows",
                  "settings": ("owner_bag_beats=64", "bag_timeout=500")}, marks=pytest.mark.slow),
    {"nodes": 2, "mini_batch": 32, "owner": [1, 4, 7], "in_flight": 1},
    {"nodes": 4, "mini_batch": 40, "owner": [0, 2, 3, 5], "settings": ("pooling=mean",)},
    {"nodes": 3, "mini_batch": 32, "owner": [0, 2, 5],
     "settings": ("lookup_timeout=690", "vector_timeout=690")},
    # Own and foreign bags share the places, and own bags and own keys the way to the hold buffer.
    pytest.param({"nodes": 3, "mini_batch": 24, "settings": ("interaction=true",)},
                 marks=pytest.mark.slow),
    pytest.param({"nodes": 3, "mini_batch": 24, "owner": [0, 2, 5],
                  "settings": ("interaction=true",)}, marks=pytest.mark.slow),
    {"nodes": 2, "mini_batch": 32, "settings": ("deliver=unique",)},
    {"nodes": 3, "mini_batch": 24, "owner": [0, 2, 3, 7],
     "settings": ("deliver=unique", "completions=true", "pooling=mean")},
    {"nodes": 3, "mini_batch": 24, "settings": ("link=true", "bag_timeout=4")},
    {"nodes": 4, "mini_batch": 40, "owner": [1, 4, 7],
     "settings": ("link=true", "deliver=unique")},
    pytest.param({"nodes": 3, "mini_batch": 24, "owner": [0, 2, 5],
                  "settings": ("link=true", "interaction=true")}, marks=pytest.mark.slow)],
    ids=["all", "short lists", "few places", "small windows", "mixed", "mixed means", "patient",
         "interaction", "mixed interaction", "unique", "mixed unique", "link", "mixed link, unique",
         "mixed link, interaction"])
def test_owner_pooled_bags(tmp_path, case):
    """The cycles are exact."""
    pool = "owner"
    if "owner" in case:
        pool = str(tmp_path / "pool.toml")
        (tmp_path / "pool.toml").write_text(f"owner = {case['owner']}\n")
    assert compared(RunOptions.of(
        config="tiny", model="multi_hot", nodes=case["nodes"], samples=128, threads=1, pool=pool,
        mini_batch=case["mini_batch"], settings=case.get("settings", ()),
        in_flight=case.get("in_flight", 4), placement=case.get("placement", "even"))) == 0


@pytest.mark.thorough
@pytest.mark.parametrize("case", [
    {"dimension": 64, "bags": "to 100", "nodes": 2, "owner": [0, 1, 2, 3, 4]},
    {"dimension": 128, "bags": "to 40", "nodes": 3, "owner": [1, 3],
     "settings": ("completions=true",)},
    {"dimension": 8, "bags": "to 100", "nodes": 2, "owner": [1, 3],
     "settings": ("gpu_rings=true", "request_batch=3")},
    {"dimension": 64, "bags": "to 9", "nodes": 4, "owner": [1, 4],
     "settings": ("row_reads=true", "vector_timeout=0", "output_queues=true")},
    pytest.param({"dimension": 64, "bags": "to 9", "nodes": 3, "owner": [0, 1, 3],
                  "settings": ("interaction=true",)}, marks=pytest.mark.slow),
    {"dimension": 128, "bags": "to 9", "nodes": 2, "owner": [1, 3],
     "settings": ("deliver=unique",)},
    {"dimension": 64, "bags": "to 100", "nodes": 2, "owner": [0, 1, 2, 3, 4],
     "weighted": (1, 4)},
    {"dimension": 64, "bags": "to 9", "nodes": 3, "owner": [0, 1, 3], "weighted": (0, 2, 3),
     "settings": ("deliver=unique",)}],
    ids=["long", "wide", "lists", "row reads", "interaction", "unique", "weights",
         "weights, unique"])
def test_owner_pooled_bags_of_wide_vectors(tmp_path, case):
    """The cycles are exact: vectors of several beats merge with those of the remote cache."""
    (tmp_path / "pool.toml").write_text(f"owner = {case['owner']}\n")
    model = replace(model_of(case["dimension"], case["bags"]),
                    weighted_tables=case.get("weighted", ()))
    assert compared(RunOptions.of(
        config="tiny", model=write_model(tmp_path / "model.toml", model), nodes=case["nodes"],
        samples=96, mini_batch=32, threads=1, pool=str(tmp_path / "pool.toml"), gpu="gpu_h100",
        settings=(*NIC, *case.get("settings", ())))) == 0


@pytest.mark.thorough
@pytest.mark.parametrize("case", [
    {"nodes": 2}, {"nodes": 4, "in_flight": 1},
    # Samples alone in their share: slots pause between them.
    {"nodes": 2, "mini_batch": 2, "settings": ("deliver=unique",)},
    {"nodes": 3, "mini_batch": 17, "settings": ("bag_timeout=4", "vector_timeout=0")},
    {"nodes": 3, "settings": ("deliver=unique", "completions=true")},
    # Bags beyond the sizes.
    pytest.param({"nodes": 2, "settings": SMALL}, marks=pytest.mark.slow),
    pytest.param({"nodes": 3, "settings": (*SMALL, "deliver=unique")}, marks=pytest.mark.slow),
    {"nodes": 3, "repeats": "send", "settings": ("repeat_words=8192", "repeat_vectors=5")},
    pytest.param({"nodes": 3, "settings": ("link=true", "bag_timeout=4")}, marks=pytest.mark.slow),
    pytest.param({"nodes": 3, "settings": ("interaction=true", "dot_units=3")},
                 marks=pytest.mark.slow)],
    ids=["pooled", "one in flight", "alone", "odd shares", "unique", "beyond", "beyond, unique",
         "off", "link", "interaction"])
def test_repeats_that_nics_find(tmp_path, case):
    """The cycles are exact."""
    (tmp_path / "model.toml").write_text(MODEL)
    assert compared(RunOptions.of(
        config="tiny", model=tmp_path / "model.toml", nodes=case["nodes"], samples=96, threads=1,
        pool="owner", repeats=case.get("repeats", "nic"), mini_batch=case.get("mini_batch", 24),
        in_flight=case.get("in_flight", 4), settings=case.get("settings", ()))) == 0


@pytest.mark.slow
@pytest.mark.parametrize("settings", [(), ("deliver=unique",)], ids=["pooled", "unique"])
@pytest.mark.parametrize("rows", [False, True], ids=["repeats", "rows alone"])
def test_repeats_of_weighted_bags(tmp_path, settings, rows):
    """The cycles are exact. ``rows``: many bags repeat the rows but not the weights."""
    if rows:
        write_model(tmp_path / "model.toml", replace(
            model_of(64, "to 9"), weighted_tables=(0, 2, 3), rows=(2,) * 5))
    else:
        (tmp_path / "model.toml").write_text(MODEL.replace(
            "request = true", "request = true\nweighted = true"))
    assert compared(RunOptions.of(
        config="tiny", model=tmp_path / "model.toml", nodes=2, samples=96, mini_batch=32, threads=1,
        pool="owner", repeats="nic", settings=settings)) == 0


@pytest.mark.thorough
@pytest.mark.parametrize("owner", [[], [0, 1, 3]], ids=["requester", "both"])
def test_means_of_some_tables(tmp_path, owner):
    """The cycles are exact: sums leave as late as means."""
    (tmp_path / "pool.toml").write_text(f"owner = {owner}\n")
    model = replace(model_of(32, "to 9"), poolings=("sum", "mean", "mean", "sum", "mean"))
    assert compared(RunOptions.of(
        config="tiny", model=write_model(tmp_path / "model.toml", model), nodes=2, samples=96,
        mini_batch=32, threads=1, pool=str(tmp_path / "pool.toml"),
        settings=NIC)) == 0


@pytest.mark.slow
@pytest.mark.parametrize(("owner", "mini_batch"), [(range(8), 128), ([1, 4, 7], 64)],
                         ids=["all", "mixed"])
def test_owner_pooled_bags_of_kaggle(tmp_path, owner, mini_batch):
    """The cycles are exact."""
    (tmp_path / "pool.toml").write_text(f"owner = {list(owner)}\n")
    assert compared(RunOptions.of(
        model="multi_hot", nodes=4, samples=512, mini_batch=mini_batch, threads=1,
        pool=str(tmp_path / "pool.toml"))) == 0


@pytest.mark.thorough
@pytest.mark.parametrize("settings", [(), EVALUATED], ids=["defaults", "evaluated"])
def test_kaggle(settings):
    assert compared(RunOptions.of(samples=512, threads=1, settings=settings)) <= MOST


@pytest.mark.slow
@pytest.mark.parametrize("config", ["tiny", "kaggle", "avazu", "terabyte"])
@pytest.mark.parametrize("settings", [
    (), ("requester_merge=false", "local_cache_sets=60", "remote_cache_sets=40"),
    ("interaction=true",), ("local_cache=false", "remote_cache=false", "dedupe=false")],
    ids=["defaults", "evaluated", "interaction", "no caches"])
def test_every_preset(config, settings):
    settings = tuple(setting.replace("=60", "=16").replace("=40", "=8") if config == "tiny"
                     else setting for setting in settings)
    assert compared(RunOptions.of(config=config, samples=256 if config == "tiny" else 1024,
                               threads=1, settings=settings)) <= MOST


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [1, 2, 8])
@pytest.mark.parametrize("placement", ["even", "rows", "row"])
@pytest.mark.parametrize("in_flight", [1, 8])
def test_every_cluster(nodes, placement, in_flight):
    assert compared(RunOptions.of(samples=1024, threads=1, nodes=nodes, placement=placement,
                               in_flight=in_flight, settings=("requester_merge=false",))) <= MOST
