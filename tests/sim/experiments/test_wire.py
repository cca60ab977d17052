"""Values of 16 bits between nodes: the NICs of EN, their bounds, and the search for the format."""

from dataclasses import replace

import numpy as np
import pytest

from host.model import Model
from host.systems import DELIVER, EnTuning
from sim.evaluation.built import Built
from sim.evaluation.en_nics import en_nic, nics_of, owner_pooled, reads_own
from sim.evaluation.en_search import EnSearch
from sim.evaluation.least import deliveries, least_times, link_bounds
from sim.evaluation.nic_options import as_nics_see, cache_rows, options_of, serving
from sim.evaluation.placing import nic_us, placed
from sim.evaluation.point import Point
from sim.evaluation.pooling import least_bytes, owner_tables, tables_of
from sim.evaluation.site import Site
from sim.evaluation.trace import plan_of

BAGS = Model((4000,) * 8, 128, 4, (32, 128), (32, 1), bags=((1, 1),) * 5 + ((8, 12),) * 3)
MIXED = Model((4000, 9000, 500, 70, 4000, 2000), 64, 4, (32, 64), (32, 1), interaction="cat",
              dimensions=(10, 64, 33, 4, 128, 16))
FIELDS = {"dataset": BAGS, "nodes": 4, "mini_batch": 128, "warmup": 1, "measured": 4,
          "software": "tuned_h100", "gpu": "gpu_h100", "rdma": True, "in_flight": 4,
          "per_graph": 1, "local_cache": None, "remote_cache": None}
POINT = Point.named("en", FIELDS)
SLOW = {"scaled": (("ethernet_100g_switch.bandwidth_gbit_s", 0.1),)}
"""The network is the bottleneck."""
FEW = ("copied_rows=0", "threads=1", "ring=false", "pace_us=0", "patient=false", "bags_once=false")

PLAIN = EnTuning(ring=False)
NARROW = replace(PLAIN, wire="float16")


@pytest.fixture(scope="module")
def site():
    return Site.of(POINT)


@pytest.mark.parametrize("pool", ["requester", "owner"])
def test_vectors_take_half_the_bytes_on_network_and_pcie(site, pool):
    wide, narrow = (en_nic(site, replace(of, pool=pool)) for of in (PLAIN, NARROW))
    # Rows of 128 values are 512 or 256 bytes, with tags and headers.
    vectors = narrow.traffic["vectors"]["bytes"] / wide.traffic["vectors"]["bytes"]
    assert 0.45 < vectors < 0.56
    assert narrow.traffic["lookups"]["bytes"] < 1.1 * wide.traffic["lookups"]["bytes"]
    narrow_us, wide_us = (each.times[0] for each in (narrow, wide))
    assert 0.45 < narrow_us.delivered_bytes / wide_us.delivered_bytes < 0.65
    assert narrow_us.sent_bytes < 0.75 * wide_us.sent_bytes
    for name in ("gathered", "pooled_rows", "pooled_bags", "own_rows", "own_bags"):
        assert getattr(narrow_us, name) == pytest.approx(getattr(wide_us, name), rel=0.1), name


@pytest.mark.parametrize("pool", ["requester", "owner"])
def test_vectors_of_8_bits_take_three_beats_of_eight(site, pool):
    """128 codes are two beats, and four pairs of scale and bias take half a beat. Packets hold more
    vectors."""
    wide, narrow = (en_nic(site, replace(PLAIN, pool=pool, wire=wire))
                    for wire in ("float32", "int8"))
    vectors = narrow.traffic["vectors"]["bytes"] / wide.traffic["vectors"]["bytes"]
    assert 0.35 < vectors < 0.42
    assert narrow.times[0].sent_bytes < 0.65 * wide.times[0].sent_bytes


@pytest.mark.parametrize("model", [BAGS, MIXED])
@pytest.mark.parametrize("pool", ["requester", "owner"])
def test_bounds_stay_bounds(model, pool):
    point = POINT.changed(dataset=model)
    site, tuning = Site.of(point), replace(NARROW, pool=pool)
    times, owner = en_nic(site, tuning).times[0], owner_pooled(site, tuning)
    of = deliveries(point, site.trace, 0, owner, own=reads_own(point, tuning))[0]
    link = link_bounds(site, owner, wire="float16")[0]
    # A cache may hold all rows, but no vectors of bags.
    assert (link == 0) == (pool == "requester") and link <= 0.6 * link_bounds(site, owner)[0]
    least = least_times(site.trace.model, tuning, of, 32, link)
    assert least.interval_us <= times.interval_us and least.service_us <= times.service_us
    assert 0 < least.delivered_bytes <= times.delivered_bytes
    wide = least_times(site.trace.model, replace(tuning, wire="float32"), of, 32, link)
    assert least.delivered_bytes < 0.7 * wide.delivered_bytes


def test_gradients_take_half_the_bytes_in_training():
    """Of vectors of 128 values, which leave beside keys."""
    point = POINT.changed(workload="training", in_flight=None)
    search = EnSearch(Site.of(point), True)
    wide, narrow = (search.nic(EnTuning(ring=False, pool="owner", wire=wire))
                    for wire in ("float32", "float16"))
    gradients = narrow.traffic["gradients"]["bytes"] / wide.traffic["gradients"]["bytes"]
    assert 0.45 < gradients < 0.65
    wide_us, narrow_us = (each.times[0].owner_updates for each in (wide, narrow))
    assert narrow_us.bags_us < wide_us.bags_us and narrow_us.link_us < 0.65 * wide_us.link_us
    assert narrow_us.kernels == wide_us.kernels


def test_training_chooses_16_bits_only_where_nics_add_nothing():
    point = POINT.changed(workload="training", in_flight=None, fixed=FEW, **SLOW)
    wide, narrow = (point.changed(wire=wire) for wire in ("float32", "float16"))
    found = [each.kind.at(Site.of(each))[0] for each in (wide, narrow)]
    assert found[1].tuning.wire == "float16" and found[1].tuning.update == "gpu"
    assert found[1].interval_us < 0.8 * found[0].interval_us
    # The short bags of some tables take fewer bytes as rows.
    mixed = point.changed(wire="float16", fixed=(*FEW, "pool=auto", "wire=float16"))
    assert mixed.kind.why_not_placed(Site.of(mixed)) == (
        "wire must be float32: NICs sum gradients of tables that pool at the requester")


def test_lanes_of_each_table_count():
    point = POINT.changed(dataset=MIXED, nodes=2)
    trace = Site.of(point).trace
    owners = np.array([table.owner for table in plan_of(point, trace).tables])
    # Lanes 5, 32, 17, 2, 64, 8 are 1, 2, 2, 1, 4 and 1 beats.
    beats, found = [1, 2, 2, 1, 4, 1], []
    for node, share in enumerate(trace.measured[0].samples.shares(2)):
        foreign = (share.bag_lengths > 0) & (owners != node)
        found.append((64 * foreign * beats).sum())
    assert least_bytes(point, trace, 0, tuple(range(6)), wire="float16") == max(found) > 0


def test_placement_and_counts_do_not_depend_on_the_format():
    point = POINT.changed(dataset=MIXED, placement="rows")
    site = Site.of(point)
    runs = []
    for tuning in (PLAIN, NARROW):
        of, nics, trace, devices = nics_of(site, tuning)
        rows, _ = cache_rows(of, nics, trace)
        gpu, _ = serving(of, nics, devices, trace.model)
        runs.append(options_of(of, nics, trace, devices, gpu, rows, False, 1).workload)
    wide, narrow = runs
    assert wide.placement == narrow.placement and wide.model == MIXED
    assert narrow.model.table_dimensions == (5, 32, 17, 2, 64, 8)
    tables = [tables_of(point, site.trace, (1,), wire=wire)[0] for wire in ("float32", "float16")]
    for wide, narrow in zip(*tables):
        assert wide["foreign_bags"] == narrow["foreign_bags"]
        assert narrow["requester_bytes"] < wide["requester_bytes"]
    assert 0.5 <= nic_us(site, wire="float16") / nic_us(site) < 0.6
    # Keys weigh more beside smaller vectors.
    assert set(owner_tables(POINT, Site.of(POINT).trace, "auto", wire="float16")) <= set(
        owner_tables(POINT, Site.of(POINT).trace, "auto"))


def test_a_gpu_reads_whole_rows_for_vectors_of_half_the_bytes(site):
    gpu = site.devices.gpu.gpu
    for row, vector in ((512, 256), (64, 32), (16, 16)):
        wide, narrow = as_nics_see(gpu, row), as_nics_see(gpu, row, vector)
        assert narrow.cycles_per_row(vector) == pytest.approx(wide.cycles_per_row(row))
        assert narrow.stream_bytes_per_cycle == wide.stream_bytes_per_cycle
        assert narrow.cycles_of_bags(9, 3, vector) <= wide.cycles_of_bags(9, 3, row)


def built(*fixed: str, **changes) -> Built:
    point = POINT.changed(fixed=(*FEW, *fixed), **changes)
    return point.kind.at(Site.of(point))[0]


@pytest.mark.thorough
def test_the_search_takes_the_format_where_bytes_decide():
    wide, narrow = (built("pool=requester", wire=wire, **SLOW) for wire in ("float32", "float16"))
    assert narrow.tuning.wire == "float16" and wide.tuning.wire == "float32"
    assert narrow.interval_us < 0.7 * wide.interval_us
    assert "float16 between nodes" in narrow.notes[0]
    assert "between nodes" not in wide.notes[0]
    fixed = built("pool=requester", "wire=float32", wire="float16", **SLOW)
    assert fixed.tuning == wide.tuning and fixed.interval_us == wide.interval_us


@pytest.mark.thorough
@pytest.mark.parametrize("changes", [
    {}, SLOW, pytest.param({"dataset": "kaggle", "mini_batch": 256}, marks=pytest.mark.slow),
    pytest.param({"dataset": MIXED}, marks=pytest.mark.thorough),
    pytest.param({"dataset": "multi_hot"}, marks=pytest.mark.thorough)])
def test_a_further_format_makes_no_interval_longer(changes):
    wide, narrow = (placed(POINT.changed(wire=wire, fixed=FEW[2:], placement=None, **changes))
                    for wire in ("float32", "float16"))
    assert narrow.interval_us <= wide.interval_us
    assert narrow.held == wide.held or narrow.built.tuning.copied_rows != \
        wide.built.tuning.copied_rows


@pytest.mark.thorough
def test_a_share_of_too_many_slots_keeps_float32(monkeypatch):
    monkeypatch.setattr("sim.evaluation.en_search.MOST_INDICES", 100)
    point = POINT.changed(fixed=(*FEW, "pool=requester"), wire="float16", **SLOW)
    assert built("pool=requester", wire="float16", **SLOW).tuning.wire == "float32"
    found = placed(point)
    assert found.why is None and found.built.tuning.wire == "float32"
    fixed = placed(point.changed(fixed=(*point.system.fixed, "wire=float16")))
    assert fixed.why == "wire must be float32: the slots of a share do not fit unique delivery"


def test_formats_of_a_point():
    def wires(**changes) -> tuple[str, ...]:
        point = POINT.changed(**{"wire": "float16"} | changes)
        assert len(point.kind.apart(point)) == len(point.kind.wires(point))
        return point.kind.wires(point)

    assert wires() == ("float32", "float16")
    training = {"workload": "training", "in_flight": None}
    assert wires(**training) == ("float32", "float16")
    assert wires(**training, wire="int8") == ("float32", "float16", "int8")
    for changes in ({"wire": "float32"}, {"nodes": 1}, training | {"fixed": ("update=nic",)},
                    training | {"fixed": ("pool=requester",)}, {"fixed": ("reads=true",)},
                    {"nodes": 2, "gpus": 2, "inside": "topology_dgx_h100"},
                    *({"fixed": (f"deliver={each}",)} for each in DELIVER[:2])):
        assert wires(**changes) == ("float32",), changes
    assert wires(fixed=("wire=float16",)) == ("float16",)
    assert POINT.kind.apart(POINT) == [POINT]
    assert Point.named("fs", FIELDS | {"wire": "float16"}).kind.wires(POINT) == ("float32",)
    assert {each.wire for each in EnSearch(Site.of(POINT), True).options()} == {"float32"}


@pytest.mark.parametrize(("fixed", "changes", "message"), [
    (("update=nic",), {"workload": "training", "in_flight": None},
     "fixed must leave consistent options in training"),
    (("deliver=interaction",), {}, "fixed must leave consistent options in inference"),
    (("deliver=pooled",), {}, "fixed must leave consistent options in inference"),
    (("reads=true",), {}, "fixed must leave consistent options in inference"),
    ((), {"gpus": 2, "inside": "topology_dgx_h100"},
     "wire must be float32 for en where NICs serve several GPUs, not 'float16'")])
def test_systems_without_the_format(fixed, changes, message):
    with pytest.raises(ValueError, match=message):
        POINT.changed(fixed=("wire=float16", *fixed), **changes)
    with pytest.raises(ValueError, match="wire must be one of float32, float16, int8, not 'int4'"):
        POINT.changed(fixed=("wire=int4",))
