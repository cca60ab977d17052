"""Programs of the GPU: calls, kernels, copies, collectives and waits, worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest

from host.devices.gpu_time import GpuTime
from host.devices.operation import Operation
from host.systems import Devices, breakdown, schedule
from host.systems.charge import longest_us
from host.systems.program import Program
from host.systems.schedule import among_us, passage_of
from tests.host.systems.simple import TUNED, devices

LONG, SHORT = Operation("long", kernels=12), Operation("short")  # of 2 us for each kernel


def used(step) -> dict:
    return schedule([step]).busy


@pytest.mark.parametrize("software", [None, TUNED])
@pytest.mark.parametrize("work", [(SHORT,), (SHORT, SHORT, SHORT), (LONG, SHORT), (SHORT, LONG),
                                  (replace(SHORT, operators=5, kernels=5), LONG, SHORT)])
def test_kernels_alone_take_what_the_gpu_model_says(software, work):
    d = devices(software=software) if software else devices()
    program = Program(d)
    program.wait(program.kernels([("x", "mlp", work)], ()))
    cost = d.gpu.run(*work) + d.gpu.synchronize()
    assert longest_us(program.step) == pytest.approx(cost.us)
    phases = breakdown(program.step)
    assert phases["mlp"] == pytest.approx(cost.work_us)
    assert used(program.step)["cpu"] == pytest.approx(cost.busy["cpu"])
    assert used(program.step)["gpu"] == pytest.approx(cost.busy["gpu"])


def test_calls_go_on_while_kernels_run():
    program = Program(devices())
    first = program.kernels([("a", "mlp", [LONG])], ())
    program.kernels([("b", "irregular", [SHORT, SHORT])], first)
    # Calls end at 10, 20, 30; the first operator runs from 11 to 35.
    assert longest_us(program.step) == 11 + 24 + 2 + 2
    assert used(program.step) == {"cpu": 30, "gpu": 28 / 4}


def test_one_graph_holds_all_between_two_waits():
    program = Program(devices(software=TUNED))
    at = program.copy("in", 0, ())
    at = program.kernels([("a", "mlp", [SHORT, SHORT])], at)
    at = program.exchange("x", "input_all_to_all", np.ones((2, 2)), at, "nccl")
    program.wait(program.copy("out", 0, at, to_gpu=False))
    # The graph 6, its launch 1, PCIe there and back 1, two kernels, base 7 and hop 2, PCIe 0.5.
    assert longest_us(program.step) == pytest.approx(6 + 1 + 1 + 4 + 9 + 0.5 + 3)
    assert used(program.step)["cpu"] == 6 + 3
    program.kernels([("b", "mlp", [SHORT])], ())
    assert used(program.step)["cpu"] == 6 + 3 + 6


def test_mpi_goes_through_host_memory():
    program = Program(devices())
    at = program.kernels([("a", "mlp", [SHORT])], ())
    program.exchange("x", "input_all_to_all", np.ones((2, 2)), at, "mpi")
    # Called at 10, done at 13; the copy is called at 15; PCIe, the wait, MPI, and back.
    assert longest_us(program.step) == pytest.approx(15 + 0.5 + 3 + (10 + 4 + 1) + 5 + 1)
    assert set(used(program.step)) == {"cpu", "gpu", "pcie_in", "pcie_out", "link"}


def test_nothing_is_exchanged_by_one_node_or_without_bytes():
    program = Program(devices())
    at = program.kernels([("a", "mlp", [SHORT])], ())
    stages = len(program.step.stages)
    for traffic in (np.ones((1, 1)), np.diag([5.0, 5.0])):
        for library in ("nccl", "mpi", "host"):
            assert program.exchange("x", "mlp", traffic, at, library) == at
    assert len(program.step.stages) == stages


def test_a_collective_occupies_multiprocessors_but_kernels_do_not_disturb_it():
    """Its time is the network's; a kernel of the same step is disturbed."""
    d = devices(software=replace(TUNED, graph_us=0))
    program = Program(d)
    at = program.kernels([("a", "mlp", [SHORT])], ())
    plain = passage_of(program.step)
    program.exchange("x", "mlp", 1e5 * np.ones((2, 2)), at, "nccl")
    found = passage_of(program.step)
    gpu, before = (next(use.work for use in each.uses if use.resource == "gpu")
                   for each in (found, plain))
    assert gpu > before and found.alone_us > plain.alone_us
    assert (found.kernels_us, found.taken_us) == (plain.kernels_us, plain.taken_us)
    assert found.kernels_us > 0 < found.taken_us


def test_small_kernels_of_several_mini_batches_run_side_by_side():
    d = replace(devices(software=replace(TUNED, graph_us=0)))
    steps = []
    for _ in range(8):
        program = Program(d)
        program.kernels([("a", "mlp", [SHORT])], ())
        steps.append(program.step)
    # Each fills one of four multiprocessors for 2 us, after a launch of 1: eight need 4 us.
    # A kernel delays later kernels by 0.5 us times the share of their steps in which they run.
    found = schedule(steps, 8).finished
    assert found[0] == 3 and found[1] == pytest.approx(among_us(3, 2, 0.5))
    assert 5 < found[-1] < 3 + 7 * 0.5


def test_copies_of_either_direction_do_not_wait_for_each_other():
    d = devices(software=replace(TUNED, graph_us=0))
    steps = []
    for to_gpu in (True, False, True):
        program = Program(d)
        program.copy("x", 4e9 * 1e6, (), to_gpu=to_gpu)  # 4 us
        steps.append(program.step)
    found = schedule(steps, 3).finished
    assert found[0] == found[1] + 0.5 and found[2] == pytest.approx(found[0] + 4)


def collectives(d, count: int) -> list:
    """Return steps of one NCCL collective each."""
    steps = []
    for _ in range(count):
        program = Program(d)
        program.exchange("x", "mlp", np.ones((2, 2)), (), "nccl")
        steps.append(program.step)
    return steps


def test_a_communicator_does_one_collective_after_the_other():
    d = replace(devices(software=replace(TUNED, graph_us=0)))
    # Called at 0, a launch of 1; base 7 and hop 2 each.
    assert schedule(collectives(d, 3), 3).finished.tolist() == pytest.approx([10, 19, 28])
    # With two, a further collective takes half of the time of a communicator.
    two = replace(d, communicators=2, gpu=GpuTime(replace(d.gpu.gpu, multiprocessors=10**9), TUNED))
    assert schedule(collectives(two, 3), 3).finished.tolist() == pytest.approx([10, 10, 14.5])


def test_an_exchange_grouped_with_another_takes_the_communicator_for_its_bytes_alone():
    traffic = 3e6 * (1 - np.eye(2))
    held = {}
    for grouped in (False, True):
        program = Program(devices(software=TUNED))
        at = program.copy("in", 0, ())
        program.exchange("x", "mlp", traffic, at, "nccl", grouped)
        held[grouped] = used(program.step)["nccl"]
        whole = devices().nccl.all_to_all(traffic)
        # It ends at the earliest when its bytes have arrived.
        assert longest_us(program.step) == pytest.approx(6 + 1 + 1 + whole.us)
    assert held == {False: pytest.approx(whole.us), True: pytest.approx(whole.work_us)}


def test_programs_with_graphs_call_mpi_themselves():
    calls = {software: Devices.load(2, software).host_mpi.call_us for software in (
        "eager", "tuned")}
    assert calls == {"eager": 20.0, "tuned": 0.0}


def test_gradients_are_summed_by_the_library_that_is_asked_for():
    resources = {}
    for nccl in (False, True):
        program = Program(devices())
        program.all_reduce("x", 8.0, (), nccl)
        resources[nccl] = set(used(program.step))
    assert resources == {False: {"cpu", "link", "pcie_in", "pcie_out"},
                         True: {"cpu", "gpu", "nccl", "link", "pcie_in", "pcie_out"}}


@pytest.mark.parametrize("threads", [1, 2])
def test_each_mini_batch_has_one_of_the_threads(threads):
    d = replace(devices(), threads=threads)
    steps = []
    for _ in range(2):
        program = Program(d)
        program.copy("x", 0, ())                                    # called for 5
        program.exchange("x", "mlp", np.ones((2, 2)), (), "host")   # held for 14, then 1
        program.tell_nic()                                          # called for 11, PCIe 0.5
        steps.append(program.step)
    one = 5 + 15 + 11.5
    assert schedule(steps[:1]).finished == pytest.approx(one)
    # One thread works for 30 us per mini-batch; the last doorbell then crosses PCIe.
    assert schedule(steps, 2).finished.tolist() == pytest.approx(
        [one, one] if threads == 2 else [one, 2 * (5 + 14 + 11) + 0.5])


def test_the_doorbell():
    """A driver's store takes 1, PCIe 0.5; a framework's call of an operator before it takes 10."""
    for software, us in ((TUNED, 1), (None, 11)):
        program = Program(devices(software=software) if software else devices())
        program.tell_nic()
        assert longest_us(program.step) == us + 0.5 and used(program.step) == {"cpu": us}
