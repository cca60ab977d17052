"""Packets of 9,000 bytes between nodes: the rate of the network, and the option of NICs."""

import pytest

from host.model import Model
from host.systems import Devices, EnTuning, NicTuning
from host.timing.network import MTUS
from sim.evaluation.measure import measure
from sim.evaluation.point import Point

WIDE = Model((4000,) * 8, 128, 4, (32, 128), (32, 1))
FIELDS = {"dataset": WIDE, "nodes": 4, "mini_batch": 256, "warmup": 1, "measured": 4,
          "software": "tuned_h100", "gpu": "gpu_h100", "rdma": True, "in_flight": 4,
          "per_graph": 1, "local_cache": None, "remote_cache": None}

SLOW = {"scaled": (("ethernet_100g_switch.bandwidth_gbit_s", 0.1),)}
"""The network is the bottleneck."""


def test_a_frame_of_9000_bytes_carries_a_larger_share_of_data():
    short, long = (Devices.load(4, mtu=mtu).nccl.topology.profile.levels[-1] for mtu in MTUS)
    # 42 bytes of headers and 24 around a frame, of which 28 belong to the IP packet.
    assert short.bandwidth_gb_s == pytest.approx(12.5 * 1472 / 1538)
    assert long.bandwidth_gb_s == pytest.approx(12.5 * 8972 / 9038)
    assert Devices.load(4, mtu=MTUS[1]).network == Devices.load(4).network


@pytest.mark.parametrize("system", [
    pytest.param("fs", marks=pytest.mark.thorough), pytest.param("en", marks=pytest.mark.slow)])
def test_nics_choose_longer_packets_where_they_are_faster(system):
    fields = FIELDS | SLOW | {"fixed": ("pool=requester",)}
    short, long = (measure(Point.named(system, fields | {"mtu": mtu})) for mtu in MTUS)
    assert long["interval_us"] < 0.98 * short["interval_us"]
    assert "jumbo" in " ".join(long["notes"]) and "jumbo" not in " ".join(short["notes"])
    assert long["traffic"]["vectors"]["packets"] < short["traffic"]["vectors"]["packets"] / 2
    fixed = measure(Point.named(system, fields | {
        "mtu": MTUS[1], "fixed": ("pool=requester", "jumbo=false")}))
    assert fixed["interval_us"] == pytest.approx(short["interval_us"], rel=1e-3)


def test_the_baseline_has_longer_packets_as_well():
    fields = FIELDS | SLOW | {"fixed": ("copied_rows=0", "exchange=gpu")}
    short, long = (measure(Point.named("bl-tuned", fields | {"mtu": mtu})) for mtu in MTUS)
    assert long["busy_us"]["link"] / short["busy_us"]["link"] == pytest.approx(
        (9038 / 8972) / (1538 / 1472), rel=0.01)
    vectors = [each["traffic"]["vectors"] for each in (short, long)]
    assert vectors[0]["bytes"] == vectors[1]["bytes"]
    assert vectors[1]["packets"] < vectors[0]["packets"]


def test_longer_packets_need_a_network_that_carries_them():
    for system in ("fs", "en"):
        with pytest.raises(ValueError, match="jumbo must be false where mtu is 1500; it needs"):
            Point.named(system, FIELDS | {"fixed": ("jumbo=true",)})
    with pytest.raises(ValueError, match="mtu must be one of 1500, 9000, not 4096"):
        Point.named("en", FIELDS | {"mtu": 4096})


def test_training_keeps_packets_of_1500_bytes():
    assert not EnTuning(jumbo=True, deliver="pooled").possible(training=True)
    assert not NicTuning(jumbo=True).possible(training=True)
