"""Baselines: steps worked out by hand, and the saving of each optimisation."""

from dataclasses import replace

import numpy as np
import pytest

from host.devices.copies import CopyTime
from host.devices.dense_work import LEVELS, mlp
from host.devices.nccl import NcclCollectives
from host.devices.topology import Topology, TopologyProfile
from host.placement.shard import ShardPlan
from host.samples import Samples
from host.systems import (
    PHASES,
    StepOptions,
    Tuning,
    best,
    bl_paper,
    bl_tuned,
    breakdown,
    cpu_mpi,
    every,
    fixed_of,
    named_of,
    near,
    schedule,
    steady_us,
    tuning_variants,
    workload_of,
)
from host.systems.charge import longest_us
from host.timing.pcie import PcieProfile
from tests.host.systems.simple import MODEL, TUNED, devices, workload

INFERENCE, TRAINING = StepOptions(), StepOptions(training=True)
NOTHING = Tuning(False, "mpi", False, False, False, 0, host_indices=True)


def phases(step) -> dict:
    found = breakdown(step)
    return {name: pytest.approx(us, abs=1e-3) for name, us in found.items() if us > 1e-3}


def test_the_papers_inference_by_hand():
    # MPI: the framework's call 10, which is overhead, one message 4, latency 1. The thread calls
    #     copies every 5 and operators every 10. A launch of 1 later they run for 2, before the next
    #     call.
    step = bl_paper(workload(), devices(), INFERENCE)
    exchange = 10 + 4 + 1
    indices, inputs, by_table, gather = exchange, 3 * 5, 2 * 10, 10
    vectors = 5 + 0.5 + 3 + exchange + 5     # copied out over PCIe, waited for, sent, copied in
    dense = (2 + 4 + 2) * 10                 # bottom, interaction, top
    last = 5 + 0.5 + 3  # predictions copied behind the last kernel, and waited
    assert longest_us(step) == pytest.approx(
        indices + inputs + by_table + gather + vectors + dense + last, abs=1e-3)
    assert phases(step) == {"input_all_to_all": 5, "embedding_all_to_all": 5,
                            "embedding_lookup": 2, "irregular": 4 + 8, "mlp": 8,
                            "overhead": pytest.approx(longest_us(step) - 32, abs=1e-3)}


def test_the_papers_training_adds_its_backward_half():
    both = [bl_paper(workload(), devices(), StepOptions(True, wanted)) for wanted in (True, False)]
    work = phases(both[1])
    # Loss 3, top 4, bottom 3 operators, and 4 tensors updated by 4 calls: 2 us each.
    assert work["mlp"] == 8 + 2 * (3 + 4 + 3 + 4) and work["irregular"] == 12 + 2 * 6
    # A sort of 12 kernels, a sum and an update of one table's rows; a message and its latency.
    assert work["backward_all_to_all"] == 2 * (12 + 1 + 1) + 5
    # A ring of two turns by MPI, between copies, a wait before; its bytes take no time.
    ring = 5 + 0.5 + 3 + 10 + 2 * (4 + 1) + 5
    assert longest_us(both[0]) - longest_us(both[1]) == pytest.approx(ring, abs=1e-3)


def test_cpus_by_hand():
    step = cpu_mpi(workload(), devices(), INFERENCE)
    # 2 exchanges: call 6, message 4, latency 1; layout 2, gather 1, dense 8 operators of 6.
    assert longest_us(step) == pytest.approx(2 * 11 + 11 * 6, abs=1e-3)


def test_one_node_exchanges_nothing():
    for build in (bl_paper, cpu_mpi):
        names = {stage.name for stage in build(workload(1), devices(1), TRAINING).stages}
        assert not names & {"indices", "pooled vectors", "gradients", "all-reduce"}


@pytest.mark.parametrize("software", ["eager", "tuned"])
@pytest.mark.parametrize("options", [INFERENCE, TRAINING])
def test_breakdowns_add_up(software, options):
    d = devices(software=TUNED) if software == "tuned" else devices()
    w = workload()
    for step in (bl_paper(w, d, options), cpu_mpi(w, d, options),
                 *(bl_tuned(w, d, options, tuning) for tuning in (
                     Tuning(copied_rows=0), replace(NOTHING, buckets=True),
                     Tuning(copied_rows=0, fused=False, joined=True, grouped=True)))):
        found = breakdown(step)
        assert set(found) == set(PHASES)
        assert sum(found.values()) == pytest.approx(schedule([step]).finished[0], rel=1e-12)


def test_without_any_option_it_is_the_papers_baseline_with_one_copy():
    """MPI sends the indices before they are copied: no copies out of the GPU and back."""
    w, d = workload(), devices()
    tuned = bl_tuned(w, d, INFERENCE, NOTHING)
    paper = bl_paper(w, replace(d, software=replace(d.software, packed_inputs=True)), INFERENCE)
    assert longest_us(tuned) == pytest.approx(longest_us(paper))
    assert [stage.name for stage in tuned.stages].index("indices") == 0


def test_every_tuning_is_tried_once():
    """There are three ways to look up, two of the bottom MLP, six thresholds. Gradients in buckets
    are for training only, exchanges of two mini-batches in one call for inference only.

    With NCCL, indices are deduped or not, grouped or not, or exchanged between hosts; there are one
    or two communicators, and in inference one collective for a graph or several. With MPI,
    indices are deduped or exchanged between hosts. Each with one or two threads.
    """
    for training, exchanges, more in ((False, (4 + 1) * 2 * 2 + 2, 2), (True, (3 + 2) * 2, 4)):
        variants = tuning_variants(training)
        found = every(Tuning(), variants, training)
        assert len(found) == len(set(found)) == 3 * 2 * 6 * exchanges * more
        assert {tuning.buckets for tuning in found} == {False, training}
        for name in ("grouped", "one_collective"):
            assert {getattr(tuning, name) for tuning in found} == {False, not training}
        close = set(near(Tuning(), variants, 2))
        assert Tuning() in close and set(found) & close < set(found)
        assert Tuning(overlap=False, copied_rows=0) in close
        assert Tuning(fused=False, overlap=False, copied_rows=0) not in close


@pytest.mark.parametrize("depth", [1, 2, 4, 16])
@pytest.mark.parametrize("options", [INFERENCE, TRAINING])
def test_no_interval_is_below_the_least(options, depth):
    w = workload(rows=((1, 2), (1, 2), (1, 3), (4, 3)))
    for software in (None, TUNED):
        d = devices(software=software) if software else devices()
        for step in (bl_paper(w, d, options), bl_tuned(w, d, options, Tuning(copied_rows=0))):
            ends = schedule([step] * 32 * depth, depth).finished[:-depth]
            count = 16 * depth
            interval = (ends[-depth:] - ends[-depth - count:-count]).mean() / count
            assert steady_us([step], depth) <= interval * 1.001


def test_the_best_is_found_however_close_the_bounds_are():
    costs = [5.0, 3.0, 4.0, 3.0, 9.0]
    for slack in (0.0, 0.5, 10.0):
        tried = []

        def cost(number: int, tried=tried) -> tuple[float, ...]:
            tried.append(number)
            return costs[number], 0.0

        assert best(range(5), lambda number, slack=slack: (costs[number] - slack, 0.0),
                    cost) == 1
        assert tried == {0.0: [1], 0.5: [1, 3], 10.0: [1, 3, 2, 0, 4]}[slack]
    # With a further bound, candidates are tried in the order of the last.
    tried.clear()
    assert best(range(5), lambda _: (0.0, 0.0), lambda number: (costs[number] - 0.5, 0.0),
                cost) == 1 and tried == [1, 3]
    with pytest.raises(ValueError, match="candidates must be at least one"):
        best((), cost, cost)
    # Ties are broken by the next member, which counts only for ties.
    assert best("abc", lambda each: (0.0, 0.0), {"a": (1.0, 3.0), "b": (1.0 + 1e-8, 2.0),
                                          "c": (1.1, 1.0)}.__getitem__) == "b"


def test_what_each_optimisation_saves_where_it_is_about():
    w = workload(rows=((1, 2), (1, 2), (1, 2), (1, 2)))
    d = devices(software=TUNED)
    everything = Tuning(dedupe=False, copied_rows=0)

    def us(of=w, options=INFERENCE, **changed) -> float:
        return longest_us(bl_tuned(of, d, options, replace(everything, **changed)))

    # Four copies and two waits against a base and a hop: MPI needs more.
    assert us() < us(exchange="mpi")
    # If all tables are copied, there are no exchanges.
    assert us(copied(w)) < us()
    # The bottom MLP, 4 us and a launch, hides behind the exchanges.
    assert us(overlap=False) > us()
    # Without graphs, a separate collective for the top MLP's gradients is one more call.
    assert us(options=TRAINING, overlap=False) > us(options=TRAINING)


def test_dedupe_ends_a_graph():
    w = workload(rows=((1, 2), (1, 2), (1, 2), (1, 2)))
    calls = {dedupe: sum(stage.name == "graph" and stage.resources == ("cpu",) for stage in
                         bl_tuned(w, devices(software=TUNED), INFERENCE,
                                  Tuning(dedupe=dedupe, copied_rows=0)).stages)
             for dedupe in (False, True)}
    assert calls == {False: 1, True: 2}


def test_what_a_kernel_does_changes_their_number_alone():
    """At each higher level fewer kernels run, and the products are the same."""
    w = workload(rows=((1, 2), (1, 3)))
    counts, flops = [], []
    for level in LEVELS:
        d = devices(software=replace(TUNED, kernels=level))
        step = bl_tuned(w, d, TRAINING, Tuning(dedupe=False, copied_rows=0))
        counts.append(sum("gpu" in stage.resources for stage in step.stages))
        layers = MODEL.top_layers
        flops.append(sum(part.flops for part in mlp(8, layers, level) if part.matrix))
    assert counts == sorted(counts, reverse=True) and len(set(counts)) == len(LEVELS)
    assert len(set(flops)) == 1


def test_dedupe_sends_each_key_once():
    w = workload(rows=((1, 2), (1, 2), (1, 2), (1, 2)))
    sent = {}
    for dedupe in (True, False):
        step = bl_tuned(w, slow_links(), INFERENCE, Tuning(dedupe=dedupe, copied_rows=0))
        sent[dedupe] = [sum(stage.us for stage in step.stages
                            if stage.phase == phase and "link" in stage.resources)
                        for phase in ("input_all_to_all", "embedding_all_to_all")]
    # One index per key, in place of an index and a bag offset, for each of two lookups.
    assert sent[True] == pytest.approx([sent[False][0] / 4, sent[False][1] / 2])


def slow_links():
    """Return devices with slow links."""
    d = devices()
    topology = Topology(TopologyProfile.of(replace(d.network, bandwidth_gbit_s=0.01), 2))
    return replace(d, nccl=NcclCollectives(d.nccl.nccl, topology))


def copied(w):
    """Return a workload with every table copied."""
    plan = w.plan.with_copies(10)
    rows = np.array([(1, 2)] * int(w.samples.sum()))
    samples = Samples.one_hot(np.zeros((len(rows), 2), np.float32), np.zeros(len(rows)), rows)
    return workload_of(samples, MODEL, plan)


PLAIN = Tuning(dedupe=False, copied_rows=0)


def link_us(w, tuning: Tuning, phase: str) -> float:
    """Return the time of a phase's bytes on slow links."""
    return sum(stage.us for stage in bl_tuned(w, slow_links(), INFERENCE, tuning).stages
               if stage.phase == phase and "link" in stage.resources)


def names(w, tuning: Tuning, options: StepOptions = INFERENCE) -> list[str]:
    """Return the names of a step's stages, once each."""
    return list(dict.fromkeys(stage.name for stage in bl_tuned(
        w, devices(software=TUNED), options, tuning).stages))


def test_short_keys_and_short_values_take_half_of_the_bytes():
    w = workload()
    for phase, changed in (("input_all_to_all", {"key_bytes": 4}),
                           ("embedding_all_to_all", {"wire": "float16"})):
        assert link_us(w, replace(PLAIN, **changed), phase) == pytest.approx(
            link_us(w, PLAIN, phase) / 2)
    # A kernel at either end converts the vectors, and in training the gradients.
    assert [name for name in names(w, replace(PLAIN, wire="float16")) if "format" in name] == [
        "to the format between nodes", "from the format between nodes"]
    found = [sum("format" in stage.name and "gpu" in stage.resources for stage in bl_tuned(
        w, devices(software=TUNED), TRAINING, replace(PLAIN, wire=wire)).stages)
        for wire in ("float16", "float32")]
    assert found == [4, 0]


def test_equal_bags_are_sent_once_and_copied_at_the_requester():
    w, once = workload(rows=((1, 2),) * 8), replace(PLAIN, bags_once=True)
    for phase in ("input_all_to_all", "embedding_all_to_all"):
        assert link_us(w, once, phase) == pytest.approx(link_us(w, PLAIN, phase) / 4)
    more = "vectors of equal bags"
    assert more in names(w, once) and more not in names(w, PLAIN)
    assert "gradients of equal bags" in names(w, once, TRAINING)
    copied_us = [next(stage.us for stage in bl_tuned(w, slow_copies(), INFERENCE, tuning).stages
                      if stage.name == "inputs" and "pcie_in" in stage.resources)
                 for tuning in (PLAIN, once)]
    # Eight bags of a node: an index each, in place of three quarters of the keys and offsets.
    dense, key = 4 * MODEL.dense * 4, 8
    assert copied_us == pytest.approx([dense + 2 * key * 8, dense + 2 * key * 2 + key * 8])
    # Without equal bags, nothing changes.
    other = workload(rows=((1, 2), (3, 4), (5, 6), (7, 8)))
    assert names(other, once) == names(other, PLAIN)


def slow_copies():
    """Return devices whose copies move a byte per microsecond."""
    d = devices(software=TUNED)
    return replace(d, copies=CopyTime(PcieProfile("slow", 0.5, 1e-3), TUNED))


def bags_of(*lengths: int, placement: str = "even"):
    """Return the workload of a sample per node with bags of these keys in table 0."""
    keys = np.arange(sum(lengths)) % 10
    samples = Samples(np.zeros((len(lengths), 2), np.float32), np.zeros(len(lengths), np.float32),
                      np.array([[length, 0] for length in lengths], np.int32),
                      np.zeros(len(keys), np.int32), keys)
    return workload_of(samples, MODEL, ShardPlan.deal(MODEL, 2, placement))


def test_hashed_rows_are_split_by_owner_and_differ_in_number():
    """Every mini-batch has other keys at an owner, even with bags of one length."""
    d, (whole, hashed) = devices(software=TUNED), (
        bags_of(3, 3, placement=each) for each in ("even", "row"))
    assert (whole.hashed, hashed.hashed, hashed.varies) == (False, True, False)

    def kernels(w, **options) -> list[str]:
        return [stage.name for stage in bl_tuned(w, d, INFERENCE, replace(PLAIN, **options)).stages]

    assert "keys by owner" in kernels(hashed) and kernels(hashed)[0] == "sizes"
    for w, options in ((whole, {}), (hashed, {"dedupe": True}), (hashed, {"host_indices": True})):
        assert "keys by owner" not in kernels(w, **options)
    assert kernels(hashed, exchange="gpu")[0] != "sizes"


def test_hosts_wait_for_the_sizes_of_bags_that_vary():
    d = devices(software=TUNED)
    fixed, varied = bags_of(3, 3), bags_of(2, 4)
    assert (fixed.varies, varied.varies) == (False, True)
    step = bl_tuned(varied, d, INFERENCE, PLAIN)
    # MPI's message, the framework's call and the latency come before the graph.
    assert longest_us(step) - longest_us(bl_tuned(fixed, d, INFERENCE, PLAIN)) == pytest.approx(
        10 + 4 + 1, abs=1e-3)
    assert step.stages[0].name == "sizes" and 0 in step.calls
    for tuning in (replace(PLAIN, exchange="gpu"), replace(PLAIN, host_indices=True)):
        assert ("sizes" in names(varied, tuning)) == (tuning.exchange != "gpu")
    # Dedupe makes sizes vary whatever the bags; kernels that exchange do not need them.
    for exchange in ("nccl", "gpu"):
        found = names(fixed, Tuning(copied_rows=0, exchange=exchange))
        assert ("sizes" in found) == (exchange == "nccl")
    assert "sizes" in {stage.name for stage in bl_paper(varied, d, INFERENCE).stages}


def test_partial_vectors_of_hashed_rows_are_added_at_the_requester():
    whole, hashed = (bags_of(5, 5, placement=placement) for placement in ("even", "row"))
    assert (hashed.bags.sum(axis=1) > hashed.whole).all() and hashed.whole.tolist() == [1, 1]
    for w, there in ((whole, False), (hashed, True)):
        assert ("sums of partial vectors" in names(w, PLAIN)) == there
        assert any(stage.name == "sums of partial vectors" for stage in bl_paper(
            w, devices(), INFERENCE).stages) == there


def test_kernels_exchange_without_a_communicator():
    w, d = workload(), devices(software=TUNED)
    step = bl_tuned(w, d, INFERENCE, replace(PLAIN, exchange="gpu"))
    found = schedule([step]).busy
    assert "nccl" not in found and found["link"] > 0
    # Each exchange: a kernel of 2, a store, and a node that waits; NCCL: a base of 7, a hop of 2.
    gpu = d.gpu.gpu
    assert longest_us(step) - longest_us(bl_tuned(w, d, INFERENCE, PLAIN)) == pytest.approx(
        2 * (2 + d.nccl.nccl.put_us + gpu.word_us - (7 + 2)), abs=1e-3)


def test_options_that_cannot_be():
    for given, message in (({"exchange": "tcp"}, "exchange must be one of gpu, nccl, mpi"),
                           ({"wire": "fp8"}, "wire must be one of float32, float16, int8"),
                           ({"key_bytes": 2}, "key_bytes must be 8 or 4, not 2"),
                           ({"threads": 0}, "threads must be between 1 and 16, not 0"),
                           ({"copied_rows": -1}, "copied_rows must be at least 0, not -1")):
        with pytest.raises(ValueError, match=message):
            Tuning(**given)
    assert fixed_of(Tuning, named_of(Tuning(wire="float16", threads=2))) == vars(
        Tuning(wire="float16", threads=2))
