"""The option ``pool``: its plans, its notes, and the sizes and registers of the NICs."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from host.batching import MiniBatch
from host.data.generator import generate
from host.errors import InputError
from host.model import MODELS, Model, load_model, table_names
from host.placement.pooling import ForeignBags, Wire, choose_pools
from host.placement.shard import ShardPlan
from host.samples import Samples, rechunk
from host.timing.network import NetworkProfile
from rtl.config import preset
from rtl.formats import PoolPlace
from sim.evaluation.point import Point
from sim.evaluation.site import Site
from sim.job.fit import config_to_build
from sim.job.inputs import SampleSource, holdable
from sim.job.options import RunOptions
from sim.job.pools import (
    check_bags,
    pool_slots,
    remote_cache_of,
    segments_needed,
    segments_of_samples,
    wire_of,
    with_pools,
)
from sim.job.settings import Runtime
from sim.job.workload import Workload
from sim.nic.build import register_values
from sim.node.delivery import Delivery
from sim.offline.plan import plan
from sim.run.run import Run
from sim.training.cluster import training_config
from sim.training.options import TrainOptions
from sim.training.train import Training

TINY = preset("tiny")
MODEL = load_model("multi_hot")
PLAN, RUNTIME = ShardPlan.deal(MODEL, 2), Runtime()
ALL_OWNER = PLAN.with_pools(8 * [PoolPlace.OWNER])


def pools_of(pool: str, model: Model = MODEL, plan: ShardPlan | None = None, config=TINY,
             **given) -> tuple[list[int], list[str]]:
    """Return the numbers of the owner-pooled tables, and the notes."""
    plan, notes = with_pools(plan or ShardPlan.deal(model, 2), model,
                             Workload(pool=pool, model="multi_hot", nodes=2, **given), config)
    return [number for number, table in enumerate(plan.tables)
            if table.pool == PoolPlace.OWNER], notes


def test_tables_pool_at_the_requester_or_the_owner():
    assert pools_of("requester") == ([], [])
    assert with_pools(PLAN, MODEL, Workload(), TINY)[0] is PLAN
    assert pools_of("owner") == (list(range(8)), [])
    assert pools_of("owner", plan=PLAN.with_copies(10_000)) == (list(range(8)), [])


def chosen(config=TINY, runtime=RUNTIME) -> tuple[ShardPlan, list[str]]:
    """Return the plan and the notes of ``auto``, from the first samples of ``multi_hot``."""
    workload = Workload(pool="auto", model="multi_hot", nodes=2, samples=96, mini_batch=32)
    source = SampleSource.of(workload)
    return with_pools(source.plan(), MODEL, workload, config, runtime, source.measured())


def test_auto_chooses_the_fewest_bytes():
    plan, [note] = chosen()
    foreign = ForeignBags(ShardPlan.deal(MODEL, 2), rechunk(generate(MODEL, 96, 1), 32))
    # Packets of 22 beats have 2 vectors of 128 values, or 5 of 64.
    wire, cache = Wire(4 * MODEL.width, min(32, 21 * 16 // MODEL.width), 176), (8, 4)
    assert (wire_of(TINY, MODEL.width), remote_cache_of(TINY, Runtime())) == (wire, cache)
    pools = choose_pools(foreign, wire, [None] * 8, *cache)
    assert 0 < sum(pools) < 8 and [table.pool for table in plan.tables] == pools
    both = [int(foreign.bytes_of(wire, each, *cache).chosen(each).sum())
            for each in (pools, [PoolPlace.REQUESTER] * 8)]
    assert both[0] < both[1]
    assert note == (f"pool auto: {sum(pools)} of 8 tables pool at the owner, which sends "
                    f"{both[0]:,} bytes over the network instead of {both[1]:,} (full packets of "
                    f"96 samples, caches empty at first)")


def chosen_of(bags: list[list[int]], runtime: Runtime = RUNTIME,
              repeats: str = "send") -> list[int]:
    """Return the tables that ``auto`` pools at the owner, node 1, for a file with these bags.

    bags: keys of each bag, by sample and table; all bags of a table begin with the same rows.
    """
    lengths = np.array(bags, np.int32)
    tables = np.repeat(np.tile(np.arange(8, dtype=np.int32), len(bags)), lengths.reshape(-1))
    rows = np.concatenate([np.arange(keys) for keys in lengths.reshape(-1)])
    n = len(bags)
    samples = Samples(np.zeros((n, 1), np.float32), np.zeros(n, np.float32), lengths, tables, rows)
    workload = Workload(pool="auto", nodes=2, data="absent.txt", format="trace",
                        repeats=repeats)
    plan, _ = with_pools(ShardPlan.deal(MODEL, 2, "1,1,1,1,1,1,1,1"), MODEL, workload, TINY,
                         runtime, [samples])
    return np.flatnonzero(plan.owner_pooled).tolist()


def test_auto_depends_on_the_remote_cache_and_the_longest_bag():
    # Four bags of node 0 have the same three rows.
    repeated = [[0, 0, 3, 0, 0, 0, 0, 0]] * 8
    assert chosen_of(repeated) == []
    assert chosen_of(repeated, Runtime(remote_cache=False)) == [2]
    assert remote_cache_of(TINY, Runtime(remote_cache=False)) == (0, 4)
    # A bag that is sent once, beside a cache that serves its repeats; two different bags in turn.
    for repeats in ("neighbours", "indices", "nic"):
        assert chosen_of(repeated, repeats=repeats) == [2]
    turns = [[0, 0, 3 + number % 2, 0, 0, 0, 0, 0] for number in range(24)]
    assert [chosen_of(turns, repeats=repeats) for repeats in (
        "send", "neighbours", "indices", "nic")] == [[], [], [2], []]
    assert remote_cache_of(TINY, Runtime(remote_cache_sets=3)) == (3, 4)
    assert chosen_of([[0, 0, 255, 254, 0, 0, 0, 0], [0] * 8]) == [3]


def test_auto_reads_at_least_a_mini_batch_from_the_start():
    workload = Workload(pool="auto", model="multi_hot", samples=5000, mini_batch=96,
                        first_sample=200)
    sizes = [len(batch) for batch in SampleSource.of(workload).measured()]
    assert sizes == [96] * 42 + [64]
    larger = replace(workload, mini_batch=4500, first_sample=0)
    assert [len(batch) for batch in SampleSource.of(larger).measured()] == [4500]


def test_samples_with_many_bags_get_more_segments():
    """A bag of a key takes at most two segments."""
    many = replace(MODEL, rows=(9,) * 600, bags=((1, 1),) * 600)
    plan = ShardPlan.deal(many, 2).with_pools([PoolPlace.OWNER] * 600)
    wide = TINY.with_fields(tables=600, hold_vectors=2048)
    assert config_to_build(wide, many, Runtime(), Workload(), plan).bag_segments == 2048
    given = Workload(settings=("bag_segments=64",))
    small = wide.with_fields(bag_segments=64)
    assert config_to_build(small, many, Runtime(), given, plan).bag_segments == 64
    assert config_to_build(TINY, MODEL, Runtime(), Workload(), ALL_OWNER).bag_segments == 1024


def test_tables_that_cannot_pool_at_the_owner_are_noted():
    # A packet of 16 beats holds a head and 127 words of two rows, or of one row of a large table.
    bags = ((1, 254), (1, 255), (0, 127), (0, 128), (1, 1), (1, 1), (1, 1), (1, 1))
    rows = (9, 9, (1 << 32) + 1, (1 << 32) + 1, 9, 9, 9, 1 << 32)
    model = replace(MODEL, bags=bags, rows=rows)
    assert pools_of("owner", model) == ([0, 2, 4, 5, 6, 7], [
        "table 1 pools at the requester: its bags must have at most 254 keys with query_beats 32, "
        "not 255",
        "table 3 pools at the requester: its bags must have at most 127 keys with query_beats 32, "
        "not 128"])
    most = TINY.with_fields(query_beats=64)
    assert pools_of("owner", model, config=most)[0] == list(range(8))
    hashed = ShardPlan.deal(MODEL, 2, "row")
    chosen, notes = pools_of("owner", plan=hashed)
    assert chosen == [] and notes == [
        f"table {number} pools at the requester: its rows are hashed over 2 nodes"
        for number in range(8)]


def test_bags_of_files_are_checked_when_they_are_read():
    """The bags of a model are of generated samples."""
    model = replace(MODEL, bags=((1, 999),) * 8)
    assert pools_of("owner", model)[0] == []
    assert pools_of("owner", model, data="absent.txt", format="trace")[0] == list(range(8))


@pytest.mark.parametrize(("owner", "tables"), [
    ('["items seen", 3]', [2, 3]), ("[]", []), ('["user", "region", 0]', [0, 7])])
def test_a_file_names_tables(tmp_path, owner, tables):
    path = tmp_path / "pools.toml"
    path.write_text(f"owner = {owner}\n")
    assert pools_of(str(path)) == (tables, [])


@pytest.mark.parametrize(("text", "message"), [
    ("owner = [8]", "owner must name tables 0 to 7, not 8"),
    ("owner = [-1]", "owner must name tables 0 to 7, not -1"),
    ('owner = ["item", "clicks"]', "owner must name tables of the model (user, item, items seen, "
     "items bought, interests, category, seller, region), not 'clicks'"),
    ("requester = [1]", "no such field: requester"), ("owner = [1.5]", "owner[0]"),
    ("", "owner is missing")])
def test_wrong_files_are_rejected(tmp_path, text, message):
    path = tmp_path / "pools.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=re.escape(message)):
        pools_of(str(path))


def test_a_file_may_not_name_a_table_that_cannot_pool_at_its_owner(tmp_path):
    path = tmp_path / "pools.toml"
    path.write_text("owner = [1]")
    with pytest.raises(InputError, match="owner: table 1 must pool at the requester: its rows are "
                                         "hashed over 2 nodes"):
        pools_of(str(path), plan=ShardPlan.deal(MODEL, 2, "row"))
    path.write_text('owner = ["a"]')
    with pytest.raises(InputError, match="owner must have numbers of tables, not 'a': the model "
                                         "has no names of tables"):
        with_pools(ShardPlan.deal(MODELS["kaggle"], 2), MODELS["kaggle"],
                   Workload(pool=str(path)), TINY)


def test_names_of_tables(tmp_path):
    assert table_names("multi_hot")[:3] == ("user", "item", "items seen")
    assert table_names("kaggle") == table_names(MODEL) == ()
    path = tmp_path / "model.toml"
    path.write_text('dimension = 4\ndense = 1\nbottom = [4]\ntop = [1]\n'
                    '[[tables]]\nrows = 5\ncount = 2\nname = "a"\n[[tables]]\nrows = 6\n')
    assert table_names(path) == ("a", "a", "")


@pytest.mark.parametrize(("make", "message"), [
    (lambda: Workload(pool="both"), "pool must be requester, owner, auto or a TOML file, "
     "not 'both'"),
    (lambda: TrainOptions.of(update="cpu"), "update must be one of gpu, nic, not 'cpu'"),
    (lambda: training_config(TINY, MODEL, Runtime(overtake=True), Workload(), ALL_OWNER),
     "overtake must be false for tables that pool at their owner, not true: GPUs pool their own "
     "bags when a step begins"),
    (lambda: config_to_build(TINY, MODEL, Runtime(), Workload(settings=("owner_bags=0",)),
                             ALL_OWNER),
     "owner_bags must be above 0 for tables that pool at their owner, not 0")])
def test_unsupported_settings_are_rejected(make, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        make()


def test_the_nic_has_places_for_bags_if_tables_pool_at_their_owner():
    def built(name: str, plan: ShardPlan, *settings: str) -> tuple[int, int]:
        config = preset(name).with_fields(owner_bags=128 if settings else 0)
        config = config_to_build(config, MODEL, Runtime(), Workload(settings=settings), plan)
        return config.owner_bags, config.owner_bag_beats

    assert [built(name, ALL_OWNER) for name in ("tiny", "kaggle", "terabyte")] == [
        (64, 1024), (1024, 4096), (1024, 4096)]
    assert built("tiny", PLAN)[0] == 0 and built("tiny", ALL_OWNER, "owner_bags=128")[0] == 128
    assert built("kaggle", ALL_OWNER, "owner_bag_beats=2048")[1] == 1024
    assert config_to_build(TINY, MODEL, Runtime(), Workload()).owner_bags == 0


def test_vectors_of_all_bags_in_flight_fit_a_queue_of_the_switch():
    """At worst, each vector is in a frame of its own, with a beat of header and a beat of tags."""
    def built(queue: int | None, dimension: int = 128) -> tuple[int, int]:
        network = NetworkProfile("switch", 1.0, 100.0, 24, True, queue)
        config = preset("kaggle").with_fields(max_dimension=128)
        model = replace(MODEL, dimension=dimension, bottom=(dimension,))
        config = config_to_build(config, model, Runtime(), Workload(network=network), ALL_OWNER)
        return config.owner_bags, config.owner_bag_beats

    least = 64 * 4096 + 1024 * (512 + 2 * 64 + 24)
    assert [built(queue) for queue in (None, least, least - 1, 512 * 1024, 64 * 1024)] == [
        (1024, 4096), (1024, 4096), (512, 4096), (256, 4096), (64, 1024)]
    assert built(512 * 1024, 16) == (1024, 4096)
    assert built(256 * 1024, 16) == (512, 2048)


def test_registers_of_bags():
    def values(config, runtime, nodes):
        return {name: value for name, value in register_values(
            config, runtime, MODEL, node=0, nodes=nodes).items() if name.startswith("bag_")}

    with_bags = TINY.with_fields(owner_bags=64)
    assert values(TINY, Runtime(), 2) == {}
    # 64 beats of a packet have the tags and vectors of 62 bags of a beat each.
    assert values(with_bags, Runtime(), 2) == {
        "bag_window": 448, "bag_share": 512, "bag_timeout": 64, "bag_batch": 62}
    assert values(with_bags, Runtime(bag_batch=9, bag_timeout=3), 8) == {
        "bag_window": 112, "bag_share": 128, "bag_timeout": 3, "bag_batch": 9}


def _batch(lengths: list[list[int]]) -> MiniBatch:
    counts = np.array(lengths, np.int32)
    tables = np.repeat(np.tile(np.arange(2, dtype=np.int32), len(counts)), counts.reshape(-1))
    n = len(counts)
    samples = Samples(np.zeros((n, 1), np.float32), np.zeros(n, np.float32), counts, tables,
                      np.zeros(len(tables), np.int64))
    return MiniBatch(samples, np.arange(n) + 7, True)


def test_samples_have_a_slot_for_each_owner_pooled_bag():
    plan = ShardPlan.deal(Model((9, 9), 4, 1, (4,), (1,)), 2).with_pools(
        [PoolPlace.OWNER, PoolPlace.REQUESTER])
    batch = _batch([[5, 3], [0, 0], [100, 1]])
    assert pool_slots(batch.samples, plan).tolist() == [4, 2, 2]
    assert list(holdable([batch], TINY, plan)) == [batch]
    with pytest.raises(ValueError, match="hold_vectors must be at least 202, twice the slots of "
                                         "sample 9"):
        list(holdable([batch], TINY))


@pytest.mark.parametrize(("keys", "settings", "message"), [
    (255, {}, "table 0 pools at the owner: its bags must have at most 254 keys with query_beats "
              "32, not 255: use a larger query_beats, or pool it at the requester"),
    (351, {"query_beats": 64}, "at most 350 keys with net_payload_beats 22, not 351: use a larger "
                               "net_payload_beats"),
    (254, {"bag_segments": 32, "owner_bag_beats": 16384},
     "bag_segments must be at least 34 for the bags of sample 8, not 32")])
def test_bags_that_exceed_the_nic_are_rejected(keys, settings, message):
    plan = ShardPlan.deal(Model((9, 9), 4, 1, (4,), (1,)), 2).with_pools(2 * [PoolPlace.OWNER])
    batch = _batch([[3, 1], [keys, keys]])
    with pytest.raises(ValueError, match=re.escape(message)):
        list(holdable([batch], TINY.with_fields(**settings), plan))


def test_nodes_without_owner_pooled_tables_have_no_plan():
    assert Delivery.of(TINY.with_fields(owner_bags=64), Runtime(), MODEL, PLAN, 0).plan is None
    assert Delivery.of(TINY.with_fields(owner_bags=64), Runtime(), MODEL, ALL_OWNER, 0).plan


def weighted_file(tmp_path, *tables: int) -> str:
    """Return a file of ``multi_hot`` with weights in some tables."""
    parts = Path("host/models/multi_hot.toml").read_text().split("[[tables]]\n")
    path = tmp_path / "weighted.toml"
    path.write_text("[[tables]]\n".join(
        ("weighted = true\n" if number - 1 in tables else "") + part
        for number, part in enumerate(parts)))
    assert load_model(path).weighted_tables == tables
    return str(path)


@pytest.mark.parametrize(("pool", "settings", "table"), [
    ("requester", (), 2), ("requester", ("interaction=true",), 2), ([4, 7], (), 2), ([2], (), 4)])
def test_nics_do_not_pool_weighted_bags(tmp_path, pool, settings, table):
    if isinstance(pool, list):
        (tmp_path / "pool.toml").write_text(f"owner = {pool}\n")
        pool = str(tmp_path / "pool.toml")
    given = {"config": "tiny", "model": weighted_file(tmp_path, 2, 4), "nodes": 2, "samples": 8,
             "mini_batch": 8, "pool": pool, "settings": settings, "cluster": "direct_pair"}
    message = (f"table {table} has weights, so it must pool at its owner with deliver pooled: use "
               f"pool owner, or deliver unique")
    with pytest.raises(ValueError, match=message):
        Run(RunOptions.of(**given))
    with pytest.raises(ValueError, match=message):
        plan(Workload.of(**given))


def test_auto_pools_weighted_tables_at_their_owner(tmp_path):
    """Table 0 has bags of a key, which need fewer bytes at the requester."""
    model = load_model(weighted_file(tmp_path, 0))
    workload = Workload(pool="auto", model=str(tmp_path / "weighted.toml"), nodes=2, samples=96,
                        mini_batch=32)
    found = {}
    for deliver in ("pooled", "unique"):
        source = SampleSource.of(workload)
        chosen_plan, _ = with_pools(source.plan(), model, workload, TINY, Runtime(deliver=deliver),
                                    source.measured())
        found[deliver] = chosen_plan.tables[0].pool
    assert found == {"pooled": PoolPlace.OWNER, "unique": PoolPlace.REQUESTER}


def test_weights_count_in_the_sizes_of_bags():
    weighted = replace(MODEL, weighted_tables=tuple(range(8)))
    plain, heavy = (ShardPlan.deal(model, 2).with_pools(8 * [PoolPlace.OWNER])
                    for model in (MODEL, weighted))
    samples = next(generate(weighted, 64, 1))
    assert (segments_of_samples(samples, heavy) >= segments_of_samples(samples, plain)).all()
    assert segments_of_samples(samples, heavy).max() > segments_of_samples(samples, plain).max()
    assert segments_needed(weighted, Workload(), heavy) > segments_needed(weighted, Workload(),
                                                                         plain)
    long = replace(samples, bag_lengths=np.full((1, 8), 127, np.int32), dense=samples.dense[:1],
                   labels=samples.labels[:1], rows=np.zeros(127 * 8, np.int64),
                   tables=np.repeat(np.arange(8, dtype=np.int32), 127),
                   weights=np.ones(127 * 8, np.float32))
    config = TINY.with_fields(bag_segments=TINY.most_bag_segments)
    check_bags(long, np.arange(1), plain, config)
    with pytest.raises(ValueError, match="table 0 pools at the owner: its bags must have at most "
                                         "126 keys with query_beats 32, not 127"):
        check_bags(long, np.arange(1), heavy, config)


def test_other_commands_reject_weights(tmp_path):
    model = weighted_file(tmp_path, 2)
    (tmp_path / "trace.txt").write_text("0:1 1:2 2:3\n" * 8)
    with pytest.raises(ValueError, match="weighted of table 2 must be false with data, not true: "
                                         "files have no weights of keys"):
        SampleSource.of(Workload(model=model, data=(str(tmp_path / "trace.txt"),),
                                 format="trace"))
    with pytest.raises(ValueError, match="table 2 has weights, so it must pool at its owner"):
        Training(TrainOptions.of(config="tiny", model=model, samples=8, mini_batch=8))
    point = Point.named("bl-tuned", dataset=model, mini_batch=8, warmup=0, measured=2,
                        workload="training")
    with pytest.raises(ValueError, match="weighted of table 2 must be false in training"):
        Site.of(point)


@pytest.mark.parametrize("payload", [6, 22, 60])
def test_vectors_of_bags_have_the_size_of_their_table(payload):
    """The packets are those of the NIC, which share no beat among longer vectors."""
    sizes = [beats for beats in (1, 2, 3, 4) if beats < payload]
    wire = wire_of(preset("tiny").with_fields(net_payload_beats=payload), 64, sizes)
    assert wire.bag_bytes.tolist() == [64 * beats for beats in sizes]
    assert wire.bag_vectors.tolist() == [min(32, (payload - 1) // beats) for beats in sizes]
    assert wire_of(preset("tiny"), 8, [1]).bag_vectors.tolist() == [32]
