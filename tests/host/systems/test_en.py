"""EN: steps worked out by hand, the effect of each option, and the charges of each resource."""

from dataclasses import fields, replace

import numpy as np
import pytest

from host.devices.copies import CopyTime
from host.devices.embedding_work import gather
from host.devices.gpu_time import GpuTime
from host.samples import Samples
from host.systems import (
    DELIVER,
    Delivery,
    EnTuning,
    NicTimes,
    OwnerUpdates,
    StepOptions,
    Tally,
    Tuning,
    bl_tuned,
    breakdown,
    delivery_of,
    en,
    en_variants,
    every,
    fixed_of,
    open_variants,
    schedule,
)
from host.systems.charge import earliest_ends, longest_us
from host.systems.en import beside_ring, ring_of
from host.systems.nic_use import NicUse, own_bags
from host.systems.stage import Step
from host.timing.pcie import PcieProfile
from tests.host.systems.simple import EAGER, MODEL, TUNED, devices, workload

INFERENCE, TRAINING = StepOptions(), StepOptions(training=True)
NIC = NicTimes({"input_all_to_all": 2.0, "embedding_lookup": 5.0, "embedding_all_to_all": 1.0,
                "overhead": 0.5}, interval_us=6.0)
OWN = Delivery(slots=2, bags=2, vectors=2)
SOME = Delivery(slots=1, bags=1, vectors=1, copied_slots=1, copied_bags=1)


def sound(software=TUNED, **gpu):
    """Return devices whose resident kernel leaves three of four multiprocessors of the GPU."""
    d = devices(software=software)
    return replace(d, gpu=GpuTime(replace(d.gpu.gpu, resident_multiprocessors=1, **gpu), software))


ALL = EnTuning()


def step(tuning=ALL, nic=NIC, options=INFERENCE, own=OWN, d=None):
    return en(workload(), d or sound(), options, nic, own, tuning)


def busy(found) -> dict:
    return schedule([found]).busy


def names(found) -> list[str]:
    return [stage.name for stage in found.stages]


def test_the_threads_part_is_a_doorbell_a_graph_and_a_wait():
    # A doorbell 1, a graph 6, and a wait 3, with any delivery, and never two launches.
    for deliver in DELIVER:
        assert busy(step(EnTuning(deliver=deliver)))["cpu"] == pytest.approx(1 + 6 + 3)
    relaunched = busy(step(EnTuning(relaunch=True)))
    assert relaunched["cpu"] == pytest.approx(1 + 1 + 3)


def test_the_bottom_mlp_does_not_wait_for_the_nic_nor_the_nic_for_it():
    # The doorbell 1; a graph 6, 1; dense features 1; the bottom MLP, a product and an activation,
    # 4: done at 13. Interaction and top MLP 6 kernels at level 0; predictions 0.5 and the wait 3.
    quick = replace(NIC, phases={"embedding_lookup": 0.5})
    level0 = 2 * (1 + 4 + 2)
    assert longest_us(step(nic=quick)) == pytest.approx(13 + level0 + 3.5, abs=0.01)
    # A slow NIC: the doorbell, PCIe 0.5 and 0.5 for the queries, the NIC's time including its
    # word's way over PCIe, the extra time of a short write 0.324, and the poll 2.
    slow = replace(NIC, phases={"embedding_lookup": 100.0})
    assert longest_us(step(nic=slow)) == pytest.approx(
        1 + 1 + 100 + 0.324 + 2 + level0 + 3.5, abs=0.01)
    # The NIC's time includes only the first flush.
    assert "flush" not in names(step(nic=slow))
    again = step(nic=slow, d=sound(flush_reads=2))
    assert longest_us(again) - longest_us(step(nic=slow)) == pytest.approx(1.0)


def test_without_completions_the_host_waits_and_launches_again():
    found = step(EnTuning(completion=False))
    assert busy(found)["cpu"] == pytest.approx(1 + 2 * 6 + 2 * 3)
    assert "completion" not in names(found) and "answers" in names(found)
    told = step(EnTuning(completion=False, deliver="interaction"))
    assert busy(told)["cpu"] == pytest.approx(2 * 1 + 2 * 6 + 3 * 3)


def test_dense_vectors_are_told_of_by_a_kernel_or_by_the_thread():
    nic = replace(NIC, interaction_us=4.0)
    by_kernel, by_thread = (busy(step(EnTuning(deliver="interaction", dense=dense), nic))["cpu"]
                            for dense in (True, False))
    assert by_thread - by_kernel == pytest.approx(3 + 1 + 6)
    quick = replace(nic, phases={"embedding_lookup": 0.5})
    # The bottom MLP is done at 13; a store 1 and 0.5, the NIC 4, its word's 0.324, the poll 2; the
    # top MLP 4.
    assert longest_us(step(EnTuning(deliver="interaction"), quick)) == pytest.approx(
        13 + 1.5 + 4 + 0.324 + 2 + 4 + 3.5, abs=0.01)


def test_a_resident_kernel_keeps_its_multiprocessors_from_all_others():
    d = devices(software=TUNED)
    gpu = replace(d.gpu.gpu, resident_multiprocessors=1)
    d = replace(d, gpu=GpuTime(gpu, TUNED))
    rest = beside_ring(d).gpu.gpu
    assert rest.multiprocessors == 3
    assert rest.float32_tflops == pytest.approx(gpu.float32_tflops * 3 / 4)
    assert rest.memory_bandwidth_gb_s == pytest.approx(gpu.memory_bandwidth_gb_s * 3 / 4)
    kept, whole = (busy(step(EnTuning(ring=ring), d=d))["gpu"] for ring in (True, False))
    assert kept == pytest.approx(whole * 4 / 3)
    with pytest.raises(ValueError, match="resident_multiprocessors must be below the 1 of"):
        step(d=sound(multiprocessors=1))


def test_nics_see_a_ring_as_slow_as_its_share():
    d = sound()
    seen = ring_of(d).gpu.gpu
    assert seen.memory_bandwidth_gb_s == pytest.approx(d.gpu.gpu.memory_bandwidth_gb_s / 4)
    # A flag behind the list. NICs without rings: a store to them, and their read of the vectors.
    assert seen.poll_us == pytest.approx(2.0 + 0.324)


def slow_pcie(d):
    pcie = PcieProfile("pcie", 0.5, 1e-3, write_us=0.25)  # a byte a microsecond
    return replace(d, pcie=pcie, copies=CopyTime(pcie, d.software),
                   network=replace(d.network, bandwidth_gbit_s=8e-3))


@pytest.mark.parametrize("deliver", DELIVER)
def test_all_that_the_nic_writes_flags_and_rows_cross_pcie(deliver):
    nic = replace(NIC, gathers=3.0, gathered=10.0, sent_bytes=7.0, delivered_bytes=123.0)
    found = busy(step(EnTuning(deliver=deliver), nic, d=slow_pcie(sound())))
    # The bytes that the NIC counted, flags of lists, the word's short write, and two dense
    # features.
    assert found["pcie_in"] == pytest.approx(123 + 3 * 0.25 + 0.25 + 4 * 2)
    assert found["pcie_out"] == pytest.approx(
        16 * 10 + 4 + (16 if deliver == "interaction" else 0))
    assert found["link"] == pytest.approx(7) and found["nic"] == pytest.approx(6)


def test_copies_of_small_tables_cost_keys_and_rows():
    d = slow_pcie(sound())
    found, other = (busy(step(EnTuning(copied_rows=10, deliver="pooled"), own=own, d=d))
                    for own in (SOME, OWN))
    # A key and an offset of 8 bytes each; the NIC's counts include the reduction of its writes.
    assert found["pcie_in"] - other["pcie_in"] == pytest.approx(16)
    slow = replace(d, gpu=GpuTime(replace(d.gpu.gpu, memory_bandwidth_gb_s=0.032), TUNED))
    memory = [busy(step(EnTuning(deliver="pooled"), own=own, d=slow))["gpu_memory"]
              for own in (SOME, OWN)]
    assert memory[0] > memory[1]


def test_bags_of_several_slots_cost_where_they_begin():
    d, many = slow_pcie(sound()), Delivery(slots=5, bags=2, vectors=3)
    assert many.index_bytes == 2 * 5 and many.bag_bytes == 2 * 2 and not OWN.bag_bytes
    found, other = (busy(step(EnTuning(deliver=deliver), own=many, d=d))["pcie_in"]
                    for deliver in ("unique", "pooled"))
    assert found - other == pytest.approx(2 * 2)


@pytest.mark.parametrize(("deliver", "size"), [
    ("interaction", 4 * 7), ("pooled", 4 * 4 * 2), ("unique", 4 * 4 * 2 + 2 * 2)])
def test_results_have_at_least_these_bytes(deliver, size):
    assert OWN.result_bytes(deliver, MODEL, 1) == size


def test_expanding_is_part_of_the_interaction_from_level_2_on():
    def kernels(level: int) -> list[str]:
        d = sound(replace(TUNED, kernels=level))
        return [s.name for s in step(d=d).stages if "gpu" in s.resources
                and s.phase == "irregular"]

    assert len(kernels(2)) == 1 and len(kernels(1)) == 5


@pytest.mark.parametrize("options", [INFERENCE, TRAINING])
@pytest.mark.parametrize("software", [EAGER, TUNED])
def test_every_set_of_options_adds_up(options, software):
    nic = replace(NIC, update_us=40.0, gathers=2.0, gathered=9.0, interaction_us=3.0)
    tried = 0
    for fixed in ({}, {"ring": False}, {"completion": False}, {"merge": False}, {"dense": False},
                  {"relaunch": True}):
        if fixed.get("relaunch") and (options.training or not software.graphs):
            continue
        for tuning in every(EnTuning(**fixed), open_variants(
                en_variants(options.training), fixed), options.training):
            found = step(tuning, nic, options, SOME if tuning.copied_rows else OWN,
                         sound(software))
            times = schedule([found])
            assert sum(breakdown(found).values()) == pytest.approx(
                times.finished[0])
            assert {"cpu", "gpu", "nic", "pcie_in"} <= set(times.busy)
            assert ("driver" in times.busy) == (nic.launches > 0)
            tried += 1
    assert tried >= (8 if options.training else 50)


def test_nothing_is_faster_with_a_slower_constant():
    nic = replace(NIC, update_us=40.0, gathers=2.0, gathered=9.0, interaction_us=30.0)
    d = sound()

    def slower():
        gpu = d.gpu.gpu
        for name in ("launch_us", "kernel_us", "poll_us", "word_us"):
            yield replace(d, gpu=GpuTime(replace(gpu, **{name: 2 * getattr(gpu, name)}), TUNED))
        for name in ("graph_us", "doorbell_us", "synchronize_us"):
            software = replace(TUNED, **{name: 2 * getattr(TUNED, name)})
            yield replace(d, software=software, gpu=GpuTime(gpu, software),
                          copies=CopyTime(d.pcie, software))
        for name in ("one_way_us", "write_us"):
            pcie = replace(d.pcie, **{name: 2 * getattr(d.pcie, name)})
            yield replace(d, pcie=pcie, copies=CopyTime(pcie, TUNED))

    slow_nic = replace(nic, phases={"embedding_lookup": 60.0})
    for deliver in DELIVER:
        tuning = EnTuning(deliver=deliver)
        for times in (nic, slow_nic):
            base = longest_us(step(tuning, times, d=d))
            assert all(longest_us(step(tuning, times, d=each)) >= base for each in slower())
        # With a slow NIC, the critical path contains all steps between its answer and the
        # prediction, including the completion.
        base = longest_us(step(tuning, slow_nic, d=d))
        word, write = list(slower())[3], list(slower())[8]
        assert longest_us(step(tuning, slow_nic, d=word)) == pytest.approx(base + 2)
        assert longest_us(step(tuning, slow_nic, d=write)) == pytest.approx(base + 0.324)


def test_training_rings_from_the_last_kernel_that_makes_gradients():
    nic = replace(NIC, update_us=500.0)
    found = step(EnTuning(deliver="pooled"), nic, TRAINING)
    assert busy(found)["cpu"] == pytest.approx(1 + 6 + 3)
    waits = step(EnTuning(deliver="pooled", completion=False), nic, TRAINING)
    # Waits for answers and gradients, a doorbell and two graphs more.
    assert busy(waits)["cpu"] == pytest.approx(2 * 1 + 3 * 6 + 3 * 3)
    assert longest_us(waits) - longest_us(found) > 0
    told = found.stages[names(found).index("gradients are there")]
    before = found.stages[told.after[0]]
    assert before.name == "interaction backward" and "cpu" not in told.resources


def busiest(found: Delivery) -> dict[str, int]:
    """Return the maximum over nodes of each count that is not 0."""
    most = {each.name: found.most(each.name) for each in fields(found)}
    return {name: count for name, count in most.items() if count}


def test_deliveries_are_counted_by_share():
    rows = np.array([[1, 2], [1, 3], [1, 2], [4, 2]])
    samples = Samples.one_hot(np.zeros((4, MODEL.dense), np.float32), np.zeros(4), rows)
    # Two shares of two samples, with keys 1, 2, 1, 3 and 1, 2, 4, 2: three distinct keys each.
    tally, every = Tally(samples, 2), (False, False)
    half = {"slots": 2, "bags": 2, "vectors": 2, "copied_slots": 2, "copied_bags": 2}
    assert busiest(delivery_of(tally, every)) == {"slots": 4, "bags": 4, "vectors": 3}
    assert busiest(delivery_of(tally, (True, False))) == half
    # The first share repeats a bag of the first table, the second share of the second table.
    assert busiest(delivery_of(tally, every, once=True)) == {"slots": 3, "bags": 3, "vectors": 3}
    assert busiest(delivery_of(tally, (True, False), once=True)) == half


def test_a_gpu_reads_its_own_share_where_nodes_own_different_tables():
    """Node 0 owns both tables: its GPU reads rows, and that of node 1 gets vectors. Neither reads
    more bags than its samples have."""
    samples = Samples.one_hot(np.zeros((16, MODEL.dense), np.float32), np.zeros(16),
                              np.arange(32).reshape(16, 2))
    own = delivery_of(Tally(samples, 2), (False, False), own={0: 0, 1: 0})
    assert (own.slots.tolist(), own.copied_slots.tolist()) == ([0, 16], [16, 0])
    unique = EnTuning(deliver="unique", ring=False)
    w = workload(rows=((1, 2),) * 16)
    found, alone = (next(stage for stage in en(w, sound(), INFERENCE, NIC, each, unique).stages
                         if stage.name == "expand and interaction")
                    for each in (own, Delivery(16, 16, 16)))
    assert found.us == pytest.approx(alone.us, rel=0.05)


@pytest.mark.parametrize("deliver", ["pooled", "unique"])
def test_vectors_of_equal_bags_are_copied_as_in_the_baseline(deliver):
    """The charge of the copies, and of an index per bag, is the charge of bl-tuned."""
    plain, once = EnTuning(deliver=deliver), EnTuning(deliver=deliver, bags_once=True)
    copies = "vectors of equal bags"
    assert copies in names(step(once)) and copies not in names(step(plain))
    w = workload(rows=((1, 2),) * 8)
    baseline = bl_tuned(w, sound(), INFERENCE, Tuning(bags_once=True, key_bytes=8))
    mine = en(w, sound(), INFERENCE, NIC, OWN, replace(once, ring=False))
    us = [sum(stage.us for stage in found.stages if stage.name == copies)
          for found in (baseline, mine)]
    assert us[0] == pytest.approx(us[1]) and us[0] > 0
    slow = replace(sound(), copies=CopyTime(PcieProfile("slow", 0.5, 1e-3), TUNED))
    moved = [next(stage.us for stage in en(w, slow, INFERENCE, NIC, OWN, tuning).stages
                  if stage.name == "inputs" and "pcie_in" in stage.resources)
             for tuning in (plain, once)]
    assert moved[1] - moved[0] == pytest.approx(8 * int(w.whole.max()))
    assert once.possible(training=True)
    assert not replace(once, deliver="interaction").possible()


def test_gradients_of_equal_bags_are_added_as_in_the_baseline():
    """The GPU adds them before the NIC's doorbell, at the charge of bl-tuned, and the NIC reads
    fewer gradients."""
    added = "gradients of equal bags"
    w = workload(rows=((1, 2),) * 8)
    nic = replace(NIC, update_us=500.0, reduced=w.once)
    once = EnTuning(deliver="pooled", ring=False, bags_once=True)
    mine = en(w, sound(), TRAINING, nic, OWN, once)
    baseline = bl_tuned(w, sound(), TRAINING, Tuning(bags_once=True, key_bytes=8))
    us = [sum(stage.us for stage in found.stages if stage.name == added)
          for found in (baseline, mine)]
    assert us[0] == pytest.approx(us[1]) and us[0] > 0
    told = mine.stages[names(mine).index("gradients are there")]
    assert mine.stages[told.after[0]].name == added
    plain = en(w, sound(), TRAINING, replace(nic, reduced=None), OWN,
               replace(once, bags_once=False))
    assert added not in names(plain)
    read = [sum(stage.us for stage in found.stages if stage.name == "NIC's use of pcie_out")
            for found in (mine, plain)]
    assert read[0] < read[1]


def test_bags_that_pool_at_their_owner_are_slots_of_the_other_nodes():
    # Nodes 0 and 1 have two samples each; the bags of table 1 are 2, 0, 3 and 5 keys.
    samples = Samples(np.zeros((4, MODEL.dense), np.float32), np.zeros(4),
                      np.array([[1, 2], [1, 0], [1, 3], [1, 5]], np.int32),
                      np.array([0, 1, 1, 0, 0, 1, 1, 1, 0, 1, 1, 1, 1, 1], np.int32),
                      np.array([7, 1, 2, 7, 8, 1, 1, 2, 9, 1, 2, 3, 4, 5]))
    tally = Tally(samples, 2)
    # Owner 0: node 0 pools a bag of 2 keys. Node 1 has 2 keys of table 0 and 2 foreign bags.
    assert busiest(delivery_of(tally, (False, False), {1: 0})) == {
        "slots": 4, "bags": 4, "vectors": 4, "own_rows": 2, "own_bags": 1}
    # Owner 1: node 1 pools bags of 3 and 5 keys; node 0 has 2 keys, and a foreign bag.
    assert busiest(delivery_of(tally, (False, False), {1: 1})) == {
        "slots": 3, "bags": 4, "vectors": 2, "own_rows": 8, "own_bags": 2}
    # A bag of 60 keys has 31 words, in 4 beats at least.
    long = Samples(np.zeros((2, MODEL.dense), np.float32), np.zeros(2),
                   np.array([[60, 1], [60, 1]], np.int32),
                   np.repeat(np.array([0, 1, 0, 1], np.int32), (60, 1, 60, 1)),
                   np.arange(122))
    assert delivery_of(Tally(long, 2), (False, False), {0: 1}).most("segments") == 31 // 8 - 1


def test_own_bags_take_a_kernel_and_their_keys_cross_pcie():
    nic = replace(NIC, own_rows=1000.0, own_bags=10.0)
    alone, found = step(EnTuning(ring=False, deliver="pooled")), step(
        EnTuning(ring=False, deliver="pooled", pool="auto"), nic)
    assert "own bags" not in names(alone)
    own = found.stages[names(found).index("own bags")]
    assert own.us == devices().gpu.kernels(gather(1000, 10, MODEL.width, fused=True)).us
    copied = max(at for at, name in enumerate(names(found)) if name == "inputs")
    assert copied in own.after
    last = next(stage for stage in found.stages if stage.name == "interaction")
    assert names(found).index("own bags") in last.after
    slow = replace(devices(), copies=CopyTime(PcieProfile("slow", 0.5, 1e-3), TUNED))
    more = {size: sum(stage.us for stage in step(EnTuning(
        ring=False, deliver="pooled", pool="auto", key_bytes=size), nic, d=slow).stages
        if stage.name == "inputs") - sum(stage.us for stage in step(EnTuning(
            ring=False, deliver="pooled", key_bytes=size), d=slow).stages if stage.name == "inputs")
        for size in (8, 4)}
    assert more == {size: pytest.approx(size * 1010) for size in (8, 4)}


def test_rows_of_narrow_tables_have_their_own_bytes():
    """Half of the own rows have a quarter of the width; bags and rows of copies have all of it."""
    w = replace(workload(), model=replace(MODEL, dimension=64, bottom=(64,)))
    nic = replace(NIC, own_rows=8000.0, own_bags=10.0, own_values=8000.0 * 64 * 5 / 8)
    (_, _, (kernel,)), = own_bags(nic, w, 4000, 5)
    whole = gather(12_000, 15, 64, fused=True)
    assert (kernel.rows, kernel.row_bytes) == (12_000, 4 * 64 * 3 // 4)
    assert kernel.streamed_bytes == whole.streamed_bytes
    assert own_bags(replace(nic, own_values=8000.0 * 64), w, 4000, 5)[0][2] == [whole]
    assert own_bags(replace(nic, own_values=0.0), w, 4000, 5)[0][2] == [whole]

    def pooling(values: float) -> float:
        times = replace(NIC, launches=1.0, pooled_launches=1.0, pooled_rows=1e6, pooled_bags=1e4,
                        pooled_values=values)
        used = NicUse(steps := Step(), sound(memory_bandwidth_gb_s=100.0), w, times)
        used.forward((), {"embedding_lookup": 1e6}, 0.0)
        return next(stage for stage in steps.stages if stage.name == "bags of other nodes").us

    assert pooling(0) == pooling(64e6) > pooling(32e6) > pooling(16e6)


@pytest.mark.parametrize("interaction", ["cat", "dot"])
def test_a_kernel_pools_own_bags_and_copied_tables(interaction):
    """As in ``bl-tuned``, a GPU pools all that needs no other node in a kernel. A fused dot
    interaction takes the rows of copied tables without a further kernel."""
    model = replace(MODEL, interaction=interaction)
    w = replace(workload(), model=model)
    nic = replace(NIC, own_rows=1000.0, own_bags=10.0)
    some = replace(SOME, copied_slots=500, copied_bags=20)
    d = sound(replace(TUNED, kernels=2))
    tuning = EnTuning(ring=False, copied_rows=10, deliver="pooled", pool="auto")
    apart, joined = (en(w, d, INFERENCE, of, some, tuning) for of in (NIC, nic))
    width = model.width
    assert "own bags" not in names(apart)
    own = joined.stages[names(joined).index("own bags")]
    rows, bags = (1500, 30) if interaction == "cat" else (1000, 10)
    assert own.us == d.gpu.kernels(gather(rows, bags, width, fused=True)).us
    kernels = [sum("gpu" in stage.resources for stage in found.stages) for found in (apart, joined)]
    assert kernels[1] - kernels[0] == (0 if interaction == "cat" else 1)
    # Without the NIC's rows, all rows of copied tables are read once in either case.
    memory = [busy(found)["gpu_memory"] for found in (apart, joined)]
    least = d.gpu.memory_us(gather(1000, 10, width))
    assert memory[1] - memory[0] >= least
    unique = en(w, d, INFERENCE, nic, some, replace(tuning, deliver="unique"))
    own = unique.stages[names(unique).index("own bags")]
    assert own.us == d.gpu.kernels(gather(1000, 10, width, fused=True)).us


def test_a_larger_mini_batch_takes_an_interval_for_each_further_part():
    nic = replace(NIC, launches=3.0, pooled_rows=100.0, own_bags=7.0)
    many = nic.times_as_many(4)
    assert (many.interval_us, many.launches, many.pooled_rows, many.own_bags) == (24, 12, 400, 28)
    assert many.service_us == pytest.approx(8.5 + 3 * 6)
    assert list(many.phases) == list(nic.phases)
    assert many.phases["embedding_lookup"] == pytest.approx(5 / 8.5 * many.service_us)
    # Never longer than four alone, and nothing changes without a further part.
    slow = replace(nic, interval_us=20.0).times_as_many(4)
    assert slow.service_us == pytest.approx(4 * 8.5) and slow.interval_us == 80
    assert nic.times_as_many(1) == nic
    assert NicTimes().times_as_many(2) == NicTimes()


def test_kernels_that_pool_bags_use_driver_gpu_and_link():
    nic = replace(NIC, launches=NIC.launches + 3, pooled_launches=3, pooled_rows=3000.0,
                  pooled_bags=30.0)
    tuning = EnTuning(ring=False, deliver="pooled", pool="auto")
    alone, found = busy(step(tuning)), busy(step(tuning, nic))
    d = devices()
    each = d.gpu.kernels(gather(1000, 10, MODEL.width))
    assert "driver" not in alone
    assert found["driver"] == pytest.approx(3 * d.software.launch_call_us)
    assert found["gpu"] - alone["gpu"] == pytest.approx(3 * each.us * each.share)
    assert found["pcie_out"] - alone["pcie_out"] == pytest.approx(
        d.copies.moving_us(30 * 4 * MODEL.width))


def test_gpus_update_rows_after_all_bags_have_arrived():
    kernels = (gather(1000, 10, MODEL.width), gather(100, 100, MODEL.width))
    gpus = OwnerUpdates(3.0, 8.0, 2.0, 4e5, 2e5, 2.5, kernels)
    tuning, d = EnTuning(ring=False, pool="auto"), sound()
    none = replace(NIC, reduced=workload(), update_us=0.0)
    alone, found = (step(tuning, replace(none, owner_updates=each), TRAINING, d=d)
                    for each in (None, gpus))
    own, more = busy(alone), busy(found)
    work = [d.gpu.kernels(each) for each in kernels]
    assert gpus.alone_us(d) == pytest.approx(
        8 + d.software.launch_call_us + d.gpu.gpu.launch_us + sum(each.us for each in work) + 2)
    for name, us in (("nic", 3.0), ("link", 2.5), ("driver", d.software.launch_call_us),
                     ("gpu", sum(each.us * each.share for each in work)),
                     ("pcie_out", d.copies.moving_us(4e5)), ("pcie_in", d.copies.moving_us(2e5))):
        assert more[name] - own.get(name, 0.0) == pytest.approx(us)
    told = [number for number, name in enumerate(names(found)) if name == "gradients are there"]
    ends = earliest_ends(found)
    assert ends[names(found).index("rows are written")] - ends[told[-1]] == pytest.approx(
        gpus.alone_us(d))
    # The reducer of the NICs follows the bags.
    both = step(tuning, replace(none, update_us=20.0, owner_updates=gpus), TRAINING)
    assert busy(both)["nic"] - own["nic"] == pytest.approx(20.0)


def test_options_that_do_not_go_together():
    assert EnTuning(merge=False).possible()
    assert EnTuning(ring=False, pool="auto").possible()
    assert not EnTuning(pool="owner").possible()  # no resident kernel pools bags
    assert EnTuning(ring=False, pool="auto").possible(training=True)
    assert EnTuning(ring=False, pool="auto", update="nic").possible(training=True)
    assert not EnTuning(ring=False, pool="auto", update="nic").possible()
    assert not EnTuning(update="nic").possible(training=True)
    with pytest.raises(ValueError, match="update must be one of gpu, nic, not 'cpu'"):
        EnTuning(update="cpu")
    assert not EnTuning(ring=False, reads=True, pool="auto", threads=2).possible()
    assert EnTuning(ring=False, pace_us=8).possible() and not EnTuning(pace_us=8).possible()
    paced = every(EnTuning(pace_us=8), open_variants(en_variants(False), {"pace_us": 8}))
    assert paced and all(each.driven and each.pace_us == 8 for each in paced)
    with pytest.raises(ValueError, match="pace_us must be at least 0, not -1"):
        EnTuning(pace_us=-1)
    with pytest.raises(ValueError, match="pool must be one of requester, owner, auto, not 'node'"):
        EnTuning(pool="node")
    patient = EnTuning(patient=True)
    assert patient.possible() and not patient.possible(training=True)
    assert "patient" in patient.words() and "patient" not in EnTuning().words()
    assert not EnTuning(deliver="interaction", copied_rows=10).possible()
    assert not EnTuning(deliver="interaction").possible(training=True)
    assert not EnTuning(relaunch=True, ring=False).possible()
    with pytest.raises(ValueError, match="deliver must be one of"):
        EnTuning(deliver="all")
    with pytest.raises(ValueError, match="fixed must name one of"):
        fixed_of(EnTuning, ("rings=true",))
    with pytest.raises(ValueError, match="ring must be true or false, not 'yes'"):
        fixed_of(EnTuning, ("ring=yes",))
    with pytest.raises(ValueError, match="copied_rows must be at least 0, not -1"):
        fixed_of(EnTuning, ("copied_rows=-1",))
    with pytest.raises(ValueError, match="copied_rows must be an integer"):
        fixed_of(EnTuning, ("copied_rows=\uff18",))
    with pytest.raises(ValueError, match="consistent options"):
        every(EnTuning(deliver="interaction"), (), True)
    assert fixed_of(EnTuning, ("ring=false", "copied_rows=100", "deliver=pooled")) == {
        "ring": False, "copied_rows": 100, "deliver": "pooled"}
    with pytest.raises(ValueError, match="slots of a share must be at most 65534"):
        step(own=Delivery(65_535, 65_535, 7))
    step(EnTuning(deliver="pooled"), own=Delivery(65_535, 65_535, 7))
