"""Placement of tables as a searched option, the same for every system."""

from dataclasses import replace

import numpy as np
import pytest

from host.model import Model, load_model
from host.placement.deal import PLACEMENTS
from sim.evaluation import placing
from sim.evaluation.placing import FIRST, Placed, counted, held_bytes, nic_us, placed, placements
from sim.evaluation.point import Point
from sim.evaluation.pooling import tables_of
from sim.evaluation.site import Site
from sim.evaluation.trace import placement_of, plan_of, without_small
from sim.job.inputs import SampleSource
from sim.job.options import RunOptions
from tests.sim import inputs

SYSTEMS = ("bl-tuned", "lc+rc", "en")

COMMON = {"nodes": 4, "mini_batch": 64, "warmup": 2, "measured": 2, "software": "tuned_h100",
          "gpu": "gpu_h100", "rdma": True, "link": "pcie_h100", "in_flight": None,
          "per_graph": None, "local_cache": None, "remote_cache": None, "placement": None}


@pytest.fixture(scope="module")
def history(tmp_path_factory) -> Model:
    """A model with one long history: whole tables leave most lookups at one node."""
    path = inputs.history(tmp_path_factory.mktemp("models") / "history.toml", keys=60)
    return load_model(str(path))


def point_of(system: str, model: Model, **fields) -> Point:
    return Point.named(system, COMMON, dataset=model, **fields)


def trace_of(point: Point):
    return counted(point).trace


def even_us(point: Point) -> float:
    """Return the interval with whole tables, the same number at each node."""
    return Placed.of(even := point.changed(placement="even"), Site.of(even), None).interval_us


@pytest.mark.thorough
@pytest.mark.parametrize("system", SYSTEMS[1:])
def test_nics_spread_the_rows_of_a_skewed_table(system, history):
    rows = placed(point_of(system, history, fixed=("pool=requester",)))
    assert rows.point.cluster.placement == "row" and rows.nic is not None
    assert rows.interval_us < 0.9 * even_us(rows.point)


@pytest.mark.parametrize("system", ["lc+rc", pytest.param("en", marks=pytest.mark.thorough)])
def test_nics_pool_a_skewed_table_at_its_owner(system, history):
    found, rows = (placed(point_of(system, history, fixed=fixed))
                   for fixed in ((), ("pool=requester",)))
    assert found.interval_us <= rows.interval_us * (1 + 1e-9)


def test_gpus_spread_tables_that_do_not_divide_by_the_nodes(history):
    """With 5 whole tables on 4 nodes, a node sends the vectors of two."""
    five = replace(history, rows=(1_500_000,) * 5, bags=((1, 1),) * 5)
    found = placed(point_of("bl-tuned", five, mini_batch=8192, fixed=("copied_rows=0",)))
    assert found.point.cluster.placement == "row" and found.nic is None
    assert found.interval_us < 0.9 * even_us(found.point)


def test_every_system_has_the_same_placements(history):
    found = [placements(point, trace_of(point)) for point in (
        point_of(system, history) for system in SYSTEMS)]
    assert found[0] == found[1] == found[2] and found[0] == ["even", "row"]
    assert FIRST == "even"


@pytest.mark.parametrize("placement", ["rows", "0,1,2,3,0,1"])
def test_a_given_placement_is_kept(placement, history):
    point = point_of("bl-tuned", history, placement=placement)
    assert placements(point, trace_of(point), 1) == [placement]
    assert placed(point).point == point


def test_equal_plans_are_one_placement(history):
    """With more nodes than tables, every placement hashes rows."""
    point = point_of("bl-tuned", history, nodes=8)
    assert placements(point, trace_of(point)) == ["even"]


def test_a_placement_that_does_not_fit_is_dropped(history):
    point = point_of("bl-tuned", history)
    trace = trace_of(point)
    # Hashed rows: 9.5 million over 4 nodes; whole tables: 3 million at a node.
    memory = 4 * 32 * 2_900_000
    assert placements(point, trace, memory) == ["row"]
    assert placed(point, memory).point.cluster.placement == "row"
    assert placements(point, trace, memory // 2) == ["even"]
    none = placed(point, memory // 2)
    assert none.built is not None and "GPU memory" in (none.why or "")


def test_copies_count_when_a_placement_must_fit(history):
    """Hashed rows fit by themselves, but not with the chosen copies of tables."""
    point = point_of("bl-tuned", history, fixed=("copied_rows=1000000",))
    mixed = replace(history, rows=(2_000_000, *[900_000] * 5))
    found = Placed.of(of := point.changed(dataset=mixed, placement="row"), Site.of(of),
                      4 * 32 * 2_000_000)
    assert found.why is not None and max(found.held) > 4 * 32 * 5 * 900_000


def test_counts_judge_the_placements_of_nics(history):
    sites = {name: Site.of(point_of("en", history, placement=name)) for name in PLACEMENTS}
    us = {name: nic_us(site) for name, site in sites.items()}
    assert us["row"] < 0.7 * us["even"] and us["lookups"] <= us["even"]
    # NICs do not serve copied tables; the table that remains is whole, or hashed.
    left = {name: nic_us(site, 1_600_000) for name, site in sites.items()}
    assert left["row"] < us["row"] and left["row"] < 0.3 * left["even"]


def test_repeats_are_those_of_the_counts(history):
    for bag in (1, 60):
        model = replace(history, rows=(2, 1_500_000), bags=((bag, bag), (1, 1)))
        site = Site.of(point_of("bl-tuned", model, placement="even", mini_batch=16))
        assert site.repeats == any(w.once is not w for w in site.work.plain) == (bag == 1)


def test_nics_run_with_one_more_placement_at_most(history, monkeypatch):
    tried = []

    def of(point, *others):
        tried.append(point.cluster.placement)
        return made(point, *others)

    made = Placed.of
    monkeypatch.setattr(placing.Placed, "of", staticmethod(of))
    placed(point_of("lc+rc", history, fixed=("pool=requester",)))
    assert tried == ["even", "row"]
    tried.clear()
    # No placement is fast enough: the second does not run.
    assert placed(point_of("lc+rc", history), below=1.0).built is None and tried == ["even"]
    tried.clear()
    # A slow host thread hides the NICs.
    slow = point_of("lc+rc", history, scaled=(("software_tuned_h100.graph_us", 200.0),))
    assert placed(slow).point.cluster.placement == "even" and tried == ["even"]


def test_nics_that_read_hashed_rows_need_whole_tables(history):
    held = {}
    for reads in ("true", "false"):
        point = point_of("en", history, placement="row", mini_batch=16, fixed=(
            "copied_rows=0", f"reads={reads}", "ring=false", "threads=1"))
        site = Site.of(point)
        built, _ = point.kind.at(site)
        held[reads] = max(held_bytes(site, built))
    rows = sum(history.rows)
    assert held["true"] - held["false"] == pytest.approx(4 * 32 * rows * 3 / 4)


@pytest.mark.thorough
def test_a_placement_whose_rows_nics_do_not_see_is_dropped(history):
    """A BAR of 1 GiB shows a node's whole tables, but not all tables of hashed rows."""
    small = (("gpu_h100.bar_gib", 1.0 / 128),)
    point = point_of("en", replace(history, rows=(2_000_000,) * 6), mini_batch=16, scaled=small,
                     fixed=("copied_rows=0", "reads=true", "ring=false", "threads=1"))
    hashed = point.changed(placement="row")
    assert "larger than the BAR" in (point.kind.why_not_placed(Site.of(hashed)) or "")
    whole = placed(point).point.cluster.placement
    assert whole not in (None, "row")


@pytest.mark.parametrize("placement", ["even", "rows", "lookups", "0,1,2,3,0,1", "row"])
def test_copies_leave_whole_tables_whole(placement, history):
    """Three tables are not copied on 4 nodes: NICs have the owners of the common plan."""
    model = replace(history, rows=(900, 50, 5000, 7000, 60, 70), bags=((1, 1),) * 6)
    point = point_of("en", model, placement=placement)
    trace = trace_of(point)
    left = without_small(trace, 100)
    whole = plan_of(point, trace).with_copies(100).tables
    expected = [whole[number] for number in (0, 2, 3)]
    assert list(plan_of(point, left).tables) == list(
        plan_of(point, trace, 100).tables) == expected
    options = RunOptions.of(model=left.model, nodes=4, placement=placement_of(point, left))
    assert list(SampleSource.of(options.workload).plan().tables) == expected


def test_the_busiest_direction_counts_a_row_once_per_share(history):
    """With one hot row, its owner answers each other node once; other rows are spread."""
    model = replace(history, rows=(50_000,) * 4, bags=((1, 1),) * 4)
    point = point_of("en", model, placement="row", mini_batch=512, measured=4)
    site = Site.of(point)
    hot = [replace(batch, samples=replace(
        batch.samples, rows=np.where(batch.samples.rows % 2, 7, batch.samples.rows)))
        for batch in site.trace.batches]
    trace = replace(site.trace, batches=tuple(hot))
    tables, busiest = tables_of(point, trace, ())
    sent = sum(row["requester_bytes"] for row in tables)
    assert sum(row["distinct_foreign_rows"] for row in tables) < 0.6 * sum(
        row["foreign_bags"] for row in tables)
    assert sent / 4 < busiest["bytes"] < 1.1 * sent / 4


def test_a_plan_needs_a_placement(history):
    point = point_of("bl-tuned", history)
    with pytest.raises(ValueError, match="placement must be given where it is not searched"):
        plan_of(point, trace_of(point))
