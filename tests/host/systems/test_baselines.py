"""Baselines: steps worked out by hand, and the saving of each optimisation."""

from dataclasses import replace

import numpy as np
import pytest

from host.devices.dense_work import LEVELS, mlp
from host.devices.nccl import NcclCollectives
from host.devices.topology import Topology, TopologyProfile
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
    near,
    schedule,
    steady_us,
    tuning_variants,
    workload_of,
)
from host.systems.charge import longest_us
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
