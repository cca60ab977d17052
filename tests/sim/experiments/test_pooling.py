"""Pool place of each table at a point: the choice, its NICs, and the search for it."""

from dataclasses import replace

import numpy as np
import pytest

from host.model import Model, load_model, with_columns
from host.systems import EnTuning
from sim import api
from sim.evaluation.busy import busy_trace
from sim.evaluation.en import EmberNic
from sim.evaluation.en_nics import en_nic, nics_of, owner_pooled
from sim.evaluation.en_search import EnSearch
from sim.evaluation.least import deliveries, least_times, link_bounds
from sim.evaluation.nic_options import serving
from sim.evaluation.nic_run import run_nics
from sim.evaluation.placing import nic_us
from sim.evaluation.point import Point
from sim.evaluation.pooling import least_bytes, owner_tables, slots_of, tables_of
from sim.evaluation.site import Site
from sim.evaluation.trace import plan_of
from sim.job.options import RunOptions

BAGS = {"dataset": "multi_hot", "nodes": 4, "mini_batch": 64, "warmup": 2, "measured": 4,
        "software": "tuned_h100", "gpu": "gpu_h100", "link": "pcie_h100", "rdma": True,
        "in_flight": 4, "local_cache": None, "remote_cache": None}
POINT = Point.named("en", **BAGS)
POOLED = EnTuning(ring=False, reads=True, deliver="pooled", pool="auto")


@pytest.fixture(scope="module")
def site():
    return Site.of(POINT)


def test_tables_of_bags_pool_at_their_owner(site):
    owner = owner_tables(POINT, site.trace, "auto")
    assert owner == (2, 3, 4)  # tables of several keys per bag, and of many rows
    assert owner_tables(POINT, site.trace, "owner") == tuple(range(8))
    assert owner_tables(POINT, site.trace, "requester") == ()
    # Tables whose rows are hashed, and one node.
    assert owner_tables(POINT.changed(placement="row"), site.trace, "owner") == ()
    alone = POINT.changed(nodes=1)
    assert owner_tables(alone, Site.of(alone).trace, "owner") == ()
    # Copies of tables of at most 100,000 rows leave tables 0, 1, 2, 3 and 6.
    assert owner_tables(POINT, site.trace, "auto", 100_000) == (2, 3)
    one_hot = Point.named("en", dataset="kaggle", nodes=2, mini_batch=64, warmup=2, measured=2)
    assert owner_tables(one_hot, Site.of(one_hot).trace, "auto") == ()


def test_traffic_of_a_table_is_counted_bag_by_bag(site):
    owner = (2, 3, 4)
    plan = plan_of(POINT, site.trace)
    tables, busiest = tables_of(POINT, site.trace, owner)
    foreign = np.zeros((2, 8))
    for batch in site.trace.batches:
        for node, share in enumerate(batch.samples.shares(4)):
            lengths = share.bag_lengths * [table.owner != node for table in plan.tables]
            foreign += (lengths > 0).sum(axis=0), lengths.sum(axis=0)
    count = len(site.trace.batches)
    assert [row["pool"] for row in tables] == [
        "owner" if number in owner else "requester" for number in range(8)]
    assert [row["foreign_bags"] for row in tables] == (foreign[0] / count).tolist()
    assert [row["foreign_keys"] for row in tables] == (foreign[1] / count).tolist()
    assert all(row["owner_bytes"] < row["requester_bytes"] for row in tables[2:5])
    used = sum(row[f"{row['pool']}_bytes"] for row in tables)
    assert used / 4 < busiest["bytes"] < used and busiest["direction"] in ("in", "out")
    # Looking up every row sends more, and placements are judged by the busiest link.
    assert tables_of(POINT, site.trace, ())[1]["bytes"] > 2 * busiest["bytes"]
    assert nic_us(site, 0, "auto") == busiest["bytes"] / 12_500
    copied, _ = tables_of(POINT, site.trace, (2, 3), 100_000)
    assert [row["pool"] for row in copied] == [
        "requester", "requester", "owner", "owner", "copied", "copied", "requester", "copied"]


@pytest.mark.parametrize("deliver", ["pooled", "unique", "interaction"])
def test_nics_pool_foreign_bags_and_leave_own_bags_to_the_gpu(site, deliver):
    tuning = replace(POOLED, deliver=deliver)
    times = en_nic(site, tuning).times[0]
    own = deliveries(POINT, site.trace, 0, owner_pooled(site, tuning))
    plan, keys, bags = plan_of(POINT, site.trace), [], []
    for batch in site.trace.measured:
        for node, share in enumerate(batch.samples.shares(4)):
            lengths = share.bag_lengths[:, [table for table in (2, 3, 4)
                                            if plan.tables[table].owner == node]]
            keys.append(lengths.sum())
            bags.append((lengths > 0).sum())
    if deliver == "interaction":  # the NIC takes every bag
        assert times.own_rows == times.own_bags == 0
    else:
        assert 0 < times.own_rows <= max(keys) and 0 < times.own_bags <= max(bags)
        assert (times.own_rows, times.own_bags) == tuple(
            own[0].most(name) for name in ("own_rows", "own_bags"))
    # A driver's thread makes no more calls than fit into the interval.
    point, nics, trace, devices = nics_of(site, tuning)
    most = times.interval_us / (serving(point, nics, devices, trace.model)[0].apart_us or 1e-9)
    assert times.launches >= min(times.pooled_launches, most) > 0 < times.pooled_launches
    assert times.pooled_rows > times.pooled_bags > 10
    link = link_bounds(site, owner_pooled(site, tuning))[0]
    least = least_times(site.trace.model, tuning, own[0], 16, link)
    assert least.interval_us >= link > 0
    assert least.interval_us <= times.interval_us and least.service_us <= times.service_us
    assert 0 < least.delivered_bytes <= times.delivered_bytes
    rows = en_nic(site, replace(tuning, pool="requester"))
    assert rows.times[0].pooled_bags == rows.times[0].own_bags == 0
    assert rows.traffic["total"]["bytes"] > 1.5 * en_nic(site, tuning).traffic["total"]["bytes"]


def test_gpus_read_the_values_of_each_table():
    """Slices of the table with the most keys have a quarter of its values."""
    model = with_columns(replace(load_model("multi_hot"), dimension=64, bottom=(64,)), {4: 16}, 16)
    point = POINT.changed(dataset=model)
    site = Site.of(point)
    tuning = replace(POOLED, pool="owner", reads=False)
    times, plan = en_nic(site, tuning).times[0], plan_of(point, site.trace)
    widths, batch = np.array(model.table_dimensions), site.trace.measured[0].samples
    own, foreign = np.zeros((2, 4, 2))
    for node, share in enumerate(batch.shares(4)):
        for table, of in enumerate(plan.tables):
            keys = share.bag_lengths[:, table].sum()
            (own if of.owner == node else foreign)[of.owner] += keys, keys * widths[table]
    assert (times.own_rows, times.own_values) == tuple(own.max(axis=0))
    assert times.own_values < 64 * times.own_rows
    assert times.pooled_values == pytest.approx(foreign[:, 1].max(), rel=0.1)
    least = least_times(model, tuning, deliveries(point, site.trace, 0, owner_pooled(
        site, tuning))[0], 16)
    assert 0 < least.own_values < times.own_values


def test_the_bound_of_the_link_has_the_size_of_each_tables_vectors(site):
    model = replace(site.trace.model, interaction="cat", dimensions=(16, 16, 16, 40, 64, 16, 10, 8))
    trace, beats, found = replace(site.trace, model=model), [1, 1, 1, 3, 4, 1, 1, 1], []
    owners = np.array([table.owner for table in plan_of(POINT, trace).tables])
    for node, share in enumerate(trace.measured[0].samples.shares(4)):
        foreign = (share.bag_lengths > 0) & (owners != node)
        found.append((64 * foreign * beats).sum())
    assert least_bytes(POINT, trace, 0, tuple(range(8))) == max(found) > 0


def test_each_bag_counts_once_where_no_mini_batch_settles_the_nics(monkeypatch):
    """At the end of a count, further mini-batches are in flight, whose bags may be pooled."""
    monkeypatch.setattr("sim.evaluation.busy._FILLED_KEYS", 0)
    site = Site.of(POINT.changed(warmup=0, mini_batch=256))
    times, plan = en_nic(site, POOLED).times[0], plan_of(POINT, site.trace)
    busy, in_flight = busy_trace(site.trace, 2)
    assert (busy.warmup, in_flight) == (4, 2)
    bags, rows = np.zeros(4), np.zeros(4)
    for batch in busy.batches:
        lengths = batch.samples.bag_lengths
        for node, share in enumerate(batch.samples.shares(4)):
            tables = [table for table in (2, 3, 4) if plan.tables[table].owner == node]
            for of, sign in ((lengths, 1), (share.bag_lengths, -1)):
                rows[node] += sign * of[:, tables].sum()
                bags[node] += sign * np.count_nonzero(of[:, tables])
    count = len(busy.batches)
    assert times.pooled_rows == rows.max() / count and times.pooled_bags == bags.max() / count


def test_own_bags_take_no_time_in_a_run_of_an_evaluation(site):
    """The step charges the GPU for them."""
    options = RunOptions.of(
        model="multi_hot", nodes=4, mini_batch=64, samples=384, in_flight=1, fidelity="model",
        settings=("interaction=false",), gpu="gpu_h100", owner_tables=tuple(range(8)))
    free = run_nics(options, site.trace.batches)
    # A slow GPU pools own bags before the NIC answers.
    timed = run_nics(options.with_fields(owner_tables=None, pool="owner"), site.trace.batches)
    assert free.pooled_bags < timed.pooled_bags or free.pooled_launches < timed.pooled_launches
    assert sum(free.pooled_rows) == sum(timed.pooled_rows) - sum(
        lengths.sum() for batch in site.trace.batches for node, share in enumerate(
            batch.samples.shares(4)) for lengths in [share.bag_lengths[:, [
                table.owner == node for table in plan_of(POINT, site.trace).tables]]])
    assert all(a.us <= b.us for a, b in zip(free.records, timed.records))


@pytest.mark.thorough
def test_own_bags_without_time_have_the_bits_of_the_reference():
    from sim.run.run import run
    result = run(RunOptions.of(config="tiny", model="multi_hot", nodes=2, mini_batch=16,
                               samples=64, owner_tables=(1, 2, 4)))
    assert result["bit_identical"] and result["bags"]["own"] == 0 < result["bags"]["foreign"]


SLOW = {"scaled": (("ethernet_100g_switch.bandwidth_gbit_s", 0.05),)}
"""With little bandwidth, rows of bags are the bottleneck."""


@pytest.mark.thorough
def test_the_search_pools_where_it_is_faster():
    slow = POINT.changed(**SLOW, fixed=("copied_rows=0", "deliver=pooled", "threads=1"))
    built, _ = slow.kind.at(Site.of(slow))
    assert built.tuning.pool == "auto" and not built.tuning.ring
    assert "3 of 8 tables pool at the owner" in built.notes
    at_requester = slow.changed(fixed=(*slow.system.fixed, "pool=requester"))
    rows, _ = at_requester.kind.at(Site.of(at_requester))
    assert rows.tuning.pool == "requester" and rows.interval_us > 1.5 * built.interval_us


def test_the_papers_systems_pool_where_it_is_faster():
    fs = Point.named("lc+rc", BAGS | SLOW | {"measured": 2}, batching="file")
    pooled, nic = fs.kind.at(Site.of(fs))
    assert pooled.tuning.pool == "auto" and nic.times[0].pooled_bags > 0
    assert "3 of 8 tables pool at the owner" in pooled.notes
    fixed = fs.changed(fixed=("pool=requester",))
    rows, nic = fixed.kind.at(Site.of(fixed))
    assert rows.interval_us > 1.5 * pooled.interval_us and nic.times[0].pooled_bags == 0


def test_tables_without_bags_have_the_same_options():
    point = Point.named("en", dataset="kaggle", nodes=2, mini_batch=32, warmup=2, measured=2,
                        software="tuned", fixed=("pool=auto",))
    assert isinstance(point.kind, EmberNic)
    options = EnSearch(Site.of(point), True).options()
    assert {option.pool for option in options} == {"requester"} and any(
        option.ring for option in options)


TRAINING = BAGS | {"in_flight": None, "measured": 2, "workload": "training"}


def test_training_chooses_the_place_of_updates():
    point = Point.named("en", TRAINING, fixed=("threads=1", "deliver=pooled"))
    search = EnSearch(Site.of(point), True)
    assert {(each.pool, each.update) for each in search.options()} == {
        ("requester", "gpu"), ("auto", "gpu"), ("auto", "nic"), ("owner", "gpu"), ("owner", "nic")}
    by_gpus, by_nics, at_requester = (search.nic(EnTuning(ring=False, deliver="pooled", **given))
                                      for given in ({"pool": "auto"},
                                                    {"pool": "auto", "update": "nic"}, {}))
    times = by_gpus.times[0]
    # Bags and rows of tables 2, 3 and 4 are no work of the reducer.
    assert times.owner_updates is not None and times.reduced is not None
    assert times.reduced.accesses == sum(
        search.site.trace.measured[0].samples.bag_lengths[:, [0, 1, 5, 6, 7]].sum(axis=0))
    assert times.updated < by_nics.times[0].updated == at_requester.times[0].updated
    # No local cache holds rows of tables that pool at their owner.
    assert by_nics.times[0].missed > at_requester.times[0].missed
    assert by_nics.times[0].owner_updates is by_nics.times[0].reduced is None
    assert by_nics.traffic["gradients"] == at_requester.traffic["gradients"]
    assert by_gpus.traffic["gradients"]["bytes"] < 0.6 * by_nics.traffic["gradients"]["bytes"]


def test_the_papers_systems_choose_the_place_of_updates():
    def built(*fixed):
        point = Point.named("fs", TRAINING | SLOW, workload="training", batching="file",
                            fixed=("threads=1", *fixed))
        found, nic = point.kind.at(Site.of(point))
        return found, nic.times[0], nic.traffic["gradients"]["bytes"]

    by_gpus, of_gpus, sent = built("pool=auto", "update=gpu")
    by_nics, of_nics, partials = built("pool=auto", "update=nic")
    at_requester, of_rows, same = built("pool=requester")
    assert of_gpus.pooled_bags > 0 and of_gpus.owner_updates and of_gpus.reduced is not None
    assert of_nics.pooled_bags > 0 and of_nics.owner_updates is of_nics.reduced is None
    assert of_rows.pooled_bags == 0 and sent < 0.6 * partials and partials == same
    for found, place in ((by_gpus, "GPU"), (by_nics, "NIC")):
        assert {"3 of 8 tables pool at the owner",
                f"updated by the {place}s of the owners"} <= set(found.notes)
    assert not any("owner" in note for note in at_requester.notes)
    assert by_gpus.interval_us < at_requester.interval_us
    chosen = built()[0]
    assert (chosen.tuning.pool, chosen.tuning.update) == ("auto", "gpu")
    assert chosen.interval_us == by_gpus.interval_us


def test_gradients_that_nics_carry_as_bytes_have_no_place_of_updates():
    with pytest.raises(ValueError, match="pool must be requester in training without sc, not 'au"):
        Point.named("lc", BAGS | {"in_flight": None}, workload="training", fixed=("pool=auto",))
    point = Point.named("fs", TRAINING, workload="training", batching="file",
                        fixed=("pool=requester", "update=nic"))
    with pytest.raises(ValueError, match="fixed must leave consistent options in training"):
        point.kind.at(Site.of(point))


def test_training_is_faster_where_bags_pool_at_their_owner():
    slow = Point.named("en", TRAINING | SLOW, fixed=("threads=1", "deliver=pooled", "pool=auto"))
    built, nic = slow.kind.at(Site.of(slow))
    assert built.tuning.update == "gpu" and nic.times[0].owner_updates is not None
    assert {"3 of 8 tables pool at the owner", "updated by the GPUs of the owners"} <= set(
        built.notes)
    free = slow.changed(fixed=("threads=1", "deliver=pooled"))
    assert free.kind.at(Site.of(free))[0].interval_us <= built.interval_us
    rows, _ = (own := slow.changed(fixed=("threads=1", "deliver=pooled", "pool=requester"))
               ).kind.at(Site.of(own))
    assert rows.interval_us > built.interval_us


def test_gradients_count_where_tables_choose_their_place():
    point = Point.named("en", TRAINING)
    trace = Site.of(point).trace
    for update, names in (("gpu", {"requester_gradients", "owner_gradients"}), ("nic", set())):
        owner = owner_tables(point, trace, "auto", update=update)
        tables, busiest = tables_of(point, trace, owner, update=update)
        assert {name for name in tables[0] if name.endswith("gradients")} == names
        for row in tables:
            costs = [row[f"{place}_bytes"] + (row[f"{place}_gradients"] if names else 0)
                     for place in ("requester", "owner")]
            # Headers are close to proportional.
            assert (row["pool"] == "owner") == (costs[1] < costs[0]) or max(
                costs) < 1.2 * min(costs)
    assert busiest["bytes"] < tables_of(point, trace, owner)[1]["bytes"]


def test_slots_of_a_sample_count_bags_once(site):
    lengths = np.concatenate([np.maximum(batch.samples.bag_lengths, 1)
                              for batch in site.trace.batches])
    assert slots_of(site.trace, ()) == lengths.sum(axis=1).max()
    assert slots_of(site.trace, (2, 3)) == (lengths.sum(axis=1) - lengths[:, 2]
                                            - lengths[:, 3] + 2).max()


def test_a_comparison_lists_the_tables():
    result = api.compare(model="multi_hot", cluster="h100", nodes=4, mini_batch=64, measured=2,
                         placement="even", system=["bl-tuned", "fs"], fixed=["pool=owner"])
    rows = {row["system"]: row for row in result["systems"]}
    assert rows["bl-tuned"]["tables"] is rows["bl-tuned"]["busiest"] is None
    assert {table["pool"] for table in rows["fs"]["tables"]} == {"owner"}
    assert set(rows["fs"]["tables"][0]) == {
        "table", "columns", "rows", "pool", "foreign_bags", "foreign_keys",
        "distinct_foreign_rows", "requester_bytes", "owner_bytes"}
    assert rows["fs"]["busiest"]["bytes"] > 0
    assert "8 of 8 tables pool at the owner" in rows["fs"]["options"]
    assert f"{rows['fs']['busiest']['bytes']:,.0f} B on the busiest link" in rows["fs"]["options"]


def test_bags_that_repeat_do_not_decide_where_a_table_pools():
    # Two requests of 16 samples with the same history: rows are cached, so that their bytes are
    # few beside those of 16 vectors of bags, but not beside those of one.
    model = Model((5000, 5000), 16, 1, (16,), (1,), "requests", ((20, 30), (1, 1)),
                  requests=(16, 16), request_tables=(0,))
    point = POINT.changed(dataset=model, nodes=2, mini_batch=32)
    trace = Site.of(point).trace
    tables = {once: owner_tables(point, trace, "auto", once=once) for once in (False, True)}
    assert tables == {False: (), True: (0,)}
    bags, busiest = zip(*(tables_of(point, trace, (0,), once=once) for once in (False, True)))
    assert 8 * bags[1][0]["foreign_bags"] < bags[0][0]["foreign_bags"]
    assert busiest[1]["bytes"] < busiest[0]["bytes"]
    assert EnSearch(Site.of(point), True).all_variants()[0][-1]["pool"] == "auto"
