"""Several mini-batches in a graph: steps worked out by hand, and properties of all systems."""

from dataclasses import replace

import numpy as np
import pytest

from host.devices.gpu_time import GpuTime
from host.devices.operation import Operation
from host.systems import (
    Delivery,
    EnTuning,
    NicTimes,
    Step,
    StepOptions,
    Tuning,
    bl_paper,
    bl_tuned,
    en,
    in_graphs,
    in_one_graph,
    schedule,
    smartnic,
)
from host.systems.charge import longest_us
from host.systems.program import Program
from sim.evaluation.built import interval_us
from sim.evaluation.measure import busy_us
from tests.host.systems.simple import FAST, TUNED, devices, workload

LONG, SHORT = Operation("long", kernels=12), Operation("short")  # of 2 us for each kernel
SOUND = devices(software=TUNED)
MORE = TUNED.graph_us
NIC = NicTimes({"input_all_to_all": 2.0, "embedding_lookup": 5.0}, interval_us=6.0,
               interaction_us=1.0)


def step(*operations: Operation, d=SOUND) -> Step:
    """Return a graph of kernels, one after another, and the wait for it."""
    program = Program(d)
    program.wait(program.kernels([("x", "mlp", operations)], ()))
    return program.step


def waiting(first: Operation, then: Operation) -> Step:
    """Return a step whose thread has to wait in the middle."""
    program = Program(SOUND)
    program.wait(program.kernels([("first", "mlp", [first])], ()))
    program.wait(program.kernels([("then", "mlp", [then])], ()))
    return program.step


def test_one_mini_batch_stays_as_it_is():
    only = step(SHORT)
    assert in_one_graph([only]) is only and in_graphs([only, only], 1) == [only, only]


def test_a_graph_and_a_wait_for_two():
    # The graph 6, and 6 for the second mini-batch, a launch 1, kernels side by side 2, the wait 3.
    both = in_one_graph([step(SHORT), step(SHORT)])
    assert longest_us(both) == pytest.approx(6 + MORE + 1 + 2 + 3)
    assert schedule([both]).busy == {"cpu": pytest.approx(6 + MORE + 3), "gpu": 2 * 2 / 4}
    # The first waits for the second, whatever the number of its kernels.
    assert longest_us(in_one_graph([step(SHORT), step(LONG)])) == pytest.approx(
        6 + MORE + 1 + 24 + 3)


def test_a_wait_in_the_middle_is_for_all():
    found = in_one_graph([waiting(SHORT, LONG), waiting(LONG, SHORT)])
    # Both are at 6 + 1 + 24 + 3 before either continues: their stages do not overlap.
    assert longest_us(found) == pytest.approx(
        2 * (6 + MORE + 1 + 24 + 3))
    assert schedule([found]).busy["cpu"] == pytest.approx(2 * (6 + 3 + MORE))


def test_kernels_that_do_not_fit_side_by_side_go_one_after_the_other():
    whole = replace(SHORT, streamed_bytes=2 * FAST * 1e3)  # 2 us of all four multiprocessors
    busy = replace(SOUND, gpu=GpuTime(replace(SOUND.gpu.gpu, kernel_us=0.0), TUNED))
    found = in_one_graph([step(whole, d=busy) for _ in range(3)])
    # The graph 6 and MORE for each further mini-batch, a launch 1, three kernels of 2, the wait 3.
    assert schedule([found]).finished[0] == pytest.approx(6 + 2 * MORE + 1 + 3 * 2 + 3)


def exchanging(d) -> Step:
    program = Program(d)
    program.wait(program.exchange("x", "mlp", 3e6 * (1 - np.eye(2)), (), "nccl"))
    return program.step


def test_collectives_go_one_after_the_other_unless_one_call_does_them():
    each = SOUND.nccl.all_to_all(3e6 * (1 - np.eye(2)))
    found = schedule([in_one_graph([exchanging(SOUND)] * 2)])
    assert found.busy["nccl"] == pytest.approx(2 * each.us)
    assert found.finished[0] == pytest.approx(6 + MORE + 1 + 2 * each.us + 3)
    # One call: a base and a hop, one more peer of eight at once, and the bytes of both.
    grouped = replace(SOUND, one_collective=True)
    more = SOUND.nccl.further_us(3e6 * (1 - np.eye(2)))
    assert more == pytest.approx((each.overhead_us - SOUND.nccl.nccl.base_simple_us) / 8)
    found = schedule([in_one_graph([exchanging(grouped)] * 2)])
    assert found.busy["nccl"] == pytest.approx(each.us + more + each.work_us)
    assert schedule([exchanging(grouped)]).busy == schedule([exchanging(SOUND)]).busy


def test_mpi_is_called_for_one_mini_batch_after_the_other():
    d = replace(SOUND, threads=2)  # the second thread belongs to another graph

    def mpi() -> Step:
        program = Program(d)
        program.exchange("x", "mlp", np.ones((2, 2)), (), "host")
        return program.step

    # A message of 4 each, and the last one's latency of 1.
    assert longest_us(in_one_graph([mpi()] * 3)) == pytest.approx(3 * longest_us(mpi()), abs=3)
    assert longest_us(in_one_graph([mpi()] * 3)) >= 3 * 4


def test_steps_of_different_calls_have_no_graph_in_common():
    with pytest.raises(ValueError, match="steps must have the calls"):
        in_one_graph([step(SHORT), waiting(SHORT, SHORT)])


def test_the_sequence_of_mini_batches_ends_where_a_graph_does():
    steps = [step(SHORT), step(LONG), step(SHORT)]
    lengths = [longest_us(each) for each in in_graphs(steps, 2)]
    both = longest_us(in_one_graph(steps[:2]))
    # First and second, third and first, second and third.
    assert lengths == pytest.approx([both, longest_us(in_one_graph([steps[2], steps[0]])),
                                     longest_us(in_one_graph(steps[1:]))])


def systems() -> dict[str, Step]:
    inference, own = StepOptions(), Delivery(slots=2, bags=2, vectors=2)
    w = workload()
    ring = replace(SOUND, gpu=GpuTime(replace(SOUND.gpu.gpu, resident_multiprocessors=1), TUNED))
    found = {f"en, {deliver}, {completion}": en(w, ring, inference, NIC, own, EnTuning(
        deliver=deliver, completion=completion))
        for deliver in ("interaction", "pooled", "unique") for completion in (True, False)}
    found["en, relaunched"] = en(w, ring, inference, NIC, own, EnTuning(relaunch=True))
    for computation in (False, True):
        found[f"smartnic, {computation}"] = smartnic(w, SOUND, inference, NIC, computation)
    for tuning in (Tuning(), Tuning(dedupe=False), Tuning(dedupe=False, grouped=True),
                   Tuning(exchange="mpi"), Tuning(exchange="mpi", dedupe=False, host_indices=True)):
        found[f"bl-tuned, {tuning}"] = bl_tuned(w, SOUND, inference, tuning)
    found["bl-paper"] = bl_paper(w, SOUND, inference)
    return found


@pytest.mark.parametrize("name", systems())
def test_only_the_threads_calls_are_shared(name):
    one = systems()[name]
    busy = schedule([one]).busy
    before = longest_us(one)
    for count in (2, 4, 8):
        found = in_one_graph([one] * count)
        # No mini-batch ends sooner, and all end at the latest as they would one after another.
        assert before <= longest_us(found) <= count * longest_us(one) + 1e-9
        before = longest_us(found)
        used = schedule([found]).busy
        assert {name: us / count for name, us in used.items() if name != "cpu"} == pytest.approx(
            {name: us for name, us in busy.items() if name != "cpu"})
        calls = [one.stages[number].us for number in one.calls
                 if "cpu" in one.stages[number].resources]
        # The further mini-batches of a graph add only their launch.
        assert used["cpu"] == pytest.approx(
            sum(calls) + count * (busy["cpu"] - sum(calls)) + (count - 1) * sum(one.calls.values()))


@pytest.mark.parametrize("name", systems())
def test_no_interval_is_below_what_the_busiest_resource_takes(name):
    one = systems()[name]
    for flight in ((4, 2), (8, 2), (8, 4), (16, 4)):
        busy = busy_us([one], flight[1])
        assert interval_us([one], *flight) >= 0.98 * max(busy.values())
    # All mini-batches in flight in one graph: no two graphs overlap.
    assert interval_us([one], 4, 4) == pytest.approx(schedule([in_one_graph([one] * 4)])
                                                     .finished[0] / 4)


def test_en_needs_its_thread_once_for_all_mini_batches_of_a_graph():
    one = systems()["en, unique, True"]
    # A doorbell 1, the graph 6 for each mini-batch, the wait 3.
    assert sum(one.calls.values()) == MORE
    assert busy_us([one], 8)["cpu"] == pytest.approx((1 + 8 * 6 + 3) / 8)
    # Each has a share of its own at the NIC.
    assert busy_us([one], 8)["nic"] == pytest.approx(6)
