"""Bytes of gradients between NICs, and time of updates by GPUs: in runs, and as charged."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from host.batching.repeats import sent_bags
from host.data.generator import generate
from host.model import Model
from host.placement.reduction import reduction
from host.samples import rechunk
from host.systems import workload_of
from host.timing.clock import CYCLE_NS
from host.timing.network import NetworkProfile
from host.timing.pcie import PcieProfile
from host.toml.profile import load_profile
from host.wire.packets import parse_header, record_fields
from rtl.formats import BEAT_BYTES, EmberHeader, GradientHead, Opcode
from sim.evaluation.workloads import gradient_traffic
from sim.offline.bag_gradients import BagTraffic
from sim.offline.gradient_path import GradientPath
from sim.offline.plan_updates import planned_devices
from sim.training.report import failures
from sim.training.train import Training
from tests.sim.interacting import write_model
from tests.sim.training.compiled_nics import options

SAMPLES, MINI_BATCH = 192, 64
MODEL = Model((50, 3, 400, 1 << 20), 16, 3, (4, 16), (4, 1), "small",
              ((1, 2), (1, 1), (0, 9), (1, 3)))
REQUESTS = replace(MODEL, requests=(5, 9, 14), request_tables=(1, 2))
"""Two tables repeat their bags."""


def sent(training: Training) -> dict[str, Counter]:
    """Train; return the UDP payload and the packets of gradients of each kind."""
    found = {"bytes": Counter(), "packets": Counter()}

    def observer(frames):
        for _, _, frame in frames:
            opcode = parse_header(frame[0]).opcode
            head = record_fields(GradientHead, frame[1].view("<u8")[:1])
            if opcode == Opcode.PARTIALS or (opcode == Opcode.BAGS and head["gradient"][0]):
                found["bytes"][opcode] += EmberHeader.size // 8 + BEAT_BYTES * (len(frame) - 1)
                found["packets"][opcode] += 1

    result = training.execute(observer=observer)
    assert failures(result) == [] and result["complete"]
    return found


def charged(training: Training) -> tuple[list[BagTraffic], dict[str, float]]:
    """Return the bags with gradients of each step, and the gradients per step."""
    plan, config, runtime = training.plan, training.config, training.runtime
    steps = [sent_bags(batch, plan.nodes, training.options.run.workload.repeats)
             for batch in rechunk(generate(training.model, SAMPLES, 1), MINI_BATCH)]
    gpus = bool(training.in_order)
    bags = [BagTraffic.of(batch, plan, config, runtime, MODEL.width) for batch in steps] * gpus
    kept = (plan.owner_pooled == 0) | (not gpus)
    return bags, gradient_traffic(
        [workload_of(batch, training.model, plan) for batch in steps],
        [reduction(batch.of_tables(kept), plan, config) for batch in steps], bags,
        config.net_payload_beats)


@pytest.mark.thorough
@pytest.mark.few(4)
@pytest.mark.parametrize("update", ["gpu", "nic"])
@pytest.mark.parametrize("pool", ["owner", "some"])
@pytest.mark.parametrize("repeats", ["send", "neighbours"])
def test_runs_send_the_bytes_that_are_charged(tmp_path, pool, update, repeats):
    (tmp_path / "some.toml").write_text("owner = [2, 3]\n")
    training = Training(options(
        MODEL if repeats == "send" else REQUESTS, placement="even", nodes=2,
        samples=SAMPLES, mini_batch=MINI_BATCH, update=update, repeats=repeats,
        pool="owner" if pool == "owner" else str(tmp_path / "some.toml")))
    bags, gradients = charged(training)
    found = sent(training)
    steps = SAMPLES // MINI_BATCH
    total = sum(found["bytes"].values())
    print(f"{pool}, {update}: bytes {dict(found['bytes'])}, packets {dict(found['packets'])}; "
          f"charged {steps * gradients['bytes']:.0f} in {steps * gradients['packets']:.0f} packets")
    assert total == pytest.approx(steps * gradients["bytes"], rel=0.01)
    if update == "gpu":
        assert found["bytes"][Opcode.BAGS] == pytest.approx(
            sum(int(each.payload.sum()) for each in bags), rel=0.01)
        assert (found["bytes"][Opcode.PARTIALS] > 0) == (pool == "some")
    else:
        assert found["bytes"][Opcode.BAGS] == 0
    assert np.trace(sum(each.bags for each in bags) if bags else np.zeros((2, 2))) == 0


@pytest.mark.thorough
@pytest.mark.parametrize("mini_batch", [16, 192])
def test_gpus_update_rows_when_the_model_expects(tmp_path, mini_batch):
    """The kernel of a run reads gradients and rows; comparisons charge all kernels of FBGEMM."""
    training = Training(options(
        write_model(tmp_path / "small.toml", MODEL), placement="even", nodes=2,
        samples=SAMPLES, mini_batch=mini_batch, pool="owner", compare=False))
    workload, plan, config = training.options.run.workload, training.plan, training.config
    gpu = training.nics.simulation.gpu
    took = training.execute()["phases_us"]["update"]
    devices = planned_devices(2, "tuned", gpu, load_profile(workload.pcie, PcieProfile),
                              load_profile(workload.network, NetworkProfile))
    path = GradientPath(config, devices, gpu, training.runtime.gradient_timeout)
    expected = []
    for batch in rechunk(generate(training.model, SAMPLES, 1), mini_batch):
        work = workload_of(batch, training.model, plan)
        of = path.of_gpus(work, BagTraffic.of(batch, plan, config, training.runtime, MODEL.width))
        rows = int((work.lookups.sum(axis=0) + 2 * work.unique).max())
        expected.append(of.bags_us + gpu.latency_us + of.told_us + max(
            gpu.kernel_us, rows * gpu.cycles_per_row(4 * MODEL.width) * CYCLE_NS / 1000))
    print(f"mini-batches of {mini_batch}: {took:.2f} us, expected {np.mean(expected):.2f}")
    assert float(np.mean(expected)) == pytest.approx(took, rel=0.12)
