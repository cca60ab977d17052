"""Times on a GPU, a CPU and over PCIe, worked out by hand for devices of round numbers."""

from dataclasses import replace

import pytest

from host.devices import dense_work as dense
from host.devices import embedding_work as tables
from host.devices.copies import CopyTime
from host.devices.cost import Cost
from host.devices.cpu import CpuTime
from host.devices.gpu_time import GpuTime
from host.devices.operation import Operation
from host.model import MODELS
from host.timing.clock import CYCLE_NS
from host.timing.gpu import GpuLookups, GpuMlp
from tests.host.devices.devices import CPU, EAGER, GPU, PCIE, TUNED

LONG = Operation("long", streamed_bytes=3e6)  # 1 + 30 us on the GPU
SHORT = Operation("short")  # a kernel of 1 us


def test_roofline_takes_the_slowest():
    gpu = GpuTime(GPU, EAGER)
    assert gpu.work_us(LONG) == 31.0
    assert gpu.work_us(replace(LONG, flops=5e7)) == 51.0
    assert gpu.work_us(SHORT) == 1.0
    assert gpu.work_us(replace(SHORT, kernels=40)) == 40.0
    # 100,000 rows of 16 bytes are 64 each.
    assert gpu.work_us(Operation("rows", rows=100_000, row_bytes=16)) == 65.0


def test_reads_in_sequence_wait_for_each_other():
    gpu = GpuTime(replace(GPU, read_us=0.5), EAGER)
    assert gpu.work_us(replace(SHORT, reads=2)) == 2.0
    assert gpu.work_us(replace(SHORT, reads=2, operators=3, kernels=3)) == 6.0
    assert gpu.work_us(replace(LONG, reads=2)) == 31.0  # while the bytes move
    assert gpu.kernels(tables.gather(10, 10, 16)).us == 2.0


def test_fractions_of_the_rates():
    slower = GpuTime(replace(GPU, stream_fraction=0.5, gather_fraction=0.25, gemm_fraction=0.1),
                     EAGER)
    assert slower.memory_us(LONG) == 60.0
    assert slower.memory_us(Operation("rows", rows=100_000, row_bytes=64)) == 256.0
    assert slower.compute_us(Operation("x", flops=1e6)) == 1.0
    assert slower.compute_us(Operation("x", flops=1e6, matrix=True)) == 10.0


def test_eager_calls_hide_behind_long_kernels_and_short_kernels_behind_calls():
    gpu = GpuTime(GPU, EAGER)
    # Called at 10, started at 14.
    assert gpu.run(LONG) == Cost(45.0, 14.0, {
        "gpu": 31.0, "gpu_memory": 30.0, "cpu": 10.0})
    # Called at 10, 20, 30; the last starts at 34.
    assert gpu.run(SHORT, SHORT, SHORT) == Cost(35.0, 32.0,
                                                {"gpu": 3.0, "gpu_memory": 0.0, "cpu": 30.0})
    # The short operation's call ends at 20, but the GPU is busy until 45.
    assert gpu.run(LONG, SHORT).us == 46.0
    assert gpu.run(SHORT, LONG).us == 20 + 4 + 31
    # Five tables are five calls.
    assert gpu.run(replace(SHORT, operators=5, kernels=5)).us == 55.0
    assert gpu.run(replace(SHORT, fused_embedding=True)).us == 105.0
    assert gpu.run() == Cost()
    assert gpu.synchronize() == Cost(3.0, 3.0, {"cpu": 3.0})


def test_a_graph_is_launched_once():
    gpu = GpuTime(GPU, TUNED)
    assert gpu.run(SHORT, LONG, replace(SHORT, operators=5, kernels=5)) == Cost(
        5 + 4 + 37.0, 9.0, {"gpu": 37.0, "gpu_memory": 30.0, "cpu": 5.0})
    assert gpu.run(replace(SHORT, fused_embedding=True)).us == 10.0
    assert gpu.run() == Cost()


@pytest.mark.parametrize("software", [EAGER, TUNED])
def test_more_operations_never_take_less(software):
    gpu, layers = GpuTime(GPU, software), dense.mlp(64, MODELS["kaggle"].top_layers)
    times = [gpu.run(*layers[:count]).us for count in range(len(layers) + 1)]
    assert times == sorted(times) and times[0] == 0
    sizes = [gpu.run(*dense.mlp(samples, MODELS["kaggle"].top_layers)).us
             for samples in (1, 32, 1024, 32768)]
    assert sizes == sorted(sizes) and sizes[-1] > 100 * sizes[0]


def test_a_slower_gpu_never_takes_less():
    work = (*dense.mlp(64, MODELS["kaggle"].top_layers), tables.gather(10_000, 10_000, 16, 26))
    for software in (EAGER, TUNED):
        base = GpuTime(GPU, software).run(*work).us
        for change in ({"memory_bandwidth_gb_s": 50.0}, {"float32_tflops": 0.1},
                       {"launch_us": 40.0}, {"kernel_us": 9.0}, {"gather_fraction": 0.5},
                       {"stream_fraction": 0.5}, {"gemm_fraction": 0.5}):
            assert GpuTime(replace(GPU, **change), software).run(*work).us >= base


def test_the_nic_simulation_reads_rows_and_multiplies_at_the_same_rates():
    slower = replace(GPU, gather_fraction=0.5, gemm_fraction=0.25)
    lookups: GpuLookups[str] = GpuLookups(slower, 64)
    gather = lookups.arrive(0, "a", 1000)
    assert gather is not None
    rows = Operation("rows", rows=1000, row_bytes=64)
    model = GpuTime(slower, EAGER)
    assert gather.end * CYCLE_NS / 1000 == pytest.approx(4.0 + model.memory_us(rows))
    product = Operation("x", flops=2e6, matrix=True)
    assert GpuMlp(slower, 2_000_000).run(0, 1) * CYCLE_NS / 1000 == pytest.approx(
        4.0 + model.compute_us(product))


def test_copies():
    copies = CopyTime(PCIE, EAGER)
    assert (copies.call_us, copies.moving_us(50_000)) == (6.0, 5.0)
    # The GPU reads host memory in a round trip, and writes it in one direction.
    assert copies.latency_us(True) == 1.0 and copies.latency_us(False) == 0.5
    with pytest.raises(ValueError, match=r"^size must be at least 0, not -1"):
        copies.moving_us(-1)


def test_what_kernels_fill():
    gpu = GpuTime(replace(GPU, multiprocessors=10, block_bytes=1000), EAGER)
    # 2,500 bytes are three blocks; rows count with the bytes that they move; no work is a block,
    # too.
    assert gpu.share(Operation("x", streamed_bytes=2500)) == 0.3
    assert gpu.share(Operation("x", streamed_bytes=500, rows=32, row_bytes=16)) == 0.3
    assert gpu.share(SHORT) == 0.1 and gpu.share(LONG) == 1.0
    # Each of two calls has half of it.
    assert gpu.share(Operation("x", streamed_bytes=4000, operators=2, kernels=2)) == 0.2
    each = gpu.kernels(Operation("x", streamed_bytes=4e5, operators=2, kernels=2))
    # A kernel's fixed time uses neither multiprocessors nor memory.
    assert (each.us, each.share, each.memory_share) == pytest.approx((3.0, 2 / 3, 2 / 3))
    short = gpu.kernels(Operation("x", streamed_bytes=25_000))
    assert (short.us, short.share, short.memory_share) == (1.25, 0.2, 0.2)
    # A kernel holds at least one multiprocessor.
    assert gpu.kernels(SHORT).share == 0.1


def test_products_run_on_the_multiprocessors_that_their_tiles_fill():
    gpu = GpuTime(replace(GPU, multiprocessors=10), EAGER)
    work = dense.product(64, 1000, 128)  # two tiles
    assert work.tiles == 2 and gpu.share(work) == 0.2
    assert gpu.compute_us(work) == pytest.approx(2 * 64 * 1000 * 128 / 1e6 / 0.2)
    # A row takes as long as the 64 rows of a tile.
    assert gpu.compute_us(dense.product(1, 1000, 128)) == gpu.compute_us(work)
    assert gpu.compute_us(dense.linear(1, 1000, 128)) == gpu.compute_us(work)
    assert dense.product(65, 8, 64, batch=3).tiles == 6
    # Eleven tiles are two waves of ten, of which nine are idle in the second.
    waves = dense.product(64, 1000, 11 * 64)
    assert gpu.share(waves) == pytest.approx(11 / 20)
    assert gpu.compute_us(waves) == pytest.approx(2 * gpu.compute_us(dense.product(64, 1000, 64)))
    full = dense.product(640, 1000, 640)
    assert gpu.share(full) == 1.0 and gpu.compute_us(full) == pytest.approx(
        2 * 640 * 1000 * 640 / 1e6)
    # In one kernel, layers take the sum of their times, without kernel_us.
    layers = MODELS["kaggle"].bottom_layers
    one, = dense.mlp(32, layers, 3)
    assert gpu.compute_us(one) == pytest.approx(
        sum(gpu.compute_us(part) for part in dense.mlp(32, layers, 2)))


def test_cpu():
    cpu = CpuTime(CPU)
    work = Operation("x", streamed_bytes=40_000, rows=1000, row_bytes=60)
    assert cpu.work_us(work) == 2.0 + 64_000 / 5_000
    assert cpu.work_us(replace(work, flops=1e7)) == 20.0
    assert cpu.run(work, replace(work, operators=3, kernels=3)) == Cost(
        2 * 14.8 + 4 * 2.0, 8.0, {"cpu": 37.6, "cpu_memory": 29.6})
    assert cpu.run() == Cost()
    # Random accesses are no quicker than sequential accesses, whatever a sweep measures.
    assert CpuTime(replace(CPU, random_bandwidth_gb_s=80.0)).work_us(work) == 2.0 + 3.2


def test_costs_add_up():
    both = Cost(3.0, 1.0, {"gpu": 2.0}) + Cost(5.0, 2.0, {"gpu": 1.0, "link": 5.0})
    assert both == Cost(8.0, 3.0, {"gpu": 3.0, "link": 5.0}) and both.work_us == 5.0
    for arguments, message in (
            ((-1.0,), "us must be at least 0"), ((1.0, 2.0), "overhead_us must be between 0 and"),
            ((1.0, 0.0, {"gpu": 2.0}), r"busy\['gpu'\] must be between"),
            ((1.0, 0.0, {"tpu": 1.0}), "busy must be among gpu, gpu_memory, cpu")):
        with pytest.raises(ValueError, match=f"^{message}"):
            Cost(*arguments)
