"""Bytes of gradients between NICs: what runs send, and what comparisons and plans charge."""

from collections import Counter

import numpy as np
import pytest

from host.data.generator import generate
from host.model import Model
from host.placement.reduction import reduction
from host.samples import rechunk
from host.systems import workload_of
from host.wire.packets import parse_header, record_fields
from rtl.formats import BEAT_BYTES, EmberHeader, GradientHead, Opcode
from sim.evaluation.workloads import gradient_traffic
from sim.offline.bag_gradients import BagTraffic
from sim.training.report import failures
from sim.training.train import Training
from tests.sim.interacting import write_model
from tests.sim.training.compiled_nics import NIC, options

SAMPLES, MINI_BATCH = 192, 64
MODEL = Model((50, 3, 400, 1 << 20), 16, 3, (4, 16), (4, 1), "small",
              ((1, 2), (1, 1), (0, 9), (1, 3)))
BAGS = (*NIC, "owner_bags=16")


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
    steps = list(rechunk(generate(training.model, SAMPLES, 1), MINI_BATCH))
    gpus = bool(training.in_order)
    bags = [BagTraffic.of(batch, plan, config, runtime, MODEL.width) for batch in steps] * gpus
    kept = (plan.owner_pooled == 0) | (not gpus)
    return bags, gradient_traffic(
        [workload_of(batch, training.model, plan) for batch in steps],
        [reduction(batch.of_tables(kept), plan, config) for batch in steps], bags,
        config.net_payload_beats)


@pytest.mark.thorough
@pytest.mark.parametrize("update", ["gpu", "nic"])
@pytest.mark.parametrize("pool", ["owner", "some"])
def test_runs_send_the_bytes_that_are_charged(tmp_path, pool, update):
    (tmp_path / "some.toml").write_text("owner = [2, 3]\n")
    training = Training(options(
        write_model(tmp_path / "small.toml", MODEL), nic=BAGS, placement="even", nodes=2,
        samples=SAMPLES, mini_batch=MINI_BATCH, update=update,
        pool="owner" if pool == "owner" else str(tmp_path / "some.toml")))
    bags, gradients = charged(training)
    found = sent(training)
    steps = SAMPLES // MINI_BATCH
    total = sum(found["bytes"].values())
    print(f"{pool}, {update}: bytes {dict(found['bytes'])}, packets {dict(found['packets'])}; "
          f"charged {steps * gradients['bytes']:.0f} in {steps * gradients['packets']:.0f} packets")
    # The terms of an exact sum depend on the values; two are charged for a sum of several.
    assert total == pytest.approx(steps * gradients["bytes"],
                                  rel=0.03 if found["bytes"][Opcode.PARTIALS] else 0.01)
    if update == "gpu":
        assert found["bytes"][Opcode.BAGS] == pytest.approx(
            sum(int(each.payload.sum()) for each in bags), rel=0.01)
        assert (found["bytes"][Opcode.PARTIALS] > 0) == (pool == "some")
    else:
        assert found["bytes"][Opcode.BAGS] == 0
    assert np.trace(sum(each.bags for each in bags) if bags else np.zeros((2, 2))) == 0
