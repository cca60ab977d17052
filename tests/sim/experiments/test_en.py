"""EN at points: the trace of its NICs, its choices, and options left out or alone."""

from dataclasses import replace

import numpy as np
import pytest

from host.devices.gpu_time import GpuTime
from host.model import Model, load_model
from host.systems import DELIVER, EnTuning, HostTuning, StepOptions, en, en_variants, every
from host.systems.nic_times import NicTimes
from host.timing.clock import CYCLE_NS
from host.wire.indices import pooled_instead
from sim.evaluation.built import Built, interval_us
from sim.evaluation.en_nics import en_nic, nic_point, owner_pooled, reads_own
from sim.evaluation.en_search import EnSearch
from sim.evaluation.fields import devices_of
from sim.evaluation.least import deliveries, least_times
from sim.evaluation.measure import measure
from sim.evaluation.point import Point
from sim.evaluation.setting import DEMO, Setting
from sim.evaluation.site import Site
from sim.evaluation.store import Outcome, Results
from sim.evaluation.trace import copied_all, plan_of, trace_of, without_small
from sim.evaluation.workloads import Workloads
from sim.experiments.figures.en import CHANGES, MEASURED, NOTHING, OPTIONS
from sim.experiments.figures.registry import exhibit
from tests.sim.experiments.measured import told

POINT = Point.named("en", dataset="avazu", software="tuned", mini_batch=32, warmup=2, measured=4)


def test_nics_see_no_key_of_a_copied_table():
    trace = trace_of(POINT.workload)
    left = without_small(trace, 1000)
    large = [rows for rows in trace.model.rows if rows > 1000]
    assert list(left.model.rows) == large and left.changed
    for before, after in zip(trace.batches, left.batches, strict=True):
        kept = np.isin(before.samples.tables, [number for number, rows in enumerate(
            trace.model.rows) if rows > 1000])
        assert after.samples.rows.tolist() == before.samples.rows[kept].tolist()
    assert without_small(trace, 0) is trace
    assert copied_all(trace, 10**9) and not copied_all(trace, 10**6)


@pytest.mark.thorough
@pytest.mark.parametrize(("gpu", "reads"), [("gpu_rtx8000", False), ("gpu_h100", True)])
def test_nothing_that_en_may_choose_is_faster(gpu, reads):
    """The NIC reads rows if it sees all of them."""
    point = POINT.changed(per_graph=None, gpu=gpu)
    site = Site.of(point)
    trace, devices, work = site.trace, site.devices, site.work
    found, _ = point.kind.at(site)

    def cost(tuning: EnTuning, flight: tuple[int, int]) -> float:
        times = en_nic(site, tuning).times
        own = deliveries(point, trace, tuning.copied_rows, own=reads_own(point, tuning))
        return interval_us([en(work.plain[0], devices, StepOptions(), times[0], own[0], tuning)],
                           *flight)

    def shortest(tuning: EnTuning) -> float:
        return min(cost(tuning, flight) for flight in ((4, 1), (4, 2), (16, 1), (16, 2), (16, 4)))

    least = min(shortest(tuning) for tuning in every(EnTuning(), en_variants(False))
                if tuning.copied_rows in (0, 1000, 1_000_000) and (reads or not tuning.reads))
    assert shortest(found.tuning) <= least * 1.001
    assert found.in_flight in (8, 16)
    assert found.notes[0].startswith("fastest with")
    fixed = POINT.changed(gpu=gpu, fixed=("deliver=pooled", "copied_rows=100", "ring=false",
                                            "pace_us=0"))
    assert fixed.kind.at(Site.of(fixed))[0].tuning == EnTuning(
        ring=False, reads=reads, deliver="pooled", copied_rows=100, threads=1 + reads, key_bytes=4)


@pytest.mark.parametrize("deliver", DELIVER)
def test_no_nic_is_faster_than_the_bound_of_the_search(deliver):
    site, tuning = Site.of(POINT), EnTuning(deliver=deliver)
    trace = site.trace
    times = en_nic(site, tuning).times[0]
    of = deliveries(POINT, trace, 0, own=reads_own(POINT, tuning))[0]
    least = least_times(trace.model, tuning, of, 8)
    assert least.interval_us <= times.interval_us and least.service_us <= times.service_us
    assert 0 < least.delivered_bytes <= times.delivered_bytes


@pytest.mark.parametrize("pool", ["requester", "owner"])
def test_repeated_bags_are_looked_up_once(pool):
    model = Model((5000, 5000, 7000, 90), 16, 1, (16,), (1,), "requests",
                  ((4, 9), (1, 1), (1, 3), (1, 1)),
                  requests=(8, 16), request_tables=(0,))
    point = POINT.changed(dataset=model, mini_batch=64, measured=2, warmup=1)
    site, tuning = Site.of(point), EnTuning(deliver="pooled", pool=pool, ring=False)
    assert site.repeats
    plain, once = (en_nic(site, replace(tuning, bags_once=once)) for once in (False, True))
    assert once.traffic["total"]["bytes"] < 0.8 * plain.traffic["total"]["bytes"]
    assert once.times[0].interval_us < plain.times[0].interval_us
    assert (once.times[0].own_rows < plain.times[0].own_rows) == (pool == "owner")
    search = EnSearch(site, True)
    assert {each.bags_once for each in search.options()} == {False, True}
    rarely = Site.of(POINT)
    assert rarely.repeats and not any(each.bags_once for each in EnSearch(rarely, True).options())
    owner = owner_pooled(site, tuning)
    for nic, found in ((plain, False), (once, True)):
        of = deliveries(point, site.trace, 0, owner, found, reads_own(point, tuning))[0]
        least = least_times(site.trace.model, tuning, of, 16)
        assert least.interval_us <= nic.times[0].interval_us
        assert 0 < least.delivered_bytes <= nic.times[0].delivered_bytes


@pytest.mark.parametrize(("pool", "update"), [("requester", "gpu"), ("owner", "gpu"),
                                              ("owner", "nic")])
def test_gradients_of_repeated_bags_are_sent_once(pool, update):
    model = Model((5000, 5000, 7000, 90), 16, 1, (16,), (1,), "requests",
                  ((4, 9), (1, 1), (1, 3), (1, 1)),
                  requests=(8, 16), request_tables=(0,))
    point = POINT.changed(dataset=model, mini_batch=64, measured=2, warmup=1, workload="training")
    site = Site.of(point)
    tuning = EnTuning(deliver="pooled", pool=pool, ring=False, update=update)
    search = EnSearch(site, True)
    assert {each.bags_once for each in search.options()} == {False, True}
    plain, once = (search.nic(replace(tuning, bags_once=once)) for once in (False, True))
    for kind in ("gradients", "lookups"):
        assert once.traffic[kind]["bytes"] < plain.traffic[kind]["bytes"], kind
    for sent, fewer in zip(plain.times, once.times):
        assert fewer.updated == sent.updated
        if update == "gpu" and pool == "owner":
            assert fewer.owner_updates.read < sent.owner_updates.read
            assert fewer.owner_updates.held_us < sent.owner_updates.held_us
        else:
            assert fewer.update_us < sent.update_us
            assert fewer.reduced.bags.sum() < site.work.plain[0].bags.sum()
            assert sent.reduced is None


def test_nics_deliver_each_different_vector_of_a_share_once():
    site = Site.of(POINT)
    trace = site.trace
    shares = [share for batch in trace.measured
              for share in batch.samples.shares(POINT.cluster.nodes)]
    part = en_nic(site, EnTuning(own_at_gpu=False))
    found, count = part.delivered, len(trace.measured)
    assert found is not None and not found["retired_early"]
    # The slots of each share include its end.
    assert found["slots"] == (sum(len(share.keys) for share in shares) + len(shares)) / count
    assert found["vectors"] == sum(len(np.unique(share.keys)) for share in shares) / count
    pooled = en_nic(site, EnTuning(deliver="pooled"))
    assert pooled.delivered is None
    # The rows of a node's own tables do not pass its NIC.
    tables = plan_of(POINT, trace).tables
    foreign = [[key for key, table in zip(share.keys, share.tables) if tables[table].owner != node]
               for batch in trace.measured
               for node, share in enumerate(batch.samples.shares(POINT.cluster.nodes))]
    own = en_nic(site, EnTuning())
    found = own.delivered
    assert found is not None and not found["retired_early"]
    assert found["slots"] == (sum(map(len, foreign)) + len(foreign)) / count
    assert found["vectors"] == sum(len(set(keys)) for keys in foreign) / count
    # A small dedupe table evicts keys, which are sent again and counted.
    small = en_nic(replace(site, point=POINT.changed(settings=("unique_keys=16",))), EnTuning())
    assert small.delivered is not None and small.delivered["retired_early"] > 0
    assert found["vectors"] < small.delivered["vectors"] < found["slots"]
    assert small.times[0].delivered_bytes > own.times[0].delivered_bytes


def test_a_word_behind_the_last_answer_is_a_time_of_the_nics():
    site = Site.of(POINT)
    devices = site.devices
    way = 2 * devices.pcie.one_way_us
    flushed, plain = (en_nic(site, EnTuning(completion=completion)).times[0]
                      for completion in (True, False))
    # A flush is a round trip; the NIC's own time for it is less than another round trip.
    assert way < flushed.service_us - plain.service_us < 2 * way
    none = replace(devices, gpu=GpuTime(replace(devices.gpu.gpu, flush_reads=0), devices.software))
    unflushed = en_nic(replace(site, devices=none), EnTuning()).times[0]
    assert flushed.service_us - unflushed.service_us == pytest.approx(way, abs=0.2)


def test_rows_are_read_only_where_nics_see_them():
    """Gathers are not launched, and each row is a completion on PCIe."""
    with pytest.raises(ValueError, match="row_reads must be false where the tables of a node"):
        measure(POINT.changed(fixed=("reads=true",)))
    point = POINT.changed(gpu="gpu_h100", fixed=("ring=false", "copied_rows=0", "deliver=pooled"))
    found = {reads: measure(point.changed(fixed=(*point.system.fixed, f"reads={reads}")))
             for reads in ("false", "true")}
    assert found["true"]["nic_us"]["launches"] == 0 < found["false"]["nic_us"]["launches"]
    assert found["true"]["nic_us"]["service"] < found["false"]["nic_us"]["service"]
    busy = {reads: result["busy_us"] for reads, result in found.items()}
    assert "driver" not in busy["true"] and busy["false"]["driver"] > 0
    assert busy["true"]["pcie_out"] > busy["false"]["pcie_out"]


def test_what_nics_are_set_to():
    def settings(point: Point, tuning: EnTuning) -> tuple[str, ...]:
        seen, nics = nic_point(point, devices_of(POINT.cluster), tuning)
        assert nics.parts == seen.kind.parts
        return nics.settings_of(seen)

    assert settings(POINT, EnTuning(completion=False, deliver="pooled")) == (
        "requester_merge=true", "gpu_rings=true")
    assert "output_queues=true" in settings(POINT, EnTuning(queues=True))
    assert settings(POINT, EnTuning()) == (
        "requester_merge=true", "deliver=unique", "completions=true", "completion_flush=true",
        "gpu_rings=true")
    assert "gpu_rings=true" in settings(
        POINT.changed(workload="training"), EnTuning())
    larger = settings(POINT.changed(dataset="terabyte"), EnTuning())
    assert "hold_vectors=2048" in larger
    own = POINT.changed(settings=("requester_merge=false",))
    assert settings(own, EnTuning())[-1:] == own.system.settings
    for ring in (True, False):
        part = en_nic(Site.of(POINT), EnTuning(ring=ring))
        assert not any("analytical" in note for note in part.notes)


def test_a_point_in_rtl_runs_in_it_only_the_nics_that_it_chooses(monkeypatch):
    """They are the NICs chosen in fidelity model, with the same times."""
    asked = []

    def noted(site, tuning, *enough):
        asked.append((site.point.system.fidelity, tuning))
        return en_nic(replace(site, point=site.point.changed(fidelity="model")), tuning, *enough)

    monkeypatch.setattr("sim.evaluation.en_search.en_nic", noted)
    modelled, _ = POINT.kind.at(Site.of(POINT))
    assert {fidelity for fidelity, _ in asked} == {"model"}
    asked.clear()
    in_rtl, _ = POINT.kind.at(Site.of(POINT.changed(fidelity="rtl")))
    assert [tuning for fidelity, tuning in asked if fidelity == "rtl"] == [
        replace(modelled.tuning, **vars(HostTuning()))]
    assert in_rtl.interval_us == modelled.interval_us


@pytest.mark.slow
def test_rtl_takes_as_long_as_the_model():
    point = POINT.changed(warmup=1, measured=2, fixed=("deliver=unique", "copied_rows=0"))
    modelled, in_rtl = (measure(point.changed(fidelity=fidelity))
                        for fidelity in ("model", "rtl"))
    for name in ("service_us", "interval_us", "nic_us", "delivered", "traffic"):
        assert in_rtl[name] == modelled[name], name


def test_shares_with_more_slots_than_indices_get_vectors_of_bags(monkeypatch):
    monkeypatch.setattr("sim.evaluation.en_search.MOST_INDICES", 10)
    built = POINT.kind.at(Site.of(POINT))[0]
    assert built.tuning.deliver != "unique"
    assert built.notes[-1] == pooled_instead(max(
        of.most("slots")
        for of in deliveries(POINT, trace_of(POINT.workload), built.tuning.copied_rows)))


def test_no_interaction_of_more_vectors_than_a_nic_has():
    model = replace(load_model("kaggle"), rows=(100,) * 64)
    point = POINT.changed(dataset=model, mini_batch=8)
    options = EnSearch(Site.of(point), True).options()
    assert {each.deliver for each in options} == {"pooled", "unique"}
    fewer = point.changed(dataset=replace(model, rows=(100,) * 63))
    assert {each.deliver for each in EnSearch(Site.of(fewer), True).options()} == set(DELIVER)


@pytest.mark.thorough
def test_samples_beyond_the_largest_hold_buffer_need_copies():
    model = replace(load_model("kaggle"), rows=(500,) * 4 + (50_000,),
                    bags=((4_096, 4_096),) * 4 + ((1, 1),), interaction="cat")
    point = POINT.changed(dataset=model, mini_batch=2, nodes=2, warmup=1, measured=2)
    assert min(each.copied_rows for each in EnSearch(Site.of(point), True).options()) >= 500
    with pytest.raises(ValueError, match=r"^slots of a sample must be at most 16384, half the "
                                         r"largest hold_vectors of a NIC, not 16385: pool"):
        measure(point.changed(fixed=("copied_rows=0", "deliver=pooled")))
    most = replace(model, bags=((4_095, 4_095), *model.bags[1:]))
    fits = point.changed(dataset=most, fixed=("copied_rows=0", "deliver=pooled", "ring=true"))
    assert measure(fits)["interval_us"] > 16_383 * 0.004


def test_buffers_hold_the_largest_sample():
    """EN's own sizes, and those of a point, are not below the sizes that the samples require."""
    model = replace(load_model("kaggle"), rows=(5_000,), bags=((1_500, 1_500),), dimension=64,
                    bottom=(64,), interaction="cat", dense=4, top=(8, 1))
    point = POINT.changed(dataset=model, mini_batch=4, warmup=1, measured=2,
                          fixed=("deliver=pooled", "copied_rows=0", "ring=true"))
    part = en_nic(Site.of(point), EnTuning(deliver="pooled"))
    assert "NICs beyond preset terabyte: hold_vectors=4096" in part.notes
    small = point.changed(settings=("hold_vectors=2048",))
    with pytest.raises(ValueError, match=r"^hold_vectors must be at least 3000, twice the slots of "
                                         r"sample 0, not 2048$"):
        en_nic(Site.of(small), EnTuning(deliver="pooled"))


@pytest.mark.parametrize("workload", ["inference", "training"])
@pytest.mark.parametrize("given", [
    (), *(tuple(f"{name}={value}" for name, value in option.without.items())
          for option in OPTIONS), ("relaunch=true",),
    ("ring=false", "completion=false", "merge=false", "dense=false", "sizes=false")])
def test_every_option_left_out_is_measured(workload, given):
    if workload == "training" and given and given[0] in (
            "deliver=interaction", "relaunch=true", "copied_rows=0"):
        return
    point = POINT.changed(workload=workload, in_flight=1, fixed=given)
    found = measure(point)
    assert found["applicable"] and found["label"] == "EN"
    assert sum(found["phases_us"].values()) == pytest.approx(found["service_us"])
    assert {"cpu", "gpu", "gpu_memory", "nic", "pcie_in", "pcie_out", "link"} <= set(
        found["busy_us"])
    chosen = next(note for note in found["notes"] if note.startswith("fastest with"))
    ring = "ring" in chosen.removeprefix("fastest with ").split(", ")
    # Without a ring the NIC's driver launches a gather for each list.
    assert ("driver" in found["busy_us"]) == (not ring)
    assert not (ring and "ring=false" in given)
    assert found["point"] == point.to_json()


def test_the_table_has_each_option_alone_and_left_out():
    setting = replace(DEMO, datasets=("kaggle", "terabyte"))
    table = exhibit("en")
    points = table.points(setting)
    assert len(set(points)) == len(points) and {
        (point.cluster.software, point.cluster.gpu) for point in points} == {
        ("tuned", "gpu_rtx8000"), ("tuned_h100", "gpu_h100"), ("tuned", "gpu_rtx8000_mixed")}
    results = Results({point: Outcome(point, told(point)) for point in points})
    rows = table.rows(setting, results)
    systems = {row.system for row in rows if row.workload == "terabyte"}
    for option in OPTIONS:
        assert {f"EN without {option.name}", f"nothing but {option.name}"} <= systems
    for name, _ in (*CHANGES, MEASURED):
        assert {f"EN, {name}, kernels L2", f"bl-tuned, {name}, kernels L3"} <= systems
    assert {f"EN, kernels L{level}" for level in range(4)} <= systems
    assert not [row for row in rows if row.workload == "kaggle" and "larger buffers" in row.system]
    assert set(NOTHING) < set(vars(EnTuning()))
    assert all(row.value is not None for row in rows)
    assert table.points(Setting(softwares=("eager",))) == []


def test_a_slow_nic_is_what_binds():
    trace, devices = trace_of(POINT.workload), devices_of(POINT.cluster)
    work = Workloads(trace, plan_of(POINT, trace))
    own = deliveries(POINT, trace, 0)[0]
    steps = [en(work.plain[0], devices, StepOptions(), NicTimes({"embedding_lookup": 90.0}, 80.0),
                own, EnTuning())]
    assert interval_us(steps, 4) == pytest.approx(80.0, rel=0.02)


def test_patient_packets_wait_for_a_round_trip():
    site = Site.of(POINT)
    settings = [nic_point(POINT, site.devices, EnTuning(patient=patient))[0].system.settings
                for patient in (False, True)]
    trip = round(2000 * site.devices.network.one_way_us / CYCLE_NS)
    assert set(settings[1]) - set(settings[0]) == {
        f"lookup_timeout={trip}", f"vector_timeout={trip}"}
    soon, patient = (en_nic(site, EnTuning(patient=patient)) for patient in (False, True))
    assert patient.traffic["total"]["bytes"] < soon.traffic["total"]["bytes"]
    given = POINT.changed(settings=("vector_timeout=9",))
    kept = nic_point(given, site.devices, EnTuning(patient=True))[0].system.settings
    assert "vector_timeout=9" in kept and f"vector_timeout={trip}" not in kept


def test_the_search_tries_patient_packets_with_the_best_options():
    def best(*fixed: str, **changes) -> Built:
        point = POINT.changed(
            fixed=("deliver=pooled", "copied_rows=0", "ring=false", *fixed), **changes)
        return point.kind.at(Site.of(point))[0]

    soon, patient, found = best("patient=false"), best("patient=true"), best()
    assert patient.tuning.patient and not soon.tuning.patient
    assert found.interval_us == min(soon.interval_us, patient.interval_us)
    assert found.tuning.patient == (patient.interval_us < soon.interval_us)
    assert not best(nodes=1).tuning.patient
