"""Our models against published measurements: work, values, exhibit."""

import csv
import re
from dataclasses import replace

import numpy as np
import pytest

from host.calibrate.gpu.beside import half
from host.data.generator import generate
from host.devices.dense_work import product
from host.devices.software import SoftwareProfile
from host.measurements.published import drop, flattening, flattening_v3_1
from host.measurements.step import StepKernel, step_kernels
from host.model import Model
from host.placement.shard import ShardPlan
from host.systems.devices import Devices
from host.systems.schedule import schedule
from host.systems.workload import workload_of
from host.toml.profile import load_profile
from sim.evaluation.built import interval_us
from sim.evaluation.setting import DEMO
from sim.experiments.checks import composed, network_drop, v100_step, whole_steps
from sim.experiments.checks.check import Check, Comparison, geometric_mean, percent
from sim.experiments.checks.every import comparisons
from sim.experiments.checks.hugectr_shards import Shard, shards_of
from sim.experiments.checks.hugectr_step import step_parts
from sim.experiments.figures.checks import EXHIBIT
from sim.experiments.reproduce import reproduce


def test_a_check_is_good_within_its_bound_on_either_side():
    assert Check("x", 114.0, 100.0, "us", 0.15).good and Check("x", 86.0, 100.0, "us", 0.15).good
    assert Check("x", 116.0, 100.0, "us", 0.15).good is False
    assert Check("x", 84.0, 100.0, "us", 0.15).good is False
    assert Check("x", 1.0, 100.0, "us").good is None
    with pytest.raises(ValueError, match="theirs must be above 0, not 0"):
        Check("x", 1.0, 0.0, "us")


def test_a_comparison_is_good_if_all_its_bounds_hold():
    def of(*checks):
        return Comparison.of("n", "t", "V100 step", "c", checks, "d").good
    good, bad = Check("a", 1.0, 1.0, "x", 0.1), Check("b", 2.0, 1.0, "x", 0.1)
    told = Check("c", 9.0, 1.0, "x")
    assert of(good, told) is True and of(good, bad) is False and of(told) is None


def test_small_words():
    assert percent(0.094) == "+9 %" and percent(-0.5) == "-50 %"
    assert geometric_mean([1.0, 4.0]) == pytest.approx(2.0)


def _kernel(operator, name, shapes, rows=0):
    return StepKernel(operator, name, shapes, rows, (1,), (3.0,))


@pytest.mark.parametrize(("kernel", "kind", "streamed", "flops"), [
    (_kernel("aten::addmm", "gemm", "512 16x367 367x512"), "products",
     4 * (16 * 367 + 367 * 512 + 16 * 512), 2 * 16 * 367 * 512),
    (_kernel("aten::bmm", "sgemm", "16x27x16 16x16x27"), "products",
     product(27, 16, 27, 16).streamed_bytes, 2 * 16 * 27 * 16 * 27),
    (_kernel("aten::mm", "splitKreduce_kernel", "16x512 512x367"), "products",
     8 * 16 * 367, 16 * 367),
    (_kernel("aten::addcmul_", "e", "512x367 512x367 512x367"), "elementwise",
     16 * 512 * 367, 3 * 512 * 367),
    (_kernel("aten::mul", "e", "512 512"), "elementwise", 8 * 512, 512),
    (_kernel("aten::sqrt", "e", "256x13"), "elementwise", 8 * 256 * 13, 256 * 13),
    (_kernel("aten::fill_", "e", ""), "copies and fills", 4, 0),
    (_kernel("aten::cat", "CatArrayBatchedCopy", "16x416"), "copies and fills", 8 * 16 * 416, 0),
    (_kernel("aten::index", "i", "16x27x27"), "copies and fills", 16 * 16 * 351, 0),
    (_kernel("fbgemm::permute_2D_sparse_data", "DeviceScanKernel", "26 26x16 3424"),
     "sorts and scans", 32 * 3424, 0),
])
def test_a_kernel_has_the_work_of_its_shapes(kernel, kind, streamed, flops):
    found, work = v100_step.operation(kernel)
    assert (found, work.streamed_bytes, work.flops, work.kernels) == (kind, streamed, flops, 1)


def test_a_lookup_has_its_rows_and_bags():
    kernel = next(each for each in step_kernels()
                  if "lookup" in each.operator and each.rows == 13312)
    _, work = v100_step.operation(kernel)
    assert (work.rows, work.row_bytes) == (13312, 64)
    assert work.streamed_bytes == 8 * (13312 + 384) + 64 * 384


def test_every_kernel_of_the_step_becomes_one_kernel():
    works = [v100_step.operation(each)[1] for each in step_kernels() if each.computes]
    assert len(works) > 250 and all(work.kernels == work.operators == 1 for work in works)


def test_a_cross_network_has_the_products_of_two_layers():
    model = composed.cross_model((10, 20), 16, 13, (32, 16), (64, 1), 3, 8)
    assert model.top_layers == ((48, 8), (8, 48)) * 3 + ((48, 64), (64, 1))


def test_the_work_of_counted_samples_is_that_of_samples():
    """One key in each table, on two nodes; the samples differ only in their rows."""
    model = Model((1 << 20,) * 4, 16, 1, (16,), (1,))
    samples = next(iter(generate(model, 64, seed=1)))
    plan = composed.even_plan(model, 2, (1,) * 4)
    real = workload_of(samples, model, plan)
    ours = composed.work_of(model, plan, 32, (1,) * 4)
    for name in ("samples", "lookups", "bags", "tables"):
        assert np.array_equal(getattr(real, name), getattr(ours, name)), name
    assert (ours.requested >= real.requested).all()


def test_an_even_plan_deals_lookups():
    found = drop().model
    model = composed.cross_model(found.rows, found.dimension, found.dense, found.bottom, found.top,
                                 found.cross_layers, found.cross_rank)
    plan = composed.even_plan(model, 16, (1,) * 26)
    assert isinstance(plan, ShardPlan)
    assert sorted(np.bincount([table.owner for table in plan.tables])) == [1] * 6 + [2] * 10


def test_an_iteration_grows_with_the_mini_batch_and_the_bytes():
    found = flattening()
    run = found.runs[1]
    whole = step_parts(found, run)
    double = step_parts(found, replace(run, mini_batch=2 * run.mini_batch))
    assert double.us > 1.5 * whole.us and double.all_reduce == whole.all_reduce
    hot = step_parts(replace(found, hot=tuple(2 * each for each in found.hot)), run)
    assert hot.update > 1.5 * whole.update and hot.dense == whole.dense
    # Vectors of empty bags are sent too.
    assert hot.exchange == whole.exchange


def test_an_iteration_is_what_waits_for_one_another():
    found = flattening()
    for run in found.runs:
        parts = step_parts(found, run)
        assert parts.us == pytest.approx(parts.lookup + 2 * parts.exchange + max(
            parts.dense, parts.keys) + max(parts.update, parts.all_reduce))
        assert replace(parts, host=1e9).us == 1e9
    # The host's calls do not depend on the number of GPUs.
    assert len({step_parts(found, run).host for run in found.runs}) == 1


def test_a_shard_is_a_part_of_its_tables():
    found = flattening()
    one, several = shards_of(found, found.runs[0])[1], shards_of(found, found.runs[1])[0]
    # A quarter of table 20 with all of table 0; on several hosts, half of it over eight GPUs.
    assert one == Shard(2, 25 + 3, pytest.approx(2, abs=1e-9))
    assert several == Shard(2, pytest.approx(100 / 16 + 1 / 8), pytest.approx(1 + 1 / 8, abs=0.01))


def test_replicated_tables_are_reduced_and_not_sent():
    found = flattening_v3_1()
    run = found.runs[1]
    whole = step_parts(found, run)
    less = step_parts(found, replace(run, replicated=run.replicated[1:]))
    assert whole.all_reduce > less.all_reduce and whole.exchange < less.exchange
    assert whole.update == less.update


def test_at_the_rate_that_is_named_the_model_drops_as_theirs():
    found = drop()
    one = network_drop._rate(found.model, 1)
    needed = network_drop._needed_gb_s(found, one / 6)
    assert network_drop._rate(found.model, 2, network_gb_s=needed) == pytest.approx(one / 6)
    assert network_drop._rate(found.model, 2) > one / 6


def test_comparisons_cover_what_was_measured():
    bounds = {each.name: (each.source.name, [
        check.bound for check in each.checks if check.bound is not None])
        for each in comparisons()}
    assert bounds == {
        "V100 step, kernels": ("V100 step", [0.15]),
        "V100 step, collectives": ("V100 step", [0.3] * 2),
        "V100 kernels": ("V100 kernel rows", []), "H100 kernels": ("H100, kernels", []),
        "graph algorithm": ("graph algorithm, other shapes", []),
        "V100 inference": ("V100 inference", [0.25] * 2),
        "H100 whole steps": ("H100, whole steps", [0.25] * 33),
        "8 to 128 H100": ("MLPerf Training v3.0, DLRM-DCNv2", [0.2]),
        "8 to 128 H100, v3.1": ("MLPerf Training v3.1, DLRM-DCNv2", []),
        "100 Gb/s NIC": ("dlrm issue 356", [0.3]),
        "TorchRec README": ("TorchRec's DLRM on eight A100s", [0.3] * 4)}
    for each in comparisons():
        assert each.compared and not re.search(r"nan|inf\b|None", each.conclusion)
        # Each conclusion must state the cause of an error.
        assert each.good is not False or "Cause" in each.conclusion


def test_misses_come_first_and_the_worst_before_others():
    found = comparisons()
    judged = [each.good for each in found]
    assert judged == sorted(judged, key=lambda good: (good is None, good is True))
    misses = [each.worst for each in found if each.good is False]
    assert misses == sorted(misses, reverse=True)
    assert found[0].name == "TorchRec README" and misses[0] > 4
    for each in found:
        goods = [check.good for check in each.checks]
        assert goods == sorted(goods, key=lambda good: (good is None, good is True))


def test_a_whole_graph_is_composed_of_its_launch_and_its_kernels():
    calls = whole_steps.half("kaggle", 32, waits=True)
    software = load_profile("software_tuned_h100", SoftwareProfile)
    busy = schedule([calls]).busy
    assert busy["cpu"] == pytest.approx(software.graph_us + software.synchronize_us)
    # The baseline's half looks up keys, and waits for no word.
    names = [{stage.name for stage in whole_steps.half("kaggle", 32, waits).stages}
             for waits in (True, False)]
    assert names[0] - names[1] == {"NIC", "wait for the NIC"} and "lookup" in names[1]
    # With 16 mini-batches in flight, kernels beside each other limit, and with 64 the thread.
    one, two, many = (interval_us([whole_steps.half("kaggle", 32, False, threads)], in_flight)
                      for threads, in_flight in ((1, 16), (2, 16), (1, 64)))
    assert one == two > 1.1 * busy["cpu"] and many == pytest.approx(busy["cpu"], rel=0.01)


def test_the_kernels_of_the_constants_are_those_of_the_checks():
    for name, samples in (("kaggle", 32), ("terabyte", 512)):
        kernels = [stage for stage in whole_steps.half(name, samples, waits=False).stages
                   if "gpu" in stage.resources]
        gpu = Devices.load(1, "tuned_h100", "gpu_h100").gpu
        work = half(name, samples)
        assert len(kernels) == sum(each.kernels for each in work)
        assert sum(stage.us for stage in kernels) == pytest.approx(sum(map(gpu.work_us, work)))


def test_the_exhibit_writes_a_table_a_picture_and_rows(tmp_path):
    found = reproduce(["checks"], DEMO, tmp_path, jobs=1)
    assert found["figures"] == ["checks"] and found["points"] == 0 and not found["failed"]
    with open(tmp_path / "checks.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    checks = [(each, check) for each in comparisons() for check in each.checks]
    ours = [row for row in rows if row["system"] == "ours"]
    assert [row["metric"] for row in ours] == [check.name for _, check in checks]
    for row, error, (_, check) in zip(ours, (row for row in rows if row["system"] == "error"),
                                      checks):
        assert float(row["value"]) == pytest.approx(check.ours)
        assert float(error["value"]) == pytest.approx(check.error)
    page = (tmp_path / "index.html").read_text()
    judged = [each.good for each in comparisons() if each.good is not None]
    worst = max(each.worst for each in comparisons())
    assert f"in {sum(judged)} of {len(judged)} comparisons" in page
    assert f"the largest miss is a factor of {worst:.2f}" in page
    assert page.count('<span class="no">no</span>') == sum(
        check.good is False for _, check in checks)
    assert (tmp_path / "checks.png").stat().st_size > 10_000
    assert EXHIBIT.points(DEMO) == []
